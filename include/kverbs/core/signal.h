/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Which work request asks for a CQE.
 *
 * A silent work request is retired by the next signaled one, so its slot comes
 * back only then. Two rules follow: no more than a quarter of the queue is silent
 * in a row, so that slots come back while others are in flight; and nothing silent
 * is last, since a work request cannot be signaled once it is posted.
 */
#ifndef _KVERBS_CORE_SIGNAL_H
#define _KVERBS_CORE_SIGNAL_H

#include "types.h"

/**
 * struct kverbs_signal - the rule and where it stands
 * @interval: silent work requests in a row plus the signaled one that ends them
 * @run: work requests posted since the last signaled one
 */
struct kverbs_signal {
	__u32 interval;
	__u32 run;
};

KVERBS_CORE_FN void kverbs_signal_init(struct kverbs_signal *signal, __u32 depth)
{
	signal->interval = depth / 4 ? depth / 4 : 1;
	signal->run = 0;
}

/*
 * A group of @nr work requests is next: shall its last one be signaled? @must: it
 * is a kind that always is, or nothing follows it.
 */
KVERBS_CORE_FN bool kverbs_signal_next(struct kverbs_signal *signal, __u32 nr, bool must)
{
	signal->run += nr;
	if (!must && signal->run < signal->interval)
		return false;
	signal->run = 0;
	return true;
}

#endif /* _KVERBS_CORE_SIGNAL_H */
