// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Receives, of one endpoint or shared by several.
 *
 * Ownership: a receive is the HCA's from its post to its CQE, then the owner's of the
 * endpoint while received() runs, then it is spent. Spent ones are posted again as a chain once
 * there are enough of them; a ring has so many more than its owner asked for.
 *
 * Chained receives have been a driver's undoing before: once one of them refuses a chain,
 * the rest, and all from then on, are posted one by one.
 *
 * A message of a shared ring is its QP's, which the CQE names. The QP may be gone by then, so
 * its address is only compared, never followed.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/hash.h>
#include <linux/mm.h>
#include <linux/rculist.h>
#include <linux/slab.h>

#include "compat.h"
#include "ep.h"
#include "path.h"

#define MAX_DEPTH	BIT(16)
#define DEFAULT_BATCHES	4	/* of a ring's depth */

static u32 batch_of(u32 depth, u32 batch)
{
	return batch ? min(batch, depth) : max_t(u32, depth / DEFAULT_BATCHES, 1);
}

/* Receives of a ring of which @depth are always posted. */
u32 kverbs_ring_size(u32 depth, u32 batch)
{
	return depth + batch_of(depth, batch) - 1;
}

static int post(struct kverbs_ring *ring, struct ib_recv_wr *wr, const struct ib_recv_wr **bad)
{
	*bad = NULL;
	ring->stats.posts++;
	return ring->srq ? ib_post_srq_recv(ring->srq->ib, wr, bad) :
			   ib_post_recv(ring->ep->qp, wr, bad);
}

/* Where the driver stopped; NULL if it does not say. */
static struct ib_recv_wr *refused_at(struct kverbs_ring *ring, const struct ib_recv_wr *bad,
				     u32 *taken)
{
	struct ib_recv_wr *wr;

	for (wr = ring->spent, *taken = 0; wr; wr = wr->next, ++*taken)
		if (wr == bad)
			return wr;
	return NULL;
}

/* All that is spent, as a chain. */
static int post_chain(struct kverbs_ring *ring)
{
	const struct ib_recv_wr *bad;
	struct ib_recv_wr *rest;
	u32 taken;
	int err;

	err = post(ring, ring->spent, &bad);
	if (!err) {
		ring->stats.posted += ring->nr_spent;
		ring->nr_spent = 0;
		return 0;
	}
	ring->stats.refused++;
	rest = refused_at(ring, bad, &taken);
	if (!rest) {
		/* Nobody knows which are posted: none may be posted twice. */
		ring->nr_spent = 0;
		return -EIO;
	}
	ring->stats.posted += taken;
	ring->spent = rest;
	ring->nr_spent -= taken;
	return err;
}

static int post_singly(struct kverbs_ring *ring)
{
	const struct ib_recv_wr *bad;
	struct ib_recv_wr *wr, *next;
	int err;

	while (ring->nr_spent) {
		wr = ring->spent;
		next = wr->next;
		wr->next = NULL;
		err = post(ring, wr, &bad);
		if (err) {
			ring->stats.refused++;
			wr->next = next;
			return err;
		}
		ring->stats.posted++;
		ring->spent = next;
		ring->nr_spent--;
	}
	return 0;
}

static int post_spent(struct kverbs_ring *ring)
{
	u32 nr = ring->nr_spent;
	int err;

	if (ring->closed)
		return 0;
	if (ring->batch > 1) {
		err = post_chain(ring);
		if (!err || !ring->nr_spent)
			return err;
		pr_warn("%s: %u receives at once are refused with error %d: one by one from now on\n",
			dev_name(&ring->ib->dev), nr, err);
		ring->batch = 1;
	}
	return post_singly(ring);
}

static void add_spent(struct kverbs_ring *ring, struct kverbs_recv *recv)
{
	recv->wr.next = NULL;
	if (ring->nr_spent++)
		*ring->end = &recv->wr;
	else
		ring->spent = &recv->wr;
	ring->end = &recv->wr.next;
}

