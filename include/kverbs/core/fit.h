/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What a post costs: a part for the call, which a batch spreads, and a part for each work
 * request, which it does not. A line through (work requests in a post, nanoseconds that
 * the post took), by least squares.
 *
 * Samples are summed up in rounds. A line is laid through those of this round and the one
 * before it, and older ones are forgotten. A sample far above what the others suggest was
 * interrupted, and counts as no more than eight times that. The line is refused where the
 * posts were too few or too much alike to tell the two parts apart, and where it would say
 * that a part costs less than nothing; what the last good one said then stays.
 */
#ifndef _KVERBS_CORE_FIT_H
#define _KVERBS_CORE_FIT_H

#include "types.h"

/* Samples of a round. */
#define KVERBS_FIT_ROUND	128U
/* Samples that there must be for a line. */
#define KVERBS_FIT_LEAST	16U

/*
 * What is beyond these is no sample: a post of that many work requests is one group, and
 * one of 16 ms was not timed but interrupted, or its clock went backwards. With them no
 * product below exceeds 2^61.
 */
#define KVERBS_FIT_WRS_MAX	1023U
#define KVERBS_FIT_NS_MAX	((1U << 24) - 1)

/* Nanoseconds above eight times the expected that are still believed. */
#define KVERBS_FIT_SLACK_NS	1024U

/**
 * struct kverbs_fit_sums - sums over samples
 * @nr: of them
 * @wrs: sum of the work requests
 * @ns: of the nanoseconds
 * @wrs_wrs: of the work requests' squares
 * @wrs_ns: of the products
 */
struct kverbs_fit_sums {
	__u32 nr;
	__u64 wrs;
	__u64 ns;
	__u64 wrs_wrs;
	__u64 wrs_ns;
};

/**
 * struct kverbs_fit - the samples, and the last good line; all 0 to begin with
 * @now: samples of this round
 * @before: of the one before it
 * @fixed_ns: of the line: what a post costs besides its work requests
 * @wr_ps: what each of them adds, in picoseconds; 2^32 - 1 stands for more, too
 * @known: there is a line
 */
struct kverbs_fit {
	struct kverbs_fit_sums now;
	struct kverbs_fit_sums before;
	__u32 fixed_ns;
	__u32 wr_ps;
	bool known;
};

/* Long division, since not every kernel has one of 64 bits; @den is below 2^62 and not 0. */
KVERBS_CORE_FN __u64 kverbs_fit_div(__u64 num, __u64 den)
{
	__u64 quotient = 0;
	__u32 shift;

	if (num < den)
		return 0;
	for (shift = kverbs_fls64(num) - kverbs_fls64(den) + 1; shift--;) {
		quotient <<= 1;
		if (num >> shift >= den) {
			num -= den << shift;
			quotient |= 1;
		}
	}
	return quotient;
}

KVERBS_CORE_FN struct kverbs_fit_sums kverbs_fit_all(const struct kverbs_fit *fit)
{
	struct kverbs_fit_sums all = fit->now;

	all.nr += fit->before.nr;
	all.wrs += fit->before.wrs;
	all.ns += fit->before.ns;
	all.wrs_wrs += fit->before.wrs_wrs;
	all.wrs_ns += fit->before.wrs_ns;
	return all;
}

/*
 * At most eight times what a line through the samples can say of @wrs: neither part can be
 * more than what posts took on average, the second as often as @wrs is of the average.
 */
KVERBS_CORE_FN __u64 kverbs_fit_believed(const struct kverbs_fit_sums *all, __u32 wrs, __u64 ns)
{
	__u64 den = all->nr * all->wrs;
	__u64 limit = 8 * all->ns * (all->wrs + (__u64)all->nr * wrs) + KVERBS_FIT_SLACK_NS * den;

	return ns * den > limit ? kverbs_fit_div(limit, den) : ns;
}

/* A post of @wrs work requests took @ns nanoseconds. */
KVERBS_CORE_FN void kverbs_fit_add(struct kverbs_fit *fit, __u32 wrs, __u64 ns)
{
	struct kverbs_fit_sums all = kverbs_fit_all(fit), *now = &fit->now;

	if (!wrs || wrs > KVERBS_FIT_WRS_MAX || ns > KVERBS_FIT_NS_MAX)
		return;
	if (all.nr >= KVERBS_FIT_LEAST)
		ns = kverbs_fit_believed(&all, wrs, ns);
	if (now->nr == KVERBS_FIT_ROUND) {
		fit->before = *now;
		now->nr = 0;
		now->wrs = 0;
		now->ns = 0;
		now->wrs_wrs = 0;
		now->wrs_ns = 0;
	}
	now->nr++;
	now->wrs += wrs;
	now->ns += ns;
	now->wrs_wrs += (__u64)wrs * wrs;
	now->wrs_ns += wrs * ns;
}

/*
 * Lay a line through the samples. False if there is no new one: then what the last good
 * one said is still there, if @known.
 */
KVERBS_CORE_FN bool kverbs_fit_line(struct kverbs_fit *fit)
{
	struct kverbs_fit_sums all = kverbs_fit_all(fit);
	__u64 spread = all.nr * all.wrs_wrs - all.wrs * all.wrs;
	__u64 both = all.nr * all.wrs_ns, apart = all.wrs * all.ns;
	__u64 wr_ps, all_ps = all.ns * 1000;

	/* A quarter is the variance where half of the posts have one work request more. */
	if (all.nr < KVERBS_FIT_LEAST || 4 * spread < (__u64)all.nr * all.nr || both < apart)
		return false;
	wr_ps = kverbs_fit_div((both - apart) * 1000, spread);
	if (wr_ps * all.wrs > all_ps)
		return false;
	fit->fixed_ns = (__u32)kverbs_fit_div(all_ps - wr_ps * all.wrs + 500 * (__u64)all.nr,
					      1000 * (__u64)all.nr);
	fit->wr_ps = wr_ps <= 0xffffffffU ? (__u32)wr_ps : 0xffffffffU;
	fit->known = true;
	return true;
}

#endif /* _KVERBS_CORE_FIT_H */
