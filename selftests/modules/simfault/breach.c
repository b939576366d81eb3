// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A consumer that breaks the rules, one at a time.
 */
#include <linux/delay.h>
#include <linux/slab.h>

#include "simfault.h"

#define DEPTH	8

/* One request, as it should be but for what the caller changes. */
static int post_one(struct rig *rig, u32 index, bool signaled, u32 flags, u64 addr)
{
	struct rig_wr wr;

	rig_wr(rig, &wr, index, signaled);
	wr.wr.send_flags |= flags;
	if (addr)
		wr.sge.addr = addr;
	return rig_post(rig, &wr.wr, NULL);
}

static void post_many(struct rig *rig, u32 nr, bool signaled)
{
	u32 i;

	for (i = 0; i < nr; i++)
		say("post=%d\n", post_one(rig, i, signaled, 0, 0));
	msleep(20);
}

/* Nobody polls. */
static void sq_overrun(struct rig *rig)
{
	post_many(rig, DEPTH + 1, true);
}

static void sq_silent(struct rig *rig)
{
	post_many(rig, DEPTH, false);
	say("post=%d\n", post_one(rig, 0, true, 0, 0));
}

static void silent_tail(struct rig *rig)
{
	post_many(rig, 2, true);
	post_many(rig, 1, false);
	msleep(300);
}

static void cq_overflow(struct rig *rig)
{
	post_many(rig, DEPTH, true);
}

/* Told of the first, it takes it, and does not look for more. */
static void lost_arm(struct rig *rig)
{
	struct ib_wc wc;

	ib_req_notify_cq(rig->cq, IB_CQ_NEXT_COMP);
	post_many(rig, 3, true);
	say("polled=%d\n", ib_poll_cq(rig->cq, 1, &wc));
	msleep(300);
}

/* It polls until there is nothing, and arms too late, without asking what it missed. */
static void armed_late(struct rig *rig)
{
	post_many(rig, 1, true);
	ib_req_notify_cq(rig->cq, IB_CQ_NEXT_COMP);
	msleep(300);
}

static void missed_ignored(struct rig *rig)
{
	int flags = IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS;

	post_many(rig, 1, true);
	/* On another CPU it might be somebody who does not know yet. */
	migrate_disable();
	say("missed=%d\n", ib_req_notify_cq(rig->cq, flags));
	say("missed=%d\n", ib_req_notify_cq(rig->cq, flags));
	migrate_enable();
}

static void poll_in_handler(struct rig *rig)
{
	rig->poll_in_handler = true;
	ib_req_notify_cq(rig->cq, IB_CQ_NEXT_COMP);
	post_many(rig, 1, true);
}

static void inline_dma(struct rig *rig)
{
	say("post=%d\n", post_one(rig, 0, true, IB_SEND_INLINE, 0));
	say("post=%d\n", post_one(rig, 0, true, IB_SEND_INLINE, (uintptr_t)rig->memory));
	msleep(20);
}

static int register_mr(struct rig *rig, struct ib_mr *mr)
{
	struct ib_reg_wr wr = {
		.wr.opcode = IB_WR_REG_MR,
		.wr.wr_cqe = &rig->requests[0].cqe,
		.mr = mr,
		.key = mr->lkey,
		.access = IB_ACCESS_LOCAL_WRITE,
	};
	struct scatterlist sg;
	int nr;

	sg_init_one(&sg, rig->memory, PAGE_SIZE);
	sg_dma_address(&sg) = rig->dma;
	sg_dma_len(&sg) = PAGE_SIZE;
	nr = ib_map_mr_sg(mr, &sg, 1, NULL, PAGE_SIZE);
	if (nr != 1)
		return -EIO;
	return rig_post(rig, &wr.wr, NULL);
}

/* Nobody has polled the completion of the request that names it. */
static void mr_in_use(struct rig *rig)
{
	struct ib_mr *mr = ib_alloc_mr(rig->pd, IB_MR_TYPE_MEM_REG, 1);
	struct rig_wr wr;

	if (IS_ERR(mr)) {
		say("mr=%ld\n", PTR_ERR(mr));
		return;
	}
	say("reg=%d\n", register_mr(rig, mr));
	rig_wr(rig, &wr, 1, true);
	wr.sge.addr = mr->iova;
	wr.sge.lkey = mr->lkey;
	say("post=%d\n", rig_post(rig, &wr.wr, NULL));
	msleep(20);
	ib_dereg_mr(mr);
}

