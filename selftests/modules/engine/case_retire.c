// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Contract 2: retirement from the head, in order, and with which status. Contract 4: no
 * silent tail, whatever is posted and whenever the queue is stopped.
 */
#include "engine.h"

/* Stages @nr groups of one and posts them; only the last asks for a CQE. */
static struct shots *post_chain(enum rig_cq cq, u32 depth, u32 nr)
{
	struct rig_attr attr = { .cq = cq, .depth = depth };
	struct shots *shots = shots_create(&attr);
	u32 i;

	for (i = 0; shots && i < nr; i++)
		expect_is(shot_post(shots, 1, i + 1 < nr ? KVERBS_MORE : 0), 0);
	return shots;
}

/* Nothing ends before the CQE that speaks for it; then everything before it, too. */
static void c2_from_the_head(enum rig_cq cq)
{
	struct shots *shots = post_chain(cq, 64, 8);
	u32 i;

	if (!shots)
		return;
	expect_is(shots->hca->calls, 1);
	expect_is(shots->hca->signaled, 1);
	expect_is(hca_execute(shots->hca, 7), 7);
	expect_is(rig_credits(shots->queue), 56);
	expect_is(atomic_read(&shots->ended), 0);
	hca_execute(shots->hca, 1);
	shots_wait(shots, 8);
	for (i = 0; i < 8; i++)
		shots_expect(shots, i, IB_WC_SUCCESS);
	expect_is(rig_credits(shots->queue), 64);
	shots_destroy(shots);
}

/* Silent ones before the first error were done; those after it are flushed. */
static void c2_first_error(enum rig_cq cq)
{
	struct shots *shots = post_chain(cq, 64, 8);
	u32 i;

	if (!shots)
		return;
	shots->hca->fail_at = 4;
	shots->hca->fail_status = IB_WC_REM_ACCESS_ERR;
	hca_execute(shots->hca, U32_MAX);
	shots_wait(shots, 8);
	for (i = 0; i < 8; i++)
		shots_expect(shots, i, i < 4 ? IB_WC_SUCCESS :
				       i == 4 ? IB_WC_REM_ACCESS_ERR : IB_WC_WR_FLUSH_ERR);
	expect_is(shots->shot[4].req.vendor_err, 0x42);
	expect_is(shot_post(shots, 1, 0), -EIO);
	shots_destroy(shots);
}

/* A group of several takes the first error that one of its work requests met. */
static void c2_error_in_group(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 64 };
	struct shots *shots = shots_create(&attr);

	if (!shots)
		return;
	shots->hca->fail_at = 2;
	shots->hca->fail_status = IB_WC_REM_OP_ERR;
	expect_is(shot_post(shots, 1, KVERBS_MORE), 0);
	expect_is(shot_post(shots, 4, KVERBS_MORE), 0);
	expect_is(shot_post(shots, 1, 0), 0);
	hca_execute(shots->hca, U32_MAX);
	shots_wait(shots, 3);
	shots_expect(shots, 0, IB_WC_SUCCESS);
	shots_expect(shots, 1, IB_WC_REM_OP_ERR);
	shots_expect(shots, 2, IB_WC_WR_FLUSH_ERR);
	shots_destroy(shots);
}

/* An HCA that flushes what it had executed silently: the outcome is unknown. */
static void c2_flushed_after_success(enum rig_cq cq)
{
	struct shots *shots = post_chain(cq, 64, 8);
	u32 i;

	if (!shots)
		return;
	shots->hca->flush_silent = true;
	hca_execute(shots->hca, 5);
	hca_error(shots->hca);
	shots_wait(shots, 8);
	for (i = 0; i < 8; i++)
		shots_expect(shots, i, IB_WC_WR_FLUSH_ERR);
	shots_destroy(shots);
}

