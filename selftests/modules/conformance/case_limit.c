// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Inline data, SGEs, lengths, and what a device says it can. */
#include "conformance.h"

/* From the CPU's address, and the buffer is free when the post returns. */
static struct work *inlined(struct side *side, u32 bytes)
{
	struct work *work = work_send(side, IB_WR_SEND, 0, bytes);

	work->sge[0].addr = (uintptr_t)side->area.va;
	work->sge[0].lkey = 0;
	work->send.send_flags |= IB_SEND_INLINE;
	return work;
}

enum inline_size {
	INLINE_NOTHING,
	INLINE_BYTE,
	INLINE_MOST,
};

static void limit_inline(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	u32 bytes = a->init.cap.max_inline_data;
	struct work *work, *recv;

	if (!bytes)
		return conf_skip("the device sends nothing inline");
	bytes = min_t(u32, bytes, AREA_SIZE);
	if (arg != INLINE_MOST)
		bytes = arg == INLINE_BYTE;
	area_fill(&a->area, 0, bytes, 1);
	recv = post_receive(b, 0, AREA_SIZE);
	work = inlined(a, bytes);
	if (!post(a, work))
		return;
	memset(a->area.va, 0xee, bytes);
	sent(a, work, NULL);
	if (got(b, recv, bytes, NULL))
		area_holds(&b->area, 0, bytes, 1);
}

static void limit_inline_write(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	u32 bytes = min_t(u32, a->init.cap.max_inline_data, 64);
	struct work *work, *recv;

	if (!bytes)
		return conf_skip("the device sends nothing inline");
	if (!area_register(b, &b->area, ALL_RIGHTS))
		return;
	recv = post_receive(b, 1024, 1);
	area_fill(&a->area, 0, bytes, 1);
	work = work_rdma(a, IB_WR_RDMA_WRITE, 0, bytes, area_remote(&b->area, 0),
			 area_rkey(&b->area));
	work->sge[0].addr = (uintptr_t)a->area.va;
	work->sge[0].lkey = 0;
	work->send.send_flags |= IB_SEND_INLINE;
	if (!post(a, work))
		return;
	memset(a->area.va, 0xee, bytes);
	sent(a, work, NULL);
	do_work(a, work_send(a, IB_WR_SEND, 0, 1));
	if (got(b, recv, 1, NULL))
		area_holds(&b->area, 0, bytes, 1);
}

static void limit_inline_above(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	u32 bytes = a->init.cap.max_inline_data + 1;
	struct work *work, *bad, *recv;

	if (bytes > AREA_SIZE)
		return conf_skip("the device sends more inline than the test has");
	work = inlined(a, bytes);
	expect(post_try(a, work, &bad) < 0);
	expect(bad == work);
	/* The QP is none the worse for it. */
	recv = post_receive(b, 0, 64);
	do_work(a, work_send(a, IB_WR_SEND, 0, 64));
	got(b, recv, 64, NULL);
}

/* What was asked for is the least that is granted. */
static void limit_granted(struct bed *bed, u32 arg)
{
	struct ib_qp_cap *cap = &bed->side[0].init.cap;

	expect(cap->max_send_wr >= bed->attr.depth);
	expect(cap->max_recv_wr >= bed->attr.depth);
	expect(cap->max_send_sge >= bed->attr.sges);
	expect(cap->max_recv_sge >= bed->attr.sges);
}

enum excess {
	EXCESS_SEND_WR,
	EXCESS_RECV_WR,
	EXCESS_SEND_SGE,
	EXCESS_RECV_SGE,
};

static void limit_excess(struct bed *bed, u32 arg)
{
	const struct ib_device_attr *attrs = &bed->ib->attrs;
	struct side *side = &bed->side[0];
	struct ib_qp_init_attr init;
	struct ib_qp *qp;

	side_init(side, &init);
	switch (arg) {
	case EXCESS_SEND_WR:
		init.cap.max_send_wr = attrs->max_qp_wr + 1;
		break;
	case EXCESS_RECV_WR:
		init.cap.max_recv_wr = attrs->max_qp_wr + 1;
		break;
	case EXCESS_SEND_SGE:
		init.cap.max_send_sge = attrs->max_send_sge + 1;
		break;
	default:
		init.cap.max_recv_sge = attrs->max_recv_sge + 1;
		break;
	}
	qp = ib_create_qp(bed->pd, &init);
	if (!expect(IS_ERR(qp)))
		ib_destroy_qp(qp);
}

/* Gather from many places, scatter to others. */
static void limit_sges(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	u32 nr = bed->attr.sges, i, bytes = 0;
	struct work *work, *recv;

	area_fill(&a->area, 0, 8192, 1);
	work = work_send(a, IB_WR_SEND, 0, 0);
	recv = work_recv(b, 0, 0);
	for (i = 0; i < nr; i++) {
		work_sge(work, i, &a->area, bytes, 101 * (i + 1));
		bytes += 101 * (i + 1);
	}
	for (i = 0; i < nr; i++)
		work_sge(recv, i, &b->area, bytes / nr * i, i + 1 < nr ? bytes / nr : 1024);
	work->send.num_sge = nr;
	recv->recv.num_sge = nr;
	if (post_recv(b, recv) && do_work(a, work) && got(b, recv, bytes, NULL))
		area_holds(&b->area, 0, bytes, 1);
}

