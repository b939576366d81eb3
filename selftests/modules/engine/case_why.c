// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Queues that fail, each in a way of its own, for who reads their records: a case notes
 * the name of the failure and the QP. selftests/cli/why.sh asks for the causes.
 */
#include <linux/delay.h>
#include <linux/module.h>

#include "engine.h"

static uint hold;
module_param(hold, uint, 0644);
MODULE_PARM_DESC(hold, "why_held waits before its failure while this is 1, after it while it is 2");

static void note(struct shots *shots, const char *what)
{
	engine_note("why %s %u", what, shots->queue->qp->qp_num);
}

/* The QP says that it is in the error state, whatever the driver thinks. */
static struct ib_qp_attr in_error = { .qp_state = IB_QPS_ERR };

/* Three that are done, then a group of a write, a read of 16 bytes that fails, a write. */
static void fail_read(struct shots *shots, enum ib_wc_status status)
{
	struct shot *shot;
	u32 i;

	for (i = 0; i < 3; i++)
		expect_is(shot_post(shots, 1, 0), 0);
	hca_execute(shots->hca, 3);
	shots_wait(shots, 3);
	shots->hca->fail_at = 4;
	shots->hca->fail_status = status;
	shot = shot_new(shots, 3);
	shot->wr[1].wr.opcode = IB_WR_RDMA_READ;
	shot->sge[1].length = 16;
	expect_is(kverbs_post(shots->queue->sq, &shot->req, 0), 0);
	expect_is(shot_post(shots, 1, 0), 0);
	hca_execute(shots->hca, U32_MAX);
	shots_wait(shots, 5);
	shots_expect(shots, 3, status);
}

static void end(struct shots *shots)
{
	rig_drain_for(shots->queue, HZ);
	shots_destroy(shots);
}

static void run_cqe(enum rig_cq cq, enum ib_wc_status status, const char *name)
{
	struct rig_attr attr = { .cq = cq, .depth = 8 };
	struct shots *shots = shots_create(&attr);

	if (!shots)
		return;
	shots->queue->fake_query = &in_error;
	note(shots, name);
	fail_read(shots, status);
	end(shots);
}

static void why_cqe(enum rig_cq cq)
{
	run_cqe(cq, IB_WC_REM_ACCESS_ERR, "rem_access_err");
	run_cqe(cq, IB_WC_LOC_LEN_ERR, "loc_len_err");
	run_cqe(cq, IB_WC_RNR_RETRY_EXC_ERR, "rnr_retry_exc_err");
	run_cqe(cq, IB_WC_RETRY_EXC_ERR, "retry_exc_err");
}

/* More was posted than a record holds. */
static void why_wrapped(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 8 };
	struct shots *shots = shots_create(&attr);
	u32 i;

	if (!shots)
		return;
	note(shots, "wrapped");
	shots->hca->fail_at = 100;
	shots->hca->fail_status = IB_WC_REM_OP_ERR;
	for (i = 0; i <= 100; i++) {
		expect_is(shot_post(shots, 1, 0), 0);
		hca_execute(shots->hca, 1);
		shots_wait(shots, i + 1);
	}
	end(shots);
}

/* The driver names the second of three, and takes the third. */
static void refuse_one(struct shots *shots)
{
	u32 i;

	shots->hca->refuse = HCA_REFUSE_NAMED;
	shots->hca->refuse_at = 1;
	for (i = 0; i < 3; i++)
		expect_is(shot_post(shots, 1, i < 2 ? KVERBS_MORE : 0), 0);
	hca_execute(shots->hca, U32_MAX);
	shots_wait(shots, 3);
}

static void why_refused(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 8 };
	struct shots *shots = shots_create(&attr);

	if (!shots)
		return;
	note(shots, "refused");
	refuse_one(shots);
	end(shots);
}

/* What ends the service comes later. */
static void why_later(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 8 };
	struct shots *shots = shots_create(&attr);

	if (!shots)
		return;
	note(shots, "later");
	refuse_one(shots);
	shots->hca->fail_at = 2;
	shots->hca->fail_status = IB_WC_REM_ACCESS_ERR;
	expect_is(shot_post(shots, 1, 0), 0);
	hca_execute(shots->hca, U32_MAX);
	shots_wait(shots, 4);
	end(shots);
}

static void why_in_doubt(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 8 };
	struct shots *shots = shots_create(&attr);
	u32 i;

	if (!shots)
		return;
	note(shots, "in_doubt");
	expect_is(shot_post(shots, 1, 0), 0);
	hca_execute(shots->hca, 1);
	shots_wait(shots, 1);
	shots->hca->refuse = HCA_REFUSE_UNSET;
	shots->hca->refuse_at = 2;
	for (i = 0; i < 3; i++)
		expect_is(shot_post(shots, 1, i < 2 ? KVERBS_MORE : 0), 0);
	end(shots);
}

/* The first of a group was taken silently, the second and then the no-op were not. */
static void refuse_noop(struct hca *hca)
{
	if (hca->posted == 2) {
		hca->refuse = HCA_REFUSE_NAMED;
		hca->refuse_at = 2;
	}
}

static void why_tail(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 8 };
	struct shots *shots = shots_create(&attr);

	if (!shots)
		return;
	note(shots, "tail");
	shots->hca->refuse = HCA_REFUSE_NAMED;
	shots->hca->refuse_at = 2;
	shots->hca->on_post = refuse_noop;
	expect_is(shot_post(shots, 1, KVERBS_MORE), 0);
	expect_is(shot_post(shots, 2, 0), 0);
	shots_wait(shots, 2);
	end(shots);
}

