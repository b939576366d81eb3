// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Who waits for credit: one line for sleepers and callbacks, first come, first served.
 *
 * ORDER: a waiter joins the line, then looks for room once more; retirement gives the
 * room back, then looks for waiters. With no barrier between its store and its load,
 * retirement may miss a waiter that missed the room. Rather than a barrier on each CQE,
 * the waiter asks the queue's worker to look again a tick later: by then the store is
 * seen. If the worker comes earlier for another reason, it comes again.
 */
#include <linux/sched.h>

#include "path.h"

#define LOOK_AGAIN	1	/* jiffies */

/* A caller of kverbs_post_wait(). Whoever serves it posts for it, before anybody else can. */
struct sleeper {
	struct kverbs_credit_wait wait;
	struct kverbs_sq *sq;
	struct kverbs_req *req;
	unsigned int flags;
	int err;
	struct completion posted;
};

/* Must a post stand back for those in line? Not that of the one who is being served. */
bool kverbs_waiters_first(struct kverbs_sq *sq)
{
	return READ_ONCE(sq->serving) != current;
}

static void join(struct kverbs_sq *sq, struct kverbs_credit_wait *wait)
{
	unsigned long irq;

	spin_lock_irqsave(&sq->lock, irq);
	list_add_tail(&wait->entry, &sq->waiters);
	WRITE_ONCE(sq->nr_waiters, sq->nr_waiters + 1);
	WRITE_ONCE(sq->joined, jiffies);
	spin_unlock_irqrestore(&sq->lock, irq);
	kverbs_kick(sq, LOOK_AGAIN);
}

/* For the worker: has somebody joined so lately that it may have looked too early? */
bool kverbs_look_again(const struct kverbs_sq *sq)
{
	return READ_ONCE(sq->nr_waiters) && jiffies - READ_ONCE(sq->joined) <= LOOK_AGAIN;
}

/* Leave the line; false if the waiter was served already. */
static bool leave(struct kverbs_sq *sq, struct kverbs_credit_wait *wait)
{
	unsigned long irq;
	bool waiting;

	spin_lock_irqsave(&sq->lock, irq);
	waiting = !list_empty(&wait->entry);
	if (waiting) {
		list_del_init(&wait->entry);
		WRITE_ONCE(sq->nr_waiters, sq->nr_waiters - 1);
	}
	spin_unlock_irqrestore(&sq->lock, irq);
	/* There may be room for the next one. */
	if (waiting)
		kverbs_kick(sq, 0);
	return waiting;
}

/*
 * The first in line if there is room for it, or if the queue has ended and nobody needs
 * room any more. Who finds another at it may leave: that one looks again when it is through.
 */
static struct kverbs_credit_wait *next_served(struct kverbs_sq *sq)
{
	struct kverbs_credit_wait *wait;
	unsigned long irq;

	spin_lock_irqsave(&sq->lock, irq);
	wait = list_first_entry_or_null(&sq->waiters, struct kverbs_credit_wait, entry);
	if (wait && (sq->serving ||
		     (!sq->closed &&
		      kverbs_stage_room(&sq->stage, &sq->head) < wait->nr_wrs)))
		wait = NULL;
	if (wait) {
		list_del_init(&wait->entry);
		/* One at a time, so that a post of its ready() is the first to find the room. */
		WRITE_ONCE(sq->serving, current);
	}
	spin_unlock_irqrestore(&sq->lock, irq);
	return wait;
}

static void end_served(struct kverbs_sq *sq)
{
	unsigned long irq;

	spin_lock_irqsave(&sq->lock, irq);
	WRITE_ONCE(sq->serving, NULL);
	WRITE_ONCE(sq->nr_waiters, sq->nr_waiters - 1);
	spin_unlock_irqrestore(&sq->lock, irq);
}

/* Serve whoever there is room for. Bottom halves are off. */
void kverbs_serve_waiters(struct kverbs_sq *sq)
{
	struct kverbs_credit_wait *wait;

	while ((wait = next_served(sq))) {
		wait->ready(wait);
		end_served(sq);
	}
}

int kverbs_on_credit(struct kverbs_sq *sq, struct kverbs_credit_wait *wait)
{
	if (wait->nr_wrs > sq->stage.depth)
		return -EMSGSIZE;
	join(sq, wait);
	return 0;
}
EXPORT_SYMBOL_GPL(kverbs_on_credit);

static void post_for(struct kverbs_credit_wait *wait)
{
	struct sleeper *sleeper = container_of(wait, struct sleeper, wait);

	sleeper->err = kverbs_post_served(sleeper->sq, sleeper->req, sleeper->flags);
	complete(&sleeper->posted);
}

static u32 nr_wrs_of(const struct kverbs_req *req)
{
	const struct ib_send_wr *wr;
	u32 nr = 0;

	for (wr = req->wr; wr; wr = wr->next)
		nr++;
	return nr;
}

/* A post that slipped in before the line formed may have taken the room: wait again. */
int kverbs_post_wait(struct kverbs_sq *sq, struct kverbs_req *req, unsigned int flags,
		     unsigned long timeout)
{
	struct sleeper sleeper = {
		.wait.ready = post_for,
		.sq = sq,
		.req = req,
		.flags = flags,
		.posted = COMPLETION_INITIALIZER_ONSTACK(sleeper.posted),
	};
	int err;

	might_sleep();
	err = kverbs_post(sq, req, flags);
	if (err == -EAGAIN) {
		sleeper.wait.nr_wrs = nr_wrs_of(req);
		/* Nobody looks at what stands behind others: it would hold up the line for ever. */
		if (sleeper.wait.nr_wrs > sq->stage.depth)
			err = -EMSGSIZE;
	}
	while (err == -EAGAIN && timeout) {
		join(sq, &sleeper.wait);
		timeout = wait_for_completion_timeout(&sleeper.posted, timeout);
		if (!timeout) {
			if (leave(sq, &sleeper.wait))
				return -EAGAIN;
			/* being served at this moment */
			wait_for_completion(&sleeper.posted);
		}
		reinit_completion(&sleeper.posted);
		err = sleeper.err;
	}
	return err;
}
EXPORT_SYMBOL_GPL(kverbs_post_wait);
