/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The objects of the simulated HCA: what a device has, how much of it, and from the verbs'
 * objects to ours.
 */
#ifndef _KVERBS_SIM_OBJECTS_H
#define _KVERBS_SIM_OBJECTS_H

#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/llist.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/platform_device.h>
#include <linux/xarray.h>
#include <asm/local64.h>
#include <rdma/ib_verbs.h>

#include "cost.h"
#include "fault.h"
#include "hint.h"
#include "judge.h"

#define SIM_MAX_QP_WR		16384
#define SIM_MAX_SGE		32
#define SIM_MAX_INLINE		1024
#define SIM_MAX_CQE		1048576
#define SIM_MAX_SRQ_WR		16384
#define SIM_MAX_RD_ATOMIC	128
#define SIM_MAX_REG_PAGES	512
#define SIM_MAX_MSG		SZ_8M
#define SIM_MTU			4096
#define SIM_NR_GIDS		16
#define SIM_GRH_SIZE		40
#define SIM_GSI_QPN		1
#define SIM_MIN_QPN		16
#define SIM_MAX_QPN		0xffffff

/* Keys: an index, and eight bits of the consumer's. The first index is the whole memory. */
#define SIM_KEY_SHIFT		8
#define SIM_LOCAL_DMA_LKEY	0x100

/* Where send work requests are executed. */
enum sim_context {
	SIM_CONTEXT_THREAD,	/* in the engine's own thread */
	SIM_CONTEXT_SOFTIRQ,	/* in a tasklet on the CPU that posts */
	SIM_CONTEXT_HRTIMER,	/* in the interrupt of a timer on the CPU that posts */
	SIM_CONTEXT_POST,	/* inside post_send */
	SIM_NR_CONTEXTS,
};

/**
 * struct sim_config - what can be set on a device; read with READ_ONCE()
 * @context: where send work requests are executed, one of enum sim_context
 */
struct sim_config {
	u32 context;
};

/**
 * struct sim_caps - what a device can do; of the defaults they are read with READ_ONCE()
 * @qp_wr: work requests of a queue
 * @sge: elements of a list
 * @inline_bytes: inline data of a work request
 * @cqe: entries of a CQ
 * @qps: queue pairs
 * @mrs: memory regions
 * @comp_vectors: completion vectors
 * @numa_node: its node, or NUMA_NO_NODE for that of its netdev
 */
struct sim_caps {
	u32 qp_wr;
	u32 sge;
	u32 inline_bytes;
	u32 cqe;
	u32 qps;
	u32 mrs;
	u32 comp_vectors;
	int numa_node;
};

/* What is counted on a queue pair by who runs it. */
enum sim_counter {
	SIM_CNT_DOORBELLS,
	SIM_CNT_SEND_WQES,
	SIM_CNT_RECV_WQES,
	SIM_CNT_SENDS,
	SIM_CNT_WRITES,
	SIM_CNT_READS,
	SIM_CNT_ATOMICS,
	SIM_CNT_REGISTRATIONS,
	SIM_CNT_INVALIDATIONS,
	SIM_CNT_INLINE,
	SIM_CNT_BYTES,
	SIM_CNT_PAYLOAD_READS,
	SIM_CNT_ERRORS,
	SIM_CNT_FLUSHED,
	SIM_CNT_RNR,
	SIM_CNT_RETRIES,
	SIM_CNT_DROPPED,
	SIM_NR_QP_COUNTERS,
	/* of completion queues */
	SIM_CNT_CQES = SIM_NR_QP_COUNTERS,
	SIM_CNT_EVENTS,
	SIM_CNT_CQ_OVERFLOWS,
	/* of the device */
	SIM_CNT_WQE_FETCHES,
	SIM_CNT_BLUEFLAMES,
	SIM_NR_COUNTERS,
};

struct sim_gid {
	union ib_gid gid;
	bool valid;
};

/* Runs what its consumers' own contexts do not: one thread, one tasklet for each device. */
struct sim_engine {
	struct task_struct *task;
	struct llist_head ready;
	struct tasklet_struct tasklet;
	struct llist_head softirq_ready;
};

