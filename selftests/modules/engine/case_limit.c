// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Contract 9: a CQ cannot overflow. Contract 11: each reason has its errno and its counter.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "engine.h"

/* @err, one more of @why, and nothing was staged. */
static void refused(struct shots *shots, struct shot *shot, int err, enum kverbs_counter why)
{
	u32 credits = rig_credits(shots->queue);
	u64 before = rig_counter(shots->queue, why);

	if (!shot)
		return;
	expect_is(kverbs_post(shots->queue->sq, &shot->req, 0), err);
	expect_is(rig_counter(shots->queue, why) - before, 1);
	expect_is(rig_credits(shots->queue), credits);
	expect_is(shot->ended, 0);
}

static struct shot *shot_op(struct shots *shots, enum ib_wr_opcode opcode)
{
	struct shot *shot = shot_new(shots, 1);

	if (shot)
		shot->wr[0].wr.opcode = opcode;
	return shot;
}

static void c11_reasons(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 3, .max_inline = 32 };
	struct shots *shots = shots_create(&attr);
	struct kverbs_sq_info info;
	struct shot *shot;

	if (!shots)
		return;
	kverbs_sq_query(shots->queue->sq, &info);
	expect_is(info.depth, 3);
	refused(shots, shot_new(shots, 4), -EMSGSIZE, KVERBS_REFUSED_DEPTH);

	shot = shot_new(shots, 1);
	shot->wr[0].wr.num_sge = info.max_sge + 1;
	refused(shots, shot, -EINVAL, KVERBS_REFUSED_SGE);
	shot = shot_new(shots, 1);
	shot->wr[0].wr.num_sge = -1;
	refused(shots, shot, -EINVAL, KVERBS_REFUSED_SGE);

	shot = shot_new(shots, 1);
	shot->wr[0].wr.send_flags = IB_SEND_INLINE;
	shot->sge[0].length = info.max_inline + 1;
	refused(shots, shot, -EINVAL, KVERBS_REFUSED_INLINE);

	shot = shot_new(shots, 2);
	shot->sge[1].length = U32_MAX;
	refused(shots, shot, -EINVAL, KVERBS_REFUSED_LENGTH);

	refused(shots, shot_op(shots, IB_WR_REG_MR_INTEGRITY), -EINVAL, KVERBS_REFUSED_OPCODE);
	refused(shots, shot_op(shots, 0x70), -EINVAL, KVERBS_REFUSED_OPCODE);
	shot = shot_new(shots, 1);
	shot->req.wr = NULL;
	refused(shots, shot, -EINVAL, KVERBS_REFUSED_OPCODE);

	expect_is(shot_post(shots, 2, 0), 0);
	refused(shots, shot_new(shots, 2), -EAGAIN, KVERBS_REFUSED_FULL);
	expect_is(shot_post(shots, 1, 0), 0);
	refused(shots, shot_new(shots, 1), -EAGAIN, KVERBS_REFUSED_FULL);
	hca_execute(shots->hca, U32_MAX);
	shots_wait(shots, 2);
	expect_is(shots->hca->posted, 3);

	rig_drain(shots->queue);
	refused(shots, shot_new(shots, 1), -ESHUTDOWN, KVERBS_REFUSED_STATE);
	shots_destroy(shots);
}

static void c11_ud_opcodes(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 4, .type = IB_QPT_UD };
	struct shots *shots = shots_create(&attr);
	struct shot *shot;

	if (!shots)
		return;
	refused(shots, shot_op(shots, IB_WR_RDMA_WRITE), -EINVAL, KVERBS_REFUSED_OPCODE);
	refused(shots, shot_op(shots, IB_WR_RDMA_READ), -EINVAL, KVERBS_REFUSED_OPCODE);
	shot = shot_op(shots, IB_WR_SEND);
	shot->sge[0].length = ib_mtu_enum_to_int(shots->rig->mtu) + 1;
	refused(shots, shot, -EINVAL, KVERBS_REFUSED_LENGTH);
	shots_destroy(shots);
}

