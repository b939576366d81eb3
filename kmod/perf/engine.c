// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The engines. They do the same to a slot before it is posted and when it has ended,
 * so that they differ in nothing but how they post and how completions find the slots:
 *
 *  raw     a call of ib_post_send() and a CQE for each request, as most consumers do
 *  chain   the best one can write by hand: the burst as one chain, the last signaled
 *  kverbs  kverbs_post_list()
 */
#include "perf.h"

/* What is to be sent or read, and something else where it is to arrive. */
void perf_slot_fill(struct perf_slot *slot, u64 number)
{
	struct perf_queue *queue = slot->lane->queue;
	const struct kverbs_perf_run *attr = &slot->lane->bench->run->attr;

	slot->key = perf_key(slot->lane, number);
	if (attr->op == KVERBS_PERF_READ) {
		perf_pattern_fill(queue->server_memory, slot->index, attr->msg_size, slot->key);
		perf_pattern_poison(queue->client_memory, slot->index, attr->msg_size);
		return;
	}
	perf_pattern_fill(queue->client_memory, slot->index, attr->msg_size, slot->key);
	if (attr->op == KVERBS_PERF_WRITE)
		perf_pattern_poison(queue->server_memory, slot->index, attr->msg_size);
}

/* Where the data of a slot went: a send's is looked at by whoever receives it. */
bool perf_slot_arrived(const struct perf_slot *slot)
{
	const struct perf_queue *queue = slot->lane->queue;
	const struct kverbs_perf_run *attr = &slot->lane->bench->run->attr;

	if (perf_op_sends(attr))
		return true;
	return perf_pattern_ok(attr->op == KVERBS_PERF_READ ? queue->client_memory :
							      queue->server_memory,
			       slot->index, 0, attr->msg_size, slot->key);
}

static struct perf_slot *lane_take(struct perf_lane *lane)
{
	struct perf_slot *slot = perf_lane_slot(lane, lane->tail);

	if (lane->bench->verify)
		perf_slot_fill(slot, lane->posted);
	slot->used = true;
	slot->outstanding = true;
	slot->last_of_burst = false;
	lane->tail = perf_lane_next(lane, lane->tail);
	lane->posted++;
	return slot;
}

/* The last @n that were taken were not accepted. */
static void lane_give_back(struct perf_lane *lane, u32 n)
{
	while (n--) {
		lane->tail = (lane->tail ?: lane->nr_slots) - 1;
		lane->posted--;
		perf_lane_slot(lane, lane->tail)->outstanding = false;
	}
}

static u64 call_begin(const struct perf_lane *lane)
{
	u64 begin = perf_ticks();

	if (lane->bench->what.context == KVERBS_PERF_BH_OFF)
		local_bh_disable();
	return begin;
}

/* What bottom halves have to do when they are let in again is part of the price. */
static void call_end(struct perf_lane *lane, u64 begin)
{
	u64 returned = perf_ticks(), end = returned;

	if (lane->bench->what.context == KVERBS_PERF_BH_OFF) {
		local_bh_enable();
		end = perf_ticks();
	}
	lane->post.call_ticks += returned - begin;
	lane->post.post_ticks += end - begin;
}

static void burst_end(struct perf_lane *lane, u32 n, u64 call_ticks_before)
{
	u64 ticks = lane->post.call_ticks - call_ticks_before;

	if (n == lane->bench->burst && ticks < lane->post.call_min_ticks)
		lane->post.call_min_ticks = ticks;
}

static noinline void slot_failed(struct perf_slot *slot, enum ib_wc_status status)
{
	struct perf_lane *lane = slot->lane;

	if (status == IB_WC_WR_FLUSH_ERR)
		lane->done.flushed++;
	else
		lane->done.failed++;
	perf_run_stop(lane->bench->run, PERF_STOP_WAITING, -EIO,
		      "request %llu of queue %u, engine %s, ended with %s", lane->retired,
		      lane->queue->index, lane->bench->engine->name, ib_wc_status_msg(status));
}

static void slot_check(struct perf_slot *slot)
{
	struct perf_lane *lane = slot->lane;

	if (perf_slot_arrived(slot))
		return;
	lane->done.corrupt++;
	perf_run_stop(lane->bench->run, PERF_STOP_WAITING, -EBADMSG,
		      "the data of request %llu of queue %u, engine %s, arrived wrong",
		      lane->retired, lane->queue->index, lane->bench->engine->name);
}

/*
 * The ledger's other side: @slot has ended. True if it ended the burst it was posted
 * in, so that the producer may have room for the next.
 */
static bool retire(struct perf_slot *slot, enum ib_wc_status status)
{
	struct perf_lane *lane = slot->lane;
	struct perf_retire_side *done = &lane->done;
	bool last = slot->last_of_burst;
	u64 ticks = perf_ticks() - slot->posted_at;

	if (unlikely(!slot->outstanding)) {
		done->doubled++;
		return false;
	}
	if (unlikely(slot != perf_lane_slot(lane, lane->head)))
		done->reordered++;
	lane->head = perf_lane_next(lane, slot->index - lane->slots->index);
	slot->outstanding = false;
	if (likely(status == IB_WC_SUCCESS)) {
		done->succeeded++;
		if (lane->bench->verify)
			slot_check(slot);
	} else {
		slot_failed(slot, status);
	}
	if (lane->bench->run->attr.op != KVERBS_PERF_RPC)
		kverbs_hist_record(done->latency, perf_ticks_to_ns(lane->bench->run, ticks), 1);
	perf_count(&lane->retired);
	return last;
}

