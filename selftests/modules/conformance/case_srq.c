// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Shared receive queues: the second sides of two pairs receive from one. */
#include "conformance.h"

#define MESSAGES	8

static void srq_shared(struct bed *bed, u32 arg)
{
	struct side *from, *to;
	struct work *recv, *work;
	u32 i;

	for (i = 0; i < MESSAGES && !conf_failed(); i++) {
		from = &bed->side[i % 3 == 1 ? 2 : 0];
		to = from->peer;
		recv = post_receive(to, 0, 64);
		area_clear(&bed->side[1].area);
		area_clear(&bed->side[3].area);
		area_fill(&from->area, 0, 64, i);
		work = work_send(from, IB_WR_SEND, 0, 64);
		/* The receive names the memory of the side that posted it. */
		if (do_work(from, work) && got(to, recv, 64, NULL))
			area_holds(&to->area, 0, 64, i);
	}
}

/* Posted by one, used by whoever has a message, in order. */
static void srq_any(struct bed *bed, u32 arg)
{
	struct work *recvs[MESSAGES];
	struct side *from;
	u32 i;

	for (i = 0; i < MESSAGES; i++)
		recvs[i] = post_receive(&bed->side[1], 64 * i, 64);
	for (i = 0; i < MESSAGES && !conf_failed(); i++) {
		from = &bed->side[i & 2];
		area_fill(&from->area, 0, 64, i);
		if (do_work(from, work_send(from, IB_WR_SEND, 0, 64)) &&
		    got(from->peer, recvs[i], 64, NULL))
			area_holds(&bed->side[1].area, 64 * i, 64, i);
	}
}

static void srq_empty(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *work = work_send(a, IB_WR_SEND, 0, 64);
	struct work *recv;

	if (!post(a, work))
		return;
	expect(cq_empty(a->scq));
	recv = post_receive(b, 0, 64);
	if (sent(a, work, NULL))
		got(b, recv, 64, NULL);
}

/* The limit event comes once, when fewer are left than the limit. */
static void srq_limit(struct bed *bed, u32 arg)
{
	struct ib_srq_attr attr = { .srq_limit = 3 };
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct ib_srq_attr now;
	struct work *recvs[6];
	u32 i;

	for (i = 0; i < 6; i++)
		recvs[i] = post_receive(b, 0, 64);
	if (!expect_is(ib_modify_srq(bed->srq, &attr, IB_SRQ_LIMIT), 0))
		return;
	if (expect_is(ib_query_srq(bed->srq, &now), 0))
		expect_is(now.srq_limit, 3);
	for (i = 0; i < 6 && !conf_failed(); i++) {
		if (i == 3)
			expect_is(atomic_read(&bed->srq_events[IB_EVENT_SRQ_LIMIT_REACHED]), 0);
		do_work(a, work_send(a, IB_WR_SEND, 0, 64));
		got(b, recvs[i], 64, NULL);
	}
	expect(event_seen(bed->srq_events, IB_EVENT_SRQ_LIMIT_REACHED));
	expect_is(atomic_read(&bed->srq_events[IB_EVENT_SRQ_LIMIT_REACHED]), 1);
	/* It is disarmed then. */
	if (expect_is(ib_query_srq(bed->srq, &now), 0))
		expect_is(now.srq_limit, 0);
}

static void srq_query(struct bed *bed, u32 arg)
{
	struct ib_srq_attr attr;

	if (!expect_is(ib_query_srq(bed->srq, &attr), 0))
		return;
	expect(attr.max_wr >= bed->attr.depth);
	expect(attr.max_sge >= bed->attr.sges);
	expect_is(attr.srq_limit, 0);
}

static void srq_full(struct bed *bed, u32 arg)
{
	struct side *b = &bed->side[1];
	struct work *more, *bad;
	struct ib_srq_attr attr;
	u32 i;

	if (!expect_is(ib_query_srq(bed->srq, &attr), 0))
		return;
	for (i = 0; i < attr.max_wr && !conf_failed(); i++)
		post_receive(b, 0, 64);
	more = work_recv(b, 0, 64);
	expect_is(post_recv_try(b, more, &bad), -ENOMEM);
	expect(bad == more);
}

/* A QP with an SRQ has no receive queue of its own. */
static void srq_no_rq(struct bed *bed, u32 arg)
{
	struct side *b = &bed->side[1];
	const struct ib_recv_wr *bad = NULL;
	struct work *work = work_recv(b, 0, 64);

	expect(ib_post_recv(b->qp, &work->recv, &bad) < 0);
	expect(bad == &work->recv);
}

/* A QP that fails takes no receive with it, and says when it has used its last one. */
static void srq_qp_error(struct bed *bed, u32 arg)
{
	struct side *b = &bed->side[1], *c = &bed->side[2];
	struct work *recv = post_receive(b, 0, 64);

	expect_is(side_to(b, IB_QPS_ERR), 0);
	side_becomes(b, IB_QPS_ERR);
	expect(cq_empty(b->rcq));
	if (do_work(c, work_send(c, IB_WR_SEND, 0, 64)))
		got(c->peer, recv, 64, NULL);
}

static void srq_last_wqe(struct bed *bed, u32 arg)
{
	struct side *b = &bed->side[1];

	post_receive(b, 0, 64);
	expect_is(side_to(b, IB_QPS_ERR), 0);
	expect(event_seen(b->events, IB_EVENT_QP_LAST_WQE_REACHED));
}

static void srq_excess(struct bed *bed, u32 arg)
{
	struct ib_srq_init_attr init = {
		.attr = { .max_wr = bed->ib->attrs.max_srq_wr + 1, .max_sge = 1 },
		.srq_type = IB_SRQT_BASIC,
	};
	struct ib_srq *srq = ib_create_srq(bed->pd, &init);

	if (!expect(IS_ERR(srq)))
		ib_destroy_srq(srq);
}

#define SRQ	{ .pairs = 2, .srq = true }

const struct conf_case srq_cases[] = {
	{ "srq/shared", srq_shared, 0, NEED_SRQ, SRQ },
	{ "srq/any", srq_any, 0, NEED_SRQ, SRQ },
	{ "srq/empty", srq_empty, 0, NEED_SRQ | NEED_IB, SRQ },
	{ "srq/limit", srq_limit, 0, NEED_SRQ, SRQ },
	{ "srq/query", srq_query, 0, NEED_SRQ, SRQ },
	{ "srq/full", srq_full, 0, NEED_SRQ, SRQ },
	{ "srq/no_receive_queue", srq_no_rq, 0, NEED_SRQ, SRQ },
	{ "srq/qp_error", srq_qp_error, 0, NEED_SRQ, SRQ },
	{ "srq/last_wqe", srq_last_wqe, 0, NEED_SRQ, SRQ },
	{ "srq/excess", srq_excess, 0, NEED_SRQ },
	{}
};
