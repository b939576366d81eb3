/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The few types, helpers and atomic operations that the pure core stands on.
 *
 * The core is integers in, verdict out: no clock, no lock, no allocation, no
 * 64-bit division, bounded loops. The same lines compile as kernel C, C11,
 * C++20 and BPF; this file is the only one that knows which of them it is.
 */
#ifndef _KVERBS_CORE_TYPES_H
#define _KVERBS_CORE_TYPES_H

#if defined(__KERNEL__)
#include <linux/atomic.h>
#include <linux/compiler.h>
#include <linux/types.h>
#elif defined(__VMLINUX_H__)
/* BPF: vmlinux.h has the types. */
#else
#include <linux/types.h>
#ifndef __cplusplus
#include <stdbool.h>
#endif
#endif

#ifdef __cplusplus
#define KVERBS_CORE_FN static inline
#elif defined(__VMLINUX_H__)
#define KVERBS_CORE_FN static __always_inline
#else
#define KVERBS_CORE_FN static inline __attribute__((__unused__))
#endif

/* Index of the highest bit set; @v is not zero. */
KVERBS_CORE_FN __u32 kverbs_fls64(__u64 v)
{
#if defined(__VMLINUX_H__)
	__u32 r = 0;

	if (v >> 32) {
		v >>= 32;
		r += 32;
	}
	if (v >> 16) {
		v >>= 16;
		r += 16;
	}
	if (v >> 8) {
		v >>= 8;
		r += 8;
	}
	if (v >> 4) {
		v >>= 4;
		r += 4;
	}
	if (v >> 2) {
		v >>= 2;
		r += 2;
	}
	return r + (__u32)(v >> 1);
#else
	return 63 - (__u32)__builtin_clzll(v);
#endif
}

/*
 * Atomic operations on what producers, owner and retirement share. The kernel's
 * where there is one; the compiler's elsewhere, which ThreadSanitizer understands.
 */
#if defined(__KERNEL__)
#define kverbs_load(p)			READ_ONCE(*(p))
/* ORDER: who uses it names the release that it pairs with */
#define kverbs_load_acquire(p)		smp_load_acquire(p)
#define kverbs_store(p, v)		WRITE_ONCE(*(p), v)
/* ORDER: who uses it names the acquire that it pairs with */
#define kverbs_store_release(p, v)	smp_store_release(p, v)
#define kverbs_try_cmpxchg(p, old, new)	try_cmpxchg(p, old, new)
#define kverbs_relax()			cpu_relax()
#elif !defined(__VMLINUX_H__)
#define kverbs_load(p)			__atomic_load_n(p, __ATOMIC_RELAXED)
#define kverbs_load_acquire(p)		__atomic_load_n(p, __ATOMIC_ACQUIRE)
#define kverbs_store(p, v)		__atomic_store_n(p, v, __ATOMIC_RELAXED)
#define kverbs_store_release(p, v)	__atomic_store_n(p, v, __ATOMIC_RELEASE)
#define kverbs_try_cmpxchg(p, old, new) \
	__atomic_compare_exchange_n(p, old, new, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)
#define kverbs_relax()			__asm__ __volatile__("" ::: "memory")
#endif

#endif /* _KVERBS_CORE_TYPES_H */