/* One that does not: the flush of a later one says nothing of what was silent before it. */
static void c2_flush_proves_nothing(enum rig_cq cq)
{
	struct shots *shots = post_chain(cq, 64, 8);
	u32 i;

	if (!shots)
		return;
	hca_execute(shots->hca, 5);
	hca_error(shots->hca);
	shots_wait(shots, 8);
	for (i = 0; i < 8; i++)
		shots_expect(shots, i, IB_WC_WR_FLUSH_ERR);
	shots_destroy(shots);
}

/* iWARP: a READ asks for its own CQE, and what was posted after it waits for that one. */
static void c2_read_overtaken(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 64, .iwarp = true };
	struct shots *shots = shots_create(&attr);
	struct shot *read;

	if (!shots)
		return;
	shots->hca->overtake_at = 1;
	expect_is(shot_post(shots, 1, KVERBS_MORE), 0);
	read = shot_new(shots, 1);
	read->wr[0].wr.opcode = IB_WR_RDMA_READ;
	expect_is(kverbs_post(shots->queue->sq, &read->req, KVERBS_MORE), 0);
	expect_is(shot_post(shots, 1, 0), 0);
	expect_is(shots->hca->signaled, 2);
	hca_execute(shots->hca, U32_MAX);
	shots_wait(shots, 3);
	shots_expect(shots, 0, IB_WC_SUCCESS);
	shots_expect(shots, 1, IB_WC_SUCCESS);
	shots_expect(shots, 2, IB_WC_SUCCESS);
	expect_is(rig_counter(shots->queue, KVERBS_CQE_STALE), 0);
	shots_destroy(shots);
}

/* Small silent posts on an idle queue, ten times its depth (heartbeats). */
static void c4_heartbeats(enum rig_cq cq)
{
	static const u32 depths[] = { 1, 3, 16, 64 };
	struct rig_attr attr = { .cq = cq };
	struct shots *shots;
	u32 d, i;

	for (d = 0; d < ARRAY_SIZE(depths); d++) {
		attr.depth = depths[d];
		shots = shots_create(&attr);
		if (!shots)
			return;
		WRITE_ONCE(shots->hca->by_hand, false);
		for (i = 0; i < 10 * depths[d] && !engine_failed(); i++) {
			shots->nr = 0;
			shots->shot[0] = (struct shot){};
			expect_is(shot_post(shots, 1, 0), 0);
			shots_wait(shots, i + 1);
		}
		expect_is(shots->hca->signaled, 10 * depths[d]);
		shots_destroy(shots);
	}
}

/* More than chains' worth at once: every chain that empties the stage ends signaled. */
static void c4_last_is_signaled(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 47 };
	struct shots *shots = shots_create(&attr);
	u32 round, i, nr;

	if (!shots)
		return;
	for (round = 0; round < 40 && !engine_failed(); round++) {
		shots->nr = 0;
		atomic_set(&shots->ended, 0);
		nr = 1 + engine_random() % 15;
		for (i = 0; i < nr; i++) {
			shots->shot[i].ended = 0;
			expect_is(shot_post(shots, 1 + engine_random() % 3,
					    i + 1 < nr ? KVERBS_MORE : 0), 0);
		}
		expect(hca_wqe(shots->hca, shots->hca->posted - 1)->signaled);
		hca_execute(shots->hca, U32_MAX);
		shots_wait(shots, nr);
		expect_is(rig_credits(shots->queue), 47);
	}
	shots_destroy(shots);
}

const struct engine_case retire_cases[] = {
	{ "c2_from_the_head", ON_ALL, c2_from_the_head },
	{ "c2_first_error", ON_ALL, c2_first_error },
	{ "c2_error_in_group", ON_ALL, c2_error_in_group },
	{ "c2_flushed_after_success", ON_ALL, c2_flushed_after_success },
	{ "c2_flush_proves_nothing", ON_ALL, c2_flush_proves_nothing },
	{ "c2_read_overtaken", ON_ALL, c2_read_overtaken },
	{ "c4_heartbeats", ON_ALL, c4_heartbeats },
	{ "c4_last_is_signaled", ON_ALL, c4_last_is_signaled },
	{}
};
