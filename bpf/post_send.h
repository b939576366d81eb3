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
#define KVERBS_POST_FRAMES	8	/* posts that may be nested on one CPU */
#define KVERBS_POST_SLOT_BITS	6	/* log2 of the callers that a CPU remembers */
#define KVERBS_POST_CHAIN	1024	/* work requests of a chain that are looked at */
#define KVERBS_POST_SGES	32	/* SGEs of a work request that are looked at */

/* Opcodes as rows know them: those of enum ib_wr_opcode up to the last, and these. */
enum {
	KVERBS_POST_OP_LAST = 16,
	KVERBS_POST_OP_REG_MR,
	KVERBS_POST_OP_REG_MR_INTEGRITY,
	KVERBS_POST_OP_OTHER,
	KVERBS_POST_OP_NONE,	/* a user's post: the kernel sees no work request */
	KVERBS_POST_NR_OPS = 24,
};

/* Row 0 takes the posts whose key found no room. */
#define KVERBS_POST_ROW_LOST	0

/**
 * struct kverbs_post_row - what is counted for one key on one CPU
 * @posts: calls of the driver's post_send
 * @work_requests: links of their chains
 * @truncated: calls whose chain or whose SGL was longer than is looked at
 * @ns: sum of what @hist holds
 * @max_ns: longest of what @hist holds
 * @hist: nanoseconds from call to return; less than @posts in all where a return
 *	was missed
 */
struct kverbs_post_row {
	__u64 posts;
	__u64 work_requests;
	__u64 signaled;
	__u64 inlined;
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
	__u32 row;
	__u32 reserved;
};

/* The rows of one caller on one device, by opcode: 0 if not known. One cache line. */
struct kverbs_post_slot {
	__u64 device;
	__u64 caller;
	__u16 row[KVERBS_POST_NR_OPS];
};

/**
 * struct kverbs_post_cpu - all that one CPU needs, found by a single look-up
 * @depth: frames in use
 * @unmatched: returns whose call was not seen
 * @dropped: frames given up since their return was never seen
 * @scratch: for the program that runs
 */
struct kverbs_post_cpu {
	__u64 depth;
	__u64 unmatched;
	__u64 dropped;
	__u64 scratch;
	__u64 reserved[4];
	struct kverbs_post_frame frame[KVERBS_POST_FRAMES];
	struct kverbs_post_slot slot[1 << KVERBS_POST_SLOT_BITS];
	struct kverbs_post_row row[];	/* max_rows of them */
};

#endif /* _KVERBS_BPF_POST_SEND_H */