/* No message has come for the receive that names it. */
static void mr_in_receive(struct rig *rig)
{
	struct ib_mr *mr = ib_alloc_mr(rig->pd, IB_MR_TYPE_MEM_REG, 1);
	struct ib_recv_wr wr = { .wr_cqe = &rig->recv_cqe, .num_sge = 1 };
	struct ib_sge sge = { .length = RIG_BYTES };

	if (IS_ERR(mr)) {
		say("mr=%ld\n", PTR_ERR(mr));
		return;
	}
	sge.lkey = mr->lkey;
	wr.sg_list = &sge;
	say("recv=%d\n", ib_post_recv(rig->qp[1], &wr, NULL));
	ib_dereg_mr(mr);
}

/*
 * The first page is mapped once more, to be read by the device. On some kernels a DMA
 * address is the physical one, and the device knows nothing of mappings.
 */
static u64 map_page(struct rig *rig)
{
	u64 dma = ib_dma_map_single(rig->ib, rig->memory, PAGE_SIZE, DMA_TO_DEVICE);

	if (ib_dma_mapping_error(rig->ib, dma))
		return 0;
	if (dma != virt_to_phys(rig->memory))
		return dma;
	ib_dma_unmap_single(rig->ib, dma, PAGE_SIZE, DMA_TO_DEVICE);
	say("physical\n");
	return 0;
}

static void dma_unmap(struct rig *rig)
{
	u64 dma = map_page(rig);

	if (!dma)
		return;
	ib_dma_unmap_single(rig->ib, dma, PAGE_SIZE, DMA_TO_DEVICE);
	ib_dma_unmap_single(rig->ib, dma, PAGE_SIZE, DMA_TO_DEVICE);
	dma = map_page(rig);
	if (dma)
		ib_dma_unmap_single(rig->ib, dma, PAGE_SIZE / 2, DMA_TO_DEVICE);
	dma = map_page(rig);
	if (dma)
		ib_dma_unmap_single(rig->ib, dma, PAGE_SIZE, DMA_FROM_DEVICE);
}

static void dma_unmapped(struct rig *rig)
{
	u64 dma = map_page(rig);

	if (!dma)
		return;
	ib_dma_unmap_single(rig->ib, dma, PAGE_SIZE, DMA_TO_DEVICE);
	say("post=%d\n", post_one(rig, 0, true, 0, dma));
	msleep(20);
}

/* It may only be read, and is to be written. */
static void dma_direction(struct rig *rig)
{
	u64 dma = map_page(rig);

	if (!dma)
		return;
	rig->attr.op = IB_WR_RDMA_READ;
	say("post=%d\n", post_one(rig, 0, true, 0, dma));
	msleep(20);
	ib_dma_unmap_single(rig->ib, dma, PAGE_SIZE, DMA_TO_DEVICE);
}

static void dma_leaked(struct rig *rig)
{
	map_page(rig);
}

static const struct {
	const char *rule;
	void (*run)(struct rig *rig);
	enum rig_cq cq;
	u32 cqe;
} breaches[] = {
	{ "sq_overrun", sq_overrun, RIG_DIRECT },
	{ "sq_silent", sq_silent, RIG_DIRECT },
	{ "silent_tail", silent_tail, RIG_SOFTIRQ },
	{ "cq_overflow", cq_overflow, RIG_DIRECT, DEPTH / 2 },
	{ "lost_arm", lost_arm, RIG_RAW },
	{ "armed_late", armed_late, RIG_RAW },
	{ "missed_ignored", missed_ignored, RIG_RAW },
	{ "poll_in_handler", poll_in_handler, RIG_RAW },
	{ "inline_dma", inline_dma, RIG_DIRECT },
	{ "mr_in_use", mr_in_use, RIG_DIRECT },
	{ "mr_in_receive", mr_in_receive, RIG_DIRECT },
	{ "dma_unmap", dma_unmap, RIG_DIRECT },
	{ "dma_unmapped", dma_unmapped, RIG_DIRECT },
	{ "dma_direction", dma_direction, RIG_DIRECT },
	{ "dma_leaked", dma_leaked, RIG_DIRECT },
};

/* False: there is no such rule. */
bool breach(struct ib_device *ib, const char *rule)
{
	struct rig_attr attr = {
		.type = IB_QPT_RC,
		.op = IB_WR_RDMA_WRITE,
		.depth = DEPTH,
		.rnr_retry = 7,
	};
	struct rig *rig;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(breaches); i++) {
		if (strcmp(rule, breaches[i].rule))
			continue;
		attr.cq = breaches[i].cq;
		attr.cqe = breaches[i].cqe;
		rig = rig_create(ib, &attr);
		if (rig) {
			breaches[i].run(rig);
			rig_destroy(rig);
		}
		return true;
	}
	return false;
}
