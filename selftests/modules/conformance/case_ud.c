// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Datagrams: addresses, the 40 bytes before them, Q_Keys, and what is dropped. */
#include "conformance.h"

#define GRH	40
#define IMM	cpu_to_be32(0x0badcafe)

static struct work *datagram(struct side *side, struct ib_ah *ah, u32 bytes)
{
	struct work *work = work_send(side, IB_WR_SEND, 0, bytes);

	work->ud.ah = ah;
	work->ud.remote_qpn = side->peer->qp->qp_num;
	work->ud.remote_qkey = CONF_QKEY;
	work->ud.port_num = side->bed->port;
	return work;
}

/* Each case runs with an address of the port itself. */
struct ud_test {
	struct bed *bed;
	struct side *a;
	struct side *b;
	struct ib_ah *ah;
};

static bool begin(struct ud_test *test, struct bed *bed)
{
	struct ib_ah *ah = rdma_create_ah(bed->pd, &bed->ah, RDMA_CREATE_AH_SLEEPABLE);

	*test = (struct ud_test){ .bed = bed, .a = &bed->side[0], .b = &bed->side[1], .ah = ah };
	return expect(!IS_ERR(ah));
}

static void end(struct ud_test *test)
{
	side_destroy_qp(test->a);
	side_destroy_qp(test->b);
	rdma_destroy_ah(test->ah, RDMA_DESTROY_AH_SLEEPABLE);
}

/* One that must arrive, and so shows that what was sent before it has not. */
static void arrives(struct ud_test *test, struct work *recv, u32 bytes)
{
	do_work(test->a, datagram(test->a, test->ah, bytes));
	if (got(test->b, recv, bytes + GRH, NULL))
		area_holds(&test->b->area, GRH, bytes, 1);
	expect(cq_empty(test->b->rcq));
}

/* @arg: bytes */
static void ud_send(struct bed *bed, u32 arg)
{
	struct ud_test test;
	struct work *recv;
	struct ib_wc wc;

	if (!begin(&test, bed))
		return;
	area_fill(&test.a->area, 0, arg, 1);
	recv = post_receive(test.b, 0, GRH + 4096);
	do_work(test.a, datagram(test.a, test.ah, arg));
	if (got(test.b, recv, arg + GRH, &wc)) {
		expect_is(wc.src_qp, test.a->qp->qp_num);
		expect(wc.wc_flags & IB_WC_GRH);
		expect(!(wc.wc_flags & IB_WC_WITH_IMM));
		area_holds(&test.b->area, GRH, arg, 1);
		expect(area_is_clear(&test.b->area, GRH + arg, 64));
	}
	end(&test);
}

static void ud_imm(struct bed *bed, u32 arg)
{
	struct work *work, *recv;
	struct ud_test test;
	struct ib_wc wc;

	if (!begin(&test, bed))
		return;
	recv = post_receive(test.b, 0, GRH + 64);
	work = datagram(test.a, test.ah, 64);
	work->send.opcode = IB_WR_SEND_WITH_IMM;
	work->send.ex.imm_data = IMM;
	do_work(test.a, work);
	if (got(test.b, recv, 64 + GRH, &wc))
		expect(wc.wc_flags & IB_WC_WITH_IMM && wc.ex.imm_data == IMM);
	end(&test);
}

static void ud_mtu(struct bed *bed, u32 arg)
{
	u32 bytes = ib_mtu_enum_to_int(bed->mtu);
	struct ud_test test;

	if (!begin(&test, bed))
		return;
	area_fill(&test.a->area, 0, bytes, 1);
	arrives(&test, post_receive(test.b, 0, GRH + bytes), bytes);
	end(&test);
}

/* What is longer than the MTU is never sent, and that is no error of the queue. */
static void ud_beyond_mtu(struct bed *bed, u32 arg)
{
	u32 bytes = ib_mtu_enum_to_int(bed->mtu) + 1;
	struct work *work, *recv;
	struct ud_test test;
	struct ib_wc wc;

	if (!begin(&test, bed))
		return;
	area_fill(&test.a->area, 0, bytes, 1);
	recv = post_receive(test.b, 0, GRH + bytes);
	work = datagram(test.a, test.ah, bytes);
	if (!post_try(test.a, work, NULL) && cq_next(test.a->scq, &wc))
		expect(wc.status == IB_WC_SUCCESS || wc.status == IB_WC_LOC_LEN_ERR);
	expect_is(side_state(test.a), IB_QPS_RTS);
	arrives(&test, recv, 64);
	end(&test);
}

static void ud_qkey(struct bed *bed, u32 arg)
{
	struct work *work, *recv;
	struct ud_test test;

	if (!begin(&test, bed))
		return;
	area_fill(&test.a->area, 0, 64, 1);
	recv = post_receive(test.b, 0, GRH + 64);
	work = datagram(test.a, test.ah, 32);
	work->ud.remote_qkey = CONF_QKEY + 1;
	do_work(test.a, work);
	arrives(&test, recv, 64);
	end(&test);
}

