// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Local memory: keys, bounds and rights of what a request itself names. */
#include "conformance.h"

#define PART	1024
#define LENGTH	2048

/* What is wrong with the memory that a request names. */
enum fault {
	FAULT_KEY,
	FAULT_END,
	FAULT_BEGIN,
	FAULT_OLD,		/* invalidated */
	FAULT_OTHER_PD,
	FAULT_READ_ONLY,	/* the region may not be written */
};

static void spoil(struct work *work, enum fault fault)
{
	switch (fault) {
	case FAULT_KEY:
		work->sge[0].lkey ^= 0xff00;
		break;
	case FAULT_END:
		work->sge[0].addr++;
		break;
	case FAULT_BEGIN:
		work->sge[0].addr--;
		break;
	default:
		break;
	}
}

/* A region of one side, with one thing wrong. */
static bool region(struct side *side, struct side *foreign, enum fault fault)
{
	u32 rights = fault == FAULT_READ_ONLY ? IB_ACCESS_REMOTE_READ : ALL_RIGHTS;

	if (!area_register_part(foreign ?: side, &side->area, PART, LENGTH, rights))
		return false;
	return fault != FAULT_OLD || area_invalidate(side, &side->area);
}

/* Of a place that is good up to its end, what was good may have been written. */
static void untouched(struct area *area, enum fault fault)
{
	expect(area_is_clear(area, 0, PART));
	expect(area_is_clear(area, PART + LENGTH, AREA_SIZE - PART - LENGTH));
	if (fault != FAULT_END)
		expect(area_is_clear(area, PART, LENGTH));
}

static void local_send(struct bed *bed, struct side *foreign, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *work;

	post_receive(b, 0, LENGTH);
	if (!region(a, foreign, arg))
		return;
	work = work_send(a, IB_WR_SEND, 0, LENGTH);
	work_key(work, &a->area, 0, LENGTH);
	spoil(work, arg);
	if (!post(a, work))
		return;
	sent_as(a, work, IB_WC_LOC_PROT_ERR);
	side_becomes(a, IB_QPS_ERR);
}

/* @arg: what is wrong with where a send takes its data from */
static void key_send(struct bed *bed, u32 arg)
{
	local_send(bed, NULL, arg);
}

/* The sender's own fault shows, whether the peer has a receive or not. */
static void key_send_unready(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0];
	struct work *work = work_send(a, IB_WR_SEND, 0, 64);

	work->sge[0].lkey = ~work->sge[0].lkey;
	if (post(a, work))
		send_fails(a, work);
}

static void key_send_good(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *work, *recv;

	recv = post_receive(b, 0, LENGTH);
	area_fill(&a->area, PART, LENGTH, 1);
	if (!region(a, NULL, FAULT_READ_ONLY))
		return;
	work = work_send(a, IB_WR_SEND, 0, LENGTH);
	work_key(work, &a->area, 0, LENGTH);
	do_work(a, work);
	if (got(b, recv, LENGTH, NULL))
		area_holds(&b->area, 0, LENGTH, 1);
}

static void with_foreign(struct bed *bed, void (*run)(struct bed *, struct side *, u32))
{
	struct bed *other = bed_create(bed->ib, &bed->attr);

	if (!other)
		return;
	run(bed, &other->side[0], FAULT_OTHER_PD);
	side_destroy_qp(&bed->side[0]);
	side_destroy_qp(&bed->side[1]);
	/* Regions go before their PD. */
	area_destroy(&bed->side[0].area);
	area_destroy(&bed->side[1].area);
	bed_destroy(other);
}

static void key_send_other_pd(struct bed *bed, u32 arg)
{
	with_foreign(bed, local_send);
}

static void local_recv(struct bed *bed, struct side *foreign, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *work, *recv;

	if (!region(b, foreign, arg))
		return;
	recv = work_recv(b, 0, LENGTH);
	work_key(recv, &b->area, 0, LENGTH);
	spoil(recv, arg);
	area_fill(&a->area, 0, LENGTH, 1);
	work = work_send(a, IB_WR_SEND, 0, LENGTH);
	if (!post_recv(b, recv) || !post(a, work))
		return;
	if (bed->iwarp)
		cq_next(a->scq, &(struct ib_wc){});
	else
		sent_as(a, work, IB_WC_REM_OP_ERR);
	got_as(b, recv, IB_WC_LOC_PROT_ERR);
	side_becomes(b, IB_QPS_ERR);
	untouched(&b->area, arg);
}

