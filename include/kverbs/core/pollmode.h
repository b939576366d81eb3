/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * When to look at a completion queue without being told, and when to wait for its event.
 *
 * After a completion one may spin, that is poll on for the next, for a window of time.
 * With a fixed window (hybrid) that is all. Otherwise (adaptive) the window follows from
 * two budgets: what a completion may cost in latency, and what share of a CPU may be spun
 * away. An event costs as long as it took from the event to the pass that it caused.
 *
 *  - If that is within the latency budget, spinning is worth no more than it: up to there
 *    it costs no more CPU than the event would have.
 *  - If it is beyond, spinning is worth what the CPU budget still has, but no longer than
 *    a millisecond: then the queue is idle.
 *  - If completions come further apart than the window, spinning would not meet them.
 *
 * CPU is paid when it was spun for nothing, or for longer than an event would have taken.
 *
 * Whoever spins counts its polls. The clock is read only when so many were in vain as fit
 * into the window, by what a poll took the last time that the clock was read.
 */
#ifndef _KVERBS_CORE_POLLMODE_H
#define _KVERBS_CORE_POLLMODE_H

#include "types.h"

#define KVERBS_SPIN_MAX_NS	1000000U	/* idle for so long: nobody polls */
#define KVERBS_EVENT_MIN_NS	2000U		/* of an interrupt, what software does not see */
#define KVERBS_EVENT_MAX_NS	1000000U	/* beyond, something else was in the way */
#define KVERBS_SPIN_SAVED_NS	10000000U	/* the budget's share of so much time is saved up */
#define KVERBS_SPIN_POLL_NS	2000U		/* of a poll in vain, before one was timed */

/**
 * struct kverbs_pollmode - the budgets and what was seen
 * @fixed_ns: a window that is always so long; 0: it follows from the budgets
 * @max_latency_ns: latency that an event may cost
 * @max_cpu_percent: of one CPU, that may be spun away; 0 to 100
 * @event_ns: from a completion event to its pass, smoothed
 * @gap_ns: between passes that found something, smoothed
 * @saved_ns: CPU time that may be spun away now
 * @window_ns: how long to spin after the last pass that found something; 0: not at all
 * @poll_ns: of a poll in vain, when the clock was last read
 * @empty: polls in vain since something was found
 * @look_at: so many of them, and the clock is to be read
 */
struct kverbs_pollmode {
	__u32 fixed_ns;
	__u32 max_latency_ns;
	__u32 max_cpu_percent;
	__u32 event_ns;
	__u32 gap_ns;
	__u32 saved_ns;
	__u32 window_ns;
	__u32 poll_ns;
	__u32 empty;
	__u32 look_at;
};

KVERBS_CORE_FN void kverbs_pollmode_init(struct kverbs_pollmode *mode, __u32 fixed_ns,
					 __u32 max_latency_ns, __u32 max_cpu_percent)
{
	mode->fixed_ns = fixed_ns;
	mode->max_latency_ns = max_latency_ns;
	mode->max_cpu_percent = max_cpu_percent;
	mode->event_ns = KVERBS_EVENT_MIN_NS;
	mode->gap_ns = 0;
	mode->saved_ns = 0;
	mode->window_ns = 0;
	mode->poll_ns = KVERBS_SPIN_POLL_NS;
	mode->empty = 0;
	mode->look_at = 1;
}

KVERBS_CORE_FN __u32 kverbs_pollmode_min(__u64 a, __u32 b)
{
	return a < b ? (__u32)a : b;
}

/* An eighth of the way from @old to @seen, and at least a step, so that it gets there. */
KVERBS_CORE_FN __u32 kverbs_pollmode_smooth(__u32 old, __u32 seen)
{
	if (seen < old)
		return old - (old - seen + 7) / 8;
	return old + (seen - old + 7) / 8;
}

/* A pass found something @ns after the event that caused it. */
KVERBS_CORE_FN void kverbs_pollmode_event(struct kverbs_pollmode *mode, __u64 ns)
{
	__u32 seen = kverbs_pollmode_min(ns, KVERBS_EVENT_MAX_NS);

	mode->event_ns = kverbs_pollmode_smooth(mode->event_ns, seen + KVERBS_EVENT_MIN_NS);
}

/* So many nanoseconds were spun away. */
KVERBS_CORE_FN void kverbs_pollmode_pay(struct kverbs_pollmode *mode, __u64 spun)
{
	__u32 ns = kverbs_pollmode_min(spun, KVERBS_SPIN_SAVED_NS);

	mode->saved_ns -= ns < mode->saved_ns ? ns : mode->saved_ns;
}

/* What @ns of time are worth, nothing beyond what may be saved. */
KVERBS_CORE_FN void kverbs_pollmode_earn(struct kverbs_pollmode *mode, __u64 ns)
{
	__u32 time = kverbs_pollmode_min(ns, KVERBS_SPIN_SAVED_NS);
	__u32 most = KVERBS_SPIN_SAVED_NS / 100 * mode->max_cpu_percent;
	__u32 saved = mode->saved_ns + time / 100 * mode->max_cpu_percent;

	mode->saved_ns = saved < most ? saved : most;
}

KVERBS_CORE_FN __u32 kverbs_pollmode_window(const struct kverbs_pollmode *mode)
{
	__u32 window = mode->event_ns;

	if (mode->fixed_ns)
		return mode->fixed_ns;
	if (mode->event_ns > mode->max_latency_ns)
		window = KVERBS_SPIN_MAX_NS;
	/* Who may spin all the time need not save up for it. */
	if (mode->max_cpu_percent < 100 && window > mode->saved_ns)
		window = mode->saved_ns;
	return mode->gap_ns <= window ? window : 0;
}

/*
 * A pass found something, @since the one before that did; it @spun until then. Returns
 * how long to spin for the next, 0: not at all.
 */
KVERBS_CORE_FN __u32 kverbs_pollmode_found(struct kverbs_pollmode *mode, __u64 since, bool spun)
{
	mode->gap_ns = kverbs_pollmode_smooth(mode->gap_ns,
					      kverbs_pollmode_min(since, 2 * KVERBS_SPIN_MAX_NS));
	kverbs_pollmode_earn(mode, since);
	if (spun && since > mode->event_ns)
		kverbs_pollmode_pay(mode, since);
	mode->window_ns = kverbs_pollmode_window(mode);
	mode->empty = 0;
	mode->look_at = mode->window_ns / mode->poll_ns + 1;
	return mode->window_ns;
}

/* A poll was in vain: is it time to read the clock? */
KVERBS_CORE_FN bool kverbs_pollmode_empty(struct kverbs_pollmode *mode)
{
	return ++mode->empty >= mode->look_at;
}

/* The clock says that nothing was found for @since nanoseconds: is that the window? */
KVERBS_CORE_FN bool kverbs_pollmode_over(struct kverbs_pollmode *mode, __u64 since)
{
	__u32 ns = kverbs_pollmode_min(since, 2 * KVERBS_SPIN_MAX_NS);

	mode->poll_ns = ns / (mode->empty ? mode->empty : 1) + 1;
	if (ns >= mode->window_ns) {
		kverbs_pollmode_pay(mode, since);
		return true;
	}
	mode->look_at = mode->empty + (mode->window_ns - ns) / mode->poll_ns + 1;
	return false;
}

/* Spinning ends before the window does: something else wants the CPU. */
KVERBS_CORE_FN void kverbs_pollmode_yield(struct kverbs_pollmode *mode)
{
	kverbs_pollmode_pay(mode, (__u64)mode->empty * mode->poll_ns);
}

#endif /* _KVERBS_CORE_POLLMODE_H */