/* A Q_Key with the highest bit set stands for that of the sender's QP. */
static void ud_own_qkey(struct bed *bed, u32 arg)
{
	struct work *work, *recv;
	struct ud_test test;

	if (!begin(&test, bed))
		return;
	recv = post_receive(test.b, 0, GRH + 64);
	work = datagram(test.a, test.ah, 64);
	work->ud.remote_qkey = 0x80000000;
	do_work(test.a, work);
	got(test.b, recv, GRH + 64, NULL);
	end(&test);
}

static void ud_no_receive(struct bed *bed, u32 arg)
{
	struct ud_test test;
	struct work *recv;

	if (!begin(&test, bed))
		return;
	area_fill(&test.a->area, 0, 64, 1);
	do_work(test.a, datagram(test.a, test.ah, 32));
	do_work(test.a, datagram(test.a, test.ah, 32));
	expect_is(side_state(test.b), IB_QPS_RTS);
	recv = post_receive(test.b, 0, GRH + 64);
	/* What was dropped may still be on its way, and is then what is received. */
	do_work(test.a, datagram(test.a, test.ah, 32));
	got(test.b, recv, GRH + 32, NULL);
	end(&test);
}

static void ud_no_peer(struct bed *bed, u32 arg)
{
	struct work *work, *recv;
	struct ud_test test;

	if (!begin(&test, bed))
		return;
	area_fill(&test.a->area, 0, 64, 1);
	recv = post_receive(test.b, 0, GRH + 64);
	work = datagram(test.a, test.ah, 32);
	work->ud.remote_qpn = 0xfffff0;
	do_work(test.a, work);
	arrives(&test, recv, 64);
	end(&test);
}

/* To oneself. */
static void ud_self(struct bed *bed, u32 arg)
{
	struct work *work, *recv;
	struct ud_test test;

	if (!begin(&test, bed))
		return;
	area_fill(&test.a->area, 0, 64, 1);
	recv = post_receive(test.a, 1024, GRH + 64);
	work = datagram(test.a, test.ah, 64);
	work->ud.remote_qpn = test.a->qp->qp_num;
	do_work(test.a, work);
	if (got(test.a, recv, GRH + 64, NULL))
		area_holds(&test.a->area, 1024 + GRH, 64, 1);
	end(&test);
}

/* Not for UD. @arg: opcode */
static void ud_refused(struct bed *bed, u32 arg)
{
	struct ud_test test;
	struct work *work;
	struct ib_wc wc;

	if (!begin(&test, bed))
		return;
	work = datagram(test.a, test.ah, 64);
	work->send.opcode = arg;
	if (!post_try(test.a, work, NULL) && cq_next(test.a->scq, &wc))
		expect_is(wc.status, IB_WC_LOC_QP_OP_ERR);
	end(&test);
}

/* An error of a send stops sends, not receives. */
static void ud_sqe(struct bed *bed, u32 arg)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RTS, .cur_qp_state = IB_QPS_SQE };
	struct work *work, *recv;
	struct ud_test test;

	if (!begin(&test, bed))
		return;
	area_fill(&test.a->area, 0, 64, 1);
	recv = post_receive(test.a, 1024, GRH + 64);
	work = datagram(test.a, test.ah, 64);
	work->sge[0].lkey = ~work->sge[0].lkey;
	if (!post(test.a, work) || !sent_as(test.a, work, IB_WC_LOC_PROT_ERR) ||
	    !side_becomes(test.a, IB_QPS_SQE))
		goto out;
	do_work(test.b, datagram(test.b, test.ah, 64));
	got(test.a, recv, GRH + 64, NULL);
	work = datagram(test.a, test.ah, 64);
	if (post(test.a, work))
		sent_as(test.a, work, IB_WC_WR_FLUSH_ERR);
	if (!expect_is(ib_modify_qp(test.a->qp, &attr, IB_QP_STATE | IB_QP_CUR_STATE), 0))
		goto out;
	recv = post_receive(test.b, 0, GRH + 64);
	arrives(&test, recv, 64);
out:
	end(&test);
}

#define UD	{ .type = IB_QPT_UD }

const struct conf_case ud_cases[] = {
	{ "ud/send", ud_send, 700, NEED_IB, UD },
	{ "ud/send_nothing", ud_send, 0, NEED_IB, UD },
	{ "ud/send_imm", ud_imm, 0, NEED_IB, UD },
	{ "ud/send_mtu", ud_mtu, 0, NEED_IB, UD },
	{ "ud/beyond_mtu", ud_beyond_mtu, 0, NEED_IB, UD },
	{ "ud/qkey_wrong", ud_qkey, 0, NEED_IB, UD },
	{ "ud/qkey_own", ud_own_qkey, 0, NEED_IB, UD },
	{ "ud/no_receive", ud_no_receive, 0, NEED_IB, UD },
	{ "ud/no_peer", ud_no_peer, 0, NEED_IB, UD },
	{ "ud/self", ud_self, 0, NEED_IB, UD },
	{ "ud/no_write", ud_refused, IB_WR_RDMA_WRITE, NEED_IB, UD },
	{ "ud/no_read", ud_refused, IB_WR_RDMA_READ, NEED_IB, UD },
	{ "ud/sqe", ud_sqe, 0, NEED_IB, UD },
	{}
};
