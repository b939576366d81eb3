// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Contract 5: batching is free or it does not happen. Contract 6: who posts while another
 * does leaves at once. Contract 7: inline by what was granted.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/sched.h>

#include "engine.h"

#define HOLD_MS	50

/* One request at a time: one call of the driver for each, whatever the depth. */
static void c5_one_by_one(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 64 };
	struct shots *shots = shots_create(&attr);
	u32 i;

	if (!shots)
		return;
	WRITE_ONCE(shots->hca->by_hand, false);
	for (i = 0; i < 200 && !engine_failed(); i++) {
		shots->nr = 0;
		shots->shot[0] = (struct shot){};
		expect_is(shot_post(shots, 1, 0), 0);
		expect_is(shots->hca->posted, i + 1);
		shots_wait(shots, i + 1);
	}
	expect_is(shots->hca->calls, 200);
	expect_is(rig_counter(shots->queue, KVERBS_POST_CALLS), 200);
	shots_destroy(shots);
}

/* What comes with KVERBS_MORE is one call, and a chain's worth does not wait for more. */
static void c5_more(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 32 };
	struct shots *shots = shots_create(&attr);
	u32 i;

	if (!shots)
		return;
	for (i = 0; i < 7; i++)
		expect_is(shot_post(shots, 1, KVERBS_MORE), 0);
	expect_is(shots->hca->calls, 0);
	expect_is(shot_post(shots, 1, 0), 0);
	expect_is(shots->hca->calls, 1);
	expect_is(shots->hca->posted, 8);
	for (i = 0; i < 15; i++)
		expect_is(shot_post(shots, 1, KVERBS_MORE), 0);
	expect_is(shots->hca->calls, 1);
	expect_is(shot_post(shots, 1, KVERBS_MORE), 0);
	expect_is(shots->hca->calls, 2);
	expect_is(shots->hca->largest, 16);
	expect_is(shot_post(shots, 1, KVERBS_MORE), 0);
	kverbs_flush(shots->queue->sq);
	expect_is(shots->hca->calls, 3);
	kverbs_flush(shots->queue->sq);
	expect_is(shots->hca->calls, 3);
	hca_execute(shots->hca, U32_MAX);
	shots_wait(shots, 25);
	shots_destroy(shots);
}

/* What is posted in one pass is one call at its end. */
static void again(struct shot *shot)
{
	expect_is(shot_post(shot->shots, 1, 0), 0);
}

static void c5_one_pass(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 64 };
	struct shots *shots = shots_create(&attr);
	u32 i;

	if (!shots)
		return;
	for (i = 0; i < 8; i++) {
		expect_is(shot_post(shots, 1, i < 7 ? KVERBS_MORE : 0), 0);
		shots->shot[i].on_done = again;
	}
	hca_execute(shots->hca, U32_MAX);
	shots_wait(shots, 8);
	while (READ_ONCE(shots->hca->posted) != 16 && !engine_failed())
		cond_resched();
	expect_is(shots->hca->calls, 2);
	/* Few as they are, each asks for a CQE, or they would come back together for ever. */
	expect_is(shots->hca->signaled, 9);
	hca_execute(shots->hca, U32_MAX);
	shots_wait(shots, 16);
	shots_destroy(shots);
}

/* A chain's worth does not wait for the end of the pass. */
static void c5_long_pass(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 16 };
	struct shots *shots = shots_create(&attr);
	u32 i;

	if (!shots)
		return;
	for (i = 0; i < 12; i++)
		expect_is(shot_post(shots, 1, i < 11 ? KVERBS_MORE : 0), 0);
	expect_is(shots->hca->calls, 2);
	for (i = 0; i < 12; i++)
		shots->shot[i].on_done = again;
	hca_execute(shots->hca, U32_MAX);
	shots_wait(shots, 12);
	while (READ_ONCE(shots->hca->posted) != 24 && !engine_failed())
		cond_resched();
	expect_is(shots->hca->largest, 8);
	hca_execute(shots->hca, U32_MAX);
	shots_wait(shots, 24);
	for (i = 0; i < 24; i++)
		shots_expect(shots, i, IB_WC_SUCCESS);
	shots_destroy(shots);
}

/* Each alone: no promise, list or pass brings two together. */
static void c5_each(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 64, .policy = KVERBS_BATCH_EACH };
	struct shots *shots = shots_create(&attr);
	u32 i;

	if (!shots)
		return;
	for (i = 0; i < 3; i++) {
		expect_is(shot_post(shots, 1, KVERBS_MORE), 0);
		expect_is(shots->hca->calls, i + 1);
	}
	expect_is(shot_post_list(shots, 5, 0), 5);
	expect_is(shots->hca->calls, 8);
	for (i = 0; i < 8; i++)
		shots->shot[i].on_done = again;
	hca_execute(shots->hca, U32_MAX);
	shots_wait(shots, 8);
	while (READ_ONCE(shots->hca->posted) != 16 && !engine_failed())
		cond_resched();
	expect_is(shots->hca->calls, 16);
	expect_is(shots->hca->largest, 1);
	hca_execute(shots->hca, U32_MAX);
	shots_wait(shots, 16);
	shots_destroy(shots);
}

