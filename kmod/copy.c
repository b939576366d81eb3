// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Copies of work requests whose caller keeps them on its stack.
 *
 * They are needed from the post until the driver has made WQEs of them, and the group
 * that stands for them until its done(). A place has room for one copy.
 */
#include <linux/string.h>

#include "path.h"

/*
 * The copy for the place at @pos. There are twice as many as places: a place is free
 * again before done() runs for what was in it, and done() needs the copy.
 */
static struct kverbs_copy *copy_at(struct kverbs_sq *sq, u32 pos)
{
	return sq->copies + (size_t)(pos & (2 * sq->mask + 1)) * sq->copy_size;
}

static void copied_done(struct kverbs_req *req, enum ib_wc_status status)
{
	struct kverbs_copy *copy = container_of(req, struct kverbs_copy, req);
	struct ib_wc wc = {
		.wr_cqe = copy->cqe,
		.status = status,
		.vendor_err = req->vendor_err,
		.qp = copy->qp,
	};

	copy->cqe->done(copy->ibcq, &wc);
}

static size_t wr_size(const struct kverbs_sq *sq, enum ib_wr_opcode opcode)
{
	switch (kverbs_op_counter(opcode)) {
	case KVERBS_OP_WRITE:
	case KVERBS_OP_READ:
		return sizeof(struct ib_rdma_wr);
	case KVERBS_OP_ATOMIC:
		return sizeof(struct ib_atomic_wr);
	case KVERBS_OP_REG_MR:
		return sizeof(struct ib_reg_wr);
	default:
		return sq->qp->qp_type == IB_QPT_UD ? sizeof(struct ib_ud_wr) :
						      sizeof(struct ib_send_wr);
	}
}

/* Is there room for the SGEs? 0, or the counter of the reason why not. */
enum kverbs_counter kverbs_copy_check(const struct kverbs_sq *sq, const struct ib_send_wr *wr)
{
	if (!sq->copies)
		return KVERBS_REFUSED_SGE;
	for (; wr; wr = wr->next)
		if ((u32)wr->num_sge > sq->copy_sge)
			return KVERBS_REFUSED_SGE;
	return 0;
}

/* Copy the chain into the copies of its places; the first of them carries the group. */
struct kverbs_req *kverbs_copy(struct kverbs_sq *sq, const struct ib_send_wr *wr,
			       struct ib_cqe *cqe, u32 pos, const struct kverbs_run *run)
{
	struct kverbs_copy *first = copy_at(sq, pos), *copy = first;
	struct kverbs_req *req = &first->req;

	for (;;) {
		memcpy(&copy->any, wr, wr_size(sq, wr->opcode));
		memcpy(copy->sge, wr->sg_list, wr->num_sge * sizeof(*copy->sge));
		copy->any.wr.sg_list = copy->sge;
		wr = wr->next;
		if (!wr)
			break;
		copy->any.wr.next = &copy_at(sq, ++pos)->any.wr;
		copy = copy_at(sq, pos);
	}
	first->cqe = cqe;
	first->qp = sq->qp;
	first->ibcq = sq->ibcq;
	req->wr = &first->any.wr;
	req->last = &copy->any.wr;
	req->done = copied_done;
	req->inline_sge = NULL;
	req->inlined = false;
	req->leads = false;
	req->status = IB_WC_SUCCESS;
	req->byte_len = run->bytes;
	req->nr_wrs = run->nr_wrs;
	req->run = *run;
	req->left = run->nr_wrs;
	return req;
}
