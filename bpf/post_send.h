/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What post_send.bpf.c and its loader share.
 *
 * A row counts the posts of one key: device, consumer, opcode. Each CPU has a
 * copy of all rows; the loader adds them up.
 */
#ifndef _KVERBS_BPF_POST_SEND_H
#define _KVERBS_BPF_POST_SEND_H

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

/* Row 0 takes the posts whose key found no room. */
#define KVERBS_POST_ROW_LOST	0

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
 */
struct kverbs_post_row {
	__u64 requests[KVERBS_POST_FLAGS];
	__u64 more;
	__u64 bytes;
	__u64 truncated;
	__u64 ns;
	__u64 max_ns;
	__u64 hist[KVERBS_HIST_BUCKETS];
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

/* A call that has not returned. */
struct kverbs_post_frame {
	__u64 who;		/* tells it from other calls on this CPU; 0: free */
	__u64 start;
	__u64 row;
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
 */
struct kverbs_post_cpu {
	struct kverbs_post_frame frame[KVERBS_POST_FRAMES];
	__u64 scratch;
	__u64 unmatched;
	__u64 dropped;
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
