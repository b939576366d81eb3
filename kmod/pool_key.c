// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The keys of a pool: a memory region for each element, so that a key opens no more than
 * that. They are registered through a send queue like any other group. Its work requests
 * are here, and so stay until the pool goes, which is after the queue.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/mm.h>
#include <linux/slab.h>

#include "compat.h"
#include "pool.h"

#define ACCESS_MASK	(IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC)

struct kverbs_key {
	struct kverbs_req req;
	struct ib_send_wr invalidate;
	struct ib_reg_wr reg;
	struct ib_mr *mr;
	struct kverbs_pool *pool;
	kverbs_renewed_fn renewed;
	bool busy;			/* its group is with the queue */
};

static struct kverbs_buf *buf_of(const struct kverbs_key *key)
{
	return &key->pool->bufs[key - key->pool->keys];
}

static u32 pages_of(u64 dma, u32 size)
{
	return DIV_ROUND_UP(offset_in_page(dma) + size, PAGE_SIZE);
}

static u32 max_pages(const struct kverbs_pool *pool)
{
	u32 i, pages = 0;

	for (i = 0; i < pool->nr; i++)
		pages = max(pages, pages_of(pool->bufs[i].dma, pool->size));
	return pages;
}

/* The region of an element, and the work request that is to register it. */
static int create_key(struct kverbs_pool *pool, u32 index, u32 pages, int access)
{
	struct kverbs_key *key = &pool->keys[index];
	struct kverbs_buf *buf = buf_of(key);
	struct scatterlist sg;
	struct ib_mr *mr;
	int n;

	mr = ib_alloc_mr(pool->pd, IB_MR_TYPE_MEM_REG, pages);
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	key->mr = mr;
	sg_init_one(&sg, buf->va, pool->size);
	sg_dma_address(&sg) = buf->dma;
	sg_dma_len(&sg) = pool->size;
	n = ib_map_mr_sg(mr, &sg, 1, NULL, PAGE_SIZE);
	if (n != 1)
		return n < 0 ? n : -EINVAL;
	ib_update_fast_reg_key(mr, ib_inc_rkey(mr->rkey));
	key->reg.wr.opcode = IB_WR_REG_MR;
	key->reg.mr = mr;
	key->reg.key = mr->rkey;
	key->reg.access = access | IB_ACCESS_LOCAL_WRITE;
	buf->remote = mr->iova;
	buf->rkey = mr->rkey;
	return 0;
}

static void destroy_keys(struct kverbs_pool *pool)
{
	u32 i;

	for (i = 0; i < pool->nr; i++) {
		if (pool->keys[i].mr)
			ib_dereg_mr(pool->keys[i].mr);
		pool->bufs[i].rkey = 0;
		pool->bufs[i].remote = 0;
	}
	kvfree(pool->keys);
	pool->keys = NULL;
}

static int create_keys(struct kverbs_pool *pool, int access)
{
	u32 i, pages = max_pages(pool);
	int err;

	if (!(pool->ib->attrs.device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS) ||
	    pages > pool->ib->attrs.max_fast_reg_page_list_len)
		return -EOPNOTSUPP;
	pool->keys = kvzalloc_node(array_size(pool->nr, sizeof(*pool->keys)), GFP_KERNEL,
				   ibdev_to_node(pool->ib));
	if (!pool->keys)
		return -ENOMEM;
	for (i = 0; i < pool->nr; i++) {
		pool->keys[i].pool = pool;
		err = create_key(pool, i, pages, access);
		if (err) {
			destroy_keys(pool);
			return err;
		}
	}
	return 0;
}

static void open_ended(struct kverbs_pool *pool, bool failed)
{
	if (failed)
		WRITE_ONCE(pool->open_failed, true);
	if (atomic_dec_and_test(&pool->opening))
		complete(&pool->opened);
}

static void registered(struct kverbs_req *req, enum ib_wc_status status)
{
	struct kverbs_key *key = container_of(req, struct kverbs_key, req);

	/* ORDER: pairs with the acquire in any_busy() */
	smp_store_release(&key->busy, false);
	open_ended(key->pool, status != IB_WC_SUCCESS);
}

