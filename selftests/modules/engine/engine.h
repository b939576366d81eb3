/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * kverbs_engine: tests of the send queue and the poller, one case a contract. Runs on
 * any RDMA device with a RoCE port that reaches itself.
 *
 *   main.c     the cases, how they are started and what they say (KTAP in debugfs)
 *   rig.c      queues on one CQ of one of seven kinds, connected in pairs
 *   hook.c     the device's operations, wrapped: what the driver would not do by itself
 *   hca.c      in the driver's place: an HCA whose every step a case decides
 *   traffic.c  producers of random groups
 *   group.c    a group: how it is built and posted, and the ledger of what became of it
 *   data.c     what the groups carry over a real driver, and whether it arrived
 *   shot.c     single groups, posted and executed step by step
 *   probe.c    trace events of kverbs as places to put a case's hand in
 *   ep_rig.c   connections between endpoints
 *   case_*.c   the cases
 *
 * Two kinds of rig: one leaves the work to the driver, the other, "scripted", only uses
 * the driver's objects.
 */
#ifndef _KVERBS_ENGINE_H
#define _KVERBS_ENGINE_H

#include <linux/completion.h>
#include <linux/hrtimer.h>
#include <linux/prandom.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <rdma/ib_verbs.h>
#include <rdma/kverbs.h>

#define RIG_QUEUES	8
#define RIG_QKEY	0x4b56454e
#define GROUP_MAX	5	/* work requests of a group */
#define PRODUCERS	5	/* the last one posts from done() */
#define LIST_MAX	12	/* groups that are posted at once */

/* Who dispatches the CQ of the sends. */
enum rig_cq {
	RIG_INTERRUPT,		/* a kverbs CQ */
	RIG_POLL,
	RIG_HYBRID,
	RIG_ADAPTIVE,
	RIG_SOFTIRQ,		/* one of ib_core's */
	RIG_WORKQUEUE,
	RIG_DIRECT,
	RIG_NR_CQS,
};

#define ON_KVERBS	(BIT(RIG_INTERRUPT) | BIT(RIG_POLL) | BIT(RIG_HYBRID) | BIT(RIG_ADAPTIVE))
#define ON_ALL		(BIT(RIG_NR_CQS) - 1)

struct rig;
struct hca;
struct receive;
struct traffic;

struct rig_queue {
	struct rig *rig;
	u32 index;
	struct ib_qp_init_attr init;
	struct ib_qp *qp;
	struct ib_qp *peer;
	struct kverbs_sq *sq;
	struct hca *hca;
	struct traffic *traffic;
	struct ib_qp_attr *fake_query;	/* what a query of the QP says */
	u32 refuse_at;			/* refuse each so-manieth work request; 0: none */
	u32 refuse_modify;		/* refuse to change the QP's state so many times */
	u32 seen;			/* work requests that the wrapped driver saw */
};

/**
 * struct rig_attr - what to build
 * @cq: kind of the CQ
 * @type: of the QPs
 * @queues: how many share the CQ
 * @depth: of each
 * @scripted: an HCA of our own instead of the driver's
 * @nr_cqe: of the CQ; 0 for as many as the queues may need
 * @last_cpu: it is polled on the last CPU
 * @no_sq: the QPs, but no send queue over them
 * @srq: the QPs receive from a shared queue
 * @iwarp: the port claims to be iWARP while the send queue is made
 * @max_inline: asked for
 * @no_inline: grant none, whatever the driver did
 * @copy_sge: as in &struct kverbs_sq_attr
 * @policy: as in &struct kverbs_sq_attr
 * @hold_max_ns: as in &struct kverbs_sq_attr
 * @cqe_timeout_ms: as in &struct kverbs_sq_attr
 * @moderate_cqes: as in &struct kverbs_cq_attr
 * @moderate_us: likewise
 * @timeout: of the QPs, as verbs have it; 0 for one that a slow machine does not reach
 */
struct rig_attr {
	enum rig_cq cq;
	enum ib_qp_type type;
	u32 queues;
	u32 depth;
	bool scripted;
	u32 nr_cqe;
	bool last_cpu;
	bool no_sq;
	bool srq;
	bool iwarp;
	u32 max_inline;
	bool no_inline;
	u32 copy_sge;
	enum kverbs_batch_policy policy;
	u64 hold_max_ns;
	u32 cqe_timeout_ms;
	u32 moderate_cqes;
	u32 moderate_us;
	u8 timeout;
};

