// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What a peer may do to memory. The requester's status is InfiniBand's; on iWARP a write
 * is complete when it is sent, so that only reads fail there. Memory never changes.
 */
#include "conformance.h"

#define GUARD	0x5a5a5a5a5a5a5a5aULL

/* What is wrong with a remote request. */
enum fault {
	FAULT_NONE,
	FAULT_KEY,		/* no such key */
	FAULT_KEY_OLD,		/* the region's, but of another time */
	FAULT_END,		/* one byte beyond the end */
	FAULT_BEGIN,		/* one byte before the begin */
	FAULT_WRAP,		/* the end wraps around */
};

#define PART	1024	/* begin of the region in the area */
#define LENGTH	2048	/* of the region */

/* arg: opcode, fault, rights of the region */
#define ARG(opcode, fault, rights)	((opcode) | (fault) << 8 | (rights) << 16)

static bool is_atomic(enum ib_wr_opcode opcode)
{
	return opcode == IB_WR_ATOMIC_CMP_AND_SWP || opcode == IB_WR_ATOMIC_FETCH_AND_ADD;
}

static struct work *faulty(struct bed *bed, enum ib_wr_opcode opcode, enum fault fault)
{
	struct side *a = &bed->side[0];
	struct area *target = &bed->side[1].area;
	u64 remote = area_remote(target, 0);
	u32 bytes = fault == FAULT_NONE ? 64 : LENGTH;
	u32 key = area_rkey(target);
	struct work *work;

	switch (fault) {
	case FAULT_KEY:
		key ^= 0xff00;
		break;
	case FAULT_KEY_OLD:
		key = (key & ~0xff) | ((key - 1) & 0xff);
		break;
	case FAULT_END:
		remote++;
		break;
	case FAULT_BEGIN:
		remote--;
		break;
	case FAULT_WRAP:
		remote = ~0ULL - 8;
		break;
	default:
		break;
	}
	if (is_atomic(opcode))
		return work_atomic(a, opcode, remote, key, 0, GUARD);
	work = work_rdma(a, opcode, 0, bytes, remote, key);
	if (opcode == IB_WR_RDMA_READ)
		work_key(work, &a->area, 0, bytes);
	return work;
}

static bool target(struct bed *bed, u32 rights)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];

	if (!area_register(a, &a->area, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE))
		return false;
	if (!area_register_part(b, &b->area, PART, LENGTH, rights))
		return false;
	area_fill(&a->area, 0, LENGTH + 64, 1);
	return true;
}

/* The request is refused, and nothing was moved either way. */
static void refused(struct bed *bed, struct work *work, enum ib_wc_status status)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct ib_wc wc;

	if (!post(a, work))
		return;
	if (!bed->iwarp)
		sent_as(a, work, status);
	else if (cq_next(a->scq, &wc) && work->send.opcode == IB_WR_RDMA_READ)
		expect(wc.status != IB_WC_SUCCESS);
	side_becomes(a, IB_QPS_ERR);
	expect(area_is_clear(&b->area, 0, AREA_SIZE));
	area_holds(&a->area, 0, LENGTH + 64, 1);
}

static void access_fault(struct bed *bed, u32 arg)
{
	if (target(bed, arg >> 16))
		refused(bed, faulty(bed, arg & 0xff, arg >> 8 & 0xff), IB_WC_REM_ACCESS_ERR);
}

/* The responder fails, too: its QP, its receives, and an event that names it. */
static void access_responder(struct bed *bed, u32 arg)
{
	struct side *b = &bed->side[1];
	struct work *recv = post_receive(b, 0, 64);

	if (!target(bed, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ))
		return;
	refused(bed, faulty(bed, IB_WR_RDMA_WRITE, FAULT_NONE), IB_WC_REM_ACCESS_ERR);
	side_becomes(b, IB_QPS_ERR);
	got_as(b, recv, IB_WC_WR_FLUSH_ERR);
}

static void access_event(struct bed *bed, u32 arg)
{
	struct side *b = &bed->side[1];

	if (!target(bed, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ))
		return;
	refused(bed, faulty(bed, IB_WR_RDMA_WRITE, FAULT_NONE), IB_WC_REM_ACCESS_ERR);
	expect(event_seen(b->events, IB_EVENT_QP_ACCESS_ERR));
}

