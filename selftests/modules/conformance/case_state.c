// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Each state of a QP: what posting does there, and where it may go from it. */
#include "conformance.h"

struct transition {
	enum ib_qp_state from;
	enum ib_qp_state to;
};

static bool bring(struct side *side, enum ib_qp_state state)
{
	if (state == IB_QPS_RESET)
		return expect_is(side_to(side, IB_QPS_RESET), 0);
	if (state != IB_QPS_ERR)
		return expect_is(side_up_to(side, state), 0);
	/* Not from RESET. */
	if (side_state(side) == IB_QPS_RESET && side_up_to(side, IB_QPS_INIT))
		return expect(false);
	return expect_is(side_to(side, IB_QPS_ERR), 0);
}

/* @arg: number of the transition */
static void state_refused(struct bed *bed, u32 arg)
{
	static const struct transition refused[] = {
		{ IB_QPS_RESET, IB_QPS_RTR }, { IB_QPS_RESET, IB_QPS_RTS },
		{ IB_QPS_INIT, IB_QPS_RTS }, { IB_QPS_RTR, IB_QPS_INIT },
		{ IB_QPS_RTS, IB_QPS_INIT }, { IB_QPS_RTS, IB_QPS_RTR },
		{ IB_QPS_ERR, IB_QPS_INIT }, { IB_QPS_ERR, IB_QPS_RTR },
		{ IB_QPS_ERR, IB_QPS_RTS },
	};
	const struct transition *t = &refused[arg];
	struct side *a = &bed->side[0];

	if (!bring(a, t->from))
		return;
	expect(side_to(a, t->to) < 0);
	expect_is(side_state(a), t->from);
}

/* @arg: the attribute that is missing, or one too many */
static void state_mask(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0];
	struct ib_qp_attr attr;
	enum ib_qp_state to;
	int mask;

	switch (arg) {
	case IB_QP_PORT:
	case IB_QP_QKEY:
		to = IB_QPS_INIT;
		break;
	case IB_QP_AV:
	case IB_QP_DEST_QPN:
		to = IB_QPS_RTR;
		break;
	default:
		to = IB_QPS_RTS;
		break;
	}
	if (to > IB_QPS_INIT && !bring(a, to - 1))
		return;
	mask = side_attr(a, to, &attr);
	expect(ib_modify_qp(a->qp, &attr, mask ^ arg) < 0);
	expect_is(side_state(a), to - 1);
	expect_is(ib_modify_qp(a->qp, &attr, mask), 0);
	expect_is(side_state(a), to);
}

/* Before RTS nothing can be sent. @arg: the state */
static void state_no_send(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0];
	struct work *work, *bad;

	if (arg != IB_QPS_RESET && !bring(a, arg))
		return;
	work = work_send(a, IB_WR_SEND, 0, 64);
	expect(post_try(a, work, &bad) < 0);
	expect(bad == work);
	expect(cq_empty(a->scq));
}

static void state_no_recv(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0];
	struct work *bad, *work = work_recv(a, 0, 64);

	expect(post_recv_try(a, work, &bad) < 0);
	expect(bad == work);
}

/* Receives that were posted in INIT or RTR serve. @arg: the state */
static void state_recv(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *recv;

	if (!bring(b, arg))
		return;
	recv = post_receive(b, 0, 64);
	expect(cq_empty(b->rcq));
	if (arg == IB_QPS_INIT)
		expect_is(side_to(b, IB_QPS_RTR), 0);
	if (!bring(a, IB_QPS_RTS))
		return;
	do_work(a, work_send(a, IB_WR_SEND, 0, 64));
	got(b, recv, 64, NULL);
	expect_is(side_state(b), IB_QPS_RTR);
}

/* In RESET and INIT it is as if the QP were not there. */
static void state_deaf(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *work;

	bed->timeout = 10;
	bed->retry_cnt = 1;
	if (arg != IB_QPS_RESET && !bring(b, arg))
		return;
	if (arg == IB_QPS_INIT)
		post_receive(b, 0, 64);
	if (!bring(a, IB_QPS_RTS))
		return;
	work = work_send(a, IB_WR_SEND, 0, 64);
	if (post(a, work))
		sent_as(a, work, IB_WC_RETRY_EXC_ERR);
	expect(cq_empty(b->rcq));
}

static void state_query(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0];
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;
	int all = IB_QP_STATE | IB_QP_CAP | IB_QP_DEST_QPN | IB_QP_PATH_MTU | IB_QP_TIMEOUT |
		  IB_QP_RETRY_CNT | IB_QP_RNR_RETRY;

	expect_is(side_state(a), IB_QPS_RESET);
	expect_is(side_to(a, IB_QPS_INIT), 0);
	expect_is(side_state(a), IB_QPS_INIT);
	expect_is(side_to(a, IB_QPS_RTR), 0);
	expect_is(side_state(a), IB_QPS_RTR);
	expect_is(side_to(a, IB_QPS_RTS), 0);
	if (!expect_is(ib_query_qp(a->qp, &attr, all, &init), 0))
		return;
	expect_is(attr.qp_state, IB_QPS_RTS);
	expect_is(attr.dest_qp_num, a->peer->qp->qp_num);
	expect_is(attr.path_mtu, bed->mtu);
	expect_is(attr.timeout, bed->timeout);
	expect_is(attr.retry_cnt, bed->retry_cnt);
	expect_is(attr.rnr_retry, bed->rnr_retry);
	expect_is(attr.cap.max_send_wr, a->init.cap.max_send_wr);
	expect_is(attr.cap.max_recv_wr, a->init.cap.max_recv_wr);
	expect_is(attr.cap.max_send_sge, a->init.cap.max_send_sge);
	expect_is(side_to(a, IB_QPS_ERR), 0);
	expect_is(side_state(a), IB_QPS_ERR);
}

