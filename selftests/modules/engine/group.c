// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A group: a chain of random work requests, and what must be true of it at each moment.
 * The ledger's rules, held against every one:
 *
 *  - it ends once, after it was accepted, with bottom halves off, and neither inside a
 *    post nor while another of the queue ends;
 *  - the groups of a producer are executed, and end, in the order they were posted in;
 *  - its work requests are next to each other in the send queue;
 *  - success means that all of it was executed and that its data arrived; after the
 *    first flush there is no success;
 *  - it comes back as it was posted.
 */
#include "engine.h"

#define LEN_MAX		128

static u32 random(struct producer *producer, u32 below)
{
	return prandom_u32_state(&producer->rnd) % below;
}

void group_init(struct group *group, struct producer *producer, u32 tag)
{
	u32 i;

	group->producer = producer;
	group->tag = tag;
	for (i = 0; i < GROUP_MAX; i++) {
		group->wr[i].send.sg_list = &group->sge[i];
		group->sge[i].length = 0;
	}
}

static enum ib_wr_opcode opcode_of(const struct group *group, u32 i)
{
	switch (group->kind) {
	case GROUP_READ:
		return IB_WR_RDMA_READ;
	case GROUP_SEND:
		return group->other ? IB_WR_SEND_WITH_IMM : IB_WR_SEND;
	case GROUP_REG:
		if (!i)
			return IB_WR_REG_MR;
		return i + 1 == group->nr ? IB_WR_LOCAL_INV : IB_WR_RDMA_WRITE;
	case GROUP_ATOMIC:
		return group->other ? IB_WR_ATOMIC_CMP_AND_SWP : IB_WR_ATOMIC_FETCH_AND_ADD;
	default:
		/* With immediate data it is a message, too: the last one will do. */
		return group->other && i + 1 == group->nr ? IB_WR_RDMA_WRITE_WITH_IMM :
							    IB_WR_RDMA_WRITE;
	}
}

static void choose(struct group *group)
{
	const struct traffic_attr *attr = &group->producer->traffic->attr;
	struct producer *producer = group->producer;

	group->len = 12 + random(producer, LEN_MAX - 12 + 1);
	group->inlined = false;
	group->copied = false;
	group->other = false;
	if (producer->plain) {
		group->kind = producer->queue->rig->attr.type == IB_QPT_UD ? GROUP_SEND :
									     GROUP_WRITE;
		group->nr = 1;
		return;
	}
	do {
		group->kind = random(producer, GROUP_NR_KINDS);
	} while (!(attr->kinds & BIT(group->kind)));
	group->nr = 1 + random(producer, attr->max_group);
	if (group->kind == GROUP_REG)
		group->nr = max(group->nr, 3U);
	if (group->kind == GROUP_ATOMIC)
		group->len = sizeof(u64);
	if (attr->imm || group->kind == GROUP_ATOMIC)
		group->other = random(producer, 2);
	group->copied = attr->copies && !random(producer, 4);
}

/* It is to be posted after @ahead others that have been built. */
int group_build(struct group *group, u32 ahead)
{
	struct traffic *traffic = group->producer->traffic;
	struct ib_send_wr *wr;
	u32 i;

	choose(group);
	group->seq = group->producer->posted + ahead;
	atomic_set(&group->executed, 0);
	group->req.wr = &group->wr[0].send;
	group->req.inline_sge = NULL;
	for (i = 0; i < group->nr; i++) {
		wr = &group->wr[i].send;
		wr->next = i + 1 < group->nr ? &group->wr[i + 1].send : NULL;
		wr->opcode = opcode_of(group, i);
		wr->send_flags = 0;
		wr->num_sge = wr->opcode == IB_WR_REG_MR || wr->opcode == IB_WR_LOCAL_INV ? 0 : 1;
		wr->sg_list = &group->sge[i];
		group->sge[i].length = group->len;
		wr->ex.imm_data = (__force __be32)group->tag;
	}
	if (!traffic->queue->rig->attr.scripted)
		return data_prepare(group);
	return 0;
}