/* The scripted side of a CQ. */
struct hca_cq {
	spinlock_t lock;	/* guards all of it; taken inside that of an HCA */
	struct hca_cqe *ring;
	u32 size;
	u32 head;
	u32 tail;
	bool armed;
	atomic_t polling;
	bool race;		/* a completion comes between the last poll and each arm */
	u32 lose;		/* CQEs that are not delivered */
	u32 twice;		/* CQEs that are delivered twice */
	u32 races;		/* arms that it came before */
	u32 deaf;		/* arms that fail */
	u32 events;
};

struct rig {
	struct rig_attr attr;
	struct ib_device *ib;
	u32 port;
	struct rdma_ah_attr ah;
	enum ib_mtu mtu;
	struct ib_pd *pd;
	struct kverbs_cq *kcq;
	struct ib_cq *cq;
	struct ib_cq *peer_cq;
	struct ib_srq *srq;
	struct ib_ah *peer_ah;
	struct hca_cq hca_cq;
	struct rig_queue queue[RIG_QUEUES];
	struct task_struct *direct;	/* polls a CQ that nobody else does */
	struct task_struct *runner;	/* lets the scripted HCA work */
	wait_queue_head_t posted;	/* wakes it */
	struct rnd_state rnd;		/* the runner's */
	u32 burst;			/* work requests it executes at once, at most */
};

/* main.c: what a case says. Any context. */
extern unsigned int engine_count;
extern u64 engine_seed;
extern struct dentry *engine_dir;
__printf(1, 2) void engine_fail(const char *fmt, ...);
__printf(1, 2) void engine_note(const char *fmt, ...);
void engine_skip(const char *reason);
bool engine_failed(void);
u32 engine_random(void);
struct ib_device *engine_device(void);
void engine_device_put(void);

