// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Is the TSC a clock? What the kernel knows of it says so.
 */
#include <linux/math64.h>

#include "clock.h"

DEFINE_STATIC_KEY_FALSE(kverbs_clock_tsc);

u64 kverbs_clock_mult __read_mostly = 1 << KVERBS_CLOCK_SHIFT;

#if defined(CONFIG_X86_64) && !defined(CONFIG_UML)
#include <asm/tsc.h>

/* Under the same condition the kernel takes it for its own time. */
static bool tsc_is_trusted(void)
{
	return tsc_khz && !check_tsc_unstable();
}

static u64 tsc_mult(void)
{
	return div_u64((u64)NSEC_PER_MSEC << KVERBS_CLOCK_SHIFT, tsc_khz);
}
#else
static bool tsc_is_trusted(void)
{
	return false;
}

static u64 tsc_mult(void)
{
	return 1 << KVERBS_CLOCK_SHIFT;
}
#endif

void kverbs_clock_init(void)
{
	if (!tsc_is_trusted())
		return;
	kverbs_clock_mult = tsc_mult();
	static_branch_enable(&kverbs_clock_tsc);
}

/* Every now and then. May sleep. */
void kverbs_clock_watch(void)
{
	if (!static_key_enabled(&kverbs_clock_tsc.key) || tsc_is_trusted())
		return;
	static_branch_disable(&kverbs_clock_tsc);
	WRITE_ONCE(kverbs_clock_mult, 1 << KVERBS_CLOCK_SHIFT);
}