/* Four at a time; fewer wait for the end of a pass, if one is to come. */
static void c5_four(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 64, .policy = KVERBS_BATCH_FOUR };
	struct shots *shots = shots_create(&attr);
	u32 i;

	if (!shots)
		return;
	expect_is(shot_post(shots, 1, 0), 0);
	expect_is(shots->hca->calls, 1);
	for (i = 0; i < 3; i++)
		expect_is(shot_post(shots, 1, 0), 0);
	expect_is(shots->hca->calls, 1);
	expect_is(shot_post(shots, 1, 0), 0);
	expect_is(shots->hca->calls, 2);
	expect_is(shot_post_list(shots, 6, 0), 6);
	expect_is(shots->hca->calls, 3);
	expect_is(shot_post(shots, 1, KVERBS_MORE), 0);
	expect_is(shots->hca->posted, 9);
	hca_execute(shots->hca, U32_MAX);
	shots_wait(shots, 9);
	while (READ_ONCE(shots->hca->posted) != 12 && !engine_failed())
		cond_resched();
	expect_is(shots->hca->calls, 4);
	expect_is(shots->hca->largest, 4);
	hca_execute(shots->hca, U32_MAX);
	shots_wait(shots, 12);
	for (i = 0; i < 12; i++)
		shots_expect(shots, i, IB_WC_SUCCESS);
	shots_destroy(shots);
}

/* While one is in the driver, the others' posts gather, and he takes them. */
static struct completion in_driver, go_on, posted;

static void hold_driver(struct hca *hca)
{
	hca->on_post = NULL;
	complete(&in_driver);
	wait_for_completion(&go_on);
}

static int poster_main(void *data)
{
	expect_is(shot_post(data, 1, 0), 0);
	kthread_complete_and_exit(&posted, 0);
}

static void c6_losers_leave(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 64 };
	struct shots *shots = shots_create(&attr);
	u32 i;

	if (!shots)
		return;
	/* The driver is watched for softirqs during its first posts. */
	for (i = 0; i < 10; i++)
		expect_is(shot_post(shots, 1, 0), 0);
	init_completion(&in_driver);
	init_completion(&go_on);
	init_completion(&posted);
	shots->hca->on_post = hold_driver;
	if (!expect(!IS_ERR(kthread_run(poster_main, shots, "engine_poster"))))
		return;
	wait_for_completion(&in_driver);
	for (i = 0; i < 10; i++)
		expect_is(shot_post(shots, 1, 0), 0);
	expect_is(shots->hca->posted, 10);
	complete(&go_on);
	wait_for_completion(&posted);
	expect_is(shots->hca->posted, 21);
	expect_is(shots->hca->calls, 12);
	hca_execute(shots->hca, U32_MAX);
	shots_wait(shots, 21);
	for (i = 0; i < 21; i++)
		shots_expect(shots, i, IB_WC_SUCCESS);
	shots_destroy(shots);
}

/*
 * An interrupt between a producer's two steps: it finds a place that is reserved and not
 * published, on its own CPU. It must not wait for that. The probe stands in for it.
 */
static void interrupt_post(void *data, u32 dev, u32 qp, u32 seq, u32 wrs, u32 bytes)
{
	struct shots *shots = data;

	kverbs_flush(shots->queue->sq);
}

static void c6_interrupted(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 64 };
	struct shots *shots = shots_create(&attr);
	u32 i;

	if (!shots)
		return;
	if (!expect_is(probe_attach("kverbs_post", interrupt_post, shots), 0))
		goto destroy;
	for (i = 0; i < 4; i++)
		expect_is(shot_post(shots, 2, KVERBS_MORE), 0);
	probe_detach();
	kverbs_flush(shots->queue->sq);
	/* Who left the place alone sent the worker, unless the flush came first. */
	while (READ_ONCE(shots->hca->posted) != 8)
		usleep_range(1000, 2000);
	hca_execute(shots->hca, U32_MAX);
	shots_wait(shots, 4);
	for (i = 0; i < 4; i++)
		shots_expect(shots, i, IB_WC_SUCCESS);
destroy:
	shots_destroy(shots);
}

