/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * How much goes into one post, and when what is staged is worth one.
 */
#ifndef _KVERBS_CORE_BATCH_H
#define _KVERBS_CORE_BATCH_H

#include "types.h"

/*
 * Work requests in a chain. Past this the cost of a doorbell is spread thin enough,
 * and a longer chain only delays the HCA's start on the first of them.
 */
#define KVERBS_BATCH_MAX	64U

/* Posts in a turn: an owner that others keep busy hands over after so many. */
#define KVERBS_TURN_POSTS	16U

/* Chain length for a queue: at least two chains fit, so that one runs while one fills. */
KVERBS_CORE_FN __u32 kverbs_batch_limit(__u32 depth)
{
	__u32 half = depth / 2 ? depth / 2 : 1;

	return half < KVERBS_BATCH_MAX ? half : KVERBS_BATCH_MAX;
}

/* @waiting work requests are staged and more were promised: post without waiting for them? */
KVERBS_CORE_FN bool kverbs_batch_full(__u32 waiting, __u32 limit)
{
	return waiting >= limit;
}

#endif /* _KVERBS_CORE_BATCH_H */
