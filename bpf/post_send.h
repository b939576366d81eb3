/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What post_send.bpf.c and its loader share.
 *
 * A row counts the posts of one key: device, consumer, opcode. Each CPU has a
 * copy of all rows; the loader adds them up. What is counted besides how many there
 * were depends on the programs that the loader chose.
 */
#ifndef _KVERBS_BPF_POST_SEND_H
#define _KVERBS_BPF_POST_SEND_H

#include "../include/kverbs/core/fit.h"
#include "../include/kverbs/core/hist.h"

#define KVERBS_POST_NAME	64	/* bytes of a name, its zero included */
#define KVERBS_POST_ROWS	256	/* keys, a power of two */
#define KVERBS_POST_FRAMES	8	/* posts that may be nested on one CPU */
#define KVERBS_POST_SLOT_BITS	8	/* log2 of the pairs of PD and opcode a CPU remembers */
#define KVERBS_POST_CHAIN	1024	/* work requests of a chain that are looked at */
#define KVERBS_POST_SGES	32	/* SGEs of a work request that are looked at */

/* Opcodes as rows know them: those of enum ib_wr_opcode up to the last, and these. */
enum {
	KVERBS_POST_OP_LAST = 16,
	KVERBS_POST_OP_REG_MR,
	KVERBS_POST_OP_REG_MR_INTEGRITY,
	KVERBS_POST_OP_OTHER,
	KVERBS_POST_OP_NONE,	/* a user's post: the kernel sees no work request */
	KVERBS_POST_NR_OPS,
};

/* Of enum ib_send_flags, all that are counted: fence, signaled, solicited, inline. */
#define KVERBS_POST_FLAGS	16
#define KVERBS_POST_SIGNALED	2
#define KVERBS_POST_INLINE	8

/* Row 0 takes the posts whose key found no room, row 1 those of QPs that are not asked for. */
#define KVERBS_POST_ROW_LOST	0
#define KVERBS_POST_ROW_OTHERS	1
#define KVERBS_POST_ROW_FIRST	2

/*
 * Classes of posts by their number of work requests: each number its own below 64, from
 * there on as in a histogram; the last is that of all that were not followed to the end.
 */
#define KVERBS_POST_SIZES	97

KVERBS_CORE_FN __u32 kverbs_post_size(__u64 wrs)
{
	return wrs < KVERBS_HIST_MIN ? wrs : KVERBS_HIST_MIN - 1 + kverbs_hist_index(wrs);
}

/* The least number of class @size. */
KVERBS_CORE_FN __u64 kverbs_post_size_low(__u32 size)
{
	return size < KVERBS_HIST_MIN ? size : kverbs_hist_low(size - (KVERBS_HIST_MIN - 1));
}

/**
 * struct kverbs_post_sums - sums over posts, to lay a line through them
 * @nr: of them
 * @wrs: sum of the work requests
 * @ns: of the nanoseconds
 * @wrs_wrs: of the work requests' squares
 * @wrs_ns: of the products
 * @ns_ns: of the nanoseconds' squares, the lower half
 * @ns_ns_high: and the upper
 * @left_out: posts that are in no sum: they were interrupted, or are no samples as fit.h
 *	has them
 */
struct kverbs_post_sums {
	__u64 nr;
	__u64 wrs;
	__u64 ns;
	__u64 wrs_wrs;
	__u64 wrs_ns;
	__u64 ns_ns;
	__u64 ns_ns_high;
	__u64 left_out;
};

/*
 * Whether a post is a sample: not if it took more than eight times what a line through the
 * others can say at most. Neither part can be more than what posts took on average, the
 * second as often as @wrs is of the average.
 */
KVERBS_CORE_FN bool kverbs_post_believed(const struct kverbs_post_sums *all, __u64 wrs, __u64 ns)
{
	if (!wrs || wrs > KVERBS_FIT_WRS_MAX || ns > KVERBS_FIT_NS_MAX)
		return false;
	if (all->nr < KVERBS_FIT_LEAST)
		return true;
	return ns <= 8 * (all->ns / all->nr + wrs * all->ns / all->wrs) + KVERBS_FIT_SLACK_NS;
}

/* A post of @wrs work requests took @ns nanoseconds. */
KVERBS_CORE_FN void kverbs_post_sum(struct kverbs_post_sums *all, __u64 wrs, __u64 ns)
{
	if (!kverbs_post_believed(all, wrs, ns)) {
		all->left_out++;
		return;
	}
	all->nr++;
	all->wrs += wrs;
	all->ns += ns;
	all->wrs_wrs += wrs * wrs;
	all->wrs_ns += wrs * ns;
	all->ns_ns += ns * ns;
	all->ns_ns_high += all->ns_ns < ns * ns;
}

