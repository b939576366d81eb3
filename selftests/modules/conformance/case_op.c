// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Each opcode: what it moves, and what both completions say. */
#include "conformance.h"

#define BYTES	5000	/* several packets, the last one short and odd */
#define PLACE	96	/* where in its area the peer receives */
#define IMM	cpu_to_be32(0x01c0ffee)

/* @arg: bytes */
static void op_send(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *recv = post_receive(b, PLACE, AREA_SIZE - PLACE);
	struct ib_wc wc;

	area_fill(&a->area, 8, arg, 1);
	do_work(a, work_send(a, IB_WR_SEND, 8, arg));
	if (!got(b, recv, arg, &wc))
		return;
	expect_is(wc.opcode, IB_WC_RECV);
	expect_is(wc.wc_flags & (IB_WC_WITH_IMM | IB_WC_WITH_INVALIDATE), 0);
	area_holds(&b->area, PLACE, arg, 1);
	expect(area_is_clear(&b->area, 0, PLACE));
	expect(area_is_clear(&b->area, PLACE + arg, AREA_SIZE - PLACE - arg));
	expect(cq_empty(a->scq) && cq_empty(b->rcq) && cq_empty(b->scq) && cq_empty(a->rcq));
}

static void op_send_imm(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *recv = post_receive(b, 0, AREA_SIZE);
	struct work *work = work_send(a, IB_WR_SEND_WITH_IMM, 0, arg);
	struct ib_wc wc;

	work->send.ex.imm_data = IMM;
	area_fill(&a->area, 0, arg, 2);
	do_work(a, work);
	if (!got(b, recv, arg, &wc))
		return;
	expect_is(wc.opcode, IB_WC_RECV);
	expect(wc.wc_flags & IB_WC_WITH_IMM);
	expect(wc.ex.imm_data == IMM);
	area_holds(&b->area, 0, arg, 2);
}

static void op_send_inval(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *recv = post_receive(b, 0, AREA_SIZE);
	struct work *work = work_send(a, IB_WR_SEND_WITH_INV, 0, BYTES);
	struct ib_wc wc;

	if (!area_register(b, &b->area, ALL_RIGHTS))
		return;
	work->send.ex.invalidate_rkey = area_rkey(&b->area);
	area_fill(&a->area, 0, BYTES, 3);
	do_work(a, work);
	if (!got(b, recv, BYTES, &wc))
		return;
	expect_is(wc.opcode, IB_WC_RECV);
	expect(wc.wc_flags & IB_WC_WITH_INVALIDATE);
	expect_is(wc.ex.invalidate_rkey, area_rkey(&b->area));
	area_holds(&b->area, 0, BYTES, 3);
}

static void op_write(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *recv = post_receive(b, 0, 64);

	if (!area_register(b, &b->area, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE))
		return;
	area_fill(&a->area, 0, arg, 4);
	do_work(a, work_rdma(a, IB_WR_RDMA_WRITE, 0, arg, area_remote(&b->area, PLACE),
			     area_rkey(&b->area)));
	/* What is written has arrived when what is sent after it has. */
	do_work(a, work_send(a, IB_WR_SEND, 0, 1));
	if (!got(b, recv, 1, NULL))
		return;
	area_holds(&b->area, PLACE, arg, 4);
	expect(area_is_clear(&b->area, 1, PLACE - 1));
	expect(area_is_clear(&b->area, PLACE + arg, AREA_SIZE - PLACE - arg));
}

static void op_write_imm(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *recv = post_receive(b, 0, 64);
	struct work *work;
	struct ib_wc wc;

	if (!area_register(b, &b->area, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE))
		return;
	area_fill(&a->area, 0, arg, 5);
	work = work_rdma(a, IB_WR_RDMA_WRITE_WITH_IMM, 0, arg, area_remote(&b->area, PLACE),
			 area_rkey(&b->area));
	work->send.ex.imm_data = IMM;
	do_work(a, work);
	if (!got(b, recv, arg, &wc))
		return;
	expect_is(wc.opcode, IB_WC_RECV_RDMA_WITH_IMM);
	expect(wc.wc_flags & IB_WC_WITH_IMM);
	expect(wc.ex.imm_data == IMM);
	area_holds(&b->area, PLACE, arg, 5);
	expect(area_is_clear(&b->area, 0, PLACE)); /* not what the receive names */
}

static void read_with(struct bed *bed, enum ib_wr_opcode opcode, u32 bytes)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *work;

	if (!area_register(b, &b->area, IB_ACCESS_REMOTE_READ) ||
	    !area_register(a, &a->area, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE))
		return;
	area_fill(&b->area, PLACE, bytes, 6);
	work = work_rdma(a, opcode, 0, bytes, area_remote(&b->area, PLACE), area_rkey(&b->area));
	if (bytes)
		work_key(work, &a->area, 16, bytes);
	do_work(a, work);
	area_holds(&a->area, 16, bytes, 6);
	expect(area_is_clear(&a->area, 0, 16));
	expect(area_is_clear(&a->area, 16 + bytes, AREA_SIZE - 16 - bytes));
	expect(cq_empty(b->rcq) && cq_empty(b->scq));
}

