// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Work requests and their completions. A request works on the area of the side that
 * posts it, under the PD's local key unless the case says otherwise, and is signaled.
 */
#include <linux/delay.h>

#include "conformance.h"

void work_sge(struct work *work, u32 nr, struct area *area, u32 offset, u32 bytes)
{
	work->sge[nr].addr = area->dma + offset;
	work->sge[nr].length = bytes;
}

/* Under the key of the area's region instead. */
void work_key(struct work *work, struct area *area, u32 offset, u32 bytes)
{
	work->sge[0].addr = area_remote(area, offset);
	work->sge[0].length = bytes;
	work->sge[0].lkey = area->mr->lkey;
}

static struct work *work_base(struct side *side, enum ib_wr_opcode opcode)
{
	struct work *work = work_next(side->bed);
	u32 i;

	for (i = 0; i < CONF_SGES; i++)
		work->sge[i].lkey = side->bed->pd->local_dma_lkey;
	work->send.wr_cqe = &work->cqe;
	work->send.sg_list = work->sge;
	work->send.opcode = opcode;
	work->send.send_flags = IB_SEND_SIGNALED;
	return work;
}

struct work *work_send(struct side *side, enum ib_wr_opcode opcode, u32 offset, u32 bytes)
{
	struct work *work = work_base(side, opcode);

	work_sge(work, 0, &side->area, offset, bytes);
	work->send.num_sge = bytes ? 1 : 0;
	return work;
}

struct work *work_rdma(struct side *side, enum ib_wr_opcode opcode, u32 offset, u32 bytes,
		       u64 remote, u32 rkey)
{
	struct work *work = work_send(side, opcode, offset, bytes);

	work->rdma.remote_addr = remote;
	work->rdma.rkey = rkey;
	return work;
}

/* The old value goes to the begin of the area. */
struct work *work_atomic(struct side *side, enum ib_wr_opcode opcode, u64 remote, u32 rkey,
			 u64 compare_add, u64 swap)
{
	struct work *work = work_send(side, opcode, 0, sizeof(u64));

	work->atomic.remote_addr = remote;
	work->atomic.rkey = rkey;
	work->atomic.compare_add = compare_add;
	work->atomic.swap = swap;
	return work;
}

struct work *work_local_inv(struct side *side, u32 rkey)
{
	struct work *work = work_base(side, IB_WR_LOCAL_INV);

	work->send.ex.invalidate_rkey = rkey;
	return work;
}

struct work *work_recv(struct side *side, u32 offset, u32 bytes)
{
	struct work *work = work_next(side->bed);
	u32 i;

	for (i = 0; i < CONF_SGES; i++)
		work->sge[i].lkey = side->bed->pd->local_dma_lkey;
	work_sge(work, 0, &side->area, offset, bytes);
	work->recv.wr_cqe = &work->cqe;
	work->recv.sg_list = work->sge;
	work->recv.num_sge = bytes ? 1 : 0;
	return work;
}

void work_chain(struct work **works, u32 nr)
{
	u32 i;

	for (i = 1; i < nr; i++)
		works[i - 1]->send.next = &works[i]->send;
}

int post_try(struct side *side, struct work *work, struct work **bad)
{
	const struct ib_send_wr *bad_wr = NULL;
	int err = ib_post_send(side->qp, &work->send, &bad_wr);

	if (bad)
		*bad = bad_wr ? container_of(bad_wr, struct work, send) : NULL;
	return err;
}

bool post(struct side *side, struct work *work)
{
	return expect_is(post_try(side, work, NULL), 0);
}

int post_recv_try(struct side *side, struct work *work, struct work **bad)
{
	const struct ib_recv_wr *bad_wr = NULL;
	int err;

	if (side->init.srq)
		err = ib_post_srq_recv(side->init.srq, &work->recv, &bad_wr);
	else
		err = ib_post_recv(side->qp, &work->recv, &bad_wr);
	if (bad)
		*bad = bad_wr ? container_of(bad_wr, struct work, recv) : NULL;
	return err;
}

