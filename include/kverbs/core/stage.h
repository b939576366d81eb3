/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The stage: where many producers leave work for one post.
 *
 * One word says how far the ring is reserved, whether somebody owns the turn, and
 * whether the stage is closed. A producer reserves its place and, if nobody owns
 * the turn, becomes the owner with the same compare-and-swap; then it publishes its
 * slot. The owner drains what is published in order and gives the turn up with a
 * compare-and-swap that fails as long as somebody has reserved more. So nothing is
 * left behind, nobody waits for another's post, and a post costs one locked
 * operation, a turn one more.
 *
 *	reserve (producer)   word: tail += nr, OWNED if it was clear
 *	publish (producer)   slot, store-release          pairs with the owner's
 *	take    (owner)      slot, load-acquire           pairs with publish
 *	retire  (completion) head, store-release          pairs with reserve
 *	release (owner)      word: OWNED cleared if taken == tail
 *
 * What a slot is, the caller decides; here are only positions. They count up and
 * wrap at 2^32; the ring's size is a power of two, the depth need not be.
 */
#ifndef _KVERBS_CORE_STAGE_H
#define _KVERBS_CORE_STAGE_H

#include "types.h"

#define KVERBS_STAGE_OWNED	1ULL
#define KVERBS_STAGE_CLOSED	2ULL
#define KVERBS_STAGE_TAIL_SHIFT	32

/**
 * struct kverbs_stage - the stage of a queue
 * @word: tail in the upper half, flags in the lower; changed by compare-and-swap only
 * @taken: next position the owner takes; written by the owner, read by anybody
 * @depth: positions that may be between head and tail
 */
struct kverbs_stage {
	__u64 word;
	__u32 taken;
	__u32 depth;
};

enum kverbs_reserve {
	KVERBS_RESERVED,	/* a place; somebody else owns the turn, or nobody does */
	KVERBS_RESERVED_OWNER,	/* a place, and the turn is the caller's */
	KVERBS_RESERVE_FULL,
	KVERBS_RESERVE_CLOSED,
};

KVERBS_CORE_FN void kverbs_stage_init(struct kverbs_stage *stage, __u32 depth)
{
	stage->word = 0;
	stage->taken = 0;
	stage->depth = depth;
}

KVERBS_CORE_FN __u32 kverbs_stage_tail(const struct kverbs_stage *stage)
{
	return (__u32)(kverbs_load(&stage->word) >> KVERBS_STAGE_TAIL_SHIFT);
}

/* Positions reserved and not taken yet, as of some moment ago. */
KVERBS_CORE_FN __u32 kverbs_stage_waiting(const struct kverbs_stage *stage)
{
	return kverbs_stage_tail(stage) - kverbs_load(&stage->taken);
}

/* Positions free, as of some moment ago. */
KVERBS_CORE_FN __u32 kverbs_stage_room(const struct kverbs_stage *stage, const __u32 *head)
{
	__u32 used = kverbs_stage_tail(stage) - kverbs_load_acquire(head);

	/* a tail read before a head that moved on looks like less than nothing */
	return used <= stage->depth ? stage->depth - used : 0;
}

/*
 * Reserve @nr positions from *@pos on. With @own the caller takes the turn if
 * nobody has it. The caller must publish soon, without being preempted.
 */
KVERBS_CORE_FN enum kverbs_reserve
kverbs_stage_reserve(struct kverbs_stage *stage, const __u32 *head, __u32 nr, bool own,
		     __u32 *pos)
{
	__u64 old = kverbs_load(&stage->word);
	__u64 claim = own ? KVERBS_STAGE_OWNED : 0;
	__u32 tail, room;

	do {
		if (old & KVERBS_STAGE_CLOSED)
			return KVERBS_RESERVE_CLOSED;
		tail = (__u32)(old >> KVERBS_STAGE_TAIL_SHIFT);
		/*
		 * Pairs with the release of retirement: its slots are free before head moves.
		 * A head beyond the tail read before it looks like more room than there is; the
		 * swap fails then.
		 */
		room = kverbs_load_acquire(head) + stage->depth - tail;
		if (nr > room)
			return KVERBS_RESERVE_FULL;
	} while (!kverbs_try_cmpxchg(&stage->word, &old,
				     (old + ((__u64)nr << KVERBS_STAGE_TAIL_SHIFT)) | claim));
	*pos = tail;
	return claim & ~old ? KVERBS_RESERVED_OWNER : KVERBS_RESERVED;
}

/* Take the turn. False if somebody has it: then that owner takes what is staged. */
KVERBS_CORE_FN bool kverbs_stage_own(struct kverbs_stage *stage)
{
	__u64 old = kverbs_load(&stage->word);

	do {
		if (old & KVERBS_STAGE_OWNED)
			return false;
	} while (!kverbs_try_cmpxchg(&stage->word, &old, old | KVERBS_STAGE_OWNED));
	return true;
}

/* The owner has taken all up to position @pos. */
KVERBS_CORE_FN void kverbs_stage_take(struct kverbs_stage *stage, __u32 pos)
{
	kverbs_store_release(&stage->taken, pos);
}

/* Give the turn up if everything reserved was taken; false: there is more to do. */
KVERBS_CORE_FN bool kverbs_stage_release(struct kverbs_stage *stage)
{
	__u64 old = kverbs_load(&stage->word);

	do {
		if ((__u32)(old >> KVERBS_STAGE_TAIL_SHIFT) != stage->taken)
			return false;
	} while (!kverbs_try_cmpxchg(&stage->word, &old, old & ~KVERBS_STAGE_OWNED));
	return true;
}

/* Give the turn up though something is left: the caller has seen to it that another comes. */
KVERBS_CORE_FN void kverbs_stage_leave(struct kverbs_stage *stage)
{
	__u64 old = kverbs_load(&stage->word);

	while (!kverbs_try_cmpxchg(&stage->word, &old, old & ~KVERBS_STAGE_OWNED))
		;
}

/* Reserve no more from now on. */
KVERBS_CORE_FN void kverbs_stage_close(struct kverbs_stage *stage)
{
	__u64 old = kverbs_load(&stage->word);

	while (!kverbs_try_cmpxchg(&stage->word, &old, old | KVERBS_STAGE_CLOSED))
		;
}

/* Reserve again. */
KVERBS_CORE_FN void kverbs_stage_open(struct kverbs_stage *stage)
{
	__u64 old = kverbs_load(&stage->word);

	while (!kverbs_try_cmpxchg(&stage->word, &old, old & ~KVERBS_STAGE_CLOSED))
		;
}

#endif /* _KVERBS_CORE_STAGE_H */
