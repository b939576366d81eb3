// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Atomics: 64 bits of the peer's memory, at once. */
#include "conformance.h"

#define PLACE	128
#define OLD	0x0123456789abcdefULL
#define NEW	0xfedcba9876543210ULL

static bool ready(struct bed *bed, u64 value)
{
	struct side *b = &bed->side[1];

	area_set_word(&b->area, PLACE, value);
	return area_register(b, &b->area, ALL_RIGHTS);
}

static bool do_atomic(struct bed *bed, enum ib_wr_opcode opcode, u64 compare_add, u64 swap)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];

	area_set_word(&a->area, 0, ~0ULL);
	return do_work(a, work_atomic(a, opcode, area_remote(&b->area, PLACE),
				      area_rkey(&b->area), compare_add, swap));
}

/* @arg: the comparison fails */
static void case_swap(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];

	if (!ready(bed, OLD) || !do_atomic(bed, IB_WR_ATOMIC_CMP_AND_SWP, OLD + arg, NEW))
		return;
	expect_is(area_word(&a->area, 0), OLD);
	expect_is(area_word(&b->area, PLACE), arg ? OLD : NEW);
	expect(area_is_clear(&b->area, 0, PLACE));
	expect(area_is_clear(&b->area, PLACE + 8, 64));
	expect(area_is_clear(&a->area, 8, 64));
}

static void case_add(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];

	if (!ready(bed, OLD) || !do_atomic(bed, IB_WR_ATOMIC_FETCH_AND_ADD, 5, 0))
		return;
	expect_is(area_word(&a->area, 0), OLD);
	expect_is(area_word(&b->area, PLACE), OLD + 5);
	/* It wraps around. */
	if (!do_atomic(bed, IB_WR_ATOMIC_FETCH_AND_ADD, -(OLD + 6), 0))
		return;
	expect_is(area_word(&a->area, 0), OLD + 5);
	expect_is(area_word(&b->area, PLACE), -1);
}

/* @arg: opcode */
static void case_len(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *work;
	struct ib_wc wc;

	if (!ready(bed, OLD))
		return;
	work = work_atomic(a, arg, area_remote(&b->area, PLACE), area_rkey(&b->area), OLD, NEW);
	if (post(a, work) && sent(a, work, &wc))
		expect_is(wc.byte_len, sizeof(u64));
}

static void case_unaligned(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *work;

	if (!ready(bed, OLD))
		return;
	work = work_atomic(a, arg, area_remote(&b->area, PLACE + 4), area_rkey(&b->area), OLD, NEW);
	/* A device may see it already when it is posted. */
	if (!post_try(a, work, NULL)) {
		sent_as(a, work, IB_WC_REM_INV_REQ_ERR);
		side_becomes(b, IB_QPS_ERR);
	}
	expect_is(area_word(&b->area, PLACE), OLD);
	expect_is(area_word(&b->area, PLACE + 8), 0);
}

/* Two QPs add to the same word, many at once: every sum is seen once. */
static void case_concurrent(struct bed *bed, u32 arg)
{
	struct side *b = &bed->side[1];
	u32 rounds = 100, burst = 8, i, k, q;
	u64 seen = 0;

	if (!ready(bed, 0))
		return;
	for (i = 0; i < rounds && !conf_failed(); i++) {
		for (k = 0; k < burst; k++) {
			for (q = 0; q < 4; q += 2) {
				struct work *work;

				work = work_atomic(&bed->side[q], IB_WR_ATOMIC_FETCH_AND_ADD,
						   area_remote(&b->area, PLACE),
						   area_rkey(&b->area), 1, 0);
				work_sge(work, 0, &bed->side[q].area, 8 * k, 8);
				bed->list[k * 2 + q / 2] = work;
				post(&bed->side[q], work);
			}
		}
		for (k = 0; k < burst && !conf_failed(); k++) {
			for (q = 0; q < 4; q += 2) {
				sent(&bed->side[q], bed->list[k * 2 + q / 2], NULL);
				seen += area_word(&bed->side[q].area, 8 * k);
			}
		}
	}
	if (conf_failed())
		return;
	expect_is(area_word(&b->area, PLACE), 2 * rounds * burst);
	/* The old values are 0, 1, 2 ... each once. */
	expect_is(seen, (u64)(2 * rounds * burst) * (2 * rounds * burst - 1) / 2);
}

/* More than the responder remembers at once. */
static void case_many(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *works[12];
	u32 i;

	if (!ready(bed, 0))
		return;
	for (i = 0; i < 12; i++) {
		works[i] = work_atomic(a, IB_WR_ATOMIC_FETCH_AND_ADD, area_remote(&b->area, PLACE),
				       area_rkey(&b->area), 1, 0);
		work_sge(works[i], 0, &a->area, 8 * i, 8);
	}
	work_chain(works, 12);
	if (!post(a, works[0]))
		return;
	for (i = 0; i < 12 && !conf_failed(); i++) {
		sent(a, works[i], NULL);
		expect_is(area_word(&a->area, 8 * i), i);
	}
	expect_is(area_word(&b->area, PLACE), 12);
}

#define ATOMIC	(NEED_REG | NEED_ATOMIC)
#define DO_SWAP	IB_WR_ATOMIC_CMP_AND_SWP
#define DO_ADD	IB_WR_ATOMIC_FETCH_AND_ADD

const struct conf_case atomic_cases[] = {
	{ "atomic/swap", case_swap, 0, ATOMIC },
	{ "atomic/swap_not", case_swap, 1, ATOMIC },
	{ "atomic/add", case_add, 0, ATOMIC },
	{ "atomic/swap_byte_len", case_len, DO_SWAP, ATOMIC },
	{ "atomic/add_byte_len", case_len, DO_ADD, ATOMIC },
	{ "atomic/swap_unaligned", case_unaligned, DO_SWAP, ATOMIC },
	{ "atomic/add_unaligned", case_unaligned, DO_ADD, ATOMIC },
	{ "atomic/many", case_many, 0, ATOMIC },
	{ "atomic/concurrent", case_concurrent, 0, ATOMIC, { .pairs = 2 } },
	{}
};
