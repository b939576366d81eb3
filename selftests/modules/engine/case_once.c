// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Contract 1: every group that was accepted ends exactly once, in order; also when the
 * QP fails, the queue is taken down, or posts come from everywhere at once.
 */
#include "engine.h"

#define ALL_KINDS	(BIT(GROUP_NR_KINDS) - 1)

static void check_accounts(struct traffic *traffic)
{
	struct rig_queue *queue = traffic->queue;
	u64 wrs = rig_counter(queue, KVERBS_WORK_REQUESTS);

	expect_is(rig_credits(queue), queue->rig->attr.depth);
	expect_is(rig_counter(queue, KVERBS_COMPLETIONS), wrs);
	expect_is(rig_counter(queue, KVERBS_CQE_STALE), 0);
	expect_is(rig_counter(queue, KVERBS_OP_SEND) + rig_counter(queue, KVERBS_OP_WRITE) +
		  rig_counter(queue, KVERBS_OP_READ) + rig_counter(queue, KVERBS_OP_ATOMIC) +
		  rig_counter(queue, KVERBS_OP_REG_MR) +
		  rig_counter(queue, KVERBS_OP_LOCAL_INV), wrs);
	if (!queue->hca)
		return;
	expect_is(queue->hca->posted, wrs);
	expect_is(rig_counter(queue, KVERBS_POST_CALLS), queue->hca->calls);
	expect_is(rig_counter(queue, KVERBS_SIGNALED), queue->hca->signaled);
	expect_is(rig_counter(queue, KVERBS_QUEUE_CQES), queue->hca->signaled);
}

/* Traffic on a rig of its own, nothing goes wrong. */
static void run_clean(const struct rig_attr *rig_attr, const struct traffic_attr *attr)
{
	struct rig *rig = rig_create(rig_attr);
	struct traffic *traffic;

	if (!rig)
		return;
	traffic = traffic_create(&rig->queue[0], attr);
	if (traffic) {
		traffic_start(traffic);
		if (traffic_wait(traffic))
			check_accounts(traffic);
		traffic_stop(traffic);
		expect_is(rig_drain(&rig->queue[0]), 0);
		expect(traffic_settled(traffic));
		rig_queue_destroy(&rig->queue[0]);
		traffic_destroy(traffic);
	}
	rig_destroy(rig);
}

/* A depth of every kind: one, odd, a power of two, more than a chain. */
static void c1_random(enum rig_cq cq)
{
	static const u32 depths[] = { 1, 2, 5, 16, 33, 128, 300 };
	struct traffic_attr attr = {
		.producers = 3,
		.kinds = ALL_KINDS,
		.from_done = 4,
		.more = 3,
		.lists = true,
		.wait = true,
		.copies = true,
	};
	struct rig_attr rig = { .cq = cq, .scripted = true, .copy_sge = 1 };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(depths) && !engine_failed(); i++) {
		rig.depth = depths[i];
		attr.count = engine_count / ARRAY_SIZE(depths) / attr.producers;
		attr.max_group = min_t(u32, depths[i], GROUP_MAX);
		if (depths[i] < 3)
			attr.kinds = ALL_KINDS & ~BIT(GROUP_REG);
		else
			attr.kinds = ALL_KINDS;
		run_clean(&rig, &attr);
	}
}

/*
 * Every policy, and nobody flushes: what waits to be four is posted all the same, also by
 * the last pass, and at whatever moment that comes.
 */
static void c1_policies(enum rig_cq cq)
{
	static const u32 depths[] = { 1, 6, 64 };
	struct traffic_attr attr = {
		.producers = 3,
		.kinds = BIT(GROUP_WRITE) | BIT(GROUP_READ),
		.from_done = 4,
		.wait = true,
		.no_flush = true,
	};
	struct rig_attr rig = { .cq = cq, .scripted = true };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(depths) && !engine_failed(); i++) {
		rig.depth = depths[i];
		attr.count = engine_count / 8 / ARRAY_SIZE(depths) / attr.producers;
		attr.max_group = min_t(u32, depths[i], GROUP_MAX);
		for (rig.policy = 0; rig.policy < KVERBS_BATCH_NR_POLICIES; rig.policy++)
			run_clean(&rig, &attr);
	}
}