/* Work requests of the most that one may carry: together 4 GiB, which no group may. */
static void run_huge(struct shots *shots, struct ib_rdma_wr *wr, u32 each)
{
	struct shot *shot = shot_new(shots, 1);
	u32 i, nr = U32_MAX / each + 1;

	shot->sge[0].length = each;
	for (i = 0; i < nr; i++) {
		wr[i].wr = shot->wr[0].wr;
		wr[i].wr.next = i + 1 < nr ? &wr[i + 1].wr : NULL;
	}
	shot->req.wr = &wr[0].wr;
	refused(shots, shot, -EINVAL, KVERBS_REFUSED_LENGTH);
	wr[nr - 2].wr.next = NULL;
	expect_is(kverbs_post(shots->queue->sq, &shot->req, 0), 0);
	hca_execute(shots->hca, U32_MAX);
	shots_wait(shots, 1);
	expect_is(shot->req.byte_len, (nr - 1) * each);
}

static void c11_huge(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 1024 };
	struct shots *shots = shots_create(&attr);
	struct ib_port_attr port = {};
	struct ib_rdma_wr *wr;

	if (!shots)
		return;
	wr = kvcalloc(attr.depth, sizeof(*wr), GFP_KERNEL);
	ib_query_port(shots->rig->ib, shots->rig->port, &port);
	if (!wr)
		engine_fail("no memory for a chain");
	else if (port.max_msg_sz <= U32_MAX / attr.depth)
		engine_skip("the device's messages are too small");
	else
		run_huge(shots, wr, port.max_msg_sz);
	rig_drain(shots->queue);
	shots_destroy(shots);
	kvfree(wr);
}

/* A list stops at the first that is not legal, or for which there is no room. */
static void c11_list(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 16 };
	struct shots *shots = shots_create(&attr);
	struct kverbs_req *reqs[6];
	u32 i;

	if (!shots)
		return;
	for (i = 0; i < 6; i++)
		reqs[i] = &shot_new(shots, 1)->req;
	shots->shot[3].wr[0].wr.opcode = IB_WR_REG_MR_INTEGRITY;
	expect_is(kverbs_post_list(shots->queue->sq, &reqs[3], 3, 0), -EINVAL);
	expect_is(shots->hca->posted, 0);
	expect_is(kverbs_post_list(shots->queue->sq, reqs, 6, 0), 3);
	expect_is(rig_counter(shots->queue, KVERBS_REFUSED_OPCODE), 2);
	expect_is(shots->hca->posted, 3);
	expect_is(shots->hca->calls, 1);
	shots->nr = 3;
	expect_is(shot_post_list(shots, 20, 0), 13);
	expect_is(shot_post_list(shots, 2, 0), -EAGAIN);
	expect_is(shots->hca->posted, 16);
	hca_execute(shots->hca, U32_MAX);
	shots_wait(shots, 16);
	for (i = 0; i < 16; i++)
		shots_expect(shots, i, IB_WC_SUCCESS);
	expect_is(rig_counter(shots->queue, KVERBS_OP_WRITE), 16);
	expect_is(rig_counter(shots->queue, KVERBS_BYTES), 16 * 8);
	rig_drain(shots->queue);
	expect_is(shot_post_list(shots, 2, 0), -ESHUTDOWN);
	shots_destroy(shots);
}

static void no_sq(struct rig_queue *queue, struct kverbs_sq_attr attr, int err)
{
	int got = rig_sq_create(queue, &attr);

	expect_is(got, err);
	if (!got) {
		kverbs_sq_drain(queue->sq, HZ);
		kverbs_sq_destroy(queue->sq);
	}
	queue->sq = NULL;
}

/* Room on the CQ for two of three queues. */
static void c9_claims(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 32, .queues = 3, .nr_cqe = 64, .no_sq = true };
	struct rig *rig = rig_create(&attr);
	struct kverbs_sq_attr sq = {};

	if (!rig)
		return;
	if (BIT(cq) & ON_KVERBS) {
		/* A device may make the CQ larger than it was asked to. */
		rig->attr.depth = rig->cq->cqe / 2;
		expect_is(rig_sq_create(&rig->queue[0], &sq), 0);
		expect_is(rig_sq_create(&rig->queue[1], &sq), 0);
		no_sq(&rig->queue[2], sq, -ENOSPC);
		kverbs_sq_drain(rig->queue[0].sq, HZ);
		kverbs_sq_destroy(rig->queue[0].sq);
		rig->queue[0].sq = NULL;
		expect_is(rig_sq_create(&rig->queue[2], &sq), 0);
	} else {
		sq.cq_room = 31;
		no_sq(&rig->queue[0], sq, -ENOSPC);
		sq.cq_room = rig->cq->cqe + 1;
		no_sq(&rig->queue[0], sq, -ENOSPC);
		sq.cq_room = 32;
		no_sq(&rig->queue[0], sq, 0);
	}
	rig_destroy(rig);
}

