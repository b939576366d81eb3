// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Contract 8: what the driver refuses.
 */
#include "engine.h"

/* Groups of 1, 2, 3, 1, 2 work requests, staged together and posted as one chain. */
static const u32 shape[] = { 1, 2, 3, 1, 2 };
#define SHAPE_WRS	9

static u32 group_at(u32 wr)
{
	u32 group = 0;

	while (wr >= shape[group])
		wr -= shape[group++];
	return group;
}

static struct shots *post_shape(enum rig_cq cq, u32 depth, enum hca_refusal how, u32 at)
{
	struct rig_attr attr = { .cq = cq, .depth = depth };
	struct shots *shots = shots_create(&attr);
	u32 i;

	if (!shots)
		return NULL;
	shots->hca->refuse = how;
	shots->hca->refuse_at = at;
	for (i = 0; i < ARRAY_SIZE(shape); i++)
		expect_is(shot_post(shots, shape[i],
				    i + 1 < ARRAY_SIZE(shape) ? KVERBS_MORE : 0), 0);
	return shots;
}

/* Whichever it refuses: the group of that one fails, all others are done, in order. */
static void c8_named(enum rig_cq cq)
{
	static const u32 depths[] = { 18, 64, 256 };
	struct shots *shots;
	u32 at, i, d;

	for (d = 0; d < ARRAY_SIZE(depths); d++) {
		for (at = 0; at < SHAPE_WRS && !engine_failed(); at++) {
			shots = post_shape(cq, depths[d], at & 1 ? HCA_REFUSE_NAMED :
								   HCA_REFUSE_POSITIVE, at);
			if (!shots)
				return;
			hca_execute(shots->hca, U32_MAX);
			shots_wait(shots, ARRAY_SIZE(shape));
			for (i = 0; i < ARRAY_SIZE(shape); i++)
				shots_expect(shots, i, i == group_at(at) ? IB_WC_LOC_QP_OP_ERR :
									   IB_WC_SUCCESS);
			expect_is(shots->shot[group_at(at)].req.error, -EINVAL);
			expect_is(rig_credits(shots->queue), depths[d]);
			/* And the queue goes on, though its worker may post for us. */
			WRITE_ONCE(shots->hca->by_hand, false);
			expect_is(shot_post(shots, 1, 0), 0);
			shots_wait(shots, ARRAY_SIZE(shape) + 1);
			shots_expect(shots, ARRAY_SIZE(shape), IB_WC_SUCCESS);
			shots_destroy(shots);
		}
	}
}

/* The same where all were posted at once, and some of them before: one run, or two. */
static void run_named_list(enum rig_cq cq, u32 alone, u32 at)
{
	struct rig_attr attr = { .cq = cq, .depth = 64 };
	struct shots *shots = shots_create(&attr);
	u32 i;

	if (!shots)
		return;
	shots->hca->refuse = HCA_REFUSE_NAMED;
	shots->hca->refuse_at = at;
	for (i = 0; i < alone; i++)
		expect_is(shot_post(shots, 1, KVERBS_MORE), 0);
	expect_is(shot_post_list(shots, 9 - alone, 0), 9 - alone);
	hca_execute(shots->hca, U32_MAX);
	shots_wait(shots, 9);
	for (i = 0; i < 9; i++)
		shots_expect(shots, i, i == at ? IB_WC_LOC_QP_OP_ERR : IB_WC_SUCCESS);
	expect_is(shots->shot[at].req.error, -EINVAL);
	expect_is(rig_credits(shots->queue), 64);
	shots_destroy(shots);
}

static void c8_named_list(enum rig_cq cq)
{
	u32 at, alone;

	for (alone = 0; alone < 4; alone += 3)
		for (at = 0; at < 9 && !engine_failed(); at++)
			run_named_list(cq, alone, at);
}

static bool has_failed(void *data)
{
	struct rig_queue *queue = data;

	return READ_ONCE(queue->hca->error);
}

/* How many were taken it did not say: the QP goes to ERR, and only CQEs and the end tell. */
static void doubt(enum rig_cq cq, enum hca_refusal how, u32 at)
{
	struct shots *shots = post_shape(cq, 64, how, at);
	u32 whole = group_at(at), i;

	if (!shots)
		return;
	expect(eventually(has_failed, shots->queue));
	shots_wait(shots, whole);
	expect_is(shot_post(shots, 1, 0), -EIO);
	expect_is(rig_drain_for(shots->queue, HZ / 20), -ETIMEDOUT);
	expect_is(atomic_read(&shots->ended), whole);
	rig_queue_destroy(shots->queue);
	shots_wait(shots, ARRAY_SIZE(shape));
	for (i = 0; i < ARRAY_SIZE(shape); i++)
		shots_expect(shots, i, IB_WC_WR_FLUSH_ERR);
	shots_destroy(shots);
}