/* A completion vector: events that are due on its CPU. */
struct sim_vector {
	int cpu;
	call_single_data_t csd;
	struct llist_head due;
	struct tasklet_struct tasklet;
};

struct sim_device {
	struct ib_device ib;
	struct list_head entry;		/* of the devices of this host; RCU */
	struct platform_device *parent;
	struct net_device *ndev;	/* compared, never followed */
	const struct net *net;		/* compared, never followed */
	u32 id;				/* never used again */
	u8 mac[ETH_ALEN];
	bool up;
	bool virtual_dma;
	struct sim_config config;
	struct sim_caps caps;
	struct sim_device_fault fault;
	struct sim_judge judge;
	struct sim_device_cost cost;
	struct sim_cfs *cfs;
	atomic_t nr_qps;
	atomic_t nr_mrs;
	struct sim_gid gids[SIM_NR_GIDS];
	struct sim_engine engine;
	struct sim_vector *vectors;
	struct xarray iova;		/* struct sim_mapping, by page of DMA address */
	atomic64_t next_iova;		/* page; none is ever used again */
	struct xarray mrs;		/* by key >> SIM_KEY_SHIFT */
	struct sim_qp __rcu *gsi;

	struct mutex lock;		/* what follows */
	struct list_head qps;
	struct list_head cqs;
	u64 totals[SIM_NR_COUNTERS];	/* of what was destroyed */
};

struct sim_pd {
	struct ib_pd ib;
};

/* Who a datagram is for. */
struct sim_av {
	union ib_gid dgid;
	u32 sgid_index;
	u8 traffic_class;
	u8 hop_limit;
};

struct sim_ah {
	struct ib_ah ib;
	struct sim_av av;
};

struct sim_mr {
	struct ib_mr ib;
	struct rcu_head rcu;
	u32 key;
	u32 access;
	u32 page_shift;
	atomic64_t registration;	/* odd while it is registered */
	u64 start;
	u64 length;
	atomic_t users;		/* copies under way */
	bool dying;
	u32 judged;		/* the key that it was judged by */
	u32 max_pages;
	u32 nr_pages;
	u64 *pages;		/* none: the whole DMA space */
};

/* A send WQE; its scatter/gather list or its inline data follow. */
struct sim_wqe {
	u32 seq;		/* its index plus one once it is published */
	u8 opcode;
	u8 flags;		/* of enum ib_send_flags, and SIM_WQE_ */
	u8 num_sge;
	u32 length;
	u32 ex;			/* immediate data, or the key to invalidate */
	u64 wr_id;
	u64 remote_addr;
	u32 rkey;
	u32 access;		/* REG_MR */
	u64 rung_ns;		/* SIM_WQE_RUNG */
	union {
		struct {
			u64 compare_add;
			u64 swap;
		};
		struct {
			u64 reg_start;
			u64 reg_length;
			u32 reg_page_shift;
		};
		struct {
			struct sim_av av;
			u32 remote_qpn;
			u32 remote_qkey;
		};
	};
	struct ib_sge sge[];
};

struct sim_sq {
	struct rcu_head rcu;
	void *ring;
	u32 stride;
	u32 mask;
	u32 depth;
	u32 max_sge;
	u32 max_inline;
	u8 ops;			/* what may be posted */
	u8 signal_all;		/* IB_SEND_SIGNALED, or 0 */
	/* Posters reserve; polled CQEs retire. */
	atomic_t head ____cacheline_aligned_in_smp;
	atomic_t retired;
	/* The owner of the queue pair. */
	u32 next ____cacheline_aligned_in_smp;
	u32 silent;		/* executed since the last CQE */
};

struct sim_rwqe {
	u32 seq;
	u32 num_sge;
	u64 wr_id;
	struct ib_sge sge[];
};

/* A ring of receives, of a queue pair or shared. */
struct sim_rq {
	void *ring;
	u32 stride;
	u32 mask;
	u32 depth;
	u32 max_sge;
	raw_spinlock_t lock ____cacheline_aligned_in_smp;	/* of who posts */
	u32 head;
	atomic_t retired;
	unsigned long busy ____cacheline_aligned_in_smp;	/* bit 0: being taken from */
	u32 next;
};