static void spend(struct kverbs_ring *ring, struct kverbs_recv *recv)
{
	int err;

	add_spent(ring, recv);
	if (ring->nr_spent < ring->batch)
		return;
	err = post_spent(ring);
	if (!err)
		return;
	/* What is still spent is tried again with the next one. */
	pr_warn_ratelimited("%s: receives are refused with error %d, %u are left\n",
			    dev_name(&ring->ib->dev), err, ring->nr - ring->nr_spent);
	if (ring->ep)
		kverbs_ep_lost(ring->ep, -EIO);
}

static struct kverbs_ep *find(struct kverbs_srq *srq, const struct ib_qp *qp)
{
	struct kverbs_ep *ep;

	hash_for_each_possible_rcu(srq->eps, ep, entry, (unsigned long)qp) {
		if (ep->qp == qp)
			return ep;
	}
	return NULL;
}

static void deliver(struct kverbs_ep *ep, struct kverbs_recv *recv, const struct ib_wc *wc)
{
	struct kverbs_pool *pool = recv->ring->pool;
	u32 len = wc->opcode == IB_WC_RECV ? wc->byte_len : 0;

	kverbs_pool_for_cpu(pool, recv->buf, len);
	ep->ops->received(ep, recv->buf->va, len, wc);
	kverbs_pool_for_hca(pool, recv->buf, recv->sge.length);
}

/* Context: the CQ's dispatcher, bottom halves off, so that it reads under RCU. */
static void recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct kverbs_recv *recv = container_of(wc->wr_cqe, struct kverbs_recv, cqe);
	struct kverbs_ring *ring = recv->ring;
	struct kverbs_ep *ep = ring->srq ? find(ring->srq, wc->qp) : ring->ep;

	if (wc->status == IB_WC_SUCCESS) {
		ring->stats.received++;
		if (ep)
			deliver(ep, recv, wc);
	} else if (ep) {
		kverbs_ep_lost(ep, -EIO);
	}
	/* A flushed one would only be flushed again; a shared one serves another. */
	if (wc->status == IB_WC_SUCCESS || ring->srq)
		spend(ring, recv);
}

static int alloc_recvs(struct kverbs_ring *ring, u32 size)
{
	struct kverbs_recv *recv;
	u32 i;

	ring->recvs = kvzalloc_node(array_size(ring->nr, sizeof(*ring->recvs)), GFP_KERNEL,
				    ibdev_to_node(ring->ib));
	if (!ring->recvs)
		return -ENOMEM;
	for (i = 0; i < ring->nr; i++) {
		recv = &ring->recvs[i];
		recv->ring = ring;
		recv->buf = kverbs_pool_alloc(ring->pool);
		recv->cqe.done = recv_done;
		recv->sge.addr = recv->buf->dma;
		recv->sge.length = size;
		recv->sge.lkey = kverbs_pool_lkey(ring->pool);
		recv->wr.wr_cqe = &recv->cqe;
		recv->wr.sg_list = &recv->sge;
		recv->wr.num_sge = 1;
		add_spent(ring, recv);
	}
	return 0;
}

/* If it fails, kverbs_ring_destroy() takes down what there is. */
int kverbs_ring_create(struct kverbs_ring *ring, struct ib_pd *pd, u32 depth, u32 size, u32 batch,
		       const char *name)
{
	struct kverbs_pool_attr attr = {
		.size = size, .nr = kverbs_ring_size(depth, batch), .name = name,
	};

	if (!depth || depth > MAX_DEPTH) {
		pr_warn("%s: receives of %s: depth %u is not between 1 and %lu\n",
			dev_name(&pd->device->dev), name ?: "?", depth, MAX_DEPTH);
		return -EINVAL;
	}
	ring->ib = pd->device;
	ring->nr = attr.nr;
	ring->batch = batch_of(depth, batch);
	ring->pool = kverbs_pool_create(pd, &attr);
	if (IS_ERR(ring->pool))
		return PTR_ERR(ring->pool);
	return alloc_recvs(ring, size);
}