/* Queues that cannot be: each says so and leaves nothing behind. */
static void c9_unfit_qps(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 32, .no_sq = true };
	struct rig *rig = rig_create(&attr);
	struct kverbs_sq_attr sq = {};
	struct rig_queue *queue;

	if (!rig)
		return;
	queue = &rig->queue[0];
	queue->init.sq_sig_type = IB_SIGNAL_ALL_WR;
	no_sq(queue, sq, -EINVAL);
	queue->init.sq_sig_type = IB_SIGNAL_REQ_WR;
	rig->attr.depth = 0;
	no_sq(queue, sq, -EINVAL);
	rig->attr.depth = 32;
	sq.copy_sge = queue->init.cap.max_send_sge + 1;
	no_sq(queue, sq, -EINVAL);
	/* What each may be, together they may not. */
	rig->attr.depth = BIT(20);
	queue->init.cap.max_send_sge = 256;
	sq.copy_sge = 256;
	no_sq(queue, sq, -EINVAL);
	rig->attr.depth = 32;
	sq.copy_sge = 0;
	sq.policy = KVERBS_BATCH_NR_POLICIES;
	no_sq(queue, sq, -EINVAL);
	sq.policy = KVERBS_BATCH_EACH;
	sq.hold_max_ns = 1;
	no_sq(queue, sq, -EINVAL);
	sq.policy = KVERBS_BATCH_DYNAMIC;
	sq.hold_max_ns = 0;
	if (rig->kcq) {
		queue->qp->send_cq = rig->peer_cq;
		no_sq(queue, sq, -EINVAL);
		queue->qp->send_cq = rig->cq;
	}
	no_sq(queue, sq, 0);
	rig_destroy(rig);
}

/* A CQ of ib_create_cq() dispatches nothing. */
static void c9_no_dispatch(enum rig_cq cq)
{
	struct ib_cq_init_attr init = { .cqe = 32 };
	struct rig_attr attr = { .cq = cq, .depth = 16, .no_sq = true };
	struct rig *rig = rig_create(&attr);
	struct kverbs_sq_attr sq = {};
	struct ib_cq *plain, *own;

	if (!rig)
		return;
	plain = ib_create_cq(rig->ib, NULL, NULL, NULL, &init);
	if (expect(!IS_ERR(plain))) {
		own = rig->queue[0].qp->send_cq;
		rig->queue[0].qp->send_cq = plain;
		no_sq(&rig->queue[0], sq, -EINVAL);
		rig->queue[0].qp->send_cq = own;
		ib_destroy_cq(plain);
	}
	rig_destroy(rig);
}

/* The largest number of CQEs that a queue can leave, and one that overflows nothing. */
static void c9_all_flushed(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 33, .queues = 3 };
	struct shots *shots = shots_create(&attr);
	u32 q, i;

	if (!shots)
		return;
	for (q = 0; q < 3; q++) {
		shots->queue = &shots->rig->queue[q];
		WRITE_ONCE(shots->queue->hca->by_hand, true);
		for (i = 0; i < 11; i++)
			expect_is(shot_post(shots, 3, KVERBS_MORE), 0);
		kverbs_flush(shots->queue->sq);
	}
	for (q = 0; q < 3; q++) {
		shots->rig->queue[q].hca->flush_silent = true;
		hca_error(shots->rig->queue[q].hca);
	}
	shots_wait(shots, 33);
	shots_destroy(shots);
}

const struct engine_case limit_cases[] = {
	{ "c11_reasons", ON_ALL, c11_reasons },
	{ "c11_ud_opcodes", BIT(RIG_SOFTIRQ), c11_ud_opcodes },
	{ "c11_huge", BIT(RIG_SOFTIRQ), c11_huge },
	{ "c11_list", ON_ALL, c11_list },
	{ "c9_claims", ON_ALL, c9_claims },
	{ "c9_unfit_qps", ON_ALL, c9_unfit_qps },
	{ "c9_no_dispatch", BIT(RIG_SOFTIRQ), c9_no_dispatch },
	{ "c9_all_flushed", ON_ALL, c9_all_flushed },
	{}
};
