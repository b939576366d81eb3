// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Completion queues: events, polling, and what does not fit. */
#include <linux/delay.h>

#include "conformance.h"

static bool woken(struct conf_cq *cq, int times)
{
	unsigned long end = conf_deadline();
	bool late;

	do {
		late = time_after(jiffies, end);
		if (atomic_read(&cq->wakeups) >= times)
			return expect_is(atomic_read(&cq->wakeups), times);
		usleep_range(20, 50);
	} while (!late);
	return expect_is(atomic_read(&cq->wakeups), times);
}

/* A message, and all of its completions. */
static void exchange(struct bed *bed, u32 flags)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *recv = post_receive(b, 0, 64);
	struct work *work = work_send(a, IB_WR_SEND, 0, 64);

	work->send.send_flags |= flags;
	do_work(a, work);
	got(b, recv, 64, NULL);
}

/* Armed once, one event, for the first completion that comes. */
static void cq_arm_once(struct bed *bed, u32 arg)
{
	struct conf_cq *cq = bed->side[0].scq;
	u32 i;

	exchange(bed, 0);
	expect_is(atomic_read(&cq->wakeups), 0);
	for (i = 1; i <= 3 && !conf_failed(); i++) {
		expect_is(ib_req_notify_cq(cq->ib, IB_CQ_NEXT_COMP), 0);
		exchange(bed, 0);
		woken(cq, i);
		exchange(bed, 0);
		exchange(bed, 0);
		expect_is(atomic_read(&cq->wakeups), i);
	}
}

/* Only what the sender asked an event for. */
static void cq_arm_solicited(struct bed *bed, u32 arg)
{
	struct conf_cq *cq = bed->side[1].rcq;

	expect_is(ib_req_notify_cq(cq->ib, IB_CQ_SOLICITED), 0);
	exchange(bed, 0);
	exchange(bed, 0);
	expect_is(atomic_read(&cq->wakeups), 0);
	exchange(bed, IB_SEND_SOLICITED);
	woken(cq, 1);
	exchange(bed, IB_SEND_SOLICITED);
	expect_is(atomic_read(&cq->wakeups), 1);
}

/* The wider of two requests holds. */
static void cq_arm_wider(struct bed *bed, u32 arg)
{
	struct conf_cq *cq = bed->side[1].rcq;

	expect_is(ib_req_notify_cq(cq->ib, IB_CQ_NEXT_COMP), 0);
	expect_is(ib_req_notify_cq(cq->ib, IB_CQ_SOLICITED), 0);
	exchange(bed, 0);
	woken(cq, 1);
}

/* An error is worth an event, solicited or not. */
static void cq_arm_error(struct bed *bed, u32 arg)
{
	struct side *b = &bed->side[1];
	struct work *recv = post_receive(b, 0, 64);

	expect_is(ib_req_notify_cq(b->rcq->ib, IB_CQ_SOLICITED), 0);
	expect_is(side_to(b, IB_QPS_ERR), 0);
	woken(b->rcq, 1);
	got_as(b, recv, IB_WC_WR_FLUSH_ERR);
}

/* What is there already when the CQ is armed: it says so, or the event comes. */
static void cq_missed(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *recv = post_receive(b, 0, 64);
	struct work *work = work_send(a, IB_WR_SEND, 0, 64);
	int missed;

	if (!post(a, work) || !got(b, recv, 64, NULL))
		return;
	/* What comes back arrives after the send is acknowledged. */
	post_receive(a, 0, 64);
	do_work(b, work_send(b, IB_WR_SEND, 0, 0));
	missed = ib_req_notify_cq(a->scq->ib, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS);
	expect(missed >= 0);
	if (!missed)
		expect(atomic_read(&a->scq->wakeups) <= 1);
	sent(a, work, NULL);
}