#define expect(condition)							\
	({									\
		bool __holds = (condition);					\
										\
		if (!__holds)							\
			engine_fail("%s:%d: %s", __func__, __LINE__, #condition); \
		__holds;							\
	})

#define expect_is(what, want)							\
	({									\
		s64 __what = (s64)(what), __want = (s64)(want);			\
										\
		if (__what != __want)						\
			engine_fail("%s:%d: %s is %lld, not %lld", __func__,	\
				    __LINE__, #what, __what, __want);		\
		__what == __want;						\
	})

#ifdef CONFIG_FAILSLAB
/* The nth allocation of this task from now on fails. */
static inline void fail_at(u32 nth)
{
	WRITE_ONCE(current->fail_nth, nth);
}

/* Whether it was made to fail since. */
static inline bool fault_struck(void)
{
	bool failed = !READ_ONCE(current->fail_nth);

	WRITE_ONCE(current->fail_nth, 0);
	return failed;
}
#endif

struct engine_case {
	const char *name;
	u32 cqs;
	void (*run)(enum rig_cq cq);
};

extern const struct engine_case once_cases[], retire_cases[], credit_cases[], post_cases[],
				refuse_cases[], limit_cases[], drain_cases[], poller_cases[],
				life_cases[], regress_cases[], ends_cases[], why_cases[],
				buf_cases[], ep_cases[], ep_end_cases[], ledger_cases[],
				moderate_cases[], calls_cases[], many_cases[];

/* rig.c */
int rig_find_path(struct rig *rig);
int rig_connect(struct rig *rig, struct ib_qp *qp, const struct ib_qp *peer);
struct rig *rig_create(const struct rig_attr *attr);
int rig_sq_create(struct rig_queue *queue, struct kverbs_sq_attr *attr);
int rig_drain(struct rig_queue *queue);
int rig_drain_for(struct rig_queue *queue, unsigned long timeout);
void rig_queue_destroy(struct rig_queue *queue);
void rig_destroy(struct rig *rig);
const char *rig_cq_name(enum rig_cq cq);
u32 rig_credits(const struct rig_queue *queue);
void rig_direct_stop(struct rig *rig);
void rig_direct_start(struct rig *rig);

static inline u64 rig_counter(const struct rig_queue *queue, enum kverbs_counter counter)
{
	return kverbs_sq_counter(queue->sq, counter);
}

/* hook.c */
void hook_install(struct rig *rig);
void hook_remove(struct rig *rig);
bool hook_in_post(void);
void hook_post_begin(void);
void hook_post_end(void);

/* hca.c */
enum hca_refusal {
	HCA_TAKE,		/* everything */
	HCA_REFUSE_NAMED,	/* bad_wr is right */
	HCA_REFUSE_POSITIVE,	/* so it is, but the errno is positive */
	HCA_REFUSE_UNSET,	/* bad_wr is left alone */
	HCA_REFUSE_OUTSIDE,	/* bad_wr is none of the chain */
	HCA_REFUSE_HEAD,	/* -ENOMEM and the head, though some were taken */
};

/**
 * struct hca_wqe - a work request in the scripted HCA
 * @cqe: where its completion goes
 * @tag: of its group, 0 for one that is none of ours
 * @opcode: of the work request
 * @bytes: of its SGL
 * @addr: of its first SGE
 * @signaled: asks for a CQE
 * @inlined: carries its payload with it
 */
struct hca_wqe {
	struct ib_cqe *cqe;
	u64 addr;
	u32 tag;
	u32 bytes;
	u8 opcode;
	bool signaled;
	bool inlined;
};

struct hca {
	struct rig_queue *queue;
	spinlock_t lock;	/* guards the ring and the numbers below */
	struct hca_wqe *ring;
	u32 size;
	u32 posted;
	u32 executed;
	u32 reported;		/* executed ones up to the last with a CQE */
	u32 freed;		/* places that a polled CQE gave back */
	u32 calls;
	u32 signaled;
	u32 largest;		/* chain */
	struct rnd_state rnd;
	bool error;
	/* what it is told */
	bool by_hand;		/* the runner leaves it alone */
	u32 in_post;		/* work requests that it executes before post_send returns */
	u32 fail_at;		/* number of the work request that fails; -1: none */
	enum ib_wc_status fail_status;
	bool flush_silent;	/* flushes what was silent, though it had been executed */
	enum hca_refusal refuse;
	u32 refuse_at;		/* number of the work request that it refuses once */
	u32 refuse_every;	/* or one of so many, at random, again and again */
	int refuse_errno;
	u32 overtake_at;	/* number of the READ that completes after the next one */
	void (*on_post)(struct hca *hca);	/* runs inside post_send, first of all */
};

int hca_create(struct rig_queue *queue);
void hca_destroy(struct rig_queue *queue);
int hca_cq_create(struct rig *rig);
void hca_cq_destroy(struct rig *rig);
int hca_post(struct hca *hca, const struct ib_send_wr *wr, const struct ib_send_wr **bad);
u32 hca_execute(struct hca *hca, u32 nr);
void hca_error(struct hca *hca);
int hca_poll(struct rig *rig, int nr, struct ib_wc *wc);
int hca_arm(struct rig *rig, enum ib_cq_notify_flags flags);
void hca_cqe_add(struct hca *hca, u32 number, enum ib_wc_status status);
void hca_event(struct rig *rig);
const struct hca_wqe *hca_wqe(struct hca *hca, u32 number);

/* group.c */
enum group_kind {
	GROUP_WRITE,
	GROUP_READ,
	GROUP_SEND,
	GROUP_REG,		/* REG_MR, writes through it, LOCAL_INV */
	GROUP_ATOMIC,
	GROUP_NR_KINDS,
};

struct group {
	struct kverbs_req req;
	struct ib_cqe cqe;	/* for kverbs_post_wrs() */
	struct producer *producer;
	struct list_head free;
	u32 tag;
	u32 seq;
	u32 nr;
	u32 len;		/* bytes of each payload */
	enum group_kind kind;
	bool other;		/* with immediate data, or the other atomic */
	bool copied;
	bool inlined;		/* the caller set IB_SEND_INLINE itself */
	atomic_t outstanding;
	atomic_t executed;	/* work requests that the scripted HCA did */
	union {
		struct ib_send_wr send;
		struct ib_rdma_wr rdma;
		struct ib_reg_wr reg;
		struct ib_atomic_wr atomic;
		struct ib_ud_wr ud;
	} wr[GROUP_MAX];
	struct ib_sge sge[GROUP_MAX];
	struct ib_sge inline_sge;
	struct ib_mr *mr;
};

struct producer {
	struct traffic *traffic;
	struct rig_queue *queue;
	u32 index;
	struct rnd_state rnd;
	struct group *groups;
	spinlock_t lock;	/* guards the free list */
	struct list_head free;
	u32 want;
	u32 posted;
	u64 posted_wrs;		/* work requests of those */
	u32 ended;
	u32 started;		/* groups of which the HCA began the first work request */
	u32 received;		/* the peer's next group of sends */
	bool plain;		/* groups of one write, as lists like them */
	struct group *pending;	/* of a timer: built, and not accepted yet */
	struct hrtimer timer;
	struct completion finished;
};

/**
 * struct traffic_attr - what the producers of a queue do
 * @producers: threads
 * @count: groups of each
 * @kinds: kinds of groups
 * @max_group: work requests of a group
 * @from_done: one in so many ended groups posts another; 0 for none
 * @more: one in so many posts carries KVERBS_MORE; 0 for none
 * @lists: some groups go by kverbs_post_list()
 * @wait: a full queue is waited for with kverbs_post_wait() and kverbs_on_credit()
 * @copies: some groups go by kverbs_post_wrs()
 * @inlines: some groups may go inline
 * @imm: some sends and writes carry immediate data
 * @may_fail: the queue may fail: then the rest is flushed
 * @may_refuse: the driver may refuse groups
 * @may_lose: a CQE may not come: what is before others may then be unknown alone
 * @may_drop: what succeeded may not have arrived
 * @contexts: post from hard and soft interrupts
 * @no_flush: threads never call kverbs_flush()
 */
struct traffic_attr {
	u32 producers;
	u32 count;
	u32 kinds;
	u32 max_group;
	u32 from_done;
	u32 more;
	bool lists;
	bool wait;
	bool copies;
	bool inlines;
	bool imm;
	bool may_fail;
	bool may_refuse;
	bool may_lose;
	bool may_drop;
	bool contexts;
	bool no_flush;
};

struct traffic {
	struct traffic_attr attr;
	struct rig_queue *queue;
	struct producer producer[PRODUCERS];
	struct group *groups;
	u32 nr_groups;
	u32 nr_each;
	void *client_memory;
	void *server_memory;
	struct receive *receives;
	struct ib_mr *atomics;	/* that of the PD does not allow them */
	u64 client_dma;
	u64 server_dma;
	struct group *open;	/* the HCA is in the middle of it */
	u32 open_wrs;
	atomic_t in_done;
	atomic_t ended;
	atomic_t succeeded;
	atomic_t flushed;
	atomic_t refused;
	atomic_t failed;	/* other errors */
	atomic_t rejected;	/* posts that were not accepted, but for lack of credit */
	bool flush_seen;
	bool stop;
	int error;		/* with which a post was refused that ended a producer */
	wait_queue_head_t wait;
};

struct traffic *traffic_create(struct rig_queue *queue, const struct traffic_attr *attr);
void traffic_start(struct traffic *traffic);
void traffic_resume(struct traffic *traffic);
bool traffic_finished(struct traffic *traffic);
u64 traffic_work_requests(const struct traffic *traffic);
bool traffic_wait(struct traffic *traffic);
void traffic_stop(struct traffic *traffic);
bool traffic_settled(struct traffic *traffic);
void traffic_destroy(struct traffic *traffic);
void traffic_executed(struct rig_queue *queue, const struct hca_wqe *wqe);
struct group *producer_take(struct producer *producer);
void producer_give(struct producer *producer, struct group *group);

void group_init(struct group *group, struct producer *producer, u32 tag);
int group_build(struct group *group, u32 ahead);
int group_post(struct group *group, unsigned int flags);
int group_post_wait(struct group *group, unsigned int flags);
int group_post_list(struct group **groups, u32 nr, unsigned int flags);

/* data.c: nothing of it is needed where the HCA is scripted. */
int data_create(struct traffic *traffic);
void data_destroy(struct traffic *traffic);
int data_prepare(struct group *group);
void data_check(const struct group *group);

/* shot.c */
#define SHOTS		520	/* of a case at a time */
#define SHOT_WRS	4

struct shots;

/**
 * struct shot - a group whose every step the case takes itself
 * @nr: its work requests
 * @ended: how often it ended
 * @place: how many had ended before it
 * @status: with which it did
 */
struct shot {
	struct kverbs_req req;
	struct ib_rdma_wr wr[SHOT_WRS];
	struct ib_sge sge[SHOT_WRS];
	struct shots *shots;
	u32 nr;
	u32 ended;
	u32 place;
	enum ib_wc_status status;
	void (*on_done)(struct shot *shot);
};

struct shots {
	struct rig *rig;
	struct rig_queue *queue;
	struct hca *hca;
	u32 nr;
	atomic_t ended;
	wait_queue_head_t wait;
	struct shot shot[SHOTS];
};

struct shots *shots_create(const struct rig_attr *attr);
void shots_destroy(struct shots *shots);
struct shot *shot_new(struct shots *shots, u32 nr_wrs);
int shot_post(struct shots *shots, u32 nr_wrs, unsigned int flags);
int shot_post_list(struct shots *shots, u32 nr, unsigned int flags);
bool shots_wait(struct shots *shots, u32 ended);
void shots_expect(struct shots *shots, u32 index, enum ib_wc_status status);
bool eventually(bool (*condition)(void *data), void *data);

/* probe.c: one at a time; @fn gets @data and the event's arguments. */
int probe_attach(const char *event, void *fn, void *data);
void probe_detach(void);

#endif /* _KVERBS_ENGINE_H */