static void op_read(struct bed *bed, u32 arg)
{
	read_with(bed, IB_WR_RDMA_READ, arg);
}

/* The key of where the data go is invalid afterwards. */
static void op_read_inv(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *work;

	if (!area_register(b, &b->area, IB_ACCESS_REMOTE_READ) ||
	    !area_register(a, &a->area, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE))
		return;
	area_fill(&b->area, 0, BYTES, 6);
	work = work_rdma(a, IB_WR_RDMA_READ_WITH_INV, 0, BYTES, area_remote(&b->area, 0),
			 area_rkey(&b->area));
	work_key(work, &a->area, 0, BYTES);
	work->send.ex.invalidate_rkey = area_rkey(&a->area);
	if (!do_work(a, work) || !area_holds(&a->area, 0, BYTES, 6))
		return;
	work = work_send(a, IB_WR_SEND, 0, 64);
	work_key(work, &a->area, 0, 64);
	if (post(a, work))
		send_fails(a, work);
}

static void op_read_len(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *work;
	struct ib_wc wc;

	if (!area_register(b, &b->area, IB_ACCESS_REMOTE_READ) ||
	    !area_register(a, &a->area, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE))
		return;
	work = work_rdma(a, IB_WR_RDMA_READ, 0, BYTES, area_remote(&b->area, 0),
			 area_rkey(&b->area));
	work_key(work, &a->area, 0, BYTES);
	if (post(a, work) && sent(a, work, &wc))
		expect_is(wc.byte_len, BYTES);
}

static void op_reg_mr(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0];
	u32 key;

	if (!area_register(a, &a->area, ALL_RIGHTS))
		return;
	key = area_rkey(&a->area);
	expect_is(a->area.mr->lkey & 0xff, key & 0xff);
	expect_is(a->area.mr->length, AREA_SIZE);
}

static void op_local_inv(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0];

	if (area_register(a, &a->area, ALL_RIGHTS))
		area_invalidate(a, &a->area);
}

/* Both ways at once. */
static void op_duplex(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *ra, *rb, *sa, *sb;
	u32 i;

	area_fill(&a->area, 0, BYTES, 7);
	area_fill(&b->area, 0, BYTES, 8);
	for (i = 0; i < 8 && !conf_failed(); i++) {
		ra = post_receive(a, AREA_SIZE / 2, BYTES);
		rb = post_receive(b, AREA_SIZE / 2, BYTES);
		sa = work_send(a, IB_WR_SEND, 0, BYTES);
		sb = work_send(b, IB_WR_SEND, 0, BYTES);
		if (post(a, sa) && post(b, sb) && sent(a, sa, NULL) && sent(b, sb, NULL) &&
		    got(a, ra, BYTES, NULL) && got(b, rb, BYTES, NULL)) {
			area_holds(&a->area, AREA_SIZE / 2, BYTES, 8);
			area_holds(&b->area, AREA_SIZE / 2, BYTES, 7);
		}
	}
}

/* Solicited or not is no matter of the completion, but the flag must not disturb. */
static void op_solicited(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *recv = post_receive(b, 0, 64);
	struct work *work = work_send(a, IB_WR_SEND, 0, 64);

	work->send.send_flags |= IB_SEND_SOLICITED;
	do_work(a, work);
	got(b, recv, 64, NULL);
}

const struct conf_case op_cases[] = {
	{ "op/send", op_send, BYTES },
	{ "op/send_one_byte", op_send, 1 },
	{ "op/send_nothing", op_send, 0 },
	{ "op/send_imm", op_send_imm, BYTES, NEED_IB },
	{ "op/send_imm_nothing", op_send_imm, 0, NEED_IB },
	{ "op/send_inval", op_send_inval, 0, NEED_REG },
	{ "op/send_solicited", op_solicited },
	{ "op/write", op_write, BYTES, NEED_REG },
	{ "op/write_one_byte", op_write, 1, NEED_REG },
	{ "op/write_nothing", op_write, 0, NEED_REG },
	{ "op/write_imm", op_write_imm, BYTES, NEED_IB | NEED_REG },
	{ "op/write_imm_nothing", op_write_imm, 0, NEED_IB | NEED_REG },
	{ "op/read", op_read, BYTES, NEED_REG },
	{ "op/read_one_byte", op_read, 1, NEED_REG },
	{ "op/read_nothing", op_read, 0, NEED_IB | NEED_REG },
	{ "op/read_byte_len", op_read_len, 0, NEED_REG },
	{ "op/read_inv", op_read_inv, 0, NEED_READ_INV },
	{ "op/reg_mr", op_reg_mr, 0, NEED_REG },
	{ "op/local_inv", op_local_inv, 0, NEED_REG },
	{ "op/both_ways", op_duplex },
	{}
};