/* RESET forgets what was posted, without a completion; the QP serves again. */
static void state_reset(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *work, *recv;

	if (!bring(a, IB_QPS_RTS) || !bring(b, IB_QPS_RTS))
		return;
	post_receive(b, 128, 64);
	post_receive(b, 256, 64);
	expect_is(side_to(b, IB_QPS_RESET), 0);
	expect_is(side_to(a, IB_QPS_RESET), 0);
	expect_is(side_state(b), IB_QPS_RESET);
	expect(cq_empty(b->rcq));
	if (!bring(a, IB_QPS_RTS) || !bring(b, IB_QPS_RTS))
		return;
	recv = post_receive(b, 0, 64);
	area_fill(&a->area, 0, 64, 1);
	work = work_send(a, IB_WR_SEND, 0, 64);
	do_work(a, work);
	if (got(b, recv, 64, NULL))
		area_holds(&b->area, 0, 64, 1);
}

/* After an error, the same. */
static void state_again(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *recv;
	u32 i;

	for (i = 0; i < 5 && !conf_failed(); i++) {
		if (!bring(a, IB_QPS_RTS) || !bring(b, IB_QPS_RTS))
			return;
		recv = post_receive(b, 0, 64);
		do_work(a, work_send(a, IB_WR_SEND, 0, 64));
		got(b, recv, 64, NULL);
		bring(a, IB_QPS_ERR);
		bring(b, IB_QPS_ERR);
		recv = post_receive(b, 0, 64);
		got_as(b, recv, IB_WC_WR_FLUSH_ERR);
		bring(a, IB_QPS_RESET);
		bring(b, IB_QPS_RESET);
	}
}

/* The rights of a QP can be taken away while it runs. */
static void state_rights(struct bed *bed, u32 arg)
{
	struct ib_qp_attr attr = { .qp_access_flags = 0 };
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *work;

	if (!area_register(b, &b->area, ALL_RIGHTS))
		return;
	work = work_rdma(a, IB_WR_RDMA_WRITE, 0, 64, area_remote(&b->area, 0),
			 area_rkey(&b->area));
	do_work(a, work);
	expect_is(ib_modify_qp(b->qp, &attr, IB_QP_ACCESS_FLAGS), 0);
	area_fill(&a->area, 0, 64, 9);
	work = work_rdma(a, IB_WR_RDMA_WRITE, 0, 64, area_remote(&b->area, 0),
			 area_rkey(&b->area));
	if (post(a, work))
		send_fails(a, work);
	expect(area_is_clear(&b->area, 0, 64));
}

#define RAW	{ .raw = true }

const struct conf_case state_cases[] = {
	{ "state/reset_to_rtr", state_refused, 0, NEED_IB, RAW },
	{ "state/reset_to_rts", state_refused, 1, NEED_IB, RAW },
	{ "state/init_to_rts", state_refused, 2, NEED_IB, RAW },
	{ "state/rtr_to_init", state_refused, 3, NEED_IB, RAW },
	{ "state/rts_to_init", state_refused, 4, NEED_IB, RAW },
	{ "state/rts_to_rtr", state_refused, 5, NEED_IB, RAW },
	{ "state/err_to_init", state_refused, 6, NEED_IB, RAW },
	{ "state/err_to_rtr", state_refused, 7, NEED_IB, RAW },
	{ "state/err_to_rts", state_refused, 8, NEED_IB, RAW },
	{ "state/init_without_port", state_mask, IB_QP_PORT, NEED_IB, RAW },
	{ "state/init_with_qkey", state_mask, IB_QP_QKEY, NEED_IB, RAW },
	{ "state/rtr_without_address", state_mask, IB_QP_AV, NEED_IB, RAW },
	{ "state/rtr_without_peer", state_mask, IB_QP_DEST_QPN, NEED_IB, RAW },
	{ "state/rts_without_psn", state_mask, IB_QP_SQ_PSN, NEED_IB, RAW },
	{ "state/rts_without_timeout", state_mask, IB_QP_TIMEOUT, NEED_IB, RAW },
	{ "state/reset_send", state_no_send, IB_QPS_RESET, NEED_IB, RAW },
	{ "state/init_send", state_no_send, IB_QPS_INIT, NEED_IB, RAW },
	{ "state/rtr_send", state_no_send, IB_QPS_RTR, NEED_IB, RAW },
	{ "state/reset_recv", state_no_recv, 0, NEED_IB, RAW },
	{ "state/init_recv", state_recv, IB_QPS_INIT, NEED_IB, RAW },
	{ "state/rtr_recv", state_recv, IB_QPS_RTR, NEED_IB, RAW },
	{ "state/reset_deaf", state_deaf, IB_QPS_RESET, NEED_IB, RAW },
	{ "state/init_deaf", state_deaf, IB_QPS_INIT, NEED_IB, RAW },
	{ "state/err_deaf", state_deaf, IB_QPS_ERR, NEED_IB, RAW },
	{ "state/query", state_query, 0, NEED_IB, RAW },
	{ "state/reset_forgets", state_reset, 0, NEED_IB, RAW },
	{ "state/reset_after_error", state_again, 0, NEED_IB, RAW },
	{ "state/rights_taken", state_rights, 0, NEED_IB | NEED_REG },
	{}
};