/**
 * struct kverbs_post_row - what is counted for one key on one CPU
 * @requests: work requests by their flags; a user's post, whose work requests the
 *	kernel does not see, counts as one
 * @more: those that were not the first of their chain, so that the others are the
 *	calls of post_send
 * @bytes: payload
 * @truncated: calls whose chain or whose SGL was longer than is looked at
 * @ns: sum of what @hist holds
 * @max_ns: longest of what @hist holds
 * @hist: nanoseconds from call to return; less than there were calls where a
 *	return was missed
 * @sizes: instead, calls by their number of work requests
 * @sums: instead, what a line through the calls' times needs
 */
struct kverbs_post_row {
	__u64 requests[KVERBS_POST_FLAGS];
	__u64 more;
	__u64 bytes;
	__u64 truncated;
	__u64 ns;
	__u64 max_ns;
	union {
		__u64 hist[KVERBS_HIST_BUCKETS];
		__u64 sizes[KVERBS_POST_SIZES];
		struct kverbs_post_sums sums;
	};
};

/**
 * struct kverbs_post_key - what a row counts
 * @device: its name
 * @consumer: name of the module that allocated the PD, or of the process
 * @op: opcode of the first work request of the chain
 * @pid: of the process whose QP it is; 0 for a kernel consumer
 */
struct kverbs_post_key {
	char device[KVERBS_POST_NAME];
	char consumer[KVERBS_POST_NAME];
	__u32 op;
	__u32 pid;
};

/**
 * struct kverbs_post_frame - a call that has not returned
 * @who: tells it from other calls on this CPU; 0: free
 * @start: when it was made
 * @row: that counts it
 * @wrs: how many work requests it has; 0: not seen
 * @signaled: of them
 * @pass: as in struct kverbs_post_event
 * @qp: the QP's number
 */
struct kverbs_post_frame {
	__u64 who;
	__u64 start;
	__u64 row;
	__u64 wrs;
	__u64 signaled;
	__u64 pass;
	__u64 qp;
};

/* Where a CPU, or a task, is in a pass over a CQ. */
struct kverbs_post_pass {
	__u64 cq;	/* 0: in none */
	__u64 number;	/* tells it from all others */
};

#define KVERBS_POST_TASKS	1024	/* that may be in a pass at the same time */
#define KVERBS_POST_EVENTS	(8U << 20)	/* bytes of those that nobody has read */

/**
 * struct kverbs_post_event - a post that has returned, for who replays it
 * @start: when it was made
 * @pass: number of the pass over the QP's send CQ that it was made in; 0: in none
 * @ns: that it took
 * @qp: number of the QP
 * @row: that counted it
 * @wrs: work requests
 * @signaled: of them
 */
struct kverbs_post_event {
	__u64 start;
	__u64 pass;
	__u32 ns;
	__u32 qp;
	__u32 row;
	__u16 wrs;
	__u16 signaled;
};

/* The row of a PD and an opcode. */
struct kverbs_post_slot {
	__u64 key;
	__u64 row;
};

/**
 * struct kverbs_post_cpu - all that one CPU needs, found by a single look-up
 * @frame: the first is that of a call that interrupted no other
 * @scratch: for the program that runs
 * @unmatched: returns whose call was not seen
 * @dropped: frames given up since their return was never seen
 * @passes: that began on this CPU
 * @pass: that softirqs of this CPU are in
 * @events: posts that became events
 * @no_events: posts for whose event there was no room
 */
struct kverbs_post_cpu {
	struct kverbs_post_frame frame[KVERBS_POST_FRAMES];
	__u64 scratch;
	__u64 unmatched;
	__u64 dropped;
	__u64 passes;
	struct kverbs_post_pass pass;
	__u64 events;
	__u64 no_events;
	struct kverbs_post_slot slot[1 << KVERBS_POST_SLOT_BITS];
	struct kverbs_post_row row[KVERBS_POST_ROWS];
};

/*
 * kverbs_hist_index() in a third of the instructions: a bucket is told by the four
 * highest bits of a value, so shift by half bytes until a byte is left that has
 * them, and look that up. @of[b] is kverbs_hist_index(b << 4), for b from 16.
 */
KVERBS_CORE_FN __u32 kverbs_post_bucket(const volatile __u8 *of, __u64 ns)
{
	if (ns < 1 << 16) {
		if (ns >= 1 << 12)
			return of[ns >> 8] + 4 * KVERBS_HIST_SUB;
		if (ns >= 1 << 8)
			return of[ns >> 4];
		return ns < KVERBS_HIST_MIN ? 0 : of[ns] - 4 * KVERBS_HIST_SUB;
	}
	if (ns < 1 << 20)
		return of[ns >> 12] + 8 * KVERBS_HIST_SUB;
	if (ns < 1 << 24)
		return of[ns >> 16] + 12 * KVERBS_HIST_SUB;
	if (ns < KVERBS_HIST_MAX)
		return of[ns >> 20] + 16 * KVERBS_HIST_SUB;
	return KVERBS_HIST_BUCKETS - 1;
}

#endif /* _KVERBS_BPF_POST_SEND_H */
