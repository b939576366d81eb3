/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Hints: what the owner of a queue pair found for one request, so that the next one needs
 * no look-up.
 *
 * A hint is believed in the epoch that it was found in. Whoever takes away what can be
 * found (a queue pair, a memory region, a DMA mapping, a port), or sets a queue pair's
 * attributes, first does so, then ends the epoch, and frees what there is to be freed an RCU
 * grace period later. Who runs a queue pair reads the epoch, then believes its hint or looks
 * up anew, within one RCU read side section that lasts as long as it uses what was found. So
 *
 *  - who reads the new epoch believes no older hint, and its look-up sees the change;
 *  - who reads the old one began before the grace period did, and is waited for.
 *
 * A region is invalidated and registered again within an epoch: each time its @registration
 * changes, which is compared while the region is held by its @users. So who invalidates it
 * finds out who still copies, as without hints.
 *
 * Only the owner of a queue pair reads or writes its hint; @kicks orders one owner before
 * the next.
 */
#ifndef _KVERBS_SIM_HINT_H
#define _KVERBS_SIM_HINT_H

#include <linux/atomic.h>

struct sim_mr;
struct sim_qp;

/* A piece of an address space, and where it is for the CPU. */
struct sim_window {
	u64 start;
	u64 length;
	void *va;
};

/**
 * struct sim_hint - what the last request of a connected queue pair has used
 * @epoch: when it was found
 * @peer: the queue pair that it is connected to
 * @from: of the own device's DMA addresses, to read from
 * @mr: the peer's region that @to is a part of, or NULL
 * @rkey: of the region
 * @registration: of the region
 * @to: of the addresses that the region has for its remote key, to write to
 */
struct sim_hint {
	s64 epoch;
	struct sim_qp *peer;
	struct sim_window from;
	struct sim_mr *mr;
	u32 rkey;
	s64 registration;
	struct sim_window to;
};

extern atomic64_t sim_epoch;	/* qp.c; it begins at one */

static inline s64 sim_epoch_now(void)
{
	/* ORDER: the epoch before the look-up; pairs with sim_epoch_end() */
	return atomic64_read_acquire(&sim_epoch);
}

/* What was found until now is not to be believed. */
static inline void sim_epoch_end(void)
{
	/* ORDER: the change before the epoch, that before the grace period: a full barrier */
	atomic64_inc_return(&sim_epoch);
}

static inline void *sim_window_place(const struct sim_window *window, u64 addr)
{
	return window->va + (addr - window->start);
}

static inline bool sim_window_has(const struct sim_window *window, u64 addr, u32 length)
{
	return length <= window->length && addr - window->start <= window->length - length;
}

/* NULL: it is not all there. */
static inline void *sim_window_at(const struct sim_window *window, u64 addr, u32 length)
{
	return sim_window_has(window, addr, length) ? sim_window_place(window, addr) : NULL;
}

#endif /* _KVERBS_SIM_HINT_H */