struct sim_srq {
	struct ib_srq ib;
	struct sim_rq rq;
	u32 limit;
};

struct sim_qp {
	struct ib_qp ib;
	struct list_head entry;
	u32 state;		/* enum ib_qp_state */
	bool awaited;		/* somebody waits until nobody runs it */
	struct sim_sq *sq;
	struct sim_rq rq;
	struct sim_srq *srq;

	u32 dest_id;		/* of the device it is connected to */
	struct ib_qp_attr attr;	/* what modify_qp has set */
	struct mutex mutex;	/* of modify_qp */
	struct sim_qp_judge judge;

	/* Ownership. */
	atomic_t kicks ____cacheline_aligned_in_smp;
	struct llist_node ready;
	struct hrtimer timer;
	struct hrtimer starter;	/* SIM_CONTEXT_HRTIMER: a run begins */
	struct sim_qp_cost cost;
	u64 pause_ns;		/* the owner's: how long to wait before the next attempt */
	struct sim_hint hint;	/* the owner's */
	u8 retries;
	u8 rnr_retries;
	local64_t count[SIM_NR_QP_COUNTERS];

	/* Held by who delivers to it: the lock bit of @rx_busy. */
	unsigned long rx_busy ____cacheline_aligned_in_smp;
	unsigned long heard;		/* bit 0: it knows that its peer sends */
	bool last_wqe_reached;
	const struct sim_rwqe *taken;	/* the receive of the next message */
	struct sim_rwqe *srq_rwqe;	/* where it is if it is a shared one */
	u64 received;
	u64 flushed;
};

struct sim_cqe {
	u32 seq;
	u16 retires;		/* send slots */
	bool gone;		/* its queue pair was destroyed */
	struct sim_sq *sq;
	struct ib_wc wc;
};

struct sim_cq {
	struct ib_cq ib;
	struct list_head entry;
	struct sim_cqe *ring;
	u32 mask;
	u32 depth;
	struct sim_cq_fault fault;
	struct sim_cq_judge judge;
	struct sim_vector *vector;
	struct llist_node due;
	struct hrtimer interrupt;
	atomic_t events_due;
	atomic_t raised;	/* through the vector; @delivered follows */
	atomic_t delivered;
	atomic64_t head ____cacheline_aligned_in_smp;	/* the HCA reserves */
	atomic_t armed;		/* enum ib_cq_notify_flags, or 0 */
	atomic_t held_back;	/* CQEs that moderation was silent about */
	u16 moderate_count;
	u16 moderate_usecs;
	struct hrtimer timer;
	atomic64_t events;
	atomic64_t overflows;
	atomic64_t tail ____cacheline_aligned_in_smp;	/* the consumer polls */
};

static inline struct sim_device *to_sim(struct ib_device *ib)
{
	return container_of(ib, struct sim_device, ib);
}

static inline struct sim_qp *to_sim_qp(struct ib_qp *ib)
{
	return container_of(ib, struct sim_qp, ib);
}

static inline struct sim_cq *to_sim_cq(struct ib_cq *ib)
{
	return container_of(ib, struct sim_cq, ib);
}

static inline struct sim_srq *to_sim_srq(struct ib_srq *ib)
{
	return container_of(ib, struct sim_srq, ib);
}

static inline struct sim_mr *to_sim_mr(struct ib_mr *ib)
{
	return container_of(ib, struct sim_mr, ib);
}

static inline struct sim_ah *to_sim_ah(struct ib_ah *ib)
{
	return container_of(ib, struct sim_ah, ib);
}

static inline bool sim_can_receive(u32 state)
{
	return state == IB_QPS_RTR || state == IB_QPS_RTS || state == IB_QPS_SQD ||
	       state == IB_QPS_SQE;
}

static inline struct sim_device *sim_of_qp(const struct sim_qp *qp)
{
	return to_sim(qp->ib.device);
}

static inline struct sim_device *sim_of_cq(const struct sim_cq *cq)
{
	return to_sim(cq->ib.device);
}

#endif /* _KVERBS_SIM_OBJECTS_H */
