// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Contract 10: the end of a queue. Contract 12: CQEs that are lost, late or doubled.
 */
#include <linux/delay.h>

#include "engine.h"

static void run_drain(const struct rig_attr *attr, enum ib_wr_opcode opcode)
{
	struct shots *shots = shots_create(attr);
	struct shot *shot;
	u32 i;

	if (!shots)
		return;
	for (i = 0; i < 6; i++) {
		shot = shot_new(shots, 1);
		shot->wr[0].wr.opcode = opcode;
		/* Two are still staged. */
		expect_is(kverbs_post(shots->queue->sq, &shot->req, i == 3 ? 0 : KVERBS_MORE), 0);
	}
	expect_is(shots->hca->posted, 4);
	expect_is(rig_drain(shots->queue), 0);
	shots_wait(shots, 6);
	for (i = 0; i < 6; i++)
		shots_expect(shots, i, IB_WC_WR_FLUSH_ERR);
	expect_is(shots->hca->posted, 4);
	expect_is(kverbs_post(shots->queue->sq, &shots->shot[0].req, 0), -ESHUTDOWN);
	expect_is(rig_drain(shots->queue), 0);
	shots_destroy(shots);
}

static void c10_drain(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 64 };

	run_drain(&attr, IB_WR_RDMA_WRITE);
}

/* No marker work request: it serves UD, and QPs with a shared receive queue. */
static void c10_drain_ud(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 64, .type = IB_QPT_UD };

	run_drain(&attr, IB_WR_SEND);
}

static void c10_drain_srq(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 64, .srq = true };

	run_drain(&attr, IB_WR_SEND);
}

/* What was posted as one is given back one by one. */
static void c10_drain_list(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 64 };
	struct shots *shots = shots_create(&attr);
	u32 i;

	if (!shots)
		return;
	expect_is(shot_post_list(shots, 3, 0), 3);
	expect_is(shot_post_list(shots, 6, KVERBS_MORE), 6);
	expect_is(shots->hca->posted, 3);
	expect_is(rig_drain(shots->queue), 0);
	shots_wait(shots, 9);
	for (i = 0; i < 9; i++)
		shots_expect(shots, i, IB_WC_WR_FLUSH_ERR);
	expect_is(shots->hca->posted, 3);
	shots_destroy(shots);
}

static void c10_idle(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 64 };
	struct rig *rig = rig_create(&attr);

	if (!rig)
		return;
	expect_is(rig_drain(&rig->queue[0]), 0);
	rig_destroy(rig);
}

/*
 * A CQE does not come: no done() while the HCA may still write the buffers. The rest of it
 * comes with the end, once; what the HCA says afterwards reaches nothing.
 */
static void run_time_out(enum rig_cq cq, u32 lose, u32 ended)
{
	struct rig_attr attr = { .cq = cq, .depth = 8 };
	struct shots *shots = shots_create(&attr);
	u32 i;

	if (!shots)
		return;
	for (i = 0; i < 5; i++)
		expect_is(shot_post(shots, 1, 0), 0);
	shots->rig->hca_cq.lose = lose;
	expect_is(rig_drain_for(shots->queue, HZ / 10), -ETIMEDOUT);
	expect_is(atomic_read(&shots->ended), ended);
	rig_queue_destroy(shots->queue);
	shots_wait(shots, 5);
	for (i = 0; i < 5; i++)
		shots_expect(shots, i, IB_WC_WR_FLUSH_ERR);
	/* On a kverbs CQ nothing can come any more: it was polled empty after the QP's end. */
	if (!(BIT(cq) & ON_KVERBS)) {
		hca_cqe_add(shots->hca, 0, IB_WC_WR_FLUSH_ERR);
		hca_cqe_add(shots->hca, 4, IB_WC_SUCCESS);
		hca_event(shots->rig);
		msleep(50);
	}
	expect_is(atomic_read(&shots->ended), 5);
	shots_destroy(shots);
}

static void c10_time_out(enum rig_cq cq)
{
	run_time_out(cq, 1, 0);
	run_time_out(cq, 5, 0);
}

/* CQEs that nobody had polled when the QP went away are dealt with, or reach nothing. */
static void c10_unpolled(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 8 };
	struct shots *shots = shots_create(&attr);
	u32 i;

	if (!shots)
		return;
	for (i = 0; i < 5; i++)
		expect_is(shot_post(shots, 1, 0), 0);
	rig_direct_stop(shots->rig);
	shots->rig->hca_cq.armed = false;
	shots->hca->error = true;
	hca_execute(shots->hca, 3);
	shots->hca->error = false;
	kverbs_sq_drain(shots->queue->sq, 0);
	rig_queue_destroy(shots->queue);
	shots_wait(shots, 5);
	for (i = 0; i < 5; i++)
		expect_is(shots->shot[i].ended, 1);
	rig_direct_start(shots->rig);
	shots_destroy(shots);
}

