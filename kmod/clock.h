/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The clock of the statistics, of which only differences mean something.
 *
 * The clock of the kernel costs more than all else that a post counts, so the TSC is read
 * where the kernel trusts it. It is not read in order with what is around it: a difference
 * may be wrong by as much as a processor looks ahead, tens of nanoseconds. When the kernel
 * loses its trust, what is being timed at that moment is timed wrong, and the kernel's own
 * clock serves from then on. Elsewhere it always does.
 */
#ifndef _KVERBS_CLOCK_H
#define _KVERBS_CLOCK_H

#include <linux/jump_label.h>
#include <linux/ktime.h>
#include <linux/timex.h>

#define KVERBS_CLOCK_SHIFT	20

DECLARE_STATIC_KEY_FALSE(kverbs_clock_tsc);
extern u64 kverbs_clock_mult;	/* nanoseconds in a tick, shifted */

static __always_inline u64 kverbs_clock(void)
{
	if (static_branch_likely(&kverbs_clock_tsc))
		return get_cycles();
	return ktime_get_ns();
}

/*
 * Nanoseconds between two readings, right up to hours. A pass's time is read before it
 * polls, so that what it finds may have been posted later: that took no time.
 */
static inline u64 kverbs_clock_ns(u64 then, u64 now)
{
	s64 ticks = now - then;

	return ticks > 0 ? ticks * kverbs_clock_mult >> KVERBS_CLOCK_SHIFT : 0;
}

void kverbs_clock_init(void);
void kverbs_clock_watch(void);

#endif /* _KVERBS_CLOCK_H */
