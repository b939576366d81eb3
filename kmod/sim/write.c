// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * RDMA WRITE. One that is like the last needs no look-up and no cursor (plain.h). Whatever
 * that cannot do, or may not, is left to the general way, which says what is wrong.
 */
#include "plain.h"

/* Where it reads from, if that takes a look-up. */
static bool learn_source(struct sim_qp *qp, const struct sim_wqe *wqe)
{
	const struct ib_sge *sge = wqe->sge;

	if (wqe->flags & IB_SEND_INLINE)
		return true;
	return wqe->num_sge == 1 && sge->lkey == SIM_LOCAL_DMA_LKEY &&
	       sim_dma_window(sim_of_qp(qp), &qp->hint.from, sge->addr, sge->length, false);
}

static bool learn_target(struct sim_hint *hint, const struct ib_sge *remote)
{
	struct sim_qp *peer = hint->peer;
	struct sim_window to = {};

	hint->mr = sim_mr_get(sim_of_qp(peer), peer->ib.pd, remote, IB_ACCESS_REMOTE_WRITE,
			      &hint->registration);
	if (hint->mr) {
		if (!sim_mr_window(hint->mr, &to, remote->addr, remote->length, true))
			to.length = 0;
		sim_mr_put(hint->mr);
	}
	hint->rkey = remote->lkey;
	hint->to = to;
	return to.length;
}

static u32 write_pieces(struct sim_qp *qp, struct sim_wqe *wqe, struct sim_qp *peer,
			struct ib_sge *remote)
{
	struct sim_cursor from, to;
	enum sim_copied copied;

	sim_cursor_payload(&from, qp, wqe);
	sim_cursor_remote(&to, peer, remote, IB_ACCESS_REMOTE_WRITE);
	copied = sim_copy(&to, &from, wqe->length);
	sim_cursor_end(&from);
	sim_cursor_end(&to);
	if (copied == SIM_BAD_SOURCE)
		return IB_WC_LOC_PROT_ERR;
	return copied == SIM_BAD_TARGET ? IB_WC_REM_ACCESS_ERR : IB_WC_SUCCESS;
}

/* Of an owner's run that has found its peer; nothing is said to the peer. */
u32 sim_write(struct sim_qp *qp, struct sim_wqe *wqe, struct sim_qp *peer)
{
	struct ib_sge remote = {
		.addr = wqe->remote_addr,
		.length = wqe->length,
		.lkey = wqe->rkey,
	};

	if (!(READ_ONCE(peer->attr.qp_access_flags) & IB_ACCESS_REMOTE_WRITE))
		return IB_WC_REM_INV_REQ_ERR;
	if (wqe->length && learn_source(qp, wqe) && learn_target(&qp->hint, &remote) &&
	    sim_write_again(qp, wqe))
		return IB_WC_SUCCESS;
	return write_pieces(qp, wqe, peer, &remote);
}