static void cq_not_missed(struct bed *bed, u32 arg)
{
	struct conf_cq *cq = bed->side[0].scq;

	exchange(bed, 0);
	expect_is(ib_req_notify_cq(cq->ib, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS), 0);
}

/* As many as there are, as many as fit. */
static void cq_poll_some(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *works[5];
	struct ib_wc wc[8];
	u32 i, nr = 0;

	expect_is(ib_poll_cq(a->scq->ib, 8, wc), 0);
	for (i = 0; i < 5; i++) {
		post_receive(b, 0, 64);
		works[i] = work_send(a, IB_WR_SEND, 0, 64);
		post(a, works[i]);
	}
	for (i = 0; i < 5; i++) {
		if (!cq_next(b->rcq, wc))
			return;
	}
	while (nr < 4 && !conf_failed()) {
		int got = ib_poll_cq(a->scq->ib, 2, wc);

		expect(got >= 0 && got <= 2);
		for (i = 0; got > 0 && i < (u32)got; i++)
			expect(wc[i].wr_cqe == &works[nr + i]->cqe);
		nr += got;
		usleep_range(20, 50);
	}
	if (nr == 4)
		sent(a, works[4], NULL);
	expect_is(ib_poll_cq(a->scq->ib, 8, wc), 0);
}

/* Completions of several QPs in one queue: each tells whose it is. */
static void cq_shared(struct bed *bed, u32 arg)
{
	struct side *from;
	struct work *recv, *work;
	struct ib_wc wc;
	u32 round, i, seen;

	for (round = 0; round < 8 && !conf_failed(); round++) {
		from = &bed->side[round & 2];
		recv = post_receive(from->peer, 0, 64);
		work = work_send(from, IB_WR_SEND, 0, 64);
		if (!post(from, work))
			return;
		for (i = 0, seen = 0; i < 2 && cq_next(from->scq, &wc); i++) {
			expect_is(wc.status, IB_WC_SUCCESS);
			if (wc.wr_cqe == &work->cqe && wc.qp == from->qp)
				seen |= 1;
			if (wc.wr_cqe == &recv->cqe && wc.qp == from->peer->qp)
				seen |= 2;
		}
		expect_is(seen, 3);
	}
	expect(cq_empty(bed->side[0].scq));
}

/* More completions than it holds: an event that says so. It may hold more than it says. */
static void cq_overflow(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0];
	u32 i;

	if (a->scq->ib->cqe >= bed->attr.depth / 2)
		return conf_skip("the device grants a larger CQ than the test fills");
	for (i = 0; i < bed->attr.depth; i++)
		post(a, work_rdma(a, IB_WR_RDMA_WRITE, 0, 0, 0, 0));
	expect(event_seen(a->scq->events, IB_EVENT_CQ_ERR));
}

static void cq_granted(struct bed *bed, u32 arg)
{
	expect(bed->side[0].scq->ib->cqe >= (int)bed->attr.nr_cqe);
}

static void cq_excess(struct bed *bed, u32 arg)
{
	struct conf_cq cq = {};

	if (!expect(cq_create(bed->ib, &cq, bed->ib->attrs.max_cqe + 1) < 0))
		ib_destroy_cq(cq.ib);
}

const struct conf_case cq_cases[] = {
	{ "cq/arm_once", cq_arm_once },
	{ "cq/arm_solicited", cq_arm_solicited },
	{ "cq/arm_wider", cq_arm_wider },
	{ "cq/arm_error", cq_arm_error },
	{ "cq/missed", cq_missed },
	{ "cq/not_missed", cq_not_missed },
	{ "cq/poll_some", cq_poll_some },
	{ "cq/shared", cq_shared, 0, 0, { .pairs = 2, .one_cq = true } },
	{ "cq/overflow", cq_overflow, 0, NEED_IB, { .nr_cqe = 8, .depth = 64 } },
	{ "cq/granted", cq_granted, 0, 0, { .nr_cqe = 37 } },
	{ "cq/excess", cq_excess },
	{}
};
