// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory that the device reads and writes. Nothing here takes a DMA address for a
 * pointer: on a device with real DMA it is none.
 */
#include <linux/slab.h>

#include "conformance.h"

int area_create(struct area *area, struct ib_device *ib)
{
	area->ib = ib;
	area->va = kzalloc(AREA_SIZE, GFP_KERNEL);
	if (!area->va)
		return -ENOMEM;
	sg_init_one(&area->sg, area->va, AREA_SIZE);
	if (ib_dma_map_sg(ib, &area->sg, 1, DMA_BIDIRECTIONAL) != 1) {
		kfree(area->va);
		area->va = NULL;
		return -EIO;
	}
	area->dma = sg_dma_address(&area->sg);
	return 0;
}

/* After the QPs that use it. */
void area_destroy(struct area *area)
{
	if (area->mr)
		ib_dereg_mr(area->mr);
	area->mr = NULL;
	if (!area->va)
		return;
	ib_dma_unmap_sg(area->ib, &area->sg, 1, DMA_BIDIRECTIONAL);
	kfree(area->va);
	area->va = NULL;
}

static void to_cpu(struct area *area)
{
	ib_dma_sync_single_for_cpu(area->ib, area->dma, AREA_SIZE, DMA_BIDIRECTIONAL);
}

static void to_device(struct area *area)
{
	ib_dma_sync_single_for_device(area->ib, area->dma, AREA_SIZE, DMA_BIDIRECTIONAL);
}

/* No two neighbours are equal, and no byte is 0: that is what was not written. */
static u8 pattern(u32 i, u8 seed)
{
	return (i * 7 + i / 251 + seed) % 255 + 1;
}

void area_fill(struct area *area, u32 offset, u32 bytes, u8 seed)
{
	u32 i;

	to_cpu(area);
	for (i = 0; i < bytes; i++)
		area->va[offset + i] = pattern(i, seed);
	to_device(area);
}

bool area_holds(struct area *area, u32 offset, u32 bytes, u8 seed)
{
	u32 i;

	to_cpu(area);
	for (i = 0; i < bytes && area->va[offset + i] == pattern(i, seed); i++)
		;
	to_device(area);
	if (i == bytes)
		return true;
	conf_fail("byte %u of %u is 0x%02x, not 0x%02x", i, bytes, area->va[offset + i],
		  pattern(i, seed));
	return false;
}

void area_clear(struct area *area)
{
	to_cpu(area);
	memset(area->va, 0, AREA_SIZE);
	to_device(area);
}

bool area_is_clear(struct area *area, u32 offset, u32 bytes)
{
	void *other;

	to_cpu(area);
	other = memchr_inv(area->va + offset, 0, bytes);
	to_device(area);
	return !other;
}

u64 area_word(struct area *area, u32 offset)
{
	u64 value;

	to_cpu(area);
	value = *(u64 *)(area->va + offset);
	to_device(area);
	return value;
}

void area_set_word(struct area *area, u32 offset, u64 value)
{
	to_cpu(area);
	*(u64 *)(area->va + offset) = value;
	to_device(area);
}

static bool area_alloc_mr(struct side *side, struct area *area)
{
	struct ib_mr *mr;

	if (area->mr)
		return true;
	mr = ib_alloc_mr(side->bed->pd, IB_MR_TYPE_MEM_REG, AREA_PAGES + 1);
	if (!expect(!IS_ERR(mr)))
		return false;
	area->mr = mr;
	return true;
}

/* A part of the area becomes the region, whose first byte has the address mr->iova. */
bool area_map(struct side *side, struct area *area, u32 offset, u32 bytes)
{
	struct scatterlist sg;

	if (!area_alloc_mr(side, area))
		return false;
	sg_init_one(&sg, area->va + offset, bytes);
	sg_dma_address(&sg) = area->dma + offset;
	sg_dma_len(&sg) = bytes;
	if (!expect_is(ib_map_mr_sg(area->mr, &sg, 1, NULL, PAGE_SIZE), 1))
		return false;
	area->iova = area->mr->iova;
	area->bytes = bytes;
	return expect_is(area->mr->length, bytes);
}

/* With a key that was not used before. */
struct work *area_reg_work(struct bed *bed, struct area *area, u32 access)
{
	struct work *work = work_next(bed);

	ib_update_fast_reg_key(area->mr, ib_inc_rkey(area->mr->rkey));
	work->send.wr_cqe = &work->cqe;
	work->send.opcode = IB_WR_REG_MR;
	work->send.send_flags = IB_SEND_SIGNALED;
	work->reg.mr = area->mr;
	work->reg.key = area->mr->rkey;
	work->reg.access = access;
	return work;
}

bool area_register_part(struct side *side, struct area *area, u32 offset, u32 bytes, u32 access)
{
	if (!area_map(side, area, offset, bytes))
		return false;
	return do_work(side, area_reg_work(side->bed, area, access));
}

bool area_register(struct side *side, struct area *area, u32 access)
{
	return area_register_part(side, area, 0, AREA_SIZE, access);
}

bool area_invalidate(struct side *side, struct area *area)
{
	return do_work(side, work_local_inv(side, area_rkey(area)));
}