static void c8_in_doubt(enum rig_cq cq)
{
	static const enum hca_refusal how[] = {
		HCA_REFUSE_UNSET, HCA_REFUSE_OUTSIDE, HCA_REFUSE_HEAD,
	};
	u32 i, at;

	for (i = 0; i < ARRAY_SIZE(how); i++)
		for (at = 0; at < SHAPE_WRS && !engine_failed(); at += 2)
			doubt(cq, how[i], at);
}

/* The first of a group was taken silently and nothing follows: a no-op does. */
static void c8_half_taken(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 64 };
	struct shots *shots = shots_create(&attr);

	if (!shots)
		return;
	shots->hca->refuse = HCA_REFUSE_NAMED;
	shots->hca->refuse_at = 2;
	expect_is(shot_post(shots, 1, KVERBS_MORE), 0);
	expect_is(shot_post(shots, 2, 0), 0);
	expect_is(rig_counter(shots->queue, KVERBS_NOOPS), 1);
	expect_is(shots->hca->posted, 3);
	expect(hca_wqe(shots->hca, 2)->signaled);
	expect_is(hca_wqe(shots->hca, 2)->opcode, IB_WR_RDMA_WRITE);
	expect_is(hca_wqe(shots->hca, 2)->bytes, 0);
	expect_is(atomic_read(&shots->ended), 0);
	hca_execute(shots->hca, U32_MAX);
	shots_wait(shots, 2);
	shots_expect(shots, 0, IB_WC_SUCCESS);
	shots_expect(shots, 1, IB_WC_LOC_QP_OP_ERR);
	expect_is(rig_credits(shots->queue), 64);
	shots_destroy(shots);
}

static void refuse_rest(struct hca *hca)
{
	if (hca->posted == 1) {
		hca->refuse = HCA_REFUSE_NAMED;
		hca->on_post = NULL;
	}
}

/*
 * Refused is what was to tell of the silent one before it (on iWARP each READ asks for a
 * CQE), then what follows, too: a no-op tells.
 */
static void c8_refused_twice(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 64, .iwarp = true };
	struct shots *shots = shots_create(&attr);
	struct shot *read;

	if (!shots)
		return;
	shots->hca->refuse = HCA_REFUSE_NAMED;
	shots->hca->refuse_at = 1;
	shots->hca->on_post = refuse_rest;
	expect_is(shot_post(shots, 1, KVERBS_MORE), 0);
	read = shot_new(shots, 1);
	read->wr[0].wr.opcode = IB_WR_RDMA_READ;
	expect_is(kverbs_post(shots->queue->sq, &read->req, KVERBS_MORE), 0);
	expect_is(shot_post(shots, 1, 0), 0);
	expect_is(rig_counter(shots->queue, KVERBS_NOOPS), 1);
	hca_execute(shots->hca, U32_MAX);
	shots_wait(shots, 3);
	shots_expect(shots, 0, IB_WC_SUCCESS);
	shots_expect(shots, 1, IB_WC_LOC_QP_OP_ERR);
	shots_expect(shots, 2, IB_WC_LOC_QP_OP_ERR);
	expect_is(rig_credits(shots->queue), 64);
	shots_destroy(shots);
}

/* The no-op is refused, too: no way but ERR; every CQE comes, so all of it ends. */
static void refuse_all(struct hca *hca)
{
	if (hca->posted == 2) {
		hca->refuse = HCA_REFUSE_NAMED;
		hca->refuse_at = 2;
	}
}

static void c8_noop_refused(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 64 };
	struct shots *shots = shots_create(&attr);

	if (!shots)
		return;
	shots->hca->refuse = HCA_REFUSE_NAMED;
	shots->hca->refuse_at = 2;
	shots->hca->on_post = refuse_all;
	expect_is(shot_post(shots, 1, KVERBS_MORE), 0);
	expect_is(shot_post(shots, 2, 0), 0);
	shots_wait(shots, 2);
	shots_expect(shots, 0, IB_WC_WR_FLUSH_ERR);
	shots_expect(shots, 1, IB_WC_LOC_QP_OP_ERR);
	expect_is(rig_drain(shots->queue), 0);
	shots_destroy(shots);
}

/* UD has no no-op. */
static void c8_half_taken_ud(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 64, .type = IB_QPT_UD };
	struct shots *shots = shots_create(&attr);
	struct shot *shot;

	if (!shots)
		return;
	shots->hca->refuse = HCA_REFUSE_NAMED;
	shots->hca->refuse_at = 1;
	shot = shot_new(shots, 2);
	shot->wr[0].wr.opcode = IB_WR_SEND;
	shot->wr[1].wr.opcode = IB_WR_SEND;
	expect_is(kverbs_post(shots->queue->sq, &shot->req, 0), 0);
	expect_is(rig_counter(shots->queue, KVERBS_NOOPS), 0);
	expect(eventually(has_failed, shots->queue));
	shots_wait(shots, 1);
	shots_expect(shots, 0, IB_WC_LOC_QP_OP_ERR);
	expect_is(rig_drain(shots->queue), 0);
	shots_destroy(shots);
}