static void judge_success(struct group *group)
{
	struct traffic *traffic = group->producer->traffic;
	u32 executed = atomic_read(&group->executed);

	atomic_inc(&traffic->succeeded);
	if (READ_ONCE(traffic->flush_seen) && !traffic->attr.may_lose)
		engine_fail("a success after a flush");
	if (!traffic->queue->rig->attr.scripted)
		data_check(group);
	else if (executed != group->nr)
		engine_fail("success, though %u of %u were executed", executed, group->nr);
}

static void judge(struct group *group, enum ib_wc_status status, int error)
{
	struct traffic *traffic = group->producer->traffic;

	if (status == IB_WC_SUCCESS) {
		judge_success(group);
	} else if (status == IB_WC_WR_FLUSH_ERR) {
		WRITE_ONCE(traffic->flush_seen, true);
		atomic_inc(&traffic->flushed);
		if (!traffic->attr.may_fail)
			engine_fail("a flush, though nothing went wrong");
	} else if (status == IB_WC_LOC_QP_OP_ERR && traffic->attr.may_refuse &&
		   (error || !traffic->attr.may_fail)) {
		atomic_inc(&traffic->refused);
		if (error >= 0 && !group->copied)
			engine_fail("a refused group carries error %d", error);
		if (atomic_read(&group->executed) == group->nr)
			engine_fail("a refused group was executed");
	} else {
		atomic_inc(&traffic->failed);
		if (!traffic->attr.may_fail)
			engine_fail("a group ended with %s", ib_wc_status_msg(status));
	}
}

static void judge_shape(const struct group *group)
{
	const struct ib_send_wr *last = &group->wr[group->nr - 1].send;

	if (group->copied)
		return;
	if (last->next)
		engine_fail("the chain of a group that ended goes on");
	if (last->sg_list != &group->sge[group->nr - 1] ||
	    (group->req.inline_sge && group->req.inline_sge != &group->inline_sge))
		engine_fail("the SGL of a group that ended is another");
	if (!group->inlined && last->send_flags & IB_SEND_INLINE)
		engine_fail("the flags of a group that ended say inline");
}

/* One in so many groups that ended makes another, from inside done(). */
static void post_again(struct traffic *traffic, struct producer *from)
{
	struct producer *producer = &traffic->producer[traffic->attr.producers];
	struct group *group;

	if (!traffic->attr.from_done || READ_ONCE(traffic->stop) ||
	    random(producer, traffic->attr.from_done))
		return;
	group = producer_take(producer);
	if (!group)
		return;
	if (group_build(group, 0) ||
	    group_post(group, random(producer, 2) ? KVERBS_MORE : 0))
		producer_give(producer, group);
}

static void ended(struct group *group, enum ib_wc_status status, int error)
{
	struct producer *producer = group->producer;
	struct traffic *traffic = producer->traffic;

	if (atomic_inc_return(&traffic->in_done) != 1)
		engine_fail("two done() of a queue at once");
	if (hook_in_post())
		engine_fail("done() inside a post");
	if (!in_softirq())
		engine_fail("done() with bottom halves on");
	if (atomic_cmpxchg(&group->outstanding, 1, 0) != 1)
		engine_fail("a group is done that was not outstanding");
	if (group->seq != producer->ended)
		engine_fail("producer %u: group %u is done, not %u", producer->index, group->seq,
			    producer->ended);
	WRITE_ONCE(producer->ended, group->seq + 1);
	judge(group, status, error);
	judge_shape(group);
	producer_give(producer, group);
	post_again(traffic, producer);
	atomic_dec(&traffic->in_done);
	/* Last: with the last of them the traffic may go. */
	atomic_inc_return_release(&traffic->ended);
	if (wq_has_sleeper(&traffic->wait))
		wake_up_all(&traffic->wait);
}

