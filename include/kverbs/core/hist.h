/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A log-linear histogram: each octave is cut into eight buckets of equal width,
 * so that the midpoint of a bucket is off by at most 1/16 of any value in it.
 *
 * Values below KVERBS_HIST_MIN share bucket 0, values of KVERBS_HIST_MAX and
 * above share the last bucket. A histogram has one writer at a time; readers
 * may look at any moment and see each bucket as it was before or after.
 */
#ifndef _KVERBS_CORE_HIST_H
#define _KVERBS_CORE_HIST_H

#include "types.h"

#define KVERBS_HIST_SUB_BITS	3
#define KVERBS_HIST_SUB		(1U << KVERBS_HIST_SUB_BITS)
#define KVERBS_HIST_MIN_BITS	6	/* 64 ns */
#define KVERBS_HIST_MAX_BITS	28	/* 0.27 s */
#define KVERBS_HIST_MIN		(1ULL << KVERBS_HIST_MIN_BITS)
#define KVERBS_HIST_MAX		(1ULL << KVERBS_HIST_MAX_BITS)
#define KVERBS_HIST_BUCKETS \
	((KVERBS_HIST_MAX_BITS - KVERBS_HIST_MIN_BITS) * KVERBS_HIST_SUB + 2)

/* The bucket that @value belongs to. */
KVERBS_CORE_FN __u32 kverbs_hist_index(__u64 value)
{
	__u32 octave, sub;

	if (value < KVERBS_HIST_MIN)
		return 0;
	if (value >= KVERBS_HIST_MAX)
		return KVERBS_HIST_BUCKETS - 1;
	octave = kverbs_fls64(value);
	sub = (__u32)(value >> (octave - KVERBS_HIST_SUB_BITS)) & (KVERBS_HIST_SUB - 1);
	return 1 + (octave - KVERBS_HIST_MIN_BITS) * KVERBS_HIST_SUB + sub;
}

/* The least value of bucket @index. */
KVERBS_CORE_FN __u64 kverbs_hist_low(__u32 index)
{
	__u32 octave, sub;

	if (index == 0)
		return 0;
	if (index >= KVERBS_HIST_BUCKETS - 1)
		return KVERBS_HIST_MAX;
	octave = KVERBS_HIST_MIN_BITS + (index - 1) / KVERBS_HIST_SUB;
	sub = (index - 1) % KVERBS_HIST_SUB;
	return (__u64)(KVERBS_HIST_SUB + sub) << (octave - KVERBS_HIST_SUB_BITS);
}

/* What a value of bucket @index is taken for: the middle; the last bucket has none. */
KVERBS_CORE_FN __u64 kverbs_hist_mid(__u32 index)
{
	if (index >= KVERBS_HIST_BUCKETS - 1)
		return KVERBS_HIST_MAX;
	return (kverbs_hist_low(index) + kverbs_hist_low(index + 1)) / 2;
}

/* Count @count samples of @value. */
KVERBS_CORE_FN void kverbs_hist_record(__u64 *bucket, __u64 value, __u64 count)
{
	bucket[kverbs_hist_index(value)] += count;
}

/* Add the histogram @from to @to. */
KVERBS_CORE_FN void kverbs_hist_merge(__u64 *to, const __u64 *from)
{
	__u32 i;

	for (i = 0; i < KVERBS_HIST_BUCKETS; i++)
		to[i] += from[i];
}

KVERBS_CORE_FN __u64 kverbs_hist_total(const __u64 *bucket)
{
	__u64 total = 0;
	__u32 i;

	for (i = 0; i < KVERBS_HIST_BUCKETS; i++)
		total += bucket[i];
	return total;
}

/*
 * The value that @per_10000 of 10,000 samples do not exceed (9990 for p99.9):
 * the middle of the bucket that holds it, 0 where there are no samples.
 */
KVERBS_CORE_FN __u64 kverbs_hist_percentile(const __u64 *bucket, __u32 per_10000)
{
	__u64 total = kverbs_hist_total(bucket), seen = 0;
	__u32 i;

	/* seen / total >= per_10000 / 10000, without a division */
	for (i = 0; i < KVERBS_HIST_BUCKETS && total; i++) {
		seen += bucket[i];
		if (bucket[i] && seen * 10000 >= total * per_10000)
			return kverbs_hist_mid(i);
	}
	return 0;
}

#endif /* _KVERBS_CORE_HIST_H */
