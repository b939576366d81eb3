// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Unreliable connection: what cannot be delivered is dropped, and nobody is told. */
#include "conformance.h"

#define BYTES	5000
#define IMM	cpu_to_be32(0xfeedbeef)

static void uc_send(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *recv = post_receive(b, 0, AREA_SIZE);
	struct work *work = work_send(a, IB_WR_SEND_WITH_IMM, 0, arg);
	struct ib_wc wc;

	work->send.ex.imm_data = IMM;
	area_fill(&a->area, 0, arg, 1);
	do_work(a, work);
	if (!got(b, recv, arg, &wc))
		return;
	expect(wc.wc_flags & IB_WC_WITH_IMM && wc.ex.imm_data == IMM);
	area_holds(&b->area, 0, arg, 1);
}

static void uc_write_imm(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *recv = post_receive(b, 0, 0);
	struct work *work;
	struct ib_wc wc;

	if (!area_register(b, &b->area, ALL_RIGHTS))
		return;
	work = work_rdma(a, IB_WR_RDMA_WRITE_WITH_IMM, 0, BYTES, area_remote(&b->area, 64),
			 area_rkey(&b->area));
	work->send.ex.imm_data = IMM;
	area_fill(&a->area, 0, BYTES, 1);
	do_work(a, work);
	if (!got(b, recv, BYTES, &wc))
		return;
	expect_is(wc.opcode, IB_WC_RECV_RDMA_WITH_IMM);
	area_holds(&b->area, 64, BYTES, 1);
}

/* Without a receive the message is lost, the next one is not. */
static void uc_lost(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *recv;
	u32 i;

	area_fill(&a->area, 0, BYTES, 1);
	for (i = 0; i < 3; i++)
		do_work(a, work_send(a, IB_WR_SEND, 64, arg));
	/* Nothing can tell when a message was dropped, so the next is sent until it arrives. */
	recv = post_receive(b, 0, AREA_SIZE);
	do_work(a, work_send(a, IB_WR_SEND, 0, arg));
	if (got(b, recv, arg, NULL))
		expect(!area_is_clear(&b->area, 0, arg));
	expect_is(side_state(b), IB_QPS_RTS);
}

/* A WRITE that is not allowed changes nothing, and the sender never knows. */
static void uc_write_refused(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];

	if (!area_register(b, &b->area, ALL_RIGHTS))
		return;
	area_fill(&a->area, 0, 64, 1);
	do_work(a, work_rdma(a, IB_WR_RDMA_WRITE, 0, 64, area_remote(&b->area, 0),
			     area_rkey(&b->area) ^ 0xff00));
	do_work(a, work_send(a, IB_WR_SEND, 0, 64));
	expect_is(side_state(a), IB_QPS_RTS);
	expect(area_is_clear(&b->area, 0, AREA_SIZE));
}

/* Not for UC. @arg: opcode */
static void uc_refused(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0];
	struct work *work = work_rdma(a, arg, 0, 64, 0, 0);
	struct ib_wc wc;

	if (post_try(a, work, NULL))
		return;
	if (cq_next(a->scq, &wc))
		expect_is(wc.status, IB_WC_LOC_QP_OP_ERR);
}

static void uc_silent(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *silent = work_send(a, IB_WR_SEND, 0, 32);
	struct work *last = work_send(a, IB_WR_SEND, 0, 33);
	struct work *recvs[2];

	recvs[0] = post_receive(b, 0, 64);
	recvs[1] = post_receive(b, 64, 64);
	silent->send.send_flags = 0;
	work_chain((struct work *[]){ silent, last }, 2);
	if (post(a, silent) && sent(a, last, NULL) && got(b, recvs[0], 32, NULL))
		got(b, recvs[1], 33, NULL);
	expect(cq_empty(a->scq));
}

#define UC	{ .type = IB_QPT_UC }

const struct conf_case uc_cases[] = {
	{ "uc/send", uc_send, BYTES, NEED_IB, UC },
	{ "uc/send_nothing", uc_send, 0, NEED_IB, UC },
	{ "uc/silent", uc_silent, 0, NEED_IB, UC },
	{ "uc/write_imm", uc_write_imm, 0, NEED_IB | NEED_REG, UC },
	{ "uc/write_refused", uc_write_refused, 0, NEED_IB | NEED_REG, UC },
	{ "uc/lost", uc_lost, 64, NEED_IB, UC },
	{ "uc/lost_long", uc_lost, BYTES, NEED_IB, UC },
	{ "uc/no_read", uc_refused, IB_WR_RDMA_READ, NEED_IB, UC },
	{ "uc/no_atomic", uc_refused, IB_WR_ATOMIC_FETCH_AND_ADD, NEED_IB | NEED_ATOMIC, UC },
	{}
};