static int post_keys(struct kverbs_pool *pool, struct kverbs_sq *sq, unsigned long timeout)
{
	struct kverbs_key *key;
	int err = 0;
	u32 i;

	for (i = 0; i < pool->nr && !err; i++) {
		key = &pool->keys[i];
		key->req.wr = &key->reg.wr;
		key->req.done = registered;
		key->busy = true;
		atomic_inc(&pool->opening);
		err = kverbs_post_wait(sq, &key->req, i + 1 < pool->nr ? KVERBS_MORE : 0, timeout);
		if (err) {
			key->busy = false;
			atomic_dec(&pool->opening);
		}
	}
	/* The last of them may not have come to it. */
	if (err)
		kverbs_flush(sq);
	return err;
}

int kverbs_pool_open(struct kverbs_pool *pool, struct kverbs_sq *sq, int access,
		     unsigned long timeout)
{
	int err;

	might_sleep();
	if (!(access & ACCESS_MASK) || access & ~ACCESS_MASK)
		return -EINVAL;
	if (pool->keys || kverbs_pool_free_elements(pool) != pool->nr)
		return -EBUSY;
	err = create_keys(pool, access);
	if (err)
		return err;
	pool->open_failed = false;
	reinit_completion(&pool->opened);
	atomic_set(&pool->opening, 1);
	err = post_keys(pool, sq, timeout);
	open_ended(pool, false);
	if (!wait_for_completion_timeout(&pool->opened, timeout))
		return -ETIMEDOUT;
	if (!err && pool->open_failed)
		err = -EIO;
	if (err)
		destroy_keys(pool);
	return err;
}
EXPORT_SYMBOL_GPL(kverbs_pool_open);

static void renewed(struct kverbs_req *req, enum ib_wc_status status)
{
	struct kverbs_key *key = container_of(req, struct kverbs_key, req);
	struct kverbs_buf *buf = buf_of(key);
	kverbs_renewed_fn fn = key->renewed;

	/* ORDER: pairs with the acquire in any_busy() */
	smp_store_release(&key->busy, false);
	fn(buf, status);
}

static void set_key(struct kverbs_key *key, u32 rkey)
{
	ib_update_fast_reg_key(key->mr, rkey & 0xff);
	key->reg.key = key->mr->rkey;
	buf_of(key)->rkey = key->mr->rkey;
}

int kverbs_pool_renew(struct kverbs_pool *pool, struct kverbs_buf *buf, struct kverbs_sq *sq,
		      kverbs_renewed_fn fn)
{
	u32 old = buf->rkey;
	struct kverbs_key *key;
	int err;

	if (!pool->keys)
		return -EINVAL;
	key = &pool->keys[buf - pool->bufs];
	if (READ_ONCE(key->busy))
		return -EBUSY;
	key->invalidate.opcode = IB_WR_LOCAL_INV;
	key->invalidate.ex.invalidate_rkey = old;
	key->invalidate.next = &key->reg.wr;
	key->reg.wr.next = NULL;
	key->req.wr = &key->invalidate;
	key->req.done = renewed;
	key->renewed = fn;
	key->busy = true;
	set_key(key, ib_inc_rkey(old));
	err = kverbs_post(sq, &key->req, 0);
	if (err) {
		set_key(key, old);
		key->busy = false;
	}
	return err;
}
EXPORT_SYMBOL_GPL(kverbs_pool_renew);

static bool any_busy(const struct kverbs_pool *pool)
{
	u32 i;

	for (i = 0; i < pool->nr; i++) {
		/* ORDER: pairs with the release in registered() and renewed() */
		if (smp_load_acquire(&pool->keys[i].busy))
			return true;
	}
	return false;
}

int kverbs_pool_close(struct kverbs_pool *pool)
{
	might_sleep();
	if (!pool->keys)
		return 0;
	if (any_busy(pool))
		return -EBUSY;
	destroy_keys(pool);
	return 0;
}
EXPORT_SYMBOL_GPL(kverbs_pool_close);