bool post_recv(struct side *side, struct work *work)
{
	return expect_is(post_recv_try(side, work, NULL), 0);
}

struct work *post_receive(struct side *side, u32 offset, u32 bytes)
{
	struct work *work = work_recv(side, offset, bytes);

	post_recv(side, work);
	return work;
}

/* The next completion must come. */
bool cq_next(struct conf_cq *cq, struct ib_wc *wc)
{
	unsigned long end = conf_deadline();
	bool late;
	int nr;

	do {
		late = time_after(jiffies, end);
		nr = ib_poll_cq(cq->ib, 1, wc);
		if (nr)
			return expect_is(nr, 1);
		usleep_range(20, 50);
	} while (!late);
	conf_fail("a completion does not come");
	return false;
}

bool cq_empty(struct conf_cq *cq)
{
	struct ib_wc wc;
	int nr = ib_poll_cq(cq->ib, 1, &wc);

	if (nr > 0)
		conf_fail("a completion too many: status %s, opcode %d",
			  ib_wc_status_msg(wc.status), wc.opcode);
	return !nr;
}

static bool belongs(const struct ib_wc *wc, const struct side *side, const struct work *work,
		    enum ib_wc_status status)
{
	bool good = true;

	if (wc->status != status) {
		conf_fail("a completion says %s, not %s", ib_wc_status_msg(wc->status),
			  ib_wc_status_msg(status));
		good = false;
	}
	if (wc->wr_cqe != &work->cqe) {
		conf_fail("a completion is of another work request");
		good = false;
	}
	return expect(wc->qp == side->qp) && good;
}

enum ib_wc_opcode done_opcode(enum ib_wr_opcode opcode)
{
	switch (opcode) {
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
		return IB_WC_RDMA_WRITE;
	case IB_WR_RDMA_READ:
	case IB_WR_RDMA_READ_WITH_INV:
		return IB_WC_RDMA_READ;
	case IB_WR_ATOMIC_CMP_AND_SWP:
		return IB_WC_COMP_SWAP;
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		return IB_WC_FETCH_ADD;
	case IB_WR_LOCAL_INV:
		return IB_WC_LOCAL_INV;
	case IB_WR_REG_MR:
		return IB_WC_REG_MR;
	default:
		return IB_WC_SEND;
	}
}

/* The next completion of a send queue is that of the request, and good. */
bool sent(struct side *side, struct work *work, struct ib_wc *wc)
{
	struct ib_wc own;

	wc = wc ?: &own;
	return cq_next(side->scq, wc) && belongs(wc, side, work, IB_WC_SUCCESS) &&
	       expect_is(wc->opcode, done_opcode(work->send.opcode));
}

bool sent_as(struct side *side, struct work *work, enum ib_wc_status status)
{
	struct ib_wc wc;

	return cq_next(side->scq, &wc) && belongs(&wc, side, work, status);
}

/* With an error, whichever. */
bool send_fails(struct side *side, struct work *work)
{
	struct ib_wc wc;

	return cq_next(side->scq, &wc) && expect(wc.status != IB_WC_SUCCESS) &&
	       belongs(&wc, side, work, wc.status);
}

bool got(struct side *side, struct work *work, u32 bytes, struct ib_wc *wc)
{
	struct ib_wc own;

	wc = wc ?: &own;
	return cq_next(side->rcq, wc) && belongs(wc, side, work, IB_WC_SUCCESS) &&
	       expect(wc->opcode & IB_WC_RECV) && expect_is(wc->byte_len, bytes);
}

bool got_as(struct side *side, struct work *work, enum ib_wc_status status)
{
	struct ib_wc wc;

	return cq_next(side->rcq, &wc) && belongs(&wc, side, work, status);
}

bool do_work(struct side *side, struct work *work)
{
	return post(side, work) && sent(side, work, NULL);
}
