// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What happens in which order, on one QP. */
#include "conformance.h"

#define MESSAGES	12	/* in flight */
#define ROUNDS		20

static void order_sends(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *works[MESSAGES], *recvs[MESSAGES];
	u32 round, i;

	for (round = 0; round < ROUNDS && !conf_failed(); round++) {
		for (i = 0; i < MESSAGES; i++) {
			recvs[i] = post_receive(b, i * 64, 64);
			area_fill(&a->area, i * 64, 4 + i, i + round);
			works[i] = work_send(a, IB_WR_SEND, i * 64, 4 + i);
		}
		if (arg)
			work_chain(works, MESSAGES);
		for (i = 0; i < (arg ? 1 : MESSAGES); i++)
			post(a, works[i]);
		for (i = 0; i < MESSAGES && !conf_failed(); i++) {
			sent(a, works[i], NULL);
			if (got(b, recvs[i], 4 + i, NULL))
				area_holds(&b->area, i * 64, 4 + i, i + round);
		}
	}
}

/* One CQE for many, and the room of all of them. */
static void order_silent(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *works[MESSAGES], *recvs[MESSAGES];
	u32 round, i;

	for (round = 0; round < ROUNDS && !conf_failed(); round++) {
		for (i = 0; i < MESSAGES; i++) {
			recvs[i] = post_receive(b, 0, 64);
			works[i] = work_send(a, IB_WR_SEND, 0, 1 + i);
			if (i + 1 < MESSAGES)
				works[i]->send.send_flags = 0;
			post(a, works[i]);
		}
		sent(a, works[MESSAGES - 1], NULL);
		expect(cq_empty(a->scq));
		for (i = 0; i < MESSAGES && !conf_failed(); i++)
			got(b, recvs[i], 1 + i, NULL);
	}
}

/* With IB_SIGNAL_ALL_WR each has its own, whatever its flags say. */
static void order_sig_all(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *work;
	u32 i;

	for (i = 0; i < MESSAGES && !conf_failed(); i++) {
		post_receive(b, 0, 64);
		work = work_send(a, IB_WR_SEND, 0, 64);
		work->send.send_flags = 0;
		do_work(a, work);
	}
}

/* A READ sees what was written before it. */
static void order_read_after_write(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *write, *read;
	u32 i;

	if (!area_register(b, &b->area, ALL_RIGHTS) || !area_register(a, &a->area, ALL_RIGHTS))
		return;
	for (i = 0; i < ROUNDS && !conf_failed(); i++) {
		area_fill(&a->area, 0, 4096, i);
		write = work_rdma(a, IB_WR_RDMA_WRITE, 0, 4096, area_remote(&b->area, 0),
				  area_rkey(&b->area));
		write->send.send_flags = 0;
		read = work_rdma(a, IB_WR_RDMA_READ, 0, 4096, area_remote(&b->area, 0),
				 area_rkey(&b->area));
		work_key(read, &a->area, 8192, 4096);
		work_chain((struct work *[]){ write, read }, 2);
		if (post(a, write) && sent(a, read, NULL))
			area_holds(&a->area, 8192, 4096, i);
	}
}

/* Behind a fence a send takes what the READ before it has brought. */
static void order_fence(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *read, *send, *recv;
	u32 i;

	if (!area_register(b, &b->area, ALL_RIGHTS) || !area_register(a, &a->area, ALL_RIGHTS))
		return;
	for (i = 0; i < ROUNDS && !conf_failed(); i++) {
		area_fill(&b->area, 0, 4096, i);
		recv = post_receive(b, 8192, 4096);
		read = work_rdma(a, IB_WR_RDMA_READ, 0, 4096, area_remote(&b->area, 0),
				 area_rkey(&b->area));
		work_key(read, &a->area, 0, 4096);
		send = work_send(a, IB_WR_SEND, 0, 4096);
		send->send.send_flags |= IB_SEND_FENCE;
		work_chain((struct work *[]){ read, send }, 2);
		if (post(a, read) && sent(a, read, NULL) && sent(a, send, NULL) &&
		    got(b, recv, 4096, NULL))
			area_holds(&b->area, 8192, 4096, i);
	}
}

