// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A pool of buffers.
 *
 * Its memory comes in chunks, as large as are to be had at once, each mapped as a whole.
 * The free elements are a stack that is linked by their numbers. Its head is one word: the
 * number of the top and a count of changes, so that a head that was read and has changed
 * in between is never taken for the same. That needs no lock, serves every context, and
 * gives out first what the caches still have.
 *
 * The keys are in pool_key.c.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cache.h>
#include <linux/mm.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "compat.h"
#include "pool.h"

#define MAX_SIZE	SZ_1M
#define MAX_NR		BIT(20)
#define CHUNK		SZ_64K	/* what is tried for small elements */
#define NONE		U32_MAX

static u64 head_of(u64 before, u32 top)
{
	return (u64)(upper_32_bits(before) + 1) << 32 | top;
}

struct kverbs_buf *kverbs_pool_alloc(struct kverbs_pool *pool)
{
	/* ORDER: pairs with the release in push(): the top's next is seen */
	s64 head = atomic64_read_acquire(&pool->head);
	struct kverbs_buf *buf;

	do {
		if (lower_32_bits(head) == NONE)
			return NULL;
		buf = &pool->bufs[lower_32_bits(head)];
		/* If somebody takes it meanwhile this may be anything, and the head has changed. */
	} while (!atomic64_try_cmpxchg_acquire(&pool->head, &head,
					       head_of(head, READ_ONCE(buf->next))));
	WRITE_ONCE(buf->taken, 1);
	return buf;
}
EXPORT_SYMBOL_GPL(kverbs_pool_alloc);

static void push(struct kverbs_pool *pool, struct kverbs_buf *buf)
{
	s64 head = atomic64_read(&pool->head);

	do {
		WRITE_ONCE(buf->next, lower_32_bits(head));
		/* ORDER: pairs with the acquire in kverbs_pool_alloc() */
	} while (!atomic64_try_cmpxchg_release(&pool->head, &head,
					       head_of(head, buf - pool->bufs)));
}

static noinline int refuse_free(const struct kverbs_pool *pool, const char *why, void *caller)
{
	pr_warn_ratelimited("%s: pool of %s: %pS frees %s\n", dev_name(&pool->ib->dev), pool->name,
			    caller, why);
	return -EINVAL;
}

static bool is_element(const struct kverbs_pool *pool, const struct kverbs_buf *buf)
{
	size_t offset = (uintptr_t)buf - (uintptr_t)pool->bufs;

	return offset < pool->nr * sizeof(*buf) && offset % sizeof(*buf) == 0;
}

int kverbs_pool_free(struct kverbs_pool *pool, struct kverbs_buf *buf)
{
	if (unlikely(!is_element(pool, buf)))
		return refuse_free(pool, "what is none of its elements",
				   __builtin_return_address(0));
	if (unlikely(!xchg(&buf->taken, 0)))
		return refuse_free(pool, "an element that is free", __builtin_return_address(0));
	push(pool, buf);
	return 0;
}
EXPORT_SYMBOL_GPL(kverbs_pool_free);

u32 kverbs_pool_free_elements(const struct kverbs_pool *pool)
{
	u32 i, nr = 0;

	for (i = 0; i < pool->nr; i++)
		nr += !READ_ONCE(pool->bufs[i].taken);
	return nr;
}
EXPORT_SYMBOL_GPL(kverbs_pool_free_elements);

u32 kverbs_pool_lkey(const struct kverbs_pool *pool)
{
	return pool->pd->local_dma_lkey;
}
EXPORT_SYMBOL_GPL(kverbs_pool_lkey);

void kverbs_pool_for_cpu(struct kverbs_pool *pool, struct kverbs_buf *buf, u32 bytes)
{
	ib_dma_sync_single_for_cpu(pool->ib, buf->dma, bytes, DMA_BIDIRECTIONAL);
}
EXPORT_SYMBOL_GPL(kverbs_pool_for_cpu);

void kverbs_pool_for_hca(struct kverbs_pool *pool, struct kverbs_buf *buf, u32 bytes)
{
	ib_dma_sync_single_for_device(pool->ib, buf->dma, bytes, DMA_BIDIRECTIONAL);
}
EXPORT_SYMBOL_GPL(kverbs_pool_for_hca);

static int check_attr(const struct ib_pd *pd, const struct kverbs_pool_attr *attr)
{
	if (!attr->size || attr->size > MAX_SIZE) {
		pr_warn("%s: pool of %s: size %u is not between 1 and %u\n",
			dev_name(&pd->device->dev), attr->name ?: "?", attr->size, MAX_SIZE);
		return -EINVAL;
	}
	if (!attr->nr || attr->nr > MAX_NR) {
		pr_warn("%s: pool of %s: %u elements are not between 1 and %lu\n",
			dev_name(&pd->device->dev), attr->name ?: "?", attr->nr, MAX_NR);
		return -EINVAL;
	}
	return 0;
}

/* As large as is to be had without an effort, at least of one element. */
static struct page *alloc_pages_of(const struct kverbs_pool *pool, u32 nr, int *order)
{
	int least = get_order(pool->stride);
	struct page *page;

