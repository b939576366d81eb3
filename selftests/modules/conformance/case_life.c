// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Queues that go while they work, and asynchronous events. */
#include "conformance.h"

#define ROUNDS	20

/* With sends and receives in flight; the CQ stays, and is polled after it. */
static void destroy_busy(struct bed *bed, struct side *victim)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct ib_wc wc;
	u32 i;

	for (i = 0; i < 12; i++) {
		post_receive(a, 0, 64);
		post_receive(b, 0, 8192);
		post(a, work_send(a, IB_WR_SEND, 0, 8192));
	}
	side_destroy_qp(victim);
	while (ib_poll_cq(a->scq->ib, 1, &wc) > 0)
		;
	while (ib_poll_cq(b->rcq->ib, 1, &wc) > 0)
		;
}

/* @arg: whose QP goes */
static void life_destroy(struct bed *bed, u32 arg)
{
	struct bed *other;
	u32 i;

	destroy_busy(bed, &bed->side[arg]);
	for (i = 1; i < ROUNDS && !conf_failed(); i++) {
		other = bed_create(bed->ib, &bed->attr);
		if (!other)
			return;
		destroy_busy(other, &other->side[arg]);
		bed_destroy(other);
	}
}

/* Sends that wait for a receive that never comes. */
static void life_destroy_waiting(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0];
	u32 i;

	for (i = 0; i < 8; i++)
		post(a, work_send(a, IB_WR_SEND, 0, 64));
	side_destroy_qp(a);
}

static void life_destroy_reads(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *work;
	u32 i;

	if (!area_register(b, &b->area, ALL_RIGHTS) || !area_register(a, &a->area, ALL_RIGHTS))
		return;
	for (i = 0; i < 8; i++) {
		work = work_rdma(a, IB_WR_RDMA_READ, 0, 8192, area_remote(&b->area, 0),
				 area_rkey(&b->area));
		work_key(work, &a->area, 0, 8192);
		post(a, work);
	}
	side_destroy_qp(a);
}

static void life_comm_est(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *recv;

	if (!expect_is(side_up_to(b, IB_QPS_RTR), 0) || !expect_is(side_up_to(a, IB_QPS_RTS), 0))
		return;
	recv = post_receive(b, 0, 64);
	do_work(a, work_send(a, IB_WR_SEND, 0, 64));
	got(b, recv, 64, NULL);
	expect(event_seen(b->events, IB_EVENT_COMM_EST));
}

/* A request that the QP does not allow is an event at the one that refuses it. */
static void life_req_err(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *work;

	if (!area_register(b, &b->area, ALL_RIGHTS))
		return;
	work = work_rdma(a, IB_WR_RDMA_WRITE, 0, 64, area_remote(&b->area, 0),
			 area_rkey(&b->area));
	if (post(a, work) && send_fails(a, work))
		expect(event_seen(b->events, IB_EVENT_QP_REQ_ERR));
}

/* A QP that works says nothing. */
static void life_quiet(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	u32 i;

	for (i = 0; i < 10 && !conf_failed(); i++) {
		struct work *recv = post_receive(b, 0, 64);

		do_work(a, work_send(a, IB_WR_SEND, 0, 64));
		got(b, recv, 64, NULL);
	}
	for (i = 0; i < CONF_EVENTS; i++) {
		expect_is(atomic_read(&a->events[i]), 0);
		expect_is(atomic_read(&b->events[i]), 0);
	}
	expect_is(atomic_read(&a->scq->events[IB_EVENT_CQ_ERR]), 0);
}

/* SQD: what was begun ends, an event tells, and what is posted then waits. */
static void life_drained(struct bed *bed, u32 arg)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_SQD, .en_sqd_async_notify = 1 };
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *recv = post_receive(b, 0, 64);
	struct work *work;

	do_work(a, work_send(a, IB_WR_SEND, 0, 64));
	got(b, recv, 64, NULL);
	if (!expect_is(ib_modify_qp(a->qp, &attr,
				    IB_QP_STATE | IB_QP_EN_SQD_ASYNC_NOTIFY), 0))
		return;
	expect(event_seen(a->events, IB_EVENT_SQ_DRAINED));
	recv = post_receive(b, 0, 64);
	work = work_send(a, IB_WR_SEND, 0, 64);
	post(a, work);
	expect(cq_empty(a->scq));
	attr.qp_state = IB_QPS_RTS;
	attr.cur_qp_state = IB_QPS_SQD;
	expect_is(ib_modify_qp(a->qp, &attr, IB_QP_STATE | IB_QP_CUR_STATE), 0);
	if (sent(a, work, NULL))
		got(b, recv, 64, NULL);
}

const struct conf_case life_cases[] = {
	{ "life/sender_destroyed", life_destroy, 0 },
	{ "life/receiver_destroyed", life_destroy, 1 },
	{ "life/destroyed_waiting", life_destroy_waiting, 0, NEED_IB },
	{ "life/destroyed_reading", life_destroy_reads, 0, NEED_REG },
	{ "life/event_established", life_comm_est, 0, NEED_IB, { .raw = true } },
	{ "life/event_invalid_request", life_req_err, 0, NEED_IB | NEED_REG,
	  { .deny = IB_ACCESS_REMOTE_WRITE } },
	{ "life/event_drained", life_drained, 0, NEED_IB },
	{ "life/quiet", life_quiet },
	{}
};