static void group_done(struct kverbs_req *req, enum ib_wc_status status)
{
	ended(container_of(req, struct group, req), status, req->error);
}

static void copied_done(struct ib_cq *cq, struct ib_wc *wc)
{
	ended(container_of(wc->wr_cqe, struct group, cqe), wc->status, 0);
}

static int post(struct group *group, unsigned int flags, bool wait)
{
	struct producer *producer = group->producer;
	struct kverbs_sq *sq = producer->queue->sq;
	u32 nr = group->nr;
	int err;

	group->req.done = group_done;
	group->cqe.done = copied_done;
	atomic_set(&group->outstanding, 1);
	hook_post_begin();
	if (group->copied)
		err = kverbs_post_wrs(sq, &group->wr[0].send, &group->cqe, flags);
	else if (wait)
		err = kverbs_post_wait(sq, &group->req, flags, 15 * HZ);
	else
		err = kverbs_post(sq, &group->req, flags);
	hook_post_end();
	if (!err) {
		producer->posted_wrs += nr;
		WRITE_ONCE(producer->posted, producer->posted + 1);
	} else {
		atomic_set(&group->outstanding, 0);
	}
	return err;
}

/* How many were accepted, from the first on, or an errno; none of them is to be copied. */
int group_post_list(struct group **groups, u32 nr, unsigned int flags)
{
	struct producer *producer = groups[0]->producer;
	struct kverbs_req *reqs[LIST_MAX];
	u32 wrs[LIST_MAX];
	int done;
	u32 i;

	for (i = 0; i < nr; i++) {
		wrs[i] = groups[i]->nr;
		groups[i]->req.done = group_done;
		atomic_set(&groups[i]->outstanding, 1);
		reqs[i] = &groups[i]->req;
	}
	hook_post_begin();
	done = kverbs_post_list(producer->queue->sq, reqs, nr, flags);
	hook_post_end();
	if (!done || done > (int)nr)
		engine_fail("%d of %u were accepted", done, nr);
	for (i = max(done, 0); i < nr; i++)
		atomic_set(&groups[i]->outstanding, 0);
	for (i = 0; (int)i < done; i++)
		producer->posted_wrs += wrs[i];
	WRITE_ONCE(producer->posted, producer->posted + max(done, 0));
	return done;
}

int group_post(struct group *group, unsigned int flags)
{
	return post(group, flags, false);
}

/* A group that is copied does not wait. */
int group_post_wait(struct group *group, unsigned int flags)
{
	int err = post(group, flags, true);

	if (err == -EAGAIN && !group->copied)
		engine_fail("nobody woke a producer in 15 s");
	return err;
}

/* The scripted HCA executes a work request; its lock is held. */
void traffic_executed(struct rig_queue *queue, const struct hca_wqe *wqe)
{
	struct traffic *traffic = queue->traffic;
	struct producer *producer;
	struct group *group;
	u32 nr;

	if (!traffic || !wqe->tag)
		return;
	group = &traffic->groups[wqe->tag - 1];
	producer = group->producer;
	nr = atomic_inc_return(&group->executed);
	if (!atomic_read(&group->outstanding))
		engine_fail("a group is executed that is not outstanding");
	if (wqe->opcode != opcode_of(group, nr - 1))
		engine_fail("work request %u of a group is executed out of turn", nr);
	if (traffic->open && traffic->open != group && !traffic->attr.may_refuse)
		engine_fail("work requests of two groups are mixed");
	traffic->open = nr == group->nr ? NULL : group;
	if (nr > 1)
		return;
	if ((s32)(group->seq - producer->started) < 0 ||
	    (group->seq != producer->started && !traffic->attr.may_refuse))
		engine_fail("producer %u: group %u is executed, not %u", producer->index,
			    group->seq, producer->started);
	producer->started = group->seq + 1;
}
