/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * kverbs_conformance: what the verbs specification promises to a kernel consumer, one
 * case a rule. A plain consumer of ib_verbs, on any RDMA device that reaches itself.
 *
 *   main.c     the cases, how one is run and what it says (debugfs)
 *   bed.c      what a case stands on: pairs of queue pairs with their CQs and memory
 *   connect.c  how a pair is connected: by hand, or on iWARP by the connection manager
 *   area.c     memory, mapped for DMA, and regions over it
 *   work.c     work requests and their completions
 *   case_*.c   the cases
 *   load*.c    not a case of a rule: much of everything, counted (load.h)
 */
#ifndef _KVERBS_CONFORMANCE_H
#define _KVERBS_CONFORMANCE_H

#include <linux/completion.h>
#include <linux/jiffies.h>
#include <linux/scatterlist.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#define CONF_SIDES	4
#define CONF_WORKS	512	/* of a case; the oldest is used again */
#define CONF_LIST	132	/* that a case keeps in mind */
#define CONF_SGES	8
#define CONF_EVENTS	32	/* kinds of asynchronous events */
#define CONF_QKEY	0x4b56434f
#define AREA_PAGES	8
#define AREA_SIZE	(AREA_PAGES * PAGE_SIZE)

#define ALL_RIGHTS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | \
			 IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC)

struct bed;

struct conf_cq {
	struct ib_cq *ib;
	atomic_t wakeups;	/* completion events */
	atomic_t events[CONF_EVENTS];
};

/**
 * struct area - memory of one side
 * @va: for the CPU, and for inline data
 * @sg: the same memory, mapped for the device
 * @dma: for the device, under the PD's local key
 * @mr: region over it, if it has been registered
 * @iova: where @mr begins
 * @bytes: how long @mr is
 */
struct area {
	struct ib_device *ib;
	u8 *va;
	struct scatterlist sg;
	u64 dma;
	struct ib_mr *mr;
	u64 iova;
	u32 bytes;
};

/* A connection that the connection manager makes. */
struct cm_link {
	struct completion event;
	struct completion request;
	struct rdma_cm_id *accepted;
	atomic_t established;
	int err;
};

/* One end of a pair. */
struct side {
	struct bed *bed;
	struct side *peer;
	struct ib_qp_init_attr init;	/* what was granted */
	struct ib_qp *qp;
	struct rdma_cm_id *id;		/* iWARP */
	struct cm_link link;		/* of the first side: the pair's */
	struct conf_cq *scq;
	struct conf_cq *rcq;
	struct conf_cq cqs[2];
	struct area area;
	atomic_t events[CONF_EVENTS];
};

/* A work request with all that must live until it completes. */
struct work {
	struct ib_cqe cqe;
	union {
		struct ib_send_wr send;
		struct ib_rdma_wr rdma;
		struct ib_atomic_wr atomic;
		struct ib_reg_wr reg;
		struct ib_ud_wr ud;
		struct ib_recv_wr recv;
	};
	struct ib_sge sge[CONF_SGES];
};

/**
 * struct bed_attr - what to build
 * @type: of the QPs; RC if nothing is said
 * @pairs: of QPs; one if nothing is said
 * @depth: of the send and receive queues
 * @sges: of a work request
 * @inline_data: asked for
 * @nr_cqe: of each CQ; 0 for enough
 * @deny: rights that no QP gives to its peer
 * @raw: the QPs are left in RESET
 * @srq: the second sides receive from one shared queue
 * @one_cq: everything completes on one CQ
 * @sig_all: every request is signaled
 */
struct bed_attr {
	enum ib_qp_type type;
	u32 pairs;
	u32 depth;
	u32 sges;
	u32 inline_data;
	u32 nr_cqe;
	u32 deny;
	bool raw;
	bool srq;
	bool one_cq;
	bool sig_all;
};

struct bed {
	struct bed_attr attr;
	struct ib_device *ib;
	u32 port;
	bool iwarp;
	struct rdma_ah_attr ah;
	enum ib_mtu mtu;
	struct ib_pd *pd;
	struct ib_srq *srq;
	atomic_t srq_events[CONF_EVENTS];
	struct side side[CONF_SIDES];
	struct work *works;
	u32 nr_works;
	struct work *list[CONF_LIST];
	/* for the next transitions */
	u8 timeout;
	u8 retry_cnt;
	u8 rnr_retry;
	u8 rd_atomic;
	u32 psn;
};

/* What a case cannot do without. */
#define NEED_IB		BIT(0)	/* InfiniBand's transport: RoCE, but not iWARP */
#define NEED_REG	BIT(1)	/* REG_MR, LOCAL_INV, SEND_WITH_INV */
#define NEED_ATOMIC	BIT(2)
#define NEED_SRQ	BIT(3)
#define NEED_READ_INV	BIT(4)	/* RDMA_READ_WITH_INV: iWARP */

struct conf_case {
	const char *name;
	void (*run)(struct bed *bed, u32 arg);
	u32 arg;
	u32 needs;
	struct bed_attr bed;
};

