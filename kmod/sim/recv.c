// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What arrives at a queue pair: a message takes a receive, is scattered into it, and is
 * reported. One deliverer at a time, by the lock bit; who does not get it comes again, and
 * nobody spins, since the holder may be what an interrupt has interrupted.
 *
 * A receive that was taken stays taken until a message has used it: a message that fails
 * at its sender's side costs the receiver nothing.
 */
#include "sim.h"

bool sim_rx_trylock(struct sim_qp *qp)
{
	return !test_and_set_bit_lock(0, &qp->rx_busy);
}

void sim_rx_unlock(struct sim_qp *qp)
{
	clear_bit_unlock(0, &qp->rx_busy);
}

/* SIM_RNR_NAK if there is none. */
u32 sim_recv_take(struct sim_qp *qp)
{
	u32 status;

	if (qp->taken)
		return IB_WC_SUCCESS;
	if (qp->srq) {
		status = sim_srq_take(qp->srq, qp->srq_rwqe);
		if (status == IB_WC_SUCCESS)
			qp->taken = qp->srq_rwqe;
		return status;
	}
	qp->taken = sim_rq_peek(&qp->rq);
	return qp->taken ? IB_WC_SUCCESS : SIM_RNR_NAK;
}

/* The receive that was taken ends, and is reported. */
void sim_recv_done(struct sim_qp *qp, u32 status, const struct sim_arrival *arrival)
{
	struct sim_cqe cqe = {
		.wc = {
			.wr_id = qp->taken->wr_id,
			.status = status,
			.opcode = arrival->opcode,
			.byte_len = arrival->length,
			.qp = &qp->ib,
			.ex.invalidate_rkey = arrival->ex,
			.src_qp = arrival->src_qpn,
			.wc_flags = arrival->wc_flags,
			.port_num = 1,
			.network_hdr_type = arrival->network_hdr_type,
		},
	};

	qp->taken = NULL;
	qp->received++;
	if (!qp->srq)
		sim_rq_consume(&qp->rq);
	sim_cqe_write(to_sim_cq(qp->ib.recv_cq), &cqe, arrival->solicited);
}

static u32 rwqe_room(const struct sim_rwqe *rwqe)
{
	u32 i, room = 0;

	for (i = 0; i < rwqe->num_sge; i++)
		room += rwqe->sge[i].length;
	return room;
}

/*
 * Scatter a message, behind a header if there is one, into the receive that was taken:
 * IB_WC_LOC_LEN_ERR and IB_WC_LOC_PROT_ERR are the receiver's, IB_WC_GENERAL_ERR says that
 * the source was bad.
 */
u32 sim_recv_scatter(struct sim_qp *qp, struct sim_cursor *from, u32 length, void *header)
{
	const struct sim_rwqe *rwqe = qp->taken;
	enum sim_copied copied = SIM_COPIED;
	struct sim_cursor head, to;

	if (length + (header ? SIM_GRH_SIZE : 0) > rwqe_room(rwqe))
		return IB_WC_LOC_LEN_ERR;
	sim_cursor_sgl(&to, qp, rwqe->sge, rwqe->num_sge, IB_ACCESS_LOCAL_WRITE);
	if (header) {
		sim_cursor_buffer(&head, header, SIM_GRH_SIZE);
		copied = sim_copy(&to, &head, SIM_GRH_SIZE);
	}
	if (copied == SIM_COPIED)
		copied = sim_copy(&to, from, length);
	sim_cursor_end(&to);
	switch (copied) {
	case SIM_COPIED:
		return IB_WC_SUCCESS;
	case SIM_BAD_TARGET:
		return IB_WC_LOC_PROT_ERR;
	default:
		return IB_WC_GENERAL_ERR;
	}
}

/*
 * The queue pair is in the error state: its own receives are flushed, one it had taken from
 * a shared queue too, and then it takes no more. False: another is delivering, come again.
 */
bool sim_recv_flush(struct sim_qp *qp)
{
	const struct sim_arrival nothing = { .opcode = IB_WC_RECV };
	bool last;

	if (!sim_rx_trylock(qp))
		return false;
	while (qp->taken || (!qp->srq && sim_recv_take(qp) == IB_WC_SUCCESS)) {
		qp->flushed++;
		sim_recv_done(qp, IB_WC_WR_FLUSH_ERR, &nothing);
	}
	last = qp->srq && !qp->last_wqe_reached;
	qp->last_wqe_reached |= last;
	sim_rx_unlock(qp);
	if (last)
		sim_qp_event(qp, IB_EVENT_QP_LAST_WQE_REACHED);
	return true;
}