static bool is_missing(void *data)
{
	return rig_counter(data, KVERBS_CQE_MISSING);
}

/* One is done, the CQE of the next does not come. */
static void why_cqe_missing(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 8, .cqe_timeout_ms = 1000 };
	struct shots *shots = shots_create(&attr);
	u32 i;

	if (!shots)
		return;
	note(shots, "cqe_missing");
	expect_is(shot_post(shots, 1, 0), 0);
	hca_execute(shots->hca, 1);
	shots_wait(shots, 1);
	shots->rig->hca_cq.lose = 1;
	for (i = 0; i < 2; i++)
		expect_is(shot_post(shots, 1, 0), 0);
	hca_execute(shots->hca, 1);
	expect(eventually(is_missing, shots->queue));
	rig_drain_for(shots->queue, HZ / 10);
	shots_destroy(shots);
}

static void why_drain(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 8 };
	struct shots *shots = shots_create(&attr);
	u32 i;

	if (!shots)
		return;
	note(shots, "drain");
	for (i = 0; i < 4; i++)
		expect_is(shot_post(shots, 1, 0), 0);
	hca_execute(shots->hca, 1);
	shots_wait(shots, 1);
	shots->rig->hca_cq.lose = 1;
	expect_is(rig_drain_for(shots->queue, HZ / 10), -ETIMEDOUT);
	shots_destroy(shots);
}

/* Its owner moves the QP to ERR behind the queue's back, as a disconnect does. */
static void why_flushed(enum rig_cq cq)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	struct rig_attr rig = { .cq = cq, .depth = 8 };
	struct shots *shots = shots_create(&rig);
	u32 i;

	if (!shots)
		return;
	note(shots, "flushed");
	for (i = 0; i < 3; i++)
		expect_is(shot_post(shots, 1, 0), 0);
	expect_is(ib_modify_qp(shots->queue->qp, &attr, IB_QP_STATE), 0);
	shots_wait(shots, 3);
	end(shots);
}

/* What is drained in time has not failed, though all of it was flushed. */
static void why_clean(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 8 };
	struct shots *shots = shots_create(&attr);
	u32 i;

	if (!shots)
		return;
	note(shots, "clean");
	for (i = 0; i < 3; i++)
		expect_is(shot_post(shots, 1, 0), 0);
	expect_is(rig_drain(shots->queue), 0);
	shots_destroy(shots);
}

/* A UD queue that works again: its record goes on, what was is kept. */
static void why_recovered(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 8, .type = IB_QPT_UD };
	struct ib_qp_attr sqe = { .qp_state = IB_QPS_SQE };
	struct shots *shots = shots_create(&attr);
	struct shot *shot;

	if (!shots)
		return;
	note(shots, "recovered");
	shots->hca->fail_at = 0;
	shots->hca->fail_status = IB_WC_LOC_LEN_ERR;
	shot = shot_new(shots, 1);
	shot->wr[0].wr.opcode = IB_WR_SEND;
	expect_is(kverbs_post(shots->queue->sq, &shot->req, 0), 0);
	hca_execute(shots->hca, 1);
	shots_wait(shots, 1);
	shots->queue->fake_query = &sqe;
	shots->hca->error = false;
	expect_is(kverbs_sq_recover(shots->queue->sq), 0);
	shots->hca->fail_at = 1;
	shots->hca->fail_status = IB_WC_LOC_PROT_ERR;
	shot = shot_new(shots, 1);
	shot->wr[0].wr.opcode = IB_WR_SEND;
	expect_is(kverbs_post(shots->queue->sq, &shot->req, 0), 0);
	hca_execute(shots->hca, 1);
	shots_wait(shots, 2);
	end(shots);
}

static void wait_while(u32 value)
{
	u32 tries;

	for (tries = 0; READ_ONCE(hold) == value && tries < 3000; tries++)
		msleep(20);
}

/* Looked at while it is there, before and after. */
static void why_held(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 8 };
	struct shots *shots = shots_create(&attr);
	u32 i;

	if (!shots)
		return;
	for (i = 0; i < 3; i++)
		expect_is(shot_post(shots, 1, 0), 0);
	note(shots, "held");
	wait_while(1);
	hca_execute(shots->hca, U32_MAX);
	shots_wait(shots, 3);
	shots->hca->fail_at = 3;
	shots->hca->fail_status = IB_WC_REM_ACCESS_ERR;
	expect_is(shot_post(shots, 1, 0), 0);
	hca_execute(shots->hca, 1);
	shots_wait(shots, 4);
	note(shots, "failed");
	wait_while(2);
	end(shots);
}

#define ON_TWO	(BIT(RIG_INTERRUPT) | BIT(RIG_SOFTIRQ))

const struct engine_case why_cases[] = {
	{ "why_cqe", ON_TWO, why_cqe },
	{ "why_wrapped", ON_TWO, why_wrapped },
	{ "why_refused", ON_TWO, why_refused },
	{ "why_later", ON_TWO, why_later },
	{ "why_in_doubt", ON_TWO, why_in_doubt },
	{ "why_tail", ON_TWO, why_tail },
	{ "why_cqe_missing", ON_TWO, why_cqe_missing },
	{ "why_drain", ON_TWO, why_drain },
	{ "why_flushed", ON_TWO, why_flushed },
	{ "why_clean", ON_TWO, why_clean },
	{ "why_recovered", ON_TWO, why_recovered },
	{ "why_held", BIT(RIG_INTERRUPT), why_held },
	{}
};