static void limit_sges_read(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *work;

	if (bed->ib->attrs.max_sge_rd < 2)
		return conf_skip("the device reads into one SGE");
	if (!area_register(b, &b->area, ALL_RIGHTS) || !area_register(a, &a->area, ALL_RIGHTS))
		return;
	area_fill(&b->area, 0, 3000, 1);
	work = work_rdma(a, IB_WR_RDMA_READ, 0, 1001, area_remote(&b->area, 0),
			 area_rkey(&b->area));
	work_key(work, &a->area, 0, 1001);
	work->sge[1] = work->sge[0];
	work->sge[1].addr += 1001;
	work->sge[1].length = 1999;
	work->send.num_sge = 2;
	if (do_work(a, work))
		area_holds(&a->area, 0, 3000, 1);
}

static void limit_sges_above(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0];
	u32 nr = a->init.cap.max_send_sge + 1, i;
	struct work *work, *bad;

	if (nr > CONF_SGES)
		return conf_skip("the device grants more SGEs than the test has");
	work = work_send(a, IB_WR_SEND, 0, 0);
	for (i = 0; i < nr; i++)
		work_sge(work, i, &a->area, i * 64, 64);
	work->send.num_sge = nr;
	expect(post_try(a, work, &bad) < 0);
	expect(bad == work);
}

static void limit_recv_sges_above(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0];
	u32 nr = a->init.cap.max_recv_sge + 1, i;
	struct work *work, *bad;

	if (nr > CONF_SGES)
		return conf_skip("the device grants more SGEs than the test has");
	work = work_recv(a, 0, 0);
	for (i = 0; i < nr; i++)
		work_sge(work, i, &a->area, i * 64, 64);
	work->recv.num_sge = nr;
	expect(post_recv_try(a, work, &bad) < 0);
	expect(bad == work);
}

/* A message one byte longer than its receive. @arg: bytes of the receive */
static void limit_short(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *recv = post_receive(b, 64, arg);
	struct work *work = work_send(a, IB_WR_SEND, 0, arg + 1);

	area_fill(&a->area, 0, arg + 1, 1);
	if (!post(a, work))
		return;
	if (bed->iwarp)
		cq_next(a->scq, &(struct ib_wc){});
	else
		sent_as(a, work, IB_WC_REM_INV_REQ_ERR);
	got_as(b, recv, IB_WC_LOC_LEN_ERR);
	side_becomes(b, IB_QPS_ERR);
	expect(area_is_clear(&b->area, 64 + arg, 64));
}

/* Exactly as long as its receive. */
static void limit_fits(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *recv = post_receive(b, 64, arg);

	area_fill(&a->area, 0, arg, 1);
	do_work(a, work_send(a, IB_WR_SEND, 0, arg));
	if (got(b, recv, arg, NULL))
		area_holds(&b->area, 64, arg, 1);
	expect(area_is_clear(&b->area, 64 + arg, 64));
}

#define INLINE	{ .inline_data = 64 }

const struct conf_case limit_cases[] = {
	{ "limit/inline_nothing", limit_inline, INLINE_NOTHING, 0, INLINE },
	{ "limit/inline_byte", limit_inline, INLINE_BYTE, 0, INLINE },
	{ "limit/inline_most", limit_inline, INLINE_MOST, 0, INLINE },
	{ "limit/inline_write", limit_inline_write, 0, NEED_REG, INLINE },
	{ "limit/inline_above", limit_inline_above, 0, 0, INLINE },
	{ "limit/granted", limit_granted, 0, 0, { .depth = 37, .sges = 3 } },
	{ "limit/send_wr_excess", limit_excess, EXCESS_SEND_WR },
	{ "limit/recv_wr_excess", limit_excess, EXCESS_RECV_WR },
	{ "limit/send_sge_excess", limit_excess, EXCESS_SEND_SGE },
	{ "limit/recv_sge_excess", limit_excess, EXCESS_RECV_SGE },
	{ "limit/sges", limit_sges, 0, 0, { .sges = 4 } },
	{ "limit/read_sges", limit_sges_read, 0, NEED_REG },
	{ "limit/sges_above", limit_sges_above, 0, 0, { .sges = 2 } },
	{ "limit/recv_sges_above", limit_recv_sges_above, 0, 0, { .sges = 2 } },
	{ "limit/recv_short", limit_short, 256 },
	{ "limit/recv_short_long", limit_short, 8192 },
	{ "limit/recv_short_none", limit_short, 0 },
	{ "limit/recv_fits", limit_fits, 256 },
	{ "limit/recv_fits_long", limit_fits, 8192 },
	{}
};