/* The HCA completes inside post_send, at once or nearly. */
static void c1_instant(enum rig_cq cq)
{
	struct rig_attr rig_attr = { .cq = cq, .scripted = true, .depth = 16 };
	struct traffic_attr attr = {
		.producers = 2,
		.kinds = ALL_KINDS,
		.count = engine_count / 4,
		.max_group = 3,
		.from_done = 3,
		.more = 2,
		.lists = true,
		.wait = true,
	};
	struct rig *rig = rig_create(&rig_attr);
	struct traffic *traffic;

	if (!rig)
		return;
	rig->queue[0].hca->in_post = 2;
	traffic = traffic_create(&rig->queue[0], &attr);
	if (traffic) {
		traffic_start(traffic);
		if (traffic_wait(traffic))
			check_accounts(traffic);
		traffic_stop(traffic);
		expect_is(rig_drain(&rig->queue[0]), 0);
		rig_queue_destroy(&rig->queue[0]);
		traffic_destroy(traffic);
	}
	rig_destroy(rig);
}

static void run_data(enum rig_cq cq, u32 kinds)
{
	static const u32 depths[] = { 3, 64 };
	struct traffic_attr attr = {
		.producers = 3,
		.count = engine_count / 10 / ARRAY_SIZE(depths) / 3,
		.kinds = kinds,
		.max_group = 3,
		.from_done = 4,
		.more = 3,
		.lists = true,
		.wait = true,
		.copies = true,
		.inlines = true,
	};
	struct rig_attr rig = { .cq = cq, .copy_sge = 1, .max_inline = 64 };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(depths) && !engine_failed(); i++) {
		rig.depth = depths[i];
		run_clean(&rig, &attr);
	}
}

/* The driver's own HCA: what is written, read and sent arrives. */
static void c1_data(enum rig_cq cq)
{
	run_data(cq, BIT(GROUP_WRITE) | BIT(GROUP_READ) | BIT(GROUP_SEND));
}

/* So is what is written through a registration that goes before and is undone after it. */
static void c1_data_reg(enum rig_cq cq)
{
	run_data(cq, BIT(GROUP_WRITE) | BIT(GROUP_READ) | BIT(GROUP_REG));
}

/* Posts from a hard interrupt, a soft one, a thread and done(), at the same time. */
static void c1_contexts(enum rig_cq cq)
{
	struct traffic_attr attr = {
		.producers = 4,
		.count = engine_count / 40,
		.kinds = ALL_KINDS,
		.max_group = 3,
		.from_done = 4,
		.more = 3,
		.lists = true,
		.wait = true,
		.contexts = true,
	};
	struct rig_attr rig = { .cq = cq, .scripted = true, .depth = 64 };

	run_clean(&rig, &attr);
}

/* What becomes of the queue in the middle of its traffic. */
enum upset {
	UPSET_CQE,		/* a work request fails */
	UPSET_ERR,		/* the QP is moved to ERR */
	UPSET_DRAIN,		/* its owner drains it */
};

static void upset(struct traffic *traffic, enum upset what)
{
	struct ib_qp_attr error = { .qp_state = IB_QPS_ERR };
	struct rig_queue *queue = traffic->queue;
	u32 at = 1 + engine_random() % 500;
	unsigned long end = jiffies + 20 * HZ;

	if (what == UPSET_CQE) {
		queue->hca->fail_status = IB_WC_REM_ACCESS_ERR;
		WRITE_ONCE(queue->hca->fail_at, queue->hca->posted + at);
	} else {
		while (atomic_read(&traffic->ended) < at && time_before(jiffies, end))
			cond_resched();
	}
	if (what == UPSET_ERR)
		expect_is(ib_modify_qp(queue->qp, &error, IB_QP_STATE), 0);
	else if (what == UPSET_DRAIN)
		expect_is(rig_drain(queue), 0);
}

