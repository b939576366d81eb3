/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * kverbs_simfault: a plain consumer of a simulated HCA. A line written to "run" in debugfs
 * says what it posts and how; "result" tells what it saw. What goes wrong meanwhile is up
 * to the rules that were made in configfs, or to the consumer's own misbehaviour.
 *
 *   main.c     the line, and what comes of it
 *   rig.c      a connected pair of queue pairs, their CQ and memory
 *   breach.c   how each of the judge's rules is broken
 *   irq.c      posting in hard interrupts
 */
#ifndef _KVERBS_SIMFAULT_H
#define _KVERBS_SIMFAULT_H

#include <linux/hrtimer.h>
#include <linux/wait.h>
#include <rdma/ib_verbs.h>

#define RIG_REQUESTS	256
#define RIG_BYTES	64

enum rig_cq {
	RIG_SOFTIRQ,
	RIG_WORKQUEUE,
	RIG_DIRECT,
	RIG_RAW,	/* ib_create_cq: its handler only counts */
	RIG_NR_CQS,
};

/**
 * struct rig_attr - what the line says
 * @cq: how completions are polled
 * @type: of the queue pairs
 * @op: of the requests
 * @depth: of the send queue
 * @cqe: of the CQ; 0 for enough
 * @count: requests in all
 * @chain: requests of one call
 * @signal: each so many-th is signaled; 0 for none
 * @irq: so many of the requests, and receives, are posted one by one in hard interrupts
 *	meanwhile
 * @recvs: receives of the peer
 * @expect: completions to wait for; the signaled ones if negative
 * @wait_ms: for them, at most
 * @rnr_retry: of the queue pair
 * @vector: of the CQ
 * @inline_data: the payload is in the work request
 * @fail: the queue pair goes to ERR afterwards
 */
struct rig_attr {
	u32 cq;
	enum ib_qp_type type;
	enum ib_wr_opcode op;
	u32 depth;
	u32 cqe;
	u32 count;
	u32 chain;
	u32 signal;
	u32 irq;
	u32 recvs;
	s32 expect;
	u32 wait_ms;
	u32 rnr_retry;
	u32 vector;
	u32 inline_data;
	bool fail;
};

struct request {
	struct ib_cqe cqe;
	struct rig *rig;
	u32 times;		/* done was called */
	u64 posted_ns;
	enum ib_wc_status status;
};

struct rig {
	struct rig_attr attr;
	struct ib_device *ib;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp[2];	/* the one that posts, its peer */
	struct ib_ah *ah;
	struct rdma_ah_attr path;
	void *memory;		/* a page to read, a page to write */
	u64 dma;
	void (*handler)(struct ib_cq *cq, void *context);
	struct task_struct *posting;
	struct hrtimer timer;
	u32 irq_left;
	atomic_t events;
	atomic_t events_in_post;
	atomic_t events_locked;
	unsigned long event_cpus;
	bool poll_in_handler;
	u64 fastest_post_ns;
	u64 soonest_done_ns;	/* after the call that posted it had begun */
	wait_queue_head_t wait;
	atomic_t done;
	atomic_t received;
	struct ib_cqe recv_cqe;
	u32 order[2 * RIG_REQUESTS];	/* of requests, as they were done */
	struct request requests[RIG_REQUESTS];
};

/* A work request of any opcode. */
struct rig_wr {
	union {
		struct ib_send_wr wr;
		struct ib_rdma_wr rdma;
		struct ib_ud_wr ud;
	};
	struct ib_sge sge;
};

/* main.c */
__printf(1, 2) void say(const char *fmt, ...);

/* rig.c */
struct rig *rig_create(struct ib_device *ib, const struct rig_attr *attr);
void rig_destroy(struct rig *rig);
int rig_fail(struct rig *rig);
void rig_wr(struct rig *rig, struct rig_wr *wr, u32 index, bool signaled);
int rig_post(struct rig *rig, const struct ib_send_wr *wr, const struct ib_send_wr **bad_wr);
void rig_receive(struct rig *rig, u32 nr);

/* irq.c */
void rig_irq_start(struct rig *rig);
void rig_irq_wait(struct rig *rig);

/* breach.c */
bool breach(struct ib_device *ib, const char *rule);

#endif /* _KVERBS_SIMFAULT_H */