/* Post them all for the first time. */
int kverbs_ring_fill(struct kverbs_ring *ring)
{
	return post_spent(ring);
}

/* Nothing of it is posted any more, and no CQE leads to it. */
void kverbs_ring_destroy(struct kverbs_ring *ring)
{
	u32 i;

	for (i = 0; ring->recvs && i < ring->nr; i++)
		kverbs_pool_free(ring->pool, ring->recvs[i].buf);
	kvfree(ring->recvs);
	ring->recvs = NULL;
	if (!IS_ERR_OR_NULL(ring->pool))
		kverbs_pool_destroy(ring->pool);
	ring->pool = NULL;
}

void kverbs_srq_join(struct kverbs_srq *srq, struct kverbs_ep *ep)
{
	spin_lock(&srq->lock);
	hash_add_rcu(srq->eps, &ep->entry, (unsigned long)ep->qp);
	spin_unlock(&srq->lock);
}

/* Messages of it that are still in the CQ are dropped. */
void kverbs_srq_leave(struct kverbs_srq *srq, struct kverbs_ep *ep)
{
	spin_lock(&srq->lock);
	hash_del_rcu(&ep->entry);
	spin_unlock(&srq->lock);
	synchronize_rcu();
}

static int create_ib_srq(struct kverbs_srq *srq, struct ib_pd *pd)
{
	struct ib_srq_init_attr init = { .attr = { .max_wr = srq->ring.nr, .max_sge = 1 } };

	if (srq->ring.nr > pd->device->attrs.max_srq_wr) {
		pr_warn("%s: an SRQ of %u receives exceeds the %d of the device\n",
			dev_name(&pd->device->dev), srq->ring.nr, pd->device->attrs.max_srq_wr);
		return -EINVAL;
	}
	srq->ib = ib_create_srq(pd, &init);
	return PTR_ERR_OR_ZERO(srq->ib);
}

struct kverbs_srq *kverbs_srq_create(struct ib_pd *pd, struct kverbs_cq *cq,
				     const struct kverbs_srq_attr *attr)
{
	struct kverbs_srq *srq;
	int err;

	might_sleep();
	srq = kzalloc_node(sizeof(*srq), GFP_KERNEL, ibdev_to_node(pd->device));
	if (!srq)
		return ERR_PTR(-ENOMEM);
	srq->cq = cq;
	srq->ring.srq = srq;
	spin_lock_init(&srq->lock);
	hash_init(srq->eps);
	err = kverbs_ring_create(&srq->ring, pd, attr->depth, attr->size, attr->batch, attr->name);
	if (err)
		goto destroy_ring;
	err = kverbs_cq_claim(cq, 0, srq->ring.nr);
	if (err)
		goto destroy_ring;
	err = create_ib_srq(srq, pd);
	if (err)
		goto unclaim;
	err = kverbs_ring_fill(&srq->ring);
	if (err)
		goto destroy_srq;
	return srq;

destroy_srq:
	ib_destroy_srq(srq->ib);
unclaim:
	kverbs_cq_unclaim(cq, 0, srq->ring.nr);
destroy_ring:
	kverbs_ring_destroy(&srq->ring);
	kfree(srq);
	return ERR_PTR(err);
}
EXPORT_SYMBOL_GPL(kverbs_srq_create);

void kverbs_srq_destroy(struct kverbs_srq *srq)
{
	might_sleep();
	WARN_ON_ONCE(!hash_empty(srq->eps));
	WRITE_ONCE(srq->ring.closed, true);
	kverbs_cq_sync(srq->cq);
	ib_destroy_srq(srq->ib);
	/* A driver may leave CQEs behind. */
	kverbs_cq_sync(srq->cq);
	kverbs_cq_unclaim(srq->cq, 0, srq->ring.nr);
	kverbs_ring_destroy(&srq->ring);
	kfree(srq);
}
EXPORT_SYMBOL_GPL(kverbs_srq_destroy);