static void check_upset(struct traffic *traffic, enum upset what)
{
	expect_is(atomic_read(&traffic->succeeded) + atomic_read(&traffic->flushed) +
		  atomic_read(&traffic->failed), atomic_read(&traffic->ended));
	expect_is(atomic_read(&traffic->failed), what == UPSET_CQE);
	expect_is(rig_credits(traffic->queue), traffic->queue->rig->attr.depth);
	expect_is(rig_counter(traffic->queue, KVERBS_CQE_STALE), 0);
}

static void run_upset(enum rig_cq cq, bool scripted, enum upset what)
{
	struct rig_attr rig_attr = {
		.cq = cq,
		.scripted = scripted,
		.depth = 1 + engine_random() % 100,
		.copy_sge = 1,
	};
	struct traffic_attr attr = {
		.producers = 2,
		.count = 2000,
		.kinds = BIT(GROUP_WRITE) | BIT(GROUP_READ),
		.max_group = min_t(u32, rig_attr.depth, GROUP_MAX),
		.from_done = 4,
		.more = 2,
		.lists = true,
		.wait = true,
		.copies = true,
		.may_fail = true,
	};
	struct rig *rig = rig_create(&rig_attr);
	struct traffic *traffic;

	if (!rig)
		return;
	if (scripted) {
		rig->queue[0].hca->flush_silent = engine_random() & 1;
		rig->queue[0].hca->in_post = engine_random() % 3;
	}
	traffic = traffic_create(&rig->queue[0], &attr);
	if (traffic) {
		traffic_start(traffic);
		upset(traffic, what);
		traffic_wait(traffic);
		traffic_stop(traffic);
		check_upset(traffic, what);
		expect_is(rig_drain(&rig->queue[0]), 0);
		rig_queue_destroy(&rig->queue[0]);
		traffic_destroy(traffic);
	}
	rig_destroy(rig);
}

static void repeat_upset(enum rig_cq cq, bool scripted, enum upset what, u32 rounds)
{
	u32 i;

	for (i = 0; i < rounds && !engine_failed(); i++)
		run_upset(cq, scripted, what);
}

static void c1_error_cqe(enum rig_cq cq)
{
	repeat_upset(cq, true, UPSET_CQE, 6);
}

static void c1_error_state(enum rig_cq cq)
{
	repeat_upset(cq, true, UPSET_ERR, 6);
}

static void c1_drain(enum rig_cq cq)
{
	repeat_upset(cq, true, UPSET_DRAIN, 6);
}

static void c1_data_error_state(enum rig_cq cq)
{
	repeat_upset(cq, false, UPSET_ERR, 2);
}

static void c1_data_drain(enum rig_cq cq)
{
	repeat_upset(cq, false, UPSET_DRAIN, 2);
}

const struct engine_case once_cases[] = {
	{ "c1_random", ON_ALL, c1_random },
	{ "c1_policies", ON_ALL, c1_policies },
	{ "c1_instant", ON_ALL, c1_instant },
	{ "c1_contexts", ON_ALL, c1_contexts },
	{ "c1_error_cqe", ON_ALL, c1_error_cqe },
	{ "c1_error_state", ON_ALL, c1_error_state },
	{ "c1_drain", ON_ALL, c1_drain },
	{ "c1_data", ON_ALL, c1_data },
	{ "c1_data_reg", ON_ALL, c1_data_reg },
	{ "c1_data_error_state", ON_ALL, c1_data_error_state },
	{ "c1_data_drain", ON_ALL, c1_data_drain },
	{}
};