/* Held back for company, but not beyond the deadline; KVERBS_MORE falls under it, too. */
static void c5_hold(enum rig_cq cq)
{
	struct rig_attr attr = {
		.cq = cq, .depth = 64, .hold_max_ns = HOLD_MS * NSEC_PER_MSEC,
	};
	struct shots *shots = shots_create(&attr);
	u64 begin;
	u32 round;

	if (!shots)
		return;
	for (round = 0; round < 5 && !engine_failed(); round++) {
		begin = ktime_get_ns();
		expect_is(shot_post(shots, 1, round & 1 ? KVERBS_MORE : 0), 0);
		expect_is(shot_post(shots, 1, KVERBS_MORE), 0);
		/* On a slow machine the deadline may be over already. */
		if (ktime_get_ns() - begin < HOLD_MS * NSEC_PER_MSEC / 2)
			expect_is(shots->hca->calls, 2 * round);
		while (READ_ONCE(shots->hca->calls) == 2 * round && !engine_failed()) {
			expect(ktime_get_ns() - begin < 20ULL * NSEC_PER_SEC);
			usleep_range(1000, 2000);
		}
		expect(ktime_get_ns() - begin >= HOLD_MS * NSEC_PER_MSEC / 2);
		/* Or until somebody asks. */
		expect_is(shot_post(shots, 1, 0), 0);
		kverbs_flush(shots->queue->sq);
		expect_is(shots->hca->calls, 2 * round + 2);
		expect_is(shots->hca->posted, 3 * (round + 1));
		hca_execute(shots->hca, U32_MAX);
		shots_wait(shots, 3 * (round + 1));
	}
	shots_destroy(shots);
}

static void inline_shot(struct shots *shots, enum ib_wr_opcode opcode, u32 bytes, bool candidate)
{
	static struct ib_sge virtual;
	struct shot *shot;

	virtual = (struct ib_sge){ .addr = 0x1000, .length = bytes };
	shots->nr = 0;
	shots->shot[0] = (struct shot){};
	shot = shot_new(shots, 1);
	shot->wr[0].wr.opcode = opcode;
	shot->sge[0] = (struct ib_sge){ .addr = 0x2000, .length = bytes };
	shot->req.inline_sge = candidate ? &virtual : NULL;
	atomic_set(&shots->ended, 0);
	expect_is(kverbs_post(shots->queue->sq, &shot->req, 0), 0);
	hca_execute(shots->hca, U32_MAX);
	shots_wait(shots, 1);
	/* It comes back as it was. */
	expect(shot->wr[0].wr.sg_list == &shot->sge[0]);
	expect(!(shot->wr[0].wr.send_flags & IB_SEND_INLINE));
	expect(!candidate || shot->req.inline_sge == &virtual);
}

static void expect_inline(struct shots *shots, enum ib_wr_opcode opcode, u32 bytes,
			  bool candidate, bool inlined)
{
	u64 before = rig_counter(shots->queue, KVERBS_INLINE);
	const struct hca_wqe *wqe;

	inline_shot(shots, opcode, bytes, candidate);
	wqe = hca_wqe(shots->hca, shots->hca->posted - 1);
	expect_is(wqe->inlined, inlined);
	expect_is(wqe->addr, inlined ? 0x1000 : 0x2000);
	expect_is(rig_counter(shots->queue, KVERBS_INLINE) - before, inlined);
}

static void c7_by_grant(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 8, .max_inline = 101 };
	struct shots *shots = shots_create(&attr);
	struct kverbs_sq_info info;

	if (!shots)
		return;
	kverbs_sq_query(shots->queue->sq, &info);
	expect_is(info.max_inline, shots->queue->init.cap.max_inline_data);
	expect(info.max_inline >= 101);
	expect_inline(shots, IB_WR_RDMA_WRITE, 8, true, true);
	expect_inline(shots, IB_WR_SEND, info.max_inline, true, true);
	expect_inline(shots, IB_WR_SEND, info.max_inline + 1, true, false);
	expect_inline(shots, IB_WR_RDMA_WRITE, 8, false, false);
	expect_inline(shots, IB_WR_RDMA_WRITE, 0, true, false);
	expect_inline(shots, IB_WR_RDMA_READ, 8, true, false);
	shots_destroy(shots);
}

/* A device that grants nothing. */
static void c7_no_grant(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 8, .no_inline = true };
	struct shots *shots = shots_create(&attr);

	if (!shots)
		return;
	expect_inline(shots, IB_WR_RDMA_WRITE, 8, true, false);
	expect_inline(shots, IB_WR_SEND, 1, true, false);
	shots_destroy(shots);
}

const struct engine_case post_cases[] = {
	{ "c5_one_by_one", ON_ALL, c5_one_by_one },
	{ "c5_more", ON_ALL, c5_more },
	{ "c5_one_pass", ON_ALL, c5_one_pass },
	{ "c5_long_pass", ON_ALL, c5_long_pass },
	{ "c5_each", ON_ALL, c5_each },
	{ "c5_four", ON_ALL, c5_four },
	{ "c5_hold", BIT(RIG_INTERRUPT) | BIT(RIG_WORKQUEUE), c5_hold },
	{ "c6_losers_leave", ON_ALL, c6_losers_leave },
	{ "c6_interrupted", ON_ALL, c6_interrupted },
	{ "c7_by_grant", ON_ALL, c7_by_grant },
	{ "c7_no_grant", ON_ALL, c7_no_grant },
	{}
};
