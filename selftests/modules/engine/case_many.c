// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Many queues: a thousand on a CQ, as many CQs as that takes. All of them work, one more
 * than a CQ has room for is refused, and each costs the memory that it may cost.
 */
#include <linux/err.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmstat.h>

#include "engine.h"

#define ON_A_CQ		1000
#define DEPTH		4
#define ROUNDS		3

/* Bytes of a queue besides 16 for each slot; see Documentation/design.rst. */
#define QUEUE_BYTES	7424

struct many;

struct member {
	struct many *many;
	struct ib_qp_init_attr init;
	struct ib_qp *qp;
	struct kverbs_sq *sq;
	struct kverbs_req req;
	struct ib_rdma_wr wr;
};

struct many {
	struct rig *rig;		/* of it only the device and the way to it */
	u32 nr;
	struct member *member;
	u32 nr_cqs;
	struct kverbs_cq **cqs;
	atomic_t ended;
	atomic_t failed;
	wait_queue_head_t wait;
};

static void ended(struct kverbs_req *req, enum ib_wc_status status)
{
	struct many *many = container_of(req, struct member, req)->many;

	if (status)
		atomic_inc(&many->failed);
	atomic_inc_return_release(&many->ended);
	wake_up(&many->wait);
}

/* Some wait for events, some are polled while that pays. */
static int create_cqs(struct many *many)
{
	struct kverbs_cq_attr attr = {
		.nr_cqe = ON_A_CQ * DEPTH, .comp_vector = -1, .cpu = -1, .name = KBUILD_MODNAME,
		.max_cpu_percent = 100,
	};
	struct kverbs_cq *made;

	while (many->nr_cqs < DIV_ROUND_UP(many->nr, ON_A_CQ)) {
		attr.mode = many->nr_cqs % 2 ? KVERBS_CQ_ADAPTIVE : KVERBS_CQ_INTERRUPT;
		made = kverbs_cq_create(many->rig->ib, &attr);
		if (IS_ERR(made))
			return PTR_ERR(made);
		many->cqs[many->nr_cqs++] = made;
	}
	return 0;
}

/* Connected to itself. */
static int create_qp(struct many *many, u32 index)
{
	struct member *member = &many->member[index];
	struct ib_cq *cq = kverbs_cq_ib(many->cqs[index / ON_A_CQ]);
	struct ib_qp *qp;

	member->many = many;
	member->init = (struct ib_qp_init_attr){
		.send_cq = cq,
		.recv_cq = many->rig->peer_cq,
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = 1, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
	};
	qp = ib_create_qp(many->rig->pd, &member->init);
	if (IS_ERR(qp))
		return PTR_ERR(qp);
	member->qp = qp;
	member->init.cap.max_send_wr = DEPTH;
	member->wr.wr.opcode = IB_WR_RDMA_WRITE;
	member->req.wr = &member->wr.wr;
	member->req.done = ended;
	return rig_connect(many->rig, qp, qp);
}

static struct kverbs_sq *create_sq(struct many *many, u32 index)
{
	struct member *member = &many->member[index];
	struct kverbs_sq_attr attr = {
		.init = &member->init, .cq = many->cqs[index / ON_A_CQ], .name = KBUILD_MODNAME,
	};

	return kverbs_sq_create(member->qp, &attr);
}

static u64 slab_bytes(void)
{
	return (u64)global_node_page_state_pages(NR_SLAB_UNRECLAIMABLE_B) * PAGE_SIZE;
}

/* What all of them took, in bytes a queue; a row is in the arena, not in the slab. */
static u64 memory_of(const struct many *many, u64 before)
{
	return div_u64(slab_bytes() - before, many->nr) + sizeof(struct kverbs_row) -
	       16 * DEPTH;
}

static int create_all(struct many *many)
{
	struct kverbs_sq *sq;
	u64 before, each;
	u32 i;
	int err;

	for (i = 0; i < many->nr; i++) {
		err = create_qp(many, i);
		if (err)
			return err;
		cond_resched();
	}
	before = slab_bytes();
	for (i = 0; i < many->nr; i++) {
		sq = create_sq(many, i);
		if (IS_ERR(sq))
			return PTR_ERR(sq);
		many->member[i].sq = sq;
		cond_resched();
	}
	each = memory_of(many, before);
	engine_note("%u queues on %u CQs: %llu bytes each, and 16 for each slot", many->nr,
		    many->nr_cqs, each);
	/* The checkers keep records of their own beside each object. */
	expect(each > QUEUE_BYTES / 2);
	expect(each <= QUEUE_BYTES * (IS_ENABLED(CONFIG_KASAN) ? 2 : 1));
	return 0;
}

/* The CQs are full: one more queue could overflow its CQ. */
static void one_too_many(struct many *many)
{
	struct kverbs_sq *sq;

	if (many->nr % ON_A_CQ)
		return;
	sq = create_sq(many, many->nr - 1);
	if (!IS_ERR(sq))
		kverbs_sq_destroy(sq);
	expect_is(PTR_ERR_OR_ZERO(sq), -ENOSPC);
}

static void use_all(struct many *many)
{
	u32 round, i;

	for (round = 0; round < ROUNDS && !engine_failed(); round++) {
		atomic_set(&many->ended, 0);
		for (i = 0; i < many->nr; i++)
			expect_is(kverbs_post(many->member[i].sq, &many->member[i].req, 0), 0);
		wait_event_timeout(many->wait, atomic_read_acquire(&many->ended) == many->nr,
				   60 * HZ);
		expect_is(atomic_read(&many->ended), many->nr);
	}
	expect_is(atomic_read(&many->failed), 0);
	for (i = 0; i < many->nr && !engine_failed(); i++)
		expect_is(kverbs_sq_counter(many->member[i].sq, KVERBS_COMPLETIONS), ROUNDS);
}

static void destroy_all(struct many *many)
{
	u32 i;

	for (i = 0; many->member && i < many->nr; i++) {
		if (many->member[i].sq)
			expect_is(kverbs_sq_drain(many->member[i].sq, 10 * HZ), 0);
		if (many->member[i].qp)
			ib_destroy_qp(many->member[i].qp);
		if (many->member[i].sq)
			kverbs_sq_destroy(many->member[i].sq);
	}
	while (many->nr_cqs)
		kverbs_cq_destroy(many->cqs[--many->nr_cqs]);
	kvfree(many->member);
	kvfree(many->cqs);
}

static void many_queues(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = RIG_SOFTIRQ, .depth = 1, .no_sq = true };
	struct many many = { .rig = rig_create(&attr), .nr = engine_count };
	int err = -ENOMEM;

	if (!many.rig)
		return;
	init_waitqueue_head(&many.wait);
	many.member = kvcalloc(many.nr, sizeof(*many.member), GFP_KERNEL);
	many.cqs = kvcalloc(DIV_ROUND_UP(many.nr, ON_A_CQ), sizeof(*many.cqs), GFP_KERNEL);
	if (many.member && many.cqs)
		err = create_cqs(&many);
	err = err ?: create_all(&many);
	if (expect_is(err, 0)) {
		one_too_many(&many);
		use_all(&many);
	}
	destroy_all(&many);
	rig_destroy(many.rig);
}

/* On a device that has room for them: kverbs_sim, not rxe. */
const struct engine_case many_cases[] = {
	{ "many_queues", BIT(RIG_INTERRUPT), many_queues },
	{}
};