/* All of the region, to its last byte, may be used. */
static void access_whole(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *recv = post_receive(b, 0, 64);

	if (!target(bed, ALL_RIGHTS))
		return;
	do_work(a, work_rdma(a, IB_WR_RDMA_WRITE, 0, LENGTH, area_remote(&b->area, 0),
			     area_rkey(&b->area)));
	do_work(a, work_send(a, IB_WR_SEND, 0, 1));
	if (!got(b, recv, 1, NULL))
		return;
	area_holds(&b->area, PART, LENGTH, 1);
	expect(area_is_clear(&b->area, PART + LENGTH, 64));
	expect(area_is_clear(&b->area, PART - 64, 64));
}

/* Without a byte to move no key is looked at. */
static void access_nothing(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0];

	do_work(a, work_rdma(a, arg, 0, 0, 0, 0));
}

static void access_other_pd(struct bed *bed, u32 arg)
{
	struct bed *other = bed_create(bed->ib, &bed->attr);
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct side *foreign;
	struct work *work;

	if (!other)
		return;
	foreign = &other->side[1];
	if (!area_register(foreign, &foreign->area, ALL_RIGHTS) || !target(bed, ALL_RIGHTS))
		goto out;
	work = work_rdma(a, arg, 0, 64, area_remote(&foreign->area, 0),
			 area_rkey(&foreign->area));
	if (arg == IB_WR_RDMA_READ)
		work_key(work, &a->area, 0, 64);
	refused(bed, work, IB_WC_REM_ACCESS_ERR);
	expect(area_is_clear(&foreign->area, 0, 64));
	side_destroy_qp(a);
	side_destroy_qp(b);
out:
	bed_destroy(other);
}

static void access_old_key(struct bed *bed, u32 arg)
{
	struct side *b = &bed->side[1];
	struct work *work;

	if (!target(bed, ALL_RIGHTS))
		return;
	work = faulty(bed, arg, FAULT_NONE);
	if (area_invalidate(b, &b->area))
		refused(bed, work, IB_WC_REM_ACCESS_ERR);
}

static void access_sent_inval(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *recv = post_receive(b, 0, 64);
	struct work *work = work_send(a, IB_WR_SEND_WITH_INV, 0, 0);

	if (!target(bed, ALL_RIGHTS))
		return;
	work->send.ex.invalidate_rkey = area_rkey(&b->area);
	do_work(a, work);
	if (got(b, recv, 0, NULL))
		refused(bed, faulty(bed, arg, FAULT_NONE), IB_WC_REM_ACCESS_ERR);
}

/* A region that was mapped, but for which no REG_MR was posted. */
static void access_unregistered(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];

	if (!area_register(a, &a->area, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE) ||
	    !area_map(b, &b->area, PART, LENGTH))
		return;
	area_fill(&a->area, 0, LENGTH + 64, 1);
	refused(bed, faulty(bed, arg, FAULT_NONE), IB_WC_REM_ACCESS_ERR);
}

/* The QP gives no such right, though the region does: an opcode it does not support. */
static void access_qp(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *work;
	struct ib_wc wc;

	if (!target(bed, ALL_RIGHTS))
		return;
	work = faulty(bed, arg, FAULT_NONE);
	if (!post(a, work) || !cq_next(a->scq, &wc))
		return;
	expect(wc.status == IB_WC_REM_INV_REQ_ERR || wc.status == IB_WC_REM_ACCESS_ERR);
	side_becomes(a, IB_QPS_ERR);
	side_becomes(b, IB_QPS_ERR);
	expect(area_is_clear(&b->area, 0, AREA_SIZE));
}

/* A key that cannot be invalidated: the peer gets an error, whichever. */
static void access_inval_wrong(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *work = work_send(a, IB_WR_SEND_WITH_INV, 0, 0);

	post_receive(b, 0, 64);
	if (!target(bed, ALL_RIGHTS))
		return;
	work->send.ex.invalidate_rkey = area_rkey(&b->area) ^ 0xff00;
	if (post(a, work))
		send_fails(a, work);
	side_becomes(b, IB_QPS_ERR);
}

