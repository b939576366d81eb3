/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A CQE's way to its ring: a place is reserved, filled, and published, and whoever has armed
 * the completion queue is told. What a send WQE has ended with is written in its place.
 */
#ifndef _KVERBS_SIM_CQE_H
#define _KVERBS_SIM_CQE_H

#include <linux/string.h>

#include "sim.h"

static inline struct sim_cqe *sim_cq_slot(const struct sim_cq *cq, u64 index)
{
	return &cq->ring[index & cq->mask];
}

/* False: there is no place for one more, as the consumer is told once; it is lost. */
static __always_inline bool sim_cq_reserve(struct sim_cq *cq, s64 *index)
{
	s64 head = atomic64_read(&cq->head);

	do {
		if (unlikely(head - atomic64_read(&cq->tail) >= cq->depth)) {
			sim_cq_overflow(cq);
			return false;
		}
	} while (!atomic64_try_cmpxchg(&cq->head, &head, head + 1));
	*index = head;
	return true;
}

static __always_inline void sim_cq_publish(struct sim_cq *cq, struct sim_cqe *cqe, s64 index,
					   bool solicited)
{
	/* ORDER: the CQE before its number; pairs with cq_ready() */
	smp_store_release(&cqe->seq, index + 1);
	smp_mb();	/* ORDER: the CQE before the arm; pairs with sim_req_notify_cq() */
	if (unlikely(atomic_read(&cq->armed)))
		sim_cq_notify(cq, solicited);
}

/* Field by field: it is faster than to clear all and then fill it. */
static __always_inline void sim_cqe_fill(struct sim_cqe *cqe, struct sim_qp *qp,
					 const struct sim_wqe *wqe, u32 status,
					 enum ib_wc_opcode opcode, u32 retires)
{
	cqe->retires = retires;
	cqe->gone = false;
	cqe->sq = qp->sq;
	cqe->wc.wr_id = wqe->wr_id;
	cqe->wc.status = status;
	cqe->wc.opcode = opcode;
	cqe->wc.vendor_err = 0;
	cqe->wc.byte_len = wqe->length;
	cqe->wc.qp = &qp->ib;
	memset_after(&cqe->wc, 0, qp);
}

/* What a send WQE has ended with. */
static __always_inline void sim_cqe_sent(struct sim_qp *qp, const struct sim_wqe *wqe, u32 status,
					 enum ib_wc_opcode opcode, u32 retires)
{
	struct sim_cq *cq = to_sim_cq(qp->ib.send_cq);
	struct sim_cqe *cqe;
	s64 index;

	if (sim_faulty()) {
		sim_cqe_sent_faulty(qp, wqe, status, opcode, retires);
		return;
	}
	if (unlikely(!sim_cq_reserve(cq, &index)))
		return;
	cqe = sim_cq_slot(cq, index);
	sim_cqe_fill(cqe, qp, wqe, status, opcode, retires);
	sim_cq_publish(cq, cqe, index, status != IB_WC_SUCCESS);
}

#endif /* _KVERBS_SIM_CQE_H */