/* A region is registered, used by what follows, and invalidated, in one chain. */
static void order_reg_use_inv(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *works[3], *recv;
	u32 i;

	area_fill(&a->area, 0, 4096, 1);
	if (!area_map(a, &a->area, 0, AREA_SIZE))
		return;
	for (i = 0; i < ROUNDS && !conf_failed(); i++) {
		recv = post_receive(b, 0, 4096);
		works[0] = area_reg_work(bed, &a->area, IB_ACCESS_LOCAL_WRITE);
		works[1] = work_send(a, IB_WR_SEND, 0, 4096);
		work_key(works[1], &a->area, 0, 4096);
		works[2] = work_local_inv(a, area_rkey(&a->area));
		works[2]->send.send_flags |= IB_SEND_FENCE;
		work_chain(works, 3);
		if (!post(a, works[0]) || !sent(a, works[0], NULL) || !sent(a, works[1], NULL) ||
		    !sent(a, works[2], NULL))
			return;
		if (got(b, recv, 4096, NULL))
			area_holds(&b->area, 0, 4096, 1);
	}
}

/* READs among other requests: still one after the other. */
static void order_mixed(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *works[MESSAGES];
	u32 i;

	if (!area_register(b, &b->area, ALL_RIGHTS) || !area_register(a, &a->area, ALL_RIGHTS))
		return;
	for (i = 0; i < MESSAGES; i++) {
		if (i % 3 == 0) {
			works[i] = work_rdma(a, IB_WR_RDMA_READ, 0, 4096, area_remote(&b->area, 0),
					     area_rkey(&b->area));
			work_key(works[i], &a->area, 0, 4096);
		} else if (i % 3 == 1) {
			works[i] = work_rdma(a, IB_WR_RDMA_WRITE, 0, 64, area_remote(&b->area, 0),
					     area_rkey(&b->area));
		} else {
			post_receive(b, 0, 64);
			works[i] = work_send(a, IB_WR_SEND, 0, 64);
		}
	}
	work_chain(works, MESSAGES);
	if (!post(a, works[0]))
		return;
	for (i = 0; i < MESSAGES && !conf_failed(); i++)
		sent(a, works[i], NULL);
}

/* More READs at once than may be outstanding: the rest waits. */
static void order_many_reads(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *works[MESSAGES];
	u32 i;

	if (!area_register(b, &b->area, ALL_RIGHTS) || !area_register(a, &a->area, ALL_RIGHTS))
		return;
	area_fill(&b->area, 0, MESSAGES * 512, 1);
	for (i = 0; i < MESSAGES; i++) {
		works[i] = work_rdma(a, IB_WR_RDMA_READ, 0, 512, area_remote(&b->area, i * 512),
				     area_rkey(&b->area));
		work_key(works[i], &a->area, i * 512, 512);
	}
	work_chain(works, MESSAGES);
	if (!post(a, works[0]))
		return;
	for (i = 0; i < MESSAGES && !conf_failed(); i++)
		sent(a, works[i], NULL);
	area_holds(&a->area, 0, MESSAGES * 512, 1);
}

/* The packet sequence number wraps around. */
static void order_psn_wrap(struct bed *bed, u32 arg)
{
	bed->psn = 0xffffff - 5;
	if (expect_is(bed_connect(bed), 0))
		order_sends(bed, 0);
}

const struct conf_case order_cases[] = {
	{ "order/sends", order_sends },
	{ "order/chained_sends", order_sends, 1 },
	{ "order/silent", order_silent },
	{ "order/signal_all", order_sig_all, 0, 0, { .sig_all = true } },
	{ "order/read_after_write", order_read_after_write, 0, NEED_REG },
	{ "order/fence", order_fence, 0, NEED_REG },
	{ "order/reg_use_inv", order_reg_use_inv, 0, NEED_REG },
	{ "order/mixed", order_mixed, 0, NEED_REG | NEED_IB },
	{ "order/many_reads", order_many_reads, 0, NEED_REG },
	{ "order/psn_wrap", order_psn_wrap, 0, NEED_IB, { .raw = true } },
	{}
};
