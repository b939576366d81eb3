// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Buffers, and memory regions over them.
 *
 * A buffer has slots of one size. They are packed into chunks, each physically
 * contiguous and mapped for the device once; no slot crosses from one chunk into the
 * next. Buffers live as long as the run, so that all cases work on the same ones.
 *
 * The server's buffers are opened to the client by memory regions, each registered by
 * a work request on the server's QP. A device takes only so many pages in one region.
 */
#include <linux/gfp.h>
#include <linux/log2.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

#include "perf.h"

#define LEAST_STRIDE		64	/* no two slots in one cache line */
#define REGION_PAGES		512
/* Ten seconds, and looks whether the run is to end. */
#define REGISTER_STEP		(HZ / 10)
#define REGISTER_STEPS		100

static u32 stride_of(u32 size)
{
	return max_t(u32, roundup_pow_of_two(size), LEAST_STRIDE);
}

/* What perf_memory_alloc() takes. */
size_t perf_memory_bytes(u32 size, u32 nr)
{
	u32 stride = stride_of(size);
	size_t chunk = max_t(size_t, stride, PAGE_SIZE);

	return DIV_ROUND_UP(nr, chunk / stride) * chunk;
}

static int chunk_alloc(struct perf_memory *memory, struct perf_chunk *chunk)
{
	chunk->va = alloc_pages_exact(memory->chunk_size, GFP_KERNEL | __GFP_ZERO | __GFP_NOWARN);
	if (!chunk->va)
		return -ENOMEM;
	chunk->dma = ib_dma_map_single(memory->ib, chunk->va, memory->chunk_size,
				       DMA_BIDIRECTIONAL);
	if (ib_dma_mapping_error(memory->ib, chunk->dma)) {
		free_pages_exact(chunk->va, memory->chunk_size);
		return -EIO;
	}
	return 0;
}

int perf_memory_alloc(struct perf_memory *memory, struct ib_device *ib, u32 size, u32 nr)
{
	u32 nr_chunks;
	int ret;

	memory->ib = ib;
	memory->stride = stride_of(size);
	memory->chunk_size = max_t(size_t, memory->stride, PAGE_SIZE);
	memory->per_chunk = memory->chunk_size / memory->stride;
	nr_chunks = DIV_ROUND_UP(nr, memory->per_chunk);
	memory->chunks = kvcalloc(nr_chunks, sizeof(*memory->chunks), GFP_KERNEL);
	if (!memory->chunks)
		return -ENOMEM;
	for (; memory->nr_chunks < nr_chunks; memory->nr_chunks++) {
		ret = chunk_alloc(memory, &memory->chunks[memory->nr_chunks]);
		if (ret) {
			perf_memory_free(memory);
			return ret;
		}
		cond_resched();
	}
	return 0;
}

void perf_memory_free(struct perf_memory *memory)
{
	struct perf_chunk *chunk = memory->chunks;

	for (; memory->nr_chunks; memory->nr_chunks--, chunk++) {
		ib_dma_unmap_single(memory->ib, chunk->dma, memory->chunk_size,
				    DMA_BIDIRECTIONAL);
		free_pages_exact(chunk->va, memory->chunk_size);
	}
	kvfree(memory->chunks);
	memory->chunks = NULL;
}

void perf_memory_poison(struct perf_memory *memory)
{
	u32 i, slots = memory->nr_chunks * memory->per_chunk;

	for (i = 0; i < slots; i++) {
		perf_pattern_poison(memory, i, memory->stride);
		cond_resched();
	}
}

static u32 region_pages(const struct ib_device *ib)
{
	return min_t(u32, ib->attrs.max_fast_reg_page_list_len, REGION_PAGES);
}

/* There are drivers that claim to register memory, and then can register no page. */
bool perf_regions_possible(const struct ib_device *ib)
{
	return ib->attrs.device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS && region_pages(ib);
}

/* The longest message that fits into one region. */
u32 perf_regions_max_size(const struct ib_device *ib)
{
	return rounddown_pow_of_two(region_pages(ib)) * PAGE_SIZE;
}