/* @arg: what is wrong with where a receive puts its data */
static void key_recv(struct bed *bed, u32 arg)
{
	local_recv(bed, NULL, arg);
}

static void key_recv_other_pd(struct bed *bed, u32 arg)
{
	with_foreign(bed, local_recv);
}

/* @arg: what is wrong with where a READ puts its data */
static void key_read(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *work;

	if (!area_register(b, &b->area, IB_ACCESS_REMOTE_READ) || !region(a, NULL, arg))
		return;
	area_fill(&b->area, 0, LENGTH, 1);
	work = work_rdma(a, IB_WR_RDMA_READ, 0, LENGTH, area_remote(&b->area, 0),
			 area_rkey(&b->area));
	work_key(work, &a->area, 0, LENGTH);
	spoil(work, arg);
	if (!post(a, work))
		return;
	sent_as(a, work, IB_WC_LOC_PROT_ERR);
	side_becomes(a, IB_QPS_ERR);
	untouched(&a->area, arg);
}

/* REG_MR and LOCAL_INV are of the QP's own PD. @arg: opcode */
static void key_op_other_pd(struct bed *bed, u32 arg)
{
	struct bed *other = bed_create(bed->ib, &bed->attr);
	struct side *a = &bed->side[0], *foreign;
	struct work *work;

	if (!other)
		return;
	foreign = &other->side[0];
	if (!area_register(foreign, &foreign->area, ALL_RIGHTS))
		goto out;
	if (arg == IB_WR_LOCAL_INV)
		work = work_local_inv(a, area_rkey(&foreign->area));
	else
		work = area_invalidate(foreign, &foreign->area) ?
		       area_reg_work(bed, &foreign->area, ALL_RIGHTS) : NULL;
	if (work && !post_try(a, work, NULL))
		send_fails(a, work);
out:
	side_destroy_qp(a);
	bed_destroy(other);
}

static void key_inv_unknown(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0];
	struct work *work;

	if (!area_register(a, &a->area, ALL_RIGHTS))
		return;
	work = work_local_inv(a, area_rkey(&a->area) ^ 0xff00);
	if (!post_try(a, work, NULL))
		send_fails(a, work);
}

const struct conf_case key_cases[] = {
	{ "key/send_read_only", key_send_good, 0, NEED_REG },
	{ "key/send_key", key_send, FAULT_KEY, NEED_REG },
	{ "key/send_end", key_send, FAULT_END, NEED_REG },
	{ "key/send_begin", key_send, FAULT_BEGIN, NEED_REG },
	{ "key/send_old_key", key_send, FAULT_OLD, NEED_REG },
	{ "key/send_other_pd", key_send_other_pd, 0, NEED_REG },
	{ "key/send_unready", key_send_unready },
	{ "key/recv_key", key_recv, FAULT_KEY, NEED_REG },
	{ "key/recv_end", key_recv, FAULT_END, NEED_REG },
	{ "key/recv_begin", key_recv, FAULT_BEGIN, NEED_REG },
	{ "key/recv_old_key", key_recv, FAULT_OLD, NEED_REG },
	{ "key/recv_read_only", key_recv, FAULT_READ_ONLY, NEED_REG },
	{ "key/recv_other_pd", key_recv_other_pd, 0, NEED_REG },
	{ "key/read_key", key_read, FAULT_KEY, NEED_REG },
	{ "key/read_end", key_read, FAULT_END, NEED_REG },
	{ "key/read_old_key", key_read, FAULT_OLD, NEED_REG },
	{ "key/read_read_only", key_read, FAULT_READ_ONLY, NEED_REG },
	{ "key/reg_other_pd", key_op_other_pd, IB_WR_REG_MR, NEED_REG },
	{ "key/inv_other_pd", key_op_other_pd, IB_WR_LOCAL_INV, NEED_REG },
	{ "key/inv_unknown", key_inv_unknown, 0, NEED_REG },
	{}
};
