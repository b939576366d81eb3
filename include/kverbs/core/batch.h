/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * How much goes into one post, and when what is staged is worth one.
 *
 * Batching is free or it does not happen. What is batched is what is there anyway: what
 * comes with the promise of more, what was published while somebody was in the driver,
 * and what is posted during a CQ pass, which has to end first. Nothing waits for company
 * unless the queue's owner said for how long it may, or chose to ring for every fourth.
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

/**
 * enum kverbs_batch_policy - what a queue posts together
 * @KVERBS_BATCH_DYNAMIC: whatever is there: a post that finds nobody in the driver goes at
 *	once, the others go with the next
 * @KVERBS_BATCH_EACH: nothing: a doorbell for each group, also for those of a list
 * @KVERBS_BATCH_FOUR: four work requests at a time. Fewer wait, but only as long as
 *	something is in flight whose CQ pass posts them at its end
 * @KVERBS_BATCH_NR_POLICIES: how many there are
 */
enum kverbs_batch_policy {
	KVERBS_BATCH_DYNAMIC = 0,
	KVERBS_BATCH_EACH,
	KVERBS_BATCH_FOUR,
	KVERBS_BATCH_NR_POLICIES,
};

/**
 * struct kverbs_batch - the rule of a queue
 * @hold_ns: how long something may be staged for company; 0: not at all
 * @limit: work requests in a post; of more only if one group has more
 * @stays: what comes without the promise of more is left staged, too
 * @by_pass: a pass posts what it finds staged, whoever staged it
 * @spreads: what callbacks post is to come back little by little
 */
struct kverbs_batch {
	__u64 hold_ns;
	__u32 limit;
	bool stays;
	bool by_pass;
	bool spreads;
};

/* What becomes of what was left staged. */
enum kverbs_batch_next {
	KVERBS_BATCH_GO,	/* it is posted now */
	KVERBS_BATCH_PASS,	/* the end of the pass posts it */
	KVERBS_BATCH_HOLD,	/* the deadline does */
	KVERBS_BATCH_STAY,	/* the end of the burst does, or that of the next pass */
};

/* Chain length for a queue: at least two chains fit, so that one runs while one fills. */
KVERBS_CORE_FN __u32 kverbs_batch_limit(__u32 depth)
{
	__u32 half = depth / 2 ? depth / 2 : 1;

	return half < KVERBS_BATCH_MAX ? half : KVERBS_BATCH_MAX;
}

/* False if there is no such policy, or if it leaves nothing that could be held. */
KVERBS_CORE_FN bool kverbs_batch_init(struct kverbs_batch *batch, __u32 policy, __u32 depth,
				      __u64 hold_ns)
{
	__u32 limit = kverbs_batch_limit(depth);

	batch->hold_ns = hold_ns;
	batch->limit = limit;
	batch->stays = hold_ns;
	batch->by_pass = false;
	batch->spreads = policy == KVERBS_BATCH_DYNAMIC && !hold_ns;
	switch (policy) {
	case KVERBS_BATCH_DYNAMIC:
		return true;
	case KVERBS_BATCH_EACH:
		batch->limit = 1;
		return !hold_ns;
	case KVERBS_BATCH_FOUR:
		batch->limit = limit < 4 ? limit : 4;
		batch->stays = true;
		batch->by_pass = !hold_ns;
		return true;
	default:
		return false;
	}
}

/* A post, inside a CQ pass or with the promise of more: does it leave the turn to others? */
KVERBS_CORE_FN bool kverbs_batch_leaves(const struct kverbs_batch *batch, bool passing, bool more)
{
	return batch->stays || passing || more;
}

/*
 * It did, and now @waiting work requests are staged. A chain's worth gains nothing by
 * waiting. @idle, looked at after it was staged: nothing is in flight, so that no pass
 * may come.
 */
KVERBS_CORE_FN enum kverbs_batch_next kverbs_batch_next(const struct kverbs_batch *batch,
							__u32 waiting, bool passing, bool more,
							bool idle)
{
	if (waiting >= batch->limit)
		return KVERBS_BATCH_GO;
	if (passing)
		return KVERBS_BATCH_PASS;
	if (batch->hold_ns)
		return KVERBS_BATCH_HOLD;
	return idle && !more ? KVERBS_BATCH_GO : KVERBS_BATCH_STAY;
}

/* A chain has @taken work requests: does a group of @nr go with them? */
KVERBS_CORE_FN bool kverbs_batch_takes(const struct kverbs_batch *batch, __u32 taken, __u32 nr)
{
	return !taken || taken + nr <= batch->limit;
}

/*
 * A chain of what the callbacks of a pass posted, where @out work requests are in flight or
 * staged: how many of them to a CQE? With one for all, those that came back together, since
 * the processor was late once, would go on doing so: the HCA rests while they are dealt
 * with, and the first of them waits for the last. A sixteenth each keeps it busy, and where
 * the processor is the slower one, makes few more CQEs. Elsewhere signal.h alone decides.
 */
KVERBS_CORE_FN __u32 kverbs_batch_spread(const struct kverbs_batch *batch, bool passing,
					 __u32 out)
{
	return !batch->spreads || !passing ? ~0U : out < 32 ? 1 : out / 16;
}

/* An owner has posted @posts times and something is staged: does it hand over? */
KVERBS_CORE_FN bool kverbs_batch_hands_over(__u32 posts)
{
	return posts >= KVERBS_TURN_POSTS;
}

#endif /* _KVERBS_CORE_BATCH_H */
