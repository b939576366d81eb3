/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The map of the data path.
 *
 *   kverbs_post()            post.c      check, reserve a place, publish
 *     kverbs_turn()          flush.c     owner: take, chain, signal, ib_post_send()
 *       the HCA works
 *   kverbs_slot_done()       complete.c  a CQE: mark the slot, retire from the head
 *     req->done()                        credits are back before it runs
 *   kverbs_cq_pass()         cq.c        polls, dispatches, flushes what was posted meanwhile
 *
 * aside: kverbs_sq_work() (drain.c) is the queue's worker. It does what may sleep or
 * what nobody else is there for: QP to ERR, dead slots with nothing in flight, a
 * turn that was left. recorder.c keeps what the queue did last, until something fails;
 * fit.c tells from it what posts cost.
 *
 * Who writes what: a producer its own places of the ring; the owner of the turn
 * stage.taken and signal; the CQ's one dispatcher head and the slots between head
 * and taken. Where the worker retires, it owns the turn, nothing is in flight and the
 * pass is over that retired what was, so that no dispatcher is about.
 */
#ifndef _KVERBS_PATH_H
#define _KVERBS_PATH_H

#include <linux/cache.h>
#include <linux/completion.h>
#include <linux/hrtimer.h>
#include <linux/irq_poll.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>
#include <rdma/kverbs.h>
#include <kverbs/core/batch.h>
#include <kverbs/core/credit.h>
#include <kverbs/core/fit.h>
#include <kverbs/core/signal.h>
#include <kverbs/core/stage.h>

#include "hooks.h"
#include "recorder.h"
#include "stats.h"

/*
 * A place in the send queue, one for each work request. The CQE's wr_cqe leads here.
 * @cqe: its done is kverbs_slot_done(), and kverbs_slot_late() once the queue is gone
 * @ref: what is in it, with a state in the low bits: the queue while it is free, the
 *	request otherwise
 */
struct kverbs_slot {
	struct ib_cqe cqe;
	unsigned long ref;
};

enum kverbs_slot_state {
	KVERBS_SLOT_SILENT,	/* staged, or posted without a CQE of its own */
	KVERBS_SLOT_SIGNALED,	/* posted, its CQE is still to come */
	KVERBS_SLOT_DONE,	/* its CQE came and proves what is before it */
	KVERBS_SLOT_FLUSHED,	/* its CQE came and was a flush, which proves nothing */
	KVERBS_SLOT_DEAD,	/* never reached the HCA */
	KVERBS_SLOT_FREE,
};

#define KVERBS_SLOT_MASK	7UL

static inline enum kverbs_slot_state kverbs_ref_state(unsigned long ref)
{
	return ref & KVERBS_SLOT_MASK;
}

static inline unsigned long kverbs_ref(struct kverbs_req *req, enum kverbs_slot_state state)
{
	return (unsigned long)req | state;
}

static inline struct kverbs_req *kverbs_ref_req(unsigned long ref)
{
	return (struct kverbs_req *)(ref & ~KVERBS_SLOT_MASK);
}

static inline struct ib_send_wr *kverbs_last_wr(const struct kverbs_req *req)
{
	return likely(req->nr_wrs == 1) ? req->wr : req->last;
}

/* kverbs_run.posted_at of a run that was given back without a post. */
#define KVERBS_NOT_POSTED	0

/* A work request that kverbs_post_wrs() copied, until the driver has it. */
struct kverbs_copy {
	struct kverbs_req req;	/* of the group, in its first copy */
	struct ib_cqe *cqe;
	struct ib_qp *qp;
	struct ib_cq *ibcq;
	union {
		struct ib_send_wr wr;
		struct ib_rdma_wr rdma;
		struct ib_atomic_wr atomic;
		struct ib_ud_wr ud;
		struct ib_reg_wr reg;
	} any;
	struct ib_sge sge[];
};

struct kverbs_device {
	struct list_head list;
	struct ib_device *ib;
	struct kref ref;
	bool gone;
	struct mutex lock;		/* guards list and fits; sleeps, never on the path */
	struct list_head sqs;
	struct delayed_work watchdog;
	struct kverbs_fit fit;
	struct kverbs_hooked hooked;
	struct kverbs_object obj;
	struct kverbs_hists hists;
};

