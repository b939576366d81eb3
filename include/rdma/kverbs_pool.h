/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * kverbs_pool: buffers for messages.
 *
 * Elements of one size on the HCA's NUMA node, mapped for DMA once, taken and given back
 * without sleeping and without allocation. With keys, each of them can be opened to the
 * peer: its memory region is registered once, by a work request, and can be given a new
 * key, which ends what the old one allowed.
 *
 * Order of a life: kverbs_pool_create(), use, the QPs that use its elements are destroyed
 * and so are their queues, kverbs_pool_destroy(), the PD is freed.
 */
#ifndef _RDMA_KVERBS_POOL_H
#define _RDMA_KVERBS_POOL_H

#include <rdma/kverbs.h>

struct kverbs_pool;

/**
 * struct kverbs_buf - an element of a pool
 * @va: where the CPU finds it
 * @dma: where the HCA finds it: an SGE's addr, with kverbs_pool_lkey()
 * @remote: where the peer finds it, once the pool has keys
 * @rkey: its key for the peer, once the pool has keys
 * @context: its holder's, for what it likes
 */
struct kverbs_buf {
	void *va;
	u64 dma;
	u64 remote;
	u32 rkey;
	/* private: */
	u32 next;
	u32 taken;
	/* public: */
	void *context;
};

/**
 * struct kverbs_pool_attr - what a pool should be
 * @size: bytes of an element, 1 to 1 MiB
 * @nr: elements, 1 to 1,048,576
 * @name: name of the consumer, for people; KBUILD_MODNAME serves
 */
struct kverbs_pool_attr {
	u32 size;
	u32 nr;
	const char *name;
};

/**
 * kverbs_pool_create() - create a pool
 * @pd: the protection domain that the elements are used with
 * @attr: what it should be
 *
 * The elements start as zeros. Each begins at a cache line of its own.
 *
 * Context: process context, may sleep.
 * Return: the pool, or ERR_PTR: -EINVAL for an attribute out of range (the log names it
 *	and the limit), -ENOMEM, or -EIO if the memory cannot be mapped for DMA.
 */
struct kverbs_pool *kverbs_pool_create(struct ib_pd *pd, const struct kverbs_pool_attr *attr);

/**
 * kverbs_pool_destroy() - destroy a pool
 * @pool: the pool; no HCA uses its elements any more, and queues that its keys went
 *	through have been destroyed
 *
 * Context: process context, may sleep.
 * Return: 0, or -EBUSY if elements are still taken: then the log says how many, and the
 *	pool stays.
 */
int kverbs_pool_destroy(struct kverbs_pool *pool);

/**
 * kverbs_pool_alloc() - take an element
 * @pool: the pool
 *
 * Costs one compare-and-swap; the one given back last is taken first, while it is warm.
 *
 * Context: any.
 * Return: the element, or NULL if all are taken.
 */
struct kverbs_buf *kverbs_pool_alloc(struct kverbs_pool *pool);

/**
 * kverbs_pool_free() - give an element back
 * @pool: the pool
 * @buf: an element of it, which no HCA uses any more
 *
 * Costs one exchange and one compare-and-swap. Its contents stay, and so does its key.
 *
 * Context: any.
 * Return: 0, or -EINVAL if @buf is none of the pool's or was given back already: then the
 *	log names the caller, and nothing happens.
 */
int kverbs_pool_free(struct kverbs_pool *pool, struct kverbs_buf *buf);

/**
 * kverbs_pool_lkey() - the key for SGEs
 * @pool: the pool
 *
 * Context: any.
 * Return: the key with which the PD's QPs use the elements.
 */
u32 kverbs_pool_lkey(const struct kverbs_pool *pool);

/**
 * kverbs_pool_free_elements() - how many elements can be taken
 * @pool: the pool
 *
 * Counts them, one by one: exact only while nobody takes any.
 *
 * Context: any.
 */
u32 kverbs_pool_free_elements(const struct kverbs_pool *pool);

/**
 * kverbs_pool_for_cpu() - the CPU is to read what the HCA wrote
 * @pool: the pool
 * @buf: an element of it
 * @bytes: how many, from its start
 *
 * Context: any.
 */
void kverbs_pool_for_cpu(struct kverbs_pool *pool, struct kverbs_buf *buf, u32 bytes);

/**
 * kverbs_pool_for_hca() - the HCA is to read what the CPU wrote, or to write
 * @pool: the pool
 * @buf: an element of it
 * @bytes: how many, from its start
 *
 * Context: any.
 */
void kverbs_pool_for_hca(struct kverbs_pool *pool, struct kverbs_buf *buf, u32 bytes);

/**
 * kverbs_pool_open() - give every element a key for the peer
 * @pool: the pool, which has none yet; no element is taken
 * @sq: a queue of a QP of the pool's PD that can send; the keys are registered through it
 * @access: IB_ACCESS_REMOTE_READ, IB_ACCESS_REMOTE_WRITE, IB_ACCESS_REMOTE_ATOMIC
 * @timeout: jiffies to wait at most
 *
 * One memory region for each element, so that a key opens that element only. Keys are
 * the PD's: any QP of it can be reached with them.
 *
 * Context: process context, may sleep.
 * Return: 0; -EOPNOTSUPP if the device cannot register memory by work request or not as
 *	much; -EBUSY if the pool has keys or elements are taken; -EINVAL for an @access
 *	that opens nothing, or other than these; -ENOMEM; what kverbs_post() says;
 *	-EIO if the device refused; -ETIMEDOUT: then the pool cannot be opened any more.
 */
int kverbs_pool_open(struct kverbs_pool *pool, struct kverbs_sq *sq, int access,
		     unsigned long timeout);

/**
 * typedef kverbs_renewed_fn - the old key is dead and the new one works
 * @buf: the element
 * @status: IB_WC_SUCCESS, or an error: then the element has no key that works for sure,
 *	and the pool is to be closed
 *
 * Context: that of done() of the queue, see &kverbs_done_fn.
 */
typedef void (*kverbs_renewed_fn)(struct kverbs_buf *buf, enum ib_wc_status status);

/**
 * kverbs_pool_renew() - end what the key of an element allows, and give it a new one
 * @pool: a pool that has keys
 * @buf: an element that the caller has taken, and that is not being renewed
 * @sq: a queue of a QP of the pool's PD
 * @renewed: called once if this returns 0
 *
 * Two work requests in one group: the old key is invalidated, the new one registered.
 * kverbs_buf.rkey is the new one at once.
 *
 * Context: as kverbs_post().
 * Return: 0; -EINVAL if the pool has no keys; -EBUSY if the element is being renewed; or
 *	what kverbs_post() says: then the old key is as it was.
 */
int kverbs_pool_renew(struct kverbs_pool *pool, struct kverbs_buf *buf, struct kverbs_sq *sq,
		      kverbs_renewed_fn renewed);

/**
 * kverbs_pool_close() - take all keys back
 * @pool: the pool
 *
 * When this returns, no peer reaches any element. kverbs_pool_destroy() does it, too.
 *
 * Context: process context, may sleep.
 * Return: 0, or -EBUSY if a key is being registered or renewed: destroy that queue first.
 */
int kverbs_pool_close(struct kverbs_pool *pool);

#endif /* _RDMA_KVERBS_POOL_H */
