// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A peer that is not ready, or not there. */
#include <linux/delay.h>

#include "conformance.h"

/* @arg: RNR retries */
static void retry_rnr(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *work;

	bed->rnr_retry = arg;
	if (!expect_is(bed_connect(bed), 0))
		return;
	work = work_send(a, IB_WR_SEND, 0, 64);
	if (!post(a, work))
		return;
	sent_as(a, work, IB_WC_RNR_RETRY_EXC_ERR);
	side_becomes(a, IB_QPS_ERR);
	/* The peer is not to blame. */
	expect_is(side_state(b), IB_QPS_RTS);
	expect(cq_empty(b->rcq));
}

/* Without a limit the sender waits for the receive. @arg: opcode */
static void retry_rnr_wait(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *first = work_send(a, IB_WR_SEND, 0, 64);
	struct work *second = work_send(a, IB_WR_SEND, 64, 64);
	struct work *recv;
	u32 i;

	area_fill(&a->area, 0, 128, 1);
	if (!post(a, first) || !post(a, second))
		return;
	for (i = 0; i < 20; i++) {
		usleep_range(500, 1000);
		expect(cq_empty(a->scq));
	}
	recv = post_receive(b, 0, 64);
	if (!got(b, recv, 64, NULL) || !sent(a, first, NULL))
		return;
	recv = post_receive(b, 64, 64);
	if (got(b, recv, 64, NULL) && sent(a, second, NULL))
		area_holds(&b->area, 0, 128, 1);
}

/* A WRITE needs no receive, a WRITE with immediate does. */
static void retry_rnr_write(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *work;

	bed->rnr_retry = 0;
	if (!expect_is(bed_connect(bed), 0) || !area_register(b, &b->area, ALL_RIGHTS))
		return;
	do_work(a, work_rdma(a, IB_WR_RDMA_WRITE, 0, 64, area_remote(&b->area, 0),
			     area_rkey(&b->area)));
	work = work_rdma(a, IB_WR_RDMA_WRITE_WITH_IMM, 0, 64, area_remote(&b->area, 0),
			 area_rkey(&b->area));
	if (post(a, work))
		sent_as(a, work, IB_WC_RNR_RETRY_EXC_ERR);
}

enum gone {
	GONE_DESTROYED,
	GONE_ERROR,
	GONE_RESET,
};

/* @arg: what became of the peer */
static void retry_gone(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *work, *late;

	bed->timeout = 10;
	bed->retry_cnt = 2;
	if (!expect_is(bed_connect(bed), 0))
		return;
	post_receive(b, 0, 64);
	do_work(a, work_send(a, IB_WR_SEND, 0, 64));
	if (arg == GONE_DESTROYED)
		side_destroy_qp(b);
	else
		expect_is(side_to(b, arg == GONE_RESET ? IB_QPS_RESET : IB_QPS_ERR), 0);
	work = work_send(a, IB_WR_SEND, 0, 64);
	late = work_send(a, IB_WR_SEND, 0, 64);
	if (!post(a, work) || !post(a, late))
		return;
	sent_as(a, work, IB_WC_RETRY_EXC_ERR);
	sent_as(a, late, IB_WC_WR_FLUSH_ERR);
	side_becomes(a, IB_QPS_ERR);
}

#define RAW	{ .raw = true }

const struct conf_case retry_cases[] = {
	{ "retry/rnr_0", retry_rnr, 0, NEED_IB, RAW },
	{ "retry/rnr_1", retry_rnr, 1, NEED_IB, RAW },
	{ "retry/rnr_6", retry_rnr, 6, NEED_IB, RAW },
	{ "retry/rnr_for_ever", retry_rnr_wait, 0, NEED_IB },
	{ "retry/rnr_write_imm", retry_rnr_write, 0, NEED_IB | NEED_REG, RAW },
	{ "retry/peer_destroyed", retry_gone, GONE_DESTROYED, NEED_IB, RAW },
	{ "retry/peer_error", retry_gone, GONE_ERROR, NEED_IB, RAW },
	{ "retry/peer_reset", retry_gone, GONE_RESET, NEED_IB, RAW },
	{}
};