/* Posts after which it is known whether the driver raises softirqs, and that it does. */
#define KVERBS_BH_SAMPLES	8
#define KVERBS_BH_RAISED	U8_MAX

enum kverbs_sq_state {
	KVERBS_SQ_LIVE,
	KVERBS_SQ_FAILED,	/* the QP is in an error state, or must be: flushes all it has */
	KVERBS_SQ_STOPPED,	/* its owner drains it */
};

/*
 * One turn of a dispatcher. What its callbacks post is staged and flushed at its
 * end. Of a kverbs CQ for all its queues, of the queue itself on a foreign CQ, where
 * a turn is one CQE.
 * @task: who runs it, NULL between turns; only that task sees itself in the pass
 * @nr: counts begins and ends: odd while it runs
 * @touched: queues with something staged, or whose waiters are due
 */
struct kverbs_pass {
	struct task_struct *task;
	u32 nr;
	struct list_head touched;
	u64 now;			/* by kverbs_clock() */
};

struct kverbs_sq {
	/* set at creation, read by all */
	struct ib_qp *qp;
	struct kverbs_slot *slots;
	struct kverbs_slot *last_slot;
	u32 mask;
	u32 max_sge;
	u32 max_read_sge;
	u32 max_inline;
	u32 max_bytes;			/* payload of a work request */
	struct kverbs_batch batch;
	u32 run_limit;			/* work requests that are staged together */
	u8 kind;			/* of the QP, as in the table of opcodes */
	bool reads_overtake;		/* iWARP: a READ may complete after what follows it */
	bool may_noop;			/* a zero-length write is legal here */
	struct kverbs_pass *pass;
	struct kverbs_cq *cq;
	struct ib_cq *ibcq;
	u32 qpn;			/* kept: traces outlive the QP */
	u32 dev_index;
	struct kverbs_device *dev;
	struct kverbs_recorder *recorder;
	struct kverbs_ep *ep;		/* to be told of a failure; NULL where there is none */
	void *copies;
	u32 copy_size;
	u32 copy_sge;

	/* producers and the owner of the turn */
	struct kverbs_stage stage ____cacheline_aligned;
	struct kverbs_signal signal;
	u8 bh_watch;			/* posts still to watch for softirqs, or KVERBS_BH_RAISED */
	u32 dead_in;			/* slots marked dead; written by the owner */
	int closed;			/* errno for posts once the stage is closed */
	u32 hold_armed;
	u64 nr_flushes;			/* that the recorder has noted */

	/* the dispatcher */
	u32 head ____cacheline_aligned;
	u32 dead_out;			/* dead slots retired */
	u64 run_posted_at;		/* when the run was posted that is retiring */
	u32 seen;			/* slots whose CQE came while one before them is out */
	u64 nr_cqes;			/* that the recorder has noted */
	struct list_head pass_entry;
	struct kverbs_pass own_pass;

	/* what happens seldom */
	unsigned int nr_waiters;
	spinlock_t lock;		/* waiters, state */
	struct list_head waiters;
	unsigned long joined;		/* jiffies when the last of them came */
	struct task_struct *serving;
	enum kverbs_sq_state state;
	bool fail_qp;			/* the worker is to move the QP to ERR */
	bool stopped;			/* the turn is taken for good */
	u32 dead_head;			/* where the worker found only dead slots */
	u32 dead_pass;			/* and the pass that ran at that moment */
	u32 recv_claim;
	u32 watch_head;
	u32 watch_ticks;
	u32 watch_limit;
	struct kverbs_fit fit;
	u64 nr_fitted;			/* flushes that the fit has seen or missed */
	struct delayed_work work;
	wait_queue_head_t idle;
	struct hrtimer hold;
	struct list_head entry;
	struct kverbs_object obj;
	struct kverbs_hists hists;
};

static inline struct kverbs_slot *kverbs_slot_at(struct kverbs_sq *sq, u32 pos)
{
	return &sq->slots[pos & sq->mask];
}

/* Is the caller inside the pass that flushes this queue at its end? */
static inline bool kverbs_in_pass(const struct kverbs_pass *pass)
{
	return READ_ONCE(pass->task) == current && !in_hardirq();
}

static inline u32 kverbs_in_flight(struct kverbs_sq *sq)
{
	return READ_ONCE(sq->stage.taken) - READ_ONCE(sq->head);
}