#define DO_WRITE	IB_WR_RDMA_WRITE
#define DO_READ	IB_WR_RDMA_READ
#define DO_SWAP	IB_WR_ATOMIC_CMP_AND_SWP
#define DO_ADD	IB_WR_ATOMIC_FETCH_AND_ADD
#define BUT(right)	(ALL_RIGHTS & ~(right))

const struct conf_case access_cases[] = {
	{ "access/whole_region", access_whole, 0, NEED_REG },
	{ "access/write_denied", access_fault,
	  ARG(DO_WRITE, FAULT_NONE, BUT(IB_ACCESS_REMOTE_WRITE)), NEED_REG },
	{ "access/read_denied", access_fault,
	  ARG(DO_READ, FAULT_NONE, BUT(IB_ACCESS_REMOTE_READ)), NEED_REG },
	{ "access/swap_denied", access_fault,
	  ARG(DO_SWAP, FAULT_NONE, BUT(IB_ACCESS_REMOTE_ATOMIC)), NEED_REG | NEED_ATOMIC },
	{ "access/add_denied", access_fault,
	  ARG(DO_ADD, FAULT_NONE, BUT(IB_ACCESS_REMOTE_ATOMIC)), NEED_REG | NEED_ATOMIC },
	{ "access/write_key", access_fault, ARG(DO_WRITE, FAULT_KEY, ALL_RIGHTS), NEED_REG },
	{ "access/read_key", access_fault, ARG(DO_READ, FAULT_KEY, ALL_RIGHTS), NEED_REG },
	{ "access/add_key", access_fault, ARG(DO_ADD, FAULT_KEY, ALL_RIGHTS),
	  NEED_REG | NEED_ATOMIC },
	{ "access/write_end", access_fault, ARG(DO_WRITE, FAULT_END, ALL_RIGHTS), NEED_REG },
	{ "access/read_end", access_fault, ARG(DO_READ, FAULT_END, ALL_RIGHTS), NEED_REG },
	{ "access/write_begin", access_fault, ARG(DO_WRITE, FAULT_BEGIN, ALL_RIGHTS), NEED_REG },
	{ "access/read_begin", access_fault, ARG(DO_READ, FAULT_BEGIN, ALL_RIGHTS), NEED_REG },
	{ "access/write_wrap", access_fault, ARG(DO_WRITE, FAULT_WRAP, ALL_RIGHTS), NEED_REG },
	{ "access/read_wrap", access_fault, ARG(DO_READ, FAULT_WRAP, ALL_RIGHTS), NEED_REG },
	{ "access/write_old_key", access_old_key, DO_WRITE, NEED_REG },
	{ "access/read_old_key", access_old_key, DO_READ, NEED_REG },
	{ "access/write_last_key", access_fault, ARG(DO_WRITE, FAULT_KEY_OLD, ALL_RIGHTS),
	  NEED_REG },
	{ "access/write_sent_inval", access_sent_inval, DO_WRITE, NEED_REG },
	{ "access/read_sent_inval", access_sent_inval, DO_READ, NEED_REG },
	{ "access/write_unregistered", access_unregistered, DO_WRITE, NEED_REG },
	{ "access/write_other_pd", access_other_pd, DO_WRITE, NEED_REG },
	{ "access/read_other_pd", access_other_pd, DO_READ, NEED_REG },
	{ "access/write_nothing", access_nothing, DO_WRITE },
	{ "access/read_nothing", access_nothing, DO_READ, NEED_IB },
	{ "access/responder_fails", access_responder, 0, NEED_REG },
	{ "access/responder_event", access_event, 0, NEED_REG },
	{ "access/qp_write_denied", access_qp, DO_WRITE, NEED_IB | NEED_REG,
	  { .deny = IB_ACCESS_REMOTE_WRITE } },
	{ "access/qp_read_denied", access_qp, DO_READ, NEED_IB | NEED_REG,
	  { .deny = IB_ACCESS_REMOTE_READ } },
	{ "access/qp_add_denied", access_qp, DO_ADD, NEED_IB | NEED_REG | NEED_ATOMIC,
	  { .deny = IB_ACCESS_REMOTE_ATOMIC } },
	{ "access/inval_wrong_key", access_inval_wrong, 0, NEED_IB | NEED_REG },
	{}
};
