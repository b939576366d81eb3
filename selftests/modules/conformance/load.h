/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The load: a seeded random mix of every opcode from several threads, each of which checks
 * the data of its own requests and keeps its own tally. What the device has counted must be
 * the sum of the tallies.
 *
 *   load.c        the threads: what they poll, when they post, what is left at the end
 *   load_shot.c   a chain of requests: made, posted, checked
 *   load_cost.c   what one costs, without any load
 */
#ifndef _KVERBS_CONFORMANCE_LOAD_H
#define _KVERBS_CONFORMANCE_LOAD_H

#include <linux/prandom.h>

#include <kverbs/core/cost.h>

#include "conformance.h"

#define LOAD_THREADS	8
#define LOAD_SLOTS	8	/* chains of a lane that a thread has in flight */
#define LOAD_PARTS	4	/* requests of a chain */
#define LOAD_PART_SIZE	504	/* of its memory: some parts cross pages */
#define LOAD_RECV_SIZE	512
#define LOAD_GRH_SIZE	40
#define LOAD_MAX_BYTES	464
#define LOAD_MAX_SGES	3
#define LOAD_GAP	8	/* between the elements of a list */
#define LOAD_POOL	65536	/* random bytes that data is taken from */
#define LOAD_OPS	(IB_WR_REG_MR + 1)

/* The area of a lane: what its chains use, and at its very end a word for all threads. */
#define LOAD_WORD	(AREA_SIZE - sizeof(u64))

/* What is counted, under the names that the device has for it. */
enum load_count {
	LOAD_DOORBELLS,
	LOAD_SEND_WQES,
	LOAD_RECV_WQES,
	LOAD_SENDS,
	LOAD_WRITES,
	LOAD_READS,
	LOAD_ATOMICS,
	LOAD_REGISTRATIONS,
	LOAD_INVALIDATIONS,
	LOAD_INLINE,
	LOAD_BYTES,
	LOAD_PAYLOAD_READS,
	LOAD_WQE_FETCHES,
	LOAD_CQES,
	LOAD_EVENTS,
	LOAD_NR_COUNTS,
};

struct load_tally {
	u64 count[LOAD_NR_COUNTS];
	u64 ops[LOAD_OPS];
};

struct load_shot;

/**
 * struct load_part - one request of a chain
 * @id: what its message says or its immediate data is
 * @bytes: of data
 * @from: where in the pool they are
 * @local: memory of the side that posts
 * @remote: memory that the other side grants
 * @sent: it is signaled, and its completion has not come
 * @arriving: its receive has not completed
 * @before: what the word of an atomic was
 * @after: what it must be
 */
struct load_part {
	struct work work;
	struct load_shot *shot;
	u32 id;
	u32 bytes;
	u32 from;
	u8 *local;
	u8 *remote;
	unsigned long sent;
	unsigned long arriving;
	u64 before;
	u64 after;
};

/* A chain; @pending completions are to come, whoever polls them. */
struct load_shot {
	struct load_lane *lane;
	struct side *side;
	u32 nr;
	u8 generation;
	atomic_t pending;
	struct area mr;		/* registered by a chain, invalidated by the same */
	struct load_part part[LOAD_PARTS];
};

/* The queue pairs of one type that a thread posts on, and what it has in flight there. */
struct load_lane {
	struct load_thread *thread;
	struct load_queue *queue;
	struct area area;
	struct load_shot shot[LOAD_SLOTS];
};

struct load_recv {
	struct ib_cqe cqe;
	struct side *side;
	u8 *va;
	u64 dma;
};

/* A pair of queue pairs with one CQ, of one thread or of all. */
struct load_queue {
	struct load *load;
	struct bed *bed;
	u32 kind;
	struct ib_ah *ah;
	struct load_recv *recvs;
	u64 word_iova;		/* of the word that all threads add to */
	u32 word_rkey;
	u64 *word;
};

enum load_kind {
	LOAD_RC,
	LOAD_UC,
	LOAD_UD,
	LOAD_KINDS,
};

struct load_thread {
	struct load *load;
	struct task_struct *task;
	struct completion ended;
	u32 index;
	u64 left;		/* requests */
	u64 added;		/* to the word that all threads add to */
	struct rnd_state rnd;
	struct load_tally tally;
	struct load_lane lane[LOAD_KINDS];
};

struct load {
	struct ib_device *ib;
	u32 nr_threads;
	u32 nr_queues;		/* of each kind: one, or one for each thread */
	u32 depth;
	u8 *pool;
	struct load_queue *queue;
	struct load_thread *thread;
};

/* load_shot.c */
u32 load_shoot(struct load_shot *shot);
bool load_check(struct load_shot *shot);
void load_polled(struct load_thread *thread, struct load_queue *queue, const struct ib_wc *wc);
int load_recv_post(struct load_recv *recv);

static inline void load_add(struct load_thread *thread, enum load_count count, u64 n)
{
	thread->tally.count[count] += n;
}

/* Below @ceiling. */
static inline u32 load_random(struct load_thread *thread, u32 ceiling)
{
	return prandom_u32_state(&thread->rnd) % ceiling;
}

#endif /* _KVERBS_CONFORMANCE_LOAD_H */
