// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * CQEs that are held back by a fault. A late one holds up those behind it on its completion
 * queue, which stay in order. One that is to be overtaken lets others pass, and follows the
 * next of its send queue; since slots are retired in order, it retires those of what has
 * passed it, too.
 *
 * The timer writes what is late. An entry stays listed until it has been written, so that
 * what comes meanwhile stays behind it.
 */
#include <linux/delay.h>

#include "sim.h"

#define OVERTAKEN_NS	NSEC_PER_MSEC	/* if nothing comes that could pass */

struct late {
	struct list_head entry;
	ktime_t due;
	bool passed;	/* others may pass it */
	bool gone;	/* its queue pair was destroyed */
	bool taken;	/* by the timer, which writes it now */
	bool solicited;
	struct sim_cqe cqe;
};

/* What may be written next, if it is time. */
static struct late *late_next(const struct sim_cq *cq, ktime_t *due)
{
	struct late *late, *next = NULL;
	bool blocked = false;

	list_for_each_entry(late, &cq->fault.late, entry) {
		if (!late->passed && blocked)
			continue;
		blocked |= !late->passed;
		if (!next || ktime_before(late->due, next->due))
			next = late;
	}
	if (next)
		*due = next->due;
	return next;
}

static void arm_locked(struct sim_cq *cq)
{
	ktime_t due;

	if (late_next(cq, &due))
		hrtimer_start(&cq->fault.timer, due, HRTIMER_MODE_ABS_SOFT);
}

static struct late *late_take(struct sim_cq *cq)
{
	struct late *late;
	unsigned long flags;
	ktime_t due;

	spin_lock_irqsave(&cq->fault.lock, flags);
	late = late_next(cq, &due);
	if (late && ktime_after(due, ktime_get())) {
		arm_locked(cq);
		late = NULL;
	}
	if (late)
		late->taken = true;
	spin_unlock_irqrestore(&cq->fault.lock, flags);
	return late;
}

static void late_free(struct sim_cq *cq, struct late *late)
{
	unsigned long flags;

	spin_lock_irqsave(&cq->fault.lock, flags);
	list_del(&late->entry);
	spin_unlock_irqrestore(&cq->fault.lock, flags);
	kfree(late);
}

static enum hrtimer_restart late_timer(struct hrtimer *timer)
{
	struct sim_cq *cq = container_of(timer, struct sim_cq, fault.timer);
	struct late *late;

	while ((late = late_take(cq))) {
		if (!READ_ONCE(late->gone))
			sim_cqe_put(cq, &late->cqe, late->solicited);
		late_free(cq, late);
	}
	return HRTIMER_NORESTART;
}

static struct late *late_last(const struct sim_cq *cq)
{
	struct late *late;

	list_for_each_entry_reverse(late, &cq->fault.late, entry)
		if (!late->passed)
			return late;
	return NULL;
}

static struct late *late_overtaken(const struct sim_cq *cq, const struct sim_sq *sq)
{
	struct late *late;

	list_for_each_entry(late, &cq->fault.late, entry)
		if (late->passed && !late->gone && !late->taken && late->cqe.sq == sq)
			return late;
	return NULL;
}

static bool hold_locked(struct sim_cq *cq, const struct sim_cqe *cqe, bool solicited, ktime_t due,
			bool passed)
{
	struct late *late = kmalloc(sizeof(*late), GFP_ATOMIC);

	if (!late)
		return false;
	*late = (struct late) {
		.due = due,
		.passed = passed,
		.solicited = solicited,
		.cqe = *cqe,
	};
	list_add_tail(&late->entry, &cq->fault.late);
	arm_locked(cq);
	return true;
}

/* False: without memory it is in time. */
bool sim_late_hold(struct sim_cq *cq, const struct sim_cqe *cqe, bool solicited, u64 delay_ns,
		   bool passed)
{
	ktime_t due = ktime_add_ns(ktime_get(), delay_ns ?: OVERTAKEN_NS);
	unsigned long flags;
	bool held;

	spin_lock_irqsave(&cq->fault.lock, flags);
	held = hold_locked(cq, cqe, solicited, due, passed);
	spin_unlock_irqrestore(&cq->fault.lock, flags);
	return held;
}

/* The one that passes, then the one that was taken from the list. */
static bool pass(struct sim_cq *cq, const struct sim_cqe *cqe, bool solicited, struct late *late)
{
	struct sim_cqe first = *cqe;

	late->cqe.retires += first.retires;
	first.retires = 0;
	sim_cqe_put(cq, &first, solicited);
	sim_cqe_put(cq, &late->cqe, late->solicited);
	kfree(late);
	return true;
}

/* True: it was written, or waits behind one that is late. */
bool sim_late_behind(struct sim_cq *cq, const struct sim_cqe *cqe, bool solicited)
{
	struct late *last, *overtaken = NULL;
	unsigned long flags;
	bool held = false;

	if (list_empty_careful(&cq->fault.late))
		return false;
	spin_lock_irqsave(&cq->fault.lock, flags);
	last = late_last(cq);
	if (last) {
		held = hold_locked(cq, cqe, solicited, last->due, false);
	} else if (cqe->sq) {
		overtaken = late_overtaken(cq, cqe->sq);
		if (overtaken)
			list_del(&overtaken->entry);
	}
	spin_unlock_irqrestore(&cq->fault.lock, flags);
	return overtaken ? pass(cq, cqe, solicited, overtaken) : held;
}

void sim_late_init(struct sim_cq *cq)
{
	spin_lock_init(&cq->fault.lock);
	spin_lock_init(&cq->fault.handler_lock);
	INIT_LIST_HEAD(&cq->fault.late);
	hrtimer_setup(&cq->fault.timer, late_timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
}

/* Nobody writes to it any more. */
void sim_late_destroy(struct sim_cq *cq)
{
	struct late *late, *next;

	hrtimer_cancel(&cq->fault.timer);
	list_for_each_entry_safe(late, next, &cq->fault.late, entry)
		kfree(late);
}

/* What is held of a queue pair that leaves is not to be written, or has been. */
void sim_late_forget(struct sim_cq *cq, const struct sim_qp *qp)
{
	unsigned long flags;
	struct late *late;

	spin_lock_irqsave(&cq->fault.lock, flags);
	list_for_each_entry(late, &cq->fault.late, entry)
		if (late->cqe.wc.qp == &qp->ib)
			WRITE_ONCE(late->gone, true);
	spin_unlock_irqrestore(&cq->fault.lock, flags);
	hrtimer_cancel(&cq->fault.timer);
	spin_lock_irqsave(&cq->fault.lock, flags);
	arm_locked(cq);
	spin_unlock_irqrestore(&cq->fault.lock, flags);
}

/* All that is held is written now. No rule holds more. */
void sim_late_end(struct sim_cq *cq)
{
	unsigned long flags;
	struct late *late;

	spin_lock_irqsave(&cq->fault.lock, flags);
	list_for_each_entry(late, &cq->fault.late, entry)
		late->due = 0;
	arm_locked(cq);
	spin_unlock_irqrestore(&cq->fault.lock, flags);
	while (!list_empty_careful(&cq->fault.late))
		usleep_range(100, 1000);
}