/* Bytes that the SGEs of a work request name. */
static __always_inline u64 kverbs_sgl_bytes(const struct ib_send_wr *wr)
{
	const struct ib_sge *sge = wr->sg_list, *end = sge + wr->num_sge;
	u64 bytes = 0;

	for (; sge != end; sge++)
		bytes += sge->length;
	return bytes;
}

/* flush.c: the owner's turn. The caller has just become the owner. */
void kverbs_turn(struct kverbs_sq *sq, enum kverbs_flush_reason reason);
void kverbs_try_turn(struct kverbs_sq *sq, enum kverbs_flush_reason reason);
bool kverbs_kill_staged(struct kverbs_sq *sq, enum kverbs_flush_reason reason);

/* complete.c: the CQ's one dispatcher. */
void kverbs_slot_done(struct ib_cq *ibcq, struct ib_wc *wc);
void kverbs_slot_late(struct ib_cq *ibcq, struct ib_wc *wc);
void kverbs_pass_begin(struct kverbs_pass *pass);
void kverbs_pass_end(struct kverbs_pass *pass);
void kverbs_touch(struct kverbs_pass *pass, struct kverbs_sq *sq);
bool kverbs_retire_dead(struct kverbs_sq *sq);
void kverbs_retire_all(struct kverbs_sq *sq);

/* post.c: the producer; what a QP and an opcode are. */
int kverbs_post_served(struct kverbs_sq *sq, struct kverbs_req *req, unsigned int flags);
void kverbs_hold_init(struct kverbs_sq *sq);
u8 kverbs_qp_kind(enum ib_qp_type type);
enum kverbs_counter kverbs_op_counter(enum ib_wr_opcode opcode);

/* copy.c: work requests that their caller does not keep. */
enum kverbs_counter kverbs_copy_check(const struct kverbs_sq *sq, const struct ib_send_wr *wr);
struct kverbs_req *kverbs_copy(struct kverbs_sq *sq, const struct ib_send_wr *wr,
			       struct ib_cqe *cqe, u32 pos, const struct kverbs_run *run);

/* wait.c: who waits for credit. */
bool kverbs_waiters_first(struct kverbs_sq *sq);
void kverbs_serve_waiters(struct kverbs_sq *sq);
bool kverbs_look_again(const struct kverbs_sq *sq);

/* drain.c: the worker and the end of a queue. */
void kverbs_sq_work(struct work_struct *work);
void kverbs_kick(struct kverbs_sq *sq, unsigned long delay);
void kverbs_sq_fail(struct kverbs_sq *sq, bool fail_qp);
void kverbs_sq_device_gone(struct kverbs_sq *sq);
void kverbs_sq_watch(struct kverbs_sq *sq);
void kverbs_sq_stop(struct kverbs_sq *sq);
void kverbs_sq_end_wait(struct kverbs_sq *sq);

/* fit.c: what posts cost. */
void kverbs_fit_feed(struct kverbs_sq *sq);

/* sq.c */
int kverbs_sqs_init(void);
void kverbs_sqs_exit(void);

/* cq.c */
int kverbs_cq_claim(struct kverbs_cq *cq, u32 send_wr, u32 recv_wr);
void kverbs_cq_unclaim(struct kverbs_cq *cq, u32 send_wr, u32 recv_wr);
struct kverbs_object *kverbs_cq_object(struct kverbs_cq *cq);
struct kverbs_pass *kverbs_cq_pass_of(struct kverbs_cq *cq);
void kverbs_cq_sync(struct kverbs_cq *cq);
void kverbs_cqs_quiesce(void);
void kverbs_cqs_rest(bool rest);

/* poller.c */
int kverbs_pollers_init(void);
void kverbs_pollers_exit(void);

/* device.c */
extern struct workqueue_struct *kverbs_wq;
extern struct ib_client kverbs_client;
struct kverbs_device *kverbs_device_get(struct ib_device *ib);
struct kverbs_device *kverbs_device_find(const struct net *net, u32 index);
int kverbs_devices_show(const struct net *net, char *page);
void kverbs_device_put(struct kverbs_device *dev);
int kverbs_devices_init(void);
void kverbs_devices_exit(void);

#endif /* _KVERBS_PATH_H */