/* Nothing is in flight: the refused group is ended by the worker, and before a later one. */
static void c8_nothing_in_flight(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 1 };
	struct shots *shots = shots_create(&attr);
	u32 i;

	if (!shots)
		return;
	for (i = 0; i < 4; i++) {
		shots->hca->refuse = HCA_REFUSE_NAMED;
		shots->hca->refuse_at = shots->hca->posted;
		expect_is(shot_post(shots, 1, 0), 0);
		shots_wait(shots, i + 1);
		shots_expect(shots, i, IB_WC_LOC_QP_OP_ERR);
	}
	shots_destroy(shots);
}

static void run_refused(const struct rig_attr *rig_attr, struct traffic_attr *attr,
			enum hca_refusal how)
{
	struct rig *rig = rig_create(rig_attr);
	struct traffic *traffic;
	struct hca *hca;

	if (!rig)
		return;
	hca = rig->queue[0].hca;
	if (hca) {
		hca->refuse_every = attr->may_fail ? 0 : 20;
		hca->refuse_at = engine_random() % 300;
		hca->refuse = how;
		hca->in_post = engine_random() % 3;
	} else {
		rig->queue[0].refuse_at = 7;
	}
	traffic = traffic_create(&rig->queue[0], attr);
	if (traffic) {
		traffic_start(traffic);
		if (attr->may_fail) {
			/* The rest may end only with the queue. */
			traffic_stop(traffic);
			rig_drain_for(&rig->queue[0], HZ / 20);
		} else {
			traffic_wait(traffic);
			traffic_stop(traffic);
			expect(atomic_read(&traffic->refused) > 0);
			expect_is(rig_credits(&rig->queue[0]), rig_attr->depth);
			expect_is(rig_drain(&rig->queue[0]), 0);
		}
		rig_queue_destroy(&rig->queue[0]);
		expect(traffic_settled(traffic));
		traffic_destroy(traffic);
	}
	rig_destroy(rig);
}

static void c8_random(enum rig_cq cq)
{
	struct traffic_attr attr = {
		.producers = 3,
		.count = engine_count / 30,
		.kinds = BIT(GROUP_NR_KINDS) - 1,
		.max_group = GROUP_MAX,
		.from_done = 4,
		.more = 2,
		.lists = true,
		.wait = true,
		.copies = true,
		.may_refuse = true,
	};
	struct rig_attr rig = { .cq = cq, .scripted = true, .copy_sge = 1 };
	u32 i;

	for (i = 0; i < 4 && !engine_failed(); i++) {
		rig.depth = GROUP_MAX + engine_random() % 100;
		run_refused(&rig, &attr, i & 1 ? HCA_REFUSE_NAMED : HCA_REFUSE_POSITIVE);
	}
}

static void c8_random_doubt(enum rig_cq cq)
{
	static const enum hca_refusal how[] = {
		HCA_REFUSE_UNSET, HCA_REFUSE_OUTSIDE, HCA_REFUSE_HEAD,
	};
	struct traffic_attr attr = {
		.producers = 2,
		.count = 500,
		.kinds = BIT(GROUP_NR_KINDS) - 1,
		.max_group = GROUP_MAX,
		.from_done = 4,
		.more = 2,
		.lists = true,
		.copies = true,
		.may_refuse = true,
		.may_fail = true,
	};
	struct rig_attr rig = { .cq = cq, .scripted = true, .copy_sge = 1 };
	u32 i;

	for (i = 0; i < 2 * ARRAY_SIZE(how) && !engine_failed(); i++) {
		rig.depth = GROUP_MAX + engine_random() % 100;
		run_refused(&rig, &attr, how[i % ARRAY_SIZE(how)]);
	}
}

/* Over the driver's own HCA. */
static void c8_data(enum rig_cq cq)
{
	struct traffic_attr attr = {
		.producers = 2,
		.count = engine_count / 200,
		.kinds = BIT(GROUP_WRITE) | BIT(GROUP_READ),
		.max_group = 3,
		.from_done = 4,
		.more = 2,
		.lists = true,
		.may_refuse = true,
	};
	struct rig_attr rig = { .cq = cq, .depth = 64 };

	run_refused(&rig, &attr, HCA_TAKE);
}

const struct engine_case refuse_cases[] = {
	{ "c8_named", ON_ALL, c8_named },
	{ "c8_named_list", ON_ALL, c8_named_list },
	{ "c8_in_doubt", ON_ALL, c8_in_doubt },
	{ "c8_half_taken", ON_ALL, c8_half_taken },
	{ "c8_refused_twice", ON_ALL, c8_refused_twice },
	{ "c8_noop_refused", ON_ALL, c8_noop_refused },
	{ "c8_half_taken_ud", ON_ALL, c8_half_taken_ud },
	{ "c8_nothing_in_flight", ON_ALL, c8_nothing_in_flight },
	{ "c8_random", ON_ALL, c8_random },
	{ "c8_random_doubt", ON_ALL, c8_random_doubt },
	{ "c8_data", ON_ALL, c8_data },
	{}
};