static void registered(struct ib_cq *cq, struct ib_wc *wc)
{
	struct perf_registration *reg =
		container_of(wc->wr_cqe, struct perf_registration, cqe);

	reg->status = wc->status;
	complete(&reg->done);
}

/* The completion may still come after a time-out: @reg lives until the CQ is gone. */
static int region_register(struct perf_queue *queue, struct ib_mr *mr)
{
	struct perf_registration *reg = queue->registration;
	struct ib_reg_wr wr = {
		.wr.wr_cqe = &reg->cqe,
		.wr.opcode = IB_WR_REG_MR,
		.wr.send_flags = IB_SEND_SIGNALED,
		.mr = mr,
		.key = mr->rkey,
		.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ,
	};
	int ret, i;

	reinit_completion(&reg->done);
	ret = ib_post_send(queue->server, &wr.wr, NULL);
	if (ret)
		return ret;
	for (i = 0; !wait_for_completion_timeout(&reg->done, REGISTER_STEP); i++)
		if (i == REGISTER_STEPS || perf_stopped(queue->bench->run) != PERF_GO)
			return -ETIMEDOUT;
	return reg->status == IB_WC_SUCCESS ? 0 : -EIO;
}

static int region_create(struct perf_regions *regions, struct perf_queue *queue, u32 first,
			 u32 nr_chunks, struct scatterlist *sg)
{
	const struct perf_memory *memory = queue->server_memory;
	u32 pages = nr_chunks * (memory->chunk_size / PAGE_SIZE);
	struct ib_mr *mr;
	u32 i;
	int n;

	mr = ib_alloc_mr(queue->bench->pd, IB_MR_TYPE_MEM_REG, pages);
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	regions->mr[regions->nr++] = mr;

	sg_init_table(sg, nr_chunks);
	for (i = 0; i < nr_chunks; i++) {
		sg_set_buf(&sg[i], memory->chunks[first + i].va, memory->chunk_size);
		sg_dma_address(&sg[i]) = memory->chunks[first + i].dma;
		sg_dma_len(&sg[i]) = memory->chunk_size;
	}
	n = ib_map_mr_sg(mr, sg, nr_chunks, NULL, PAGE_SIZE);
	if (n != nr_chunks)
		return n < 0 ? n : -EINVAL;
	ib_update_fast_reg_key(mr, ib_inc_rkey(mr->rkey));
	return region_register(queue, mr);
}

int perf_regions_create(struct perf_regions *regions, struct perf_queue *queue)
{
	const struct perf_memory *memory = queue->server_memory;
	u32 pages = memory->chunk_size / PAGE_SIZE, first, nr;
	u32 chunks_each = region_pages(memory->ib) / pages;
	struct scatterlist *sg;
	int ret = 0;

	regions->slots_each = chunks_each * memory->per_chunk;
	regions->mr = kcalloc(DIV_ROUND_UP(memory->nr_chunks, chunks_each), sizeof(*regions->mr),
			      GFP_KERNEL);
	queue->registration = kzalloc(sizeof(*queue->registration), GFP_KERNEL);
	sg = kvcalloc(chunks_each, sizeof(*sg), GFP_KERNEL);
	if (!regions->mr || !queue->registration || !sg) {
		ret = -ENOMEM;
		goto free_sg;
	}
	queue->registration->cqe.done = registered;
	init_completion(&queue->registration->done);

	for (first = 0; first < memory->nr_chunks && !ret; first += nr) {
		nr = min(chunks_each, memory->nr_chunks - first);
		ret = region_create(regions, queue, first, nr, sg);
	}
free_sg:
	kvfree(sg);
	return ret;
}

void perf_regions_destroy(struct perf_regions *regions)
{
	while (regions->nr)
		ib_dereg_mr(regions->mr[--regions->nr]);
	kfree(regions->mr);
	regions->mr = NULL;
}

/* Where the client finds a slot. */
void perf_regions_remote(const struct perf_regions *regions, u32 stride, u32 slot, u64 *addr,
			 u32 *rkey)
{
	const struct ib_mr *mr = regions->mr[slot / regions->slots_each];

	*addr = mr->iova + (u64)(slot % regions->slots_each) * stride;
	*rkey = mr->rkey;
}