static void raw_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct perf_slot *slot = container_of(wc->wr_cqe, struct perf_slot, cqe);

	slot->lane->done.cqes++;
	perf_lane_advance(slot->lane, retire(slot, wc->status));
}

static void raw_prepare(struct perf_slot *slot)
{
	slot->cqe.done = raw_done;
	slot->wr.send.wr_cqe = &slot->cqe;
	slot->wr.send.send_flags = IB_SEND_SIGNALED;
}

static int raw_post(struct perf_lane *lane, u32 n)
{
	u64 begin, before = lane->post.call_ticks;
	struct perf_slot *slot;
	u32 i;
	int ret;

	for (i = 0; i < n; i++) {
		slot = lane_take(lane);
		slot->last_of_burst = i + 1 == n;
		begin = call_begin(lane);
		slot->posted_at = begin;
		ret = ib_post_send(lane->queue->client, &slot->wr.send, NULL);
		call_end(lane, begin);
		lane->post.post_calls++;
		if (ret) {
			lane_give_back(lane, 1);
			return ret;
		}
		lane->post.signaled++;
	}
	burst_end(lane, n, before);
	return n;
}

/* Those before @slot were silent: they have ended, too, and well. */
static void chain_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct perf_slot *slot = container_of(wc->wr_cqe, struct perf_slot, cqe);
	struct perf_lane *lane = slot->lane;
	struct perf_slot *head;
	bool last = false;

	lane->done.cqes++;
	if (unlikely(!slot->outstanding)) {
		lane->done.doubled++;
		return;
	}
	do {
		head = perf_lane_slot(lane, lane->head);
		last |= retire(head, head == slot ? wc->status : IB_WC_SUCCESS);
	} while (head != slot);
	perf_lane_advance(lane, last);
}

static void chain_prepare(struct perf_slot *slot)
{
	slot->cqe.done = chain_done;
	slot->wr.send.wr_cqe = &slot->cqe;
}

/* How many of a chain a driver did not take, if it says so. */
static u32 chain_refused(const struct ib_send_wr *bad)
{
	u32 n = 0;

	for (; bad; bad = bad->next)
		n++;
	return n;
}

static int chain_post(struct perf_lane *lane, u32 n)
{
	u64 begin, now = perf_ticks(), before = lane->post.call_ticks;
	struct perf_slot *slot, *first = NULL, *last = NULL;
	const struct ib_send_wr *bad = NULL;
	u32 i;
	int ret;

	for (i = 0; i < n; i++) {
		slot = lane_take(lane);
		slot->posted_at = now;
		slot->wr.send.send_flags = 0;
		if (last)
			last->wr.send.next = &slot->wr.send;
		else
			first = slot;
		last = slot;
	}
	last->last_of_burst = true;
	last->wr.send.send_flags = IB_SEND_SIGNALED;
	last->wr.send.next = NULL;

	begin = call_begin(lane);
	ret = ib_post_send(lane->queue->client, &first->wr.send, &bad);
	call_end(lane, begin);
	lane->post.post_calls++;
	if (ret) {
		lane_give_back(lane, chain_refused(bad));
		return ret;
	}
	lane->post.signaled++;
	burst_end(lane, n, before);
	return n;
}

static void kverbs_done(struct kverbs_req *req, enum ib_wc_status status)
{
	struct perf_slot *slot = container_of(req, struct perf_slot, req);

	perf_lane_advance(slot->lane, retire(slot, status));
}

static void kverbs_prepare(struct perf_slot *slot)
{
	slot->req.wr = &slot->wr.send;
	slot->req.done = kverbs_done;
	slot->req.inline_sge = NULL;
}

#define KVERBS_LIST	64U	/* requests in a call */

/* How many of @n were accepted, or an errno if none was. */
static int kverbs_engine_post(struct perf_lane *lane, u32 n)
{
	u64 begin, now = perf_ticks(), before = lane->post.call_ticks;
	struct kverbs_req *reqs[KVERBS_LIST];
	struct perf_slot *slot;
	u32 i, left, done = 0;
	int ret;

	do {
		left = min(n - done, KVERBS_LIST);
		for (i = 0; i < left; i++) {
			slot = lane_take(lane);
			slot->posted_at = now;
			reqs[i] = &slot->req;
		}
		slot->last_of_burst = done + left == n;
		begin = call_begin(lane);
		ret = kverbs_post_list(lane->queue->sq, reqs, left,
				       done + left < n ? KVERBS_MORE : 0);
		call_end(lane, begin);
		if (ret < (int)left) {
			lane_give_back(lane, left - max(ret, 0));
			done += max(ret, 0);
			return done || ret == -EAGAIN ? done : ret;
		}
		done += left;
	} while (done < n);
	burst_end(lane, n, before);
	return n;
}

const struct perf_engine perf_engines[KVERBS_PERF_NR_ENGINES] = {
	[KVERBS_PERF_RAW] = {
		.name = "raw",
		.prepare = raw_prepare,
		.post = raw_post,
	},
	[KVERBS_PERF_CHAIN] = {
		.name = "chain",
		.prepare = chain_prepare,
		.post = chain_post,
	},
	[KVERBS_PERF_KVERBS] = {
		.name = "kverbs",
		.prepare = kverbs_prepare,
		.post = kverbs_engine_post,
	},
};