/* A UD queue that met an error is in SQE: it works again once it is told to. */
static void c10_recover(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 8, .type = IB_QPT_UD };
	struct ib_qp_attr sqe = { .qp_state = IB_QPS_SQE };
	struct shots *shots = shots_create(&attr);
	struct shot *shot;
	u32 i;

	if (!shots)
		return;
	expect_is(kverbs_sq_recover(shots->queue->sq), -EINVAL);
	shots->hca->fail_at = 0;
	shots->hca->fail_status = IB_WC_LOC_LEN_ERR;
	for (i = 0; i < 3; i++) {
		shot = shot_new(shots, 1);
		shot->wr[0].wr.opcode = IB_WR_SEND;
		expect_is(kverbs_post(shots->queue->sq, &shot->req, 0), 0);
	}
	hca_execute(shots->hca, 1);
	shots_wait(shots, 1);
	expect_is(kverbs_sq_recover(shots->queue->sq), -EBUSY);
	hca_execute(shots->hca, U32_MAX);
	shots_wait(shots, 3);
	shots_expect(shots, 0, IB_WC_LOC_LEN_ERR);
	shots_expect(shots, 1, IB_WC_WR_FLUSH_ERR);
	expect_is(kverbs_sq_recover(shots->queue->sq), -EINVAL);
	shots->queue->fake_query = &sqe;
	shots->hca->error = false;
	expect_is(kverbs_sq_recover(shots->queue->sq), 0);
	shot = shot_new(shots, 1);
	shot->wr[0].wr.opcode = IB_WR_SEND;
	expect_is(kverbs_post(shots->queue->sq, &shot->req, 0), 0);
	hca_execute(shots->hca, U32_MAX);
	shots_wait(shots, 4);
	shots_expect(shots, 3, IB_WC_SUCCESS);
	shots_destroy(shots);
}

static bool is_missing(void *data)
{
	return rig_counter(data, KVERBS_CQE_MISSING);
}

/* A CQE that does not come is noticed, and the queue does not stand still for ever. */
static void c12_lost(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 8, .cqe_timeout_ms = 1000 };
	struct shots *shots = shots_create(&attr);
	u32 i;

	if (!shots)
		return;
	expect_is(shot_post(shots, 1, 0), 0);
	hca_execute(shots->hca, 1);
	shots_wait(shots, 1);
	shots->rig->hca_cq.lose = 1;
	for (i = 0; i < 3; i++)
		expect_is(shot_post(shots, 1, 0), 0);
	hca_execute(shots->hca, 2);
	expect(eventually(is_missing, shots->queue));
	expect_is(shot_post(shots, 1, 0), -EIO);
	expect_is(rig_drain_for(shots->queue, HZ / 10), -ETIMEDOUT);
	expect_is(atomic_read(&shots->ended), 1);
	expect_is(rig_counter(shots->queue, KVERBS_CQE_MISSING), 1);
	rig_queue_destroy(shots->queue);
	shots_wait(shots, 4);
	shots_expect(shots, 0, IB_WC_SUCCESS);
	shots_expect(shots, 1, IB_WC_WR_FLUSH_ERR);
	/* This one's CQE came, and it stood behind the other. */
	shots_expect(shots, 2, IB_WC_SUCCESS);
	shots_expect(shots, 3, IB_WC_WR_FLUSH_ERR);
	shots_destroy(shots);
}

static bool is_stale(void *data)
{
	return rig_counter(data, KVERBS_CQE_STALE) == 3;
}

/* A CQE comes twice, for what is retired, staged, or silent: counted, and nothing else. */
static void c12_stale(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 32 };
	struct shots *shots = shots_create(&attr);
	u32 i;

	if (!shots)
		return;
	expect_is(shot_post(shots, 1, 0), 0);
	shots->rig->hca_cq.twice = 1;
	hca_execute(shots->hca, 1);
	shots_wait(shots, 1);
	/* Round once, so that the next are in places that the HCA has seen. */
	for (i = 0; i < 31; i++)
		expect_is(shot_post(shots, 1, KVERBS_MORE), 0);
	kverbs_flush(shots->queue->sq);
	hca_execute(shots->hca, U32_MAX);
	shots_wait(shots, 32);
	/* Silent and in flight, then staged. */
	for (i = 0; i < 3; i++)
		expect_is(shot_post(shots, 1, i < 2 ? KVERBS_MORE : 0), 0);
	hca_cqe_add(shots->hca, shots->hca->posted - 3, IB_WC_SUCCESS);
	expect_is(shot_post(shots, 1, KVERBS_MORE), 0);
	hca_cqe_add(shots->hca, shots->hca->posted - 32, IB_WC_SUCCESS);
	expect(eventually(is_stale, shots->queue));
	expect_is(atomic_read(&shots->ended), 32);
	kverbs_flush(shots->queue->sq);
	hca_execute(shots->hca, U32_MAX);
	shots_wait(shots, 36);
	for (i = 0; i < 36; i++)
		shots_expect(shots, i, IB_WC_SUCCESS);
	expect_is(rig_credits(shots->queue), 32);
	shots_destroy(shots);
}

/* A CQE comes twice, the second time when its queue has ended well and is gone. */
static void c12_twice_late(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 8 };
	struct shots *shots = shots_create(&attr);

	if (!shots)
		return;
	expect_is(shot_post(shots, 1, 0), 0);
	hca_execute(shots->hca, 1);
	shots_wait(shots, 1);
	expect_is(rig_drain(shots->queue), 0);
	rig_queue_destroy(shots->queue);
	hca_cqe_add(shots->hca, 0, IB_WC_WR_FLUSH_ERR);
	hca_event(shots->rig);
	msleep(50);
	shots_expect(shots, 0, IB_WC_SUCCESS);
	shots_destroy(shots);
}

const struct engine_case drain_cases[] = {
	{ "c10_drain", ON_ALL, c10_drain },
	{ "c10_drain_ud", ON_ALL, c10_drain_ud },
	{ "c10_drain_srq", ON_ALL, c10_drain_srq },
	{ "c10_drain_list", ON_ALL, c10_drain_list },
	{ "c10_idle", ON_ALL, c10_idle },
	{ "c10_time_out", ON_ALL, c10_time_out },
	{ "c10_unpolled", ON_ALL, c10_unpolled },
	{ "c10_recover", ON_ALL, c10_recover },
	{ "c12_lost", BIT(RIG_INTERRUPT) | BIT(RIG_WORKQUEUE), c12_lost },
	{ "c12_stale", ON_ALL, c12_stale },
	{ "c12_twice_late", ON_ALL & ~ON_KVERBS, c12_twice_late },
	{}
};
