// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Regions: keys that change, parts, pages in another order. */
#include "conformance.h"

static struct work *write64(struct bed *bed, u64 remote, u32 key)
{
	return work_rdma(&bed->side[0], IB_WR_RDMA_WRITE, 0, 64, remote, key);
}

/* A flag that what was written has arrived. */
static bool settled(struct bed *bed)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *recv = post_receive(b, AREA_SIZE - 64, 0);

	return do_work(a, work_send(a, IB_WR_SEND, 0, 0)) && got(b, recv, 0, NULL);
}

/* Registered, used and invalidated, again and again: a new key each time. */
static void mr_again(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	u32 key = 0, i;

	for (i = 0; i < 300 && !conf_failed(); i++) {
		if (!area_register_part(b, &b->area, 512 * (i % 4), 64, ALL_RIGHTS))
			return;
		expect(area_rkey(&b->area) != key);
		if (i)
			expect_is(area_rkey(&b->area) >> 8, key >> 8);
		key = area_rkey(&b->area);
		area_fill(&a->area, 0, 64, i);
		do_work(a, write64(bed, area_remote(&b->area, 0), key));
		if (settled(bed))
			area_holds(&b->area, 512 * (i % 4), 64, i);
		area_invalidate(b, &b->area);
	}
}

/* The new key serves, the old one does not. */
static void mr_old_key(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *work;
	u32 old;

	if (!area_register(b, &b->area, ALL_RIGHTS))
		return;
	old = area_rkey(&b->area);
	if (!area_invalidate(b, &b->area) || !area_register(b, &b->area, ALL_RIGHTS))
		return;
	do_work(a, write64(bed, area_remote(&b->area, 0), area_rkey(&b->area)));
	area_fill(&a->area, 0, 64, 1);
	work = write64(bed, area_remote(&b->area, 0), old);
	if (!post(a, work))
		return;
	if (bed->iwarp)
		cq_next(a->scq, &(struct ib_wc){});
	else
		sent_as(a, work, IB_WC_REM_ACCESS_ERR);
	side_becomes(a, IB_QPS_ERR);
	expect(area_is_clear(&b->area, 0, 64));
}

/* A region that is valid must not be registered again. */
static void mr_twice(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0];
	struct work *work;

	if (!area_register(a, &a->area, ALL_RIGHTS))
		return;
	work = area_reg_work(bed, &a->area, ALL_RIGHTS);
	if (!post_try(a, work, NULL))
		send_fails(a, work);
}

/* Its rights can be others the next time. */
static void mr_rights(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *work;

	if (!area_register(b, &b->area, ALL_RIGHTS))
		return;
	do_work(a, write64(bed, area_remote(&b->area, 0), area_rkey(&b->area)));
	if (!settled(bed) || !area_invalidate(b, &b->area) ||
	    !area_register(b, &b->area, IB_ACCESS_REMOTE_READ))
		return;
	area_fill(&a->area, 0, 64, 1);
	work = write64(bed, area_remote(&b->area, 0), area_rkey(&b->area));
	if (!post(a, work))
		return;
	if (bed->iwarp)
		cq_next(a->scq, &(struct ib_wc){});
	else
		sent_as(a, work, IB_WC_REM_ACCESS_ERR);
	side_becomes(a, IB_QPS_ERR);
	expect(area_is_clear(&b->area, 0, 64));
}

/* The two halves of the memory in the other order, as a region of its own. */
static void mr_swapped(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct scatterlist sg[2];
	u32 half = AREA_SIZE / 2;

	if (!area_map(b, &b->area, 0, AREA_SIZE))
		return;
	sg_init_table(sg, 2);
	sg_set_buf(&sg[0], b->area.va + half, half);
	sg_set_buf(&sg[1], b->area.va, half);
	sg_dma_address(&sg[0]) = b->area.dma + half;
	sg_dma_address(&sg[1]) = b->area.dma;
	sg_dma_len(&sg[0]) = half;
	sg_dma_len(&sg[1]) = half;
	if (!expect_is(ib_map_mr_sg(b->area.mr, sg, 2, NULL, PAGE_SIZE), 2))
		return;
	b->area.iova = b->area.mr->iova;
	expect_is(b->area.mr->length, AREA_SIZE);
	if (!do_work(b, area_reg_work(bed, &b->area, ALL_RIGHTS)))
		return;
	/* Across the place where they meet. */
	area_fill(&a->area, 0, 8192, 1);
	do_work(a, work_rdma(a, IB_WR_RDMA_WRITE, 0, 8192, area_remote(&b->area, half - 4096),
			     area_rkey(&b->area)));
	if (!settled(bed))
		return;
	expect(!memcmp(b->area.va + AREA_SIZE - 4096, a->area.va, 4096));
	expect(!memcmp(b->area.va, a->area.va + 4096, 4096));
	expect(area_is_clear(&b->area, 4096, AREA_SIZE - 8192));
}

/* Pages that do not follow each other cannot be one region: only the first is taken. */
static void mr_gap(struct bed *bed, u32 arg)
{
	struct side *b = &bed->side[1];
	struct scatterlist sg[2];

	if (bed->ib->attrs.kernel_cap_flags & IBK_SG_GAPS_REG)
		return conf_skip("the device registers gaps");
	if (!area_map(b, &b->area, 0, AREA_SIZE))
		return;
	sg_init_table(sg, 2);
	sg_set_buf(&sg[0], b->area.va, 100);
	sg_set_buf(&sg[1], b->area.va + PAGE_SIZE + 100, 100);
	sg_dma_address(&sg[0]) = b->area.dma;
	sg_dma_address(&sg[1]) = b->area.dma + PAGE_SIZE + 100;
	sg_dma_len(&sg[0]) = 100;
	sg_dma_len(&sg[1]) = 100;
	expect_is(ib_map_mr_sg(b->area.mr, sg, 2, NULL, PAGE_SIZE), 1);
	expect_is(b->area.mr->length, 100);
}

/* Addresses of a region may begin anywhere within a page. */
static void mr_address(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];

	if (!area_map(b, &b->area, 100, 8192))
		return;
	b->area.mr->iova = 0x7700000000000000ULL + (b->area.mr->iova & (PAGE_SIZE - 1));
	b->area.iova = b->area.mr->iova;
	if (!do_work(b, area_reg_work(bed, &b->area, ALL_RIGHTS)))
		return;
	area_fill(&a->area, 0, 8192, 1);
	do_work(a, work_rdma(a, IB_WR_RDMA_WRITE, 0, 8192, area_remote(&b->area, 0),
			     area_rkey(&b->area)));
	if (settled(bed))
		area_holds(&b->area, 100, 8192, 1);
}

const struct conf_case mr_cases[] = {
	{ "mr/again", mr_again, 0, NEED_REG },
	{ "mr/old_key", mr_old_key, 0, NEED_REG },
	{ "mr/twice", mr_twice, 0, NEED_REG },
	{ "mr/other_rights", mr_rights, 0, NEED_REG },
	{ "mr/swapped_halves", mr_swapped, 0, NEED_REG },
	{ "mr/gap", mr_gap, 0, NEED_REG },
	{ "mr/own_address", mr_address, 0, NEED_REG },
	{}
};
