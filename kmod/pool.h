/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* A pool of buffers: what pool.c and pool_key.c share. */
#ifndef _KVERBS_POOL_H
#define _KVERBS_POOL_H

#include <linux/atomic.h>
#include <linux/cache.h>
#include <linux/completion.h>
#include <rdma/kverbs_pool.h>

struct kverbs_key;

struct kverbs_chunk {
	struct page *page;
	u64 dma;
	size_t bytes;
};

struct kverbs_pool {
	struct ib_device *ib;
	struct ib_pd *pd;
	struct kverbs_buf *bufs;
	struct kverbs_chunk *chunks;
	struct kverbs_key *keys;	/* one for each element, once the pool is open */
	u32 nr;
	u32 nr_chunks;
	u32 size;
	u32 stride;
	char name[KVERBS_NAME_MAX];

	atomic64_t head ____cacheline_aligned_in_smp;

	/* while the pool is being opened */
	atomic_t opening ____cacheline_aligned_in_smp;
	bool open_failed;
	struct completion opened;
};

#endif /* _KVERBS_POOL_H */