	*order = max(least, min(get_order((size_t)pool->stride * nr), get_order(CHUNK)));
	for (; *order > least; --*order) {
		page = alloc_pages_node(ibdev_to_node(pool->ib), GFP_KERNEL | __GFP_ZERO |
					__GFP_NORETRY | __GFP_NOWARN, *order);
		if (page)
			return page;
	}
	return alloc_pages_node(ibdev_to_node(pool->ib), GFP_KERNEL | __GFP_ZERO | __GFP_NOWARN,
				*order);
}

/* A chunk for the elements from @first on. Returns how many it has, or an errno. */
static int add_chunk(struct kverbs_pool *pool, u32 first)
{
	struct kverbs_chunk *chunk = &pool->chunks[pool->nr_chunks];
	u32 i, nr;
	int order;

	chunk->page = alloc_pages_of(pool, pool->nr - first, &order);
	if (!chunk->page)
		return -ENOMEM;
	chunk->bytes = PAGE_SIZE << order;
	chunk->dma = ib_dma_map_page(pool->ib, chunk->page, 0, chunk->bytes, DMA_BIDIRECTIONAL);
	if (ib_dma_mapping_error(pool->ib, chunk->dma)) {
		__free_pages(chunk->page, order);
		return -EIO;
	}
	pool->nr_chunks++;
	nr = min_t(u32, chunk->bytes / pool->stride, pool->nr - first);
	for (i = 0; i < nr; i++) {
		pool->bufs[first + i].va = page_address(chunk->page) + (size_t)i * pool->stride;
		pool->bufs[first + i].dma = chunk->dma + (u64)i * pool->stride;
	}
	return nr;
}

static void free_chunks(struct kverbs_pool *pool)
{
	struct kverbs_chunk *chunk;

	while (pool->nr_chunks) {
		chunk = &pool->chunks[--pool->nr_chunks];
		ib_dma_unmap_page(pool->ib, chunk->dma, chunk->bytes, DMA_BIDIRECTIONAL);
		__free_pages(chunk->page, get_order(chunk->bytes));
	}
}

static void free_pool(struct kverbs_pool *pool)
{
	free_chunks(pool);
	kvfree(pool->chunks);
	kvfree(pool->bufs);
	kfree(pool);
}

static int fill(struct kverbs_pool *pool)
{
	u32 per_chunk = max_t(u32, (PAGE_SIZE << get_order(pool->stride)) / pool->stride, 1);
	u32 first;
	int n;

	pool->bufs = kvzalloc_node(array_size(pool->nr, sizeof(*pool->bufs)), GFP_KERNEL,
				   ibdev_to_node(pool->ib));
	pool->chunks = kvcalloc(DIV_ROUND_UP(pool->nr, per_chunk), sizeof(*pool->chunks),
				GFP_KERNEL);
	if (!pool->bufs || !pool->chunks)
		return -ENOMEM;
	for (first = 0; first < pool->nr; first += n) {
		n = add_chunk(pool, first);
		if (n < 0)
			return n;
	}
	/* The first is on top. */
	while (first--)
		push(pool, &pool->bufs[first]);
	return 0;
}

struct kverbs_pool *kverbs_pool_create(struct ib_pd *pd, const struct kverbs_pool_attr *attr)
{
	struct kverbs_pool *pool;
	int err;

	might_sleep();
	err = check_attr(pd, attr);
	if (err)
		return ERR_PTR(err);
	pool = kzalloc_node(sizeof(*pool), GFP_KERNEL, ibdev_to_node(pd->device));
	if (!pool)
		return ERR_PTR(-ENOMEM);
	pool->pd = pd;
	pool->ib = pd->device;
	pool->nr = attr->nr;
	pool->size = attr->size;
	pool->stride = ALIGN(attr->size, max_t(u32, cache_line_size(), ARCH_KMALLOC_MINALIGN));
	strscpy(pool->name, attr->name ?: "?", sizeof(pool->name));
	atomic64_set(&pool->head, NONE);
	init_completion(&pool->opened);
	err = fill(pool);
	if (!err)
		return pool;
	free_pool(pool);
	return ERR_PTR(err);
}
EXPORT_SYMBOL_GPL(kverbs_pool_create);

int kverbs_pool_destroy(struct kverbs_pool *pool)
{
	u32 taken = pool->nr - kverbs_pool_free_elements(pool);

	might_sleep();
	if (taken) {
		pr_warn("%s: pool of %s: %u of its %u elements are still taken\n",
			dev_name(&pool->ib->dev), pool->name, taken, pool->nr);
		return -EBUSY;
	}
	if (kverbs_pool_close(pool)) {
		pr_warn("%s: pool of %s: a key of it is on its way: destroy that queue first\n",
			dev_name(&pool->ib->dev), pool->name);
		return -EBUSY;
	}
	free_pool(pool);
	return 0;
}
EXPORT_SYMBOL_GPL(kverbs_pool_destroy);
