/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * An endpoint: the map of its parts.
 *
 *   ep.c       what it is made of, from its QP to its end
 *   ep_cm.c    what the connection manager says, and to whom
 *   recv.c     receives: a ring of its own or one that is shared
 */
#ifndef _KVERBS_EP_INTERNAL_H
#define _KVERBS_EP_INTERNAL_H

#include <linux/bits.h>
#include <linux/completion.h>
#include <linux/hashtable.h>
#include <linux/workqueue.h>
#include <rdma/ib_cm.h>
#include <rdma/kverbs_ep.h>
#include <rdma/kverbs_pool.h>
#include <rdma/rdma_cm.h>

#define KVERBS_SRQ_HASH_BITS	7

struct kverbs_ring;

struct kverbs_recv {
	struct ib_cqe cqe;
	struct ib_recv_wr wr;
	struct ib_sge sge;
	struct kverbs_ring *ring;
	struct kverbs_buf *buf;
};

/*
 * Receives, and those among them that wait to be posted again. Who dispatches the CQ is
 * alone with it.
 */
struct kverbs_ring {
	struct ib_device *ib;
	struct kverbs_pool *pool;
	struct kverbs_recv *recvs;
	struct kverbs_ep *ep;		/* whose it is, or */
	struct kverbs_srq *srq;		/* who shares it */
	struct ib_recv_wr *spent;
	struct ib_recv_wr **end;
	u32 nr;
	u32 nr_spent;
	u32 batch;
	bool closed;			/* nothing is posted any more */
	struct kverbs_ep_stats stats;
};

struct kverbs_srq {
	struct ib_srq *ib;
	struct kverbs_cq *cq;
	struct kverbs_ring ring;
	spinlock_t lock;		/* guards changes of the table */
	DECLARE_HASHTABLE(eps, KVERBS_SRQ_HASH_BITS);	/* by their QPs */
};

#define KVERBS_EP_FINE	1	/* kverbs_ep.reason of what has not ended */

/* Bits of kverbs_ep.flags. */
enum {
	KVERBS_EP_LIVE,		/* accepted or connected: it has an owner to tell of its end */
	KVERBS_EP_OVER,		/* its owner knows, or does not want to any more */
	KVERBS_EP_CLOSED,
};

struct kverbs_ep {
	struct rdma_cm_id *id;
	const struct kverbs_ep_ops *ops;
	void *context;
	unsigned long flags;
	int reason;			/* for disconnected() */

	struct ib_pd *pd;
	struct kverbs_cq *cq;
	struct kverbs_sq *sq;
	struct kverbs_srq *srq;
	struct ib_qp *qp;
	struct hlist_node entry;	/* of kverbs_srq.eps */
	bool own_pd;
	bool own_cq;
	struct kverbs_ring ring;

	struct work_struct down;
	struct completion step;		/* of who resolves or connects */
	int error;			/* of that step */
	bool gone;			/* the device is leaving */
	u8 responder_resources;		/* that the peer asks for */
	u8 initiator_depth;
	u8 refusal_len;
	u8 refusal[IB_CM_REJ_PRIVATE_DATA_SIZE];
};

/* ep.c */
struct kverbs_ep *kverbs_ep_alloc(struct rdma_cm_id *id);
void kverbs_ep_put_pd(struct kverbs_ep *ep);
void kverbs_ep_free(struct kverbs_ep *ep);
void kverbs_ep_lost(struct kverbs_ep *ep, int reason);
void kverbs_ep_go_live(struct kverbs_ep *ep);
void kverbs_ep_end(struct kverbs_ep *ep, int reason);
void kverbs_ep_take_down(struct kverbs_ep *ep);

/* ep_cm.c */
int kverbs_ep_event(struct rdma_cm_id *id, struct rdma_cm_event *event);

/* recv.c */
int kverbs_ring_create(struct kverbs_ring *ring, struct ib_pd *pd, u32 depth, u32 size, u32 batch,
		       const char *name);
u32 kverbs_ring_size(u32 depth, u32 batch);
int kverbs_ring_fill(struct kverbs_ring *ring);
void kverbs_ring_destroy(struct kverbs_ring *ring);
void kverbs_srq_join(struct kverbs_srq *srq, struct kverbs_ep *ep);
void kverbs_srq_leave(struct kverbs_srq *srq, struct kverbs_ep *ep);

#endif /* _KVERBS_EP_INTERNAL_H */
