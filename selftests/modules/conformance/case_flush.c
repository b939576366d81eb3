// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What the error states leave of the work that was posted. Sends wait here for a peer
 * that has no receive.
 */
#include "conformance.h"

#define POSTED	6

static bool flushed(struct side *side, struct work **works, u32 nr)
{
	u32 i;

	for (i = 0; i < nr; i++) {
		if (!sent_as(side, works[i], IB_WC_WR_FLUSH_ERR))
			return false;
	}
	return expect(cq_empty(side->scq));
}

/* @arg: send flags */
static void flush_sends(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0];
	struct work *works[POSTED];
	u32 i;

	for (i = 0; i < POSTED; i++) {
		works[i] = work_send(a, IB_WR_SEND, 0, 64);
		works[i]->send.send_flags = arg;
		post(a, works[i]);
	}
	expect_is(side_to(a, IB_QPS_ERR), 0);
	flushed(a, works, POSTED);
}

static void flush_recvs(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0];
	struct work *works[POSTED];
	u32 i;

	for (i = 0; i < POSTED; i++)
		works[i] = post_receive(a, i * 64, 64);
	expect_is(side_to(a, IB_QPS_ERR), 0);
	for (i = 0; i < POSTED; i++)
		got_as(a, works[i], IB_WC_WR_FLUSH_ERR);
	expect(cq_empty(a->rcq));
}

/* In ERR posts are taken, and flushed. */
static void flush_late(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0];
	struct work *works[POSTED], *recv;
	u32 i;

	expect_is(side_to(a, IB_QPS_ERR), 0);
	side_becomes(a, IB_QPS_ERR);
	for (i = 0; i < POSTED; i++) {
		works[i] = work_send(a, IB_WR_SEND, 0, 64);
		post(a, works[i]);
	}
	flushed(a, works, POSTED);
	recv = post_receive(a, 0, 64);
	got_as(a, recv, IB_WC_WR_FLUSH_ERR);
}

static void flush_chain(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0];
	struct work *works[POSTED];
	u32 i;

	expect_is(side_to(a, IB_QPS_ERR), 0);
	side_becomes(a, IB_QPS_ERR);
	for (i = 0; i < POSTED; i++)
		works[i] = work_send(a, IB_WR_SEND, 0, 64);
	work_chain(works, POSTED);
	post(a, works[0]);
	flushed(a, works, POSTED);
}

/* The third fails, the two before it are good, those after it are flushed. */
static void flush_after_error(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *works[POSTED];
	u32 i;

	for (i = 0; i < POSTED; i++)
		post_receive(b, 0, 64);
	for (i = 0; i < POSTED; i++)
		works[i] = work_send(a, IB_WR_SEND, 0, 64);
	works[2]->sge[0].lkey = ~works[2]->sge[0].lkey;
	work_chain(works, POSTED);
	post(a, works[0]);
	sent(a, works[0], NULL);
	sent(a, works[1], NULL);
	sent_as(a, works[2], IB_WC_LOC_PROT_ERR);
	flushed(a, works + 3, POSTED - 3);
	side_becomes(a, IB_QPS_ERR);
}

/* The same with silent ones: the error has a CQE, as has what is flushed. */
static void flush_silent_error(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *works[POSTED];
	u32 i;

	for (i = 0; i < POSTED; i++)
		post_receive(b, 0, 64);
	for (i = 0; i < POSTED; i++) {
		works[i] = work_send(a, IB_WR_SEND, 0, 64);
		works[i]->send.send_flags = 0;
	}
	works[2]->sge[0].lkey = ~works[2]->sge[0].lkey;
	work_chain(works, POSTED);
	post(a, works[0]);
	sent_as(a, works[2], IB_WC_LOC_PROT_ERR);
	flushed(a, works + 3, POSTED - 3);
}

/* The peer of one that fails learns of it only by its own requests. */
static void flush_peer(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *recv;

	recv = post_receive(b, 0, 64);
	expect_is(side_to(a, IB_QPS_ERR), 0);
	side_becomes(a, IB_QPS_ERR);
	expect_is(side_state(b), IB_QPS_RTS);
	expect(cq_empty(b->rcq));
	expect_is(side_to(b, IB_QPS_ERR), 0);
	got_as(b, recv, IB_WC_WR_FLUSH_ERR);
}

/* SQE: sends stop, receives go on, and the QP recovers. */
static void flush_sqe(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RTS, .cur_qp_state = IB_QPS_SQE };
	struct work *bad = work_send(a, IB_WR_SEND, 0, 64);
	struct work *late = work_send(a, IB_WR_SEND, 0, 64);
	struct work *recv = post_receive(a, 0, 64);

	bad->sge[0].lkey = ~bad->sge[0].lkey;
	work_chain((struct work *[]){ bad, late }, 2);
	if (!post(a, bad) || !sent_as(a, bad, IB_WC_LOC_PROT_ERR) ||
	    !sent_as(a, late, IB_WC_WR_FLUSH_ERR) || !side_becomes(a, IB_QPS_SQE))
		return;
	late = work_send(a, IB_WR_SEND, 0, 64);
	if (post(a, late))
		sent_as(a, late, IB_WC_WR_FLUSH_ERR);
	do_work(b, work_send(b, IB_WR_SEND, 0, 64));
	got(a, recv, 64, NULL);
	if (!expect_is(ib_modify_qp(a->qp, &attr, IB_QP_STATE | IB_QP_CUR_STATE), 0))
		return;
	recv = post_receive(b, 0, 64);
	do_work(a, work_send(a, IB_WR_SEND, 0, 64));
	got(b, recv, 64, NULL);
}

const struct conf_case flush_cases[] = {
	{ "flush/sends", flush_sends, IB_SEND_SIGNALED, NEED_IB },
	{ "flush/silent_sends", flush_sends, 0, NEED_IB },
	{ "flush/receives", flush_recvs },
	{ "flush/posted_late", flush_late },
	{ "flush/chain_posted_late", flush_chain },
	{ "flush/after_error", flush_after_error },
	{ "flush/after_silent_error", flush_silent_error },
	{ "flush/peer_unaware", flush_peer, 0, NEED_IB },
	{ "flush/sqe_uc", flush_sqe, 0, NEED_IB, { .type = IB_QPT_UC } },
	{}
};