extern const struct conf_case op_cases[], state_cases[], flush_cases[], access_cases[],
			      key_cases[], order_cases[], retry_cases[], limit_cases[],
			      queue_cases[], uc_cases[], ud_cases[], srq_cases[], cq_cases[],
			      mr_cases[], atomic_cases[], life_cases[], load_cases[], cost_cases[];

/* main.c: what a case says. Any context. */
extern char conf_address[];
extern u32 conf_load_requests, conf_load_threads, conf_load_seed;
__printf(1, 2) void conf_fail(const char *fmt, ...);
__printf(1, 2) void conf_say(const char *fmt, ...);
void conf_skip(const char *reason);
bool conf_failed(void);
unsigned long conf_deadline(void);

#define expect(condition)							\
	({									\
		bool __holds = (condition);					\
										\
		if (!__holds)							\
			conf_fail("%s:%d: %s", __func__, __LINE__, #condition);	\
		__holds;							\
	})

#define expect_is(what, want)							\
	({									\
		s64 __what = (s64)(what), __want = (s64)(want);			\
										\
		if (__what != __want)						\
			conf_fail("%s:%d: %s is %lld, not %lld", __func__,	\
				  __LINE__, #what, __what, __want);		\
		__what == __want;						\
	})

/* bed.c */
struct bed *bed_create(struct ib_device *ib, const struct bed_attr *attr);
void bed_destroy(struct bed *bed);
int bed_path(struct bed *bed);
int cq_create(struct ib_device *ib, struct conf_cq *cq, u32 nr_cqe);
void side_init(struct side *side, struct ib_qp_init_attr *init);
void side_destroy_qp(struct side *side);
bool event_seen(atomic_t *events, enum ib_event_type type);

/* connect.c */
int bed_connect(struct bed *bed);
int side_attr(struct side *side, enum ib_qp_state state, struct ib_qp_attr *attr);
int side_to(struct side *side, enum ib_qp_state state);
int side_up_to(struct side *side, enum ib_qp_state state);
int side_state(struct side *side);
bool side_becomes(struct side *side, enum ib_qp_state state);

/* area.c */
int area_create(struct area *area, struct ib_device *ib);
void area_destroy(struct area *area);
void area_fill(struct area *area, u32 offset, u32 bytes, u8 seed);
bool area_holds(struct area *area, u32 offset, u32 bytes, u8 seed);
void area_clear(struct area *area);
bool area_is_clear(struct area *area, u32 offset, u32 bytes);
u64 area_word(struct area *area, u32 offset);
void area_set_word(struct area *area, u32 offset, u64 value);
bool area_map(struct side *side, struct area *area, u32 offset, u32 bytes);
struct work *area_reg_work(struct bed *bed, struct area *area, u32 access);
bool area_register(struct side *side, struct area *area, u32 access);
bool area_register_part(struct side *side, struct area *area, u32 offset, u32 bytes, u32 access);
bool area_invalidate(struct side *side, struct area *area);

/* work.c */
enum ib_wc_opcode done_opcode(enum ib_wr_opcode opcode);
struct work *work_send(struct side *side, enum ib_wr_opcode opcode, u32 offset, u32 bytes);
struct work *work_rdma(struct side *side, enum ib_wr_opcode opcode, u32 offset, u32 bytes,
		       u64 remote, u32 rkey);
struct work *work_atomic(struct side *side, enum ib_wr_opcode opcode, u64 remote, u32 rkey,
			 u64 compare_add, u64 swap);
struct work *work_local_inv(struct side *side, u32 rkey);
struct work *work_recv(struct side *side, u32 offset, u32 bytes);
void work_sge(struct work *work, u32 nr, struct area *area, u32 offset, u32 bytes);
void work_key(struct work *work, struct area *area, u32 offset, u32 bytes);
void work_chain(struct work **works, u32 nr);
int post_try(struct side *side, struct work *work, struct work **bad);
bool post(struct side *side, struct work *work);
int post_recv_try(struct side *side, struct work *work, struct work **bad);
bool post_recv(struct side *side, struct work *work);
struct work *post_receive(struct side *side, u32 offset, u32 bytes);
bool cq_next(struct conf_cq *cq, struct ib_wc *wc);
bool cq_empty(struct conf_cq *cq);
bool sent(struct side *side, struct work *work, struct ib_wc *wc);
bool sent_as(struct side *side, struct work *work, enum ib_wc_status status);
bool send_fails(struct side *side, struct work *work);
bool got(struct side *side, struct work *work, u32 bytes, struct ib_wc *wc);
bool got_as(struct side *side, struct work *work, enum ib_wc_status status);
bool do_work(struct side *side, struct work *work);

/* Remote address of a place in a registered area, or its key. */
static inline u64 area_remote(const struct area *area, u32 offset)
{
	return area->iova + offset;
}

static inline u32 area_rkey(const struct area *area)
{
	return area->mr->rkey;
}

static inline struct work *work_next(struct bed *bed)
{
	struct work *work = &bed->works[bed->nr_works++ % CONF_WORKS];

	memset(work, 0, sizeof(*work));
	return work;
}

#endif /* _KVERBS_CONFORMANCE_H */
