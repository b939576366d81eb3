/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Plain requests, the shortest way that there is: a write like the last one, from one piece
 * of memory (inline data, or one element under the local DMA key) to one piece of the peer's,
 * near to where the last has written, and nobody waits for its CQE. It needs no look-up and
 * no cursor, and calls no handler. Whatever it cannot do, or may not, is left to the general
 * way (exec.c), which says what is wrong.
 */
#ifndef _KVERBS_SIM_PLAIN_H
#define _KVERBS_SIM_PLAIN_H

#include <linux/wait_bit.h>

#include "cqe.h"
#include "sim.h"

/* The one that is next. False: it is not published. */
static __always_inline bool sim_sq_peek(const struct sim_sq *sq, struct sim_wqe **wqe)
{
	u32 next = sq->next;

	if ((u32)atomic_read(&sq->head) == next)
		return false;
	*wqe = sim_sq_slot(sq, next);
	/* ORDER: pairs with post_accept() */
	return smp_load_acquire(&(*wqe)->seq) == next + 1;
}

static __always_inline bool sim_write_source(const struct sim_hint *hint,
					     const struct sim_wqe *wqe, const void **from)
{
	const struct ib_sge *sge = wqe->sge;

	if (wqe->flags & IB_SEND_INLINE) {
		*from = sge;
		return true;
	}
	if (unlikely(wqe->num_sge != 1 || sge->lkey != SIM_LOCAL_DMA_LKEY ||
		     !sim_window_has(&hint->from, sge->addr, wqe->length)))
		return false;
	*from = sim_window_place(&hint->from, sge->addr);
	return true;
}

/* A write like the last one. False: it is not, or may not be; nothing was done. */
static __always_inline bool sim_write_again(struct sim_qp *qp, const struct sim_wqe *wqe)
{
	const struct sim_hint *hint = &qp->hint;
	struct sim_mr *mr = hint->mr;
	u32 length = wqe->length;
	const void *from;
	void *to;

	if (unlikely(hint->epoch != sim_epoch_now() ||
		     READ_ONCE(hint->peer->state) != IB_QPS_RTS || !mr || hint->rkey != wqe->rkey ||
		     !sim_write_source(hint, wqe, &from) ||
		     !sim_window_has(&hint->to, wqe->remote_addr, length)))
		return false;
	to = sim_window_place(&hint->to, wqe->remote_addr);
	sim_mr_hold(mr);
	if (unlikely(sim_mr_registration(mr) != hint->registration)) {
		sim_mr_put(mr);
		return false;
	}
	sim_move(to, from, length);
	sim_mr_put(mr);
	return true;
}

static __always_inline void sim_count_payload(struct sim_qp *qp, const struct sim_wqe *wqe)
{
	sim_count(qp, SIM_CNT_BYTES, wqe->length);
	if (unlikely(wqe->flags & IB_SEND_INLINE))
		sim_count(qp, SIM_CNT_INLINE, 1);
	else
		sim_count(qp, SIM_CNT_PAYLOAD_READS, wqe->num_sge);
}

/* Each send WQE ends here, with or without a CQE. */
static __always_inline void sim_wqe_end(struct sim_qp *qp, const struct sim_wqe *wqe, u32 status,
					enum ib_wc_opcode opcode)
{
	struct sim_sq *sq = qp->sq;
	u32 retires = sq->silent + 1;

	WRITE_ONCE(sq->next, sq->next + 1);
	sim_count(qp, SIM_CNT_SEND_WQES, 1);
	if (status == IB_WC_SUCCESS && !(wqe->flags & IB_SEND_SIGNALED)) {
		sq->silent = retires;
		return;
	}
	sq->silent = 0;
	sim_cqe_sent(qp, wqe, status, opcode, retires);
}

/* Executes what is plain: true, and nothing is left. Bottom halves may be on. */
static __always_inline bool sim_exec_plain(struct sim_qp *qp, u32 budget)
{
	const struct sim_cq *cq = to_sim_cq(qp->ib.send_cq);
	struct sim_wqe *wqe;

	while (budget-- && READ_ONCE(qp->state) == IB_QPS_RTS) {
		if (!sim_sq_peek(qp->sq, &wqe))
			return true;
		if (sim_faulty() || sim_costly())
			return false;
		/* Armed later than now, its handler is called all the same. */
		if (unlikely(wqe->opcode != IB_WR_RDMA_WRITE || atomic_read(&cq->armed) ||
			     qp->retries || qp->rnr_retries || !sim_write_again(qp, wqe)))
			return false;
		sim_count(qp, SIM_CNT_WRITES, 1);
		sim_count_payload(qp, wqe);
		sim_wqe_end(qp, wqe, IB_WC_SUCCESS, IB_WC_RDMA_WRITE);
	}
	return false;
}

/* What the queue pair was kicked for so far. */
static inline int sim_kicks(struct sim_qp *qp)
{
	/* ORDER: the kicks before what they are for; pairs with who kicks, by full barriers */
	return atomic_read_acquire(&qp->kicks);
}

/* Nothing is left. True: the ownership is given up, as there were no more kicks. */
static inline bool sim_finish(struct sim_qp *qp, int kicks)
{
	sim_count(qp, SIM_CNT_DOORBELLS, kicks & (SIM_KICK_STATE - 1));
	if (atomic_sub_return(kicks, &qp->kicks))
		return false;
	if (unlikely(READ_ONCE(qp->awaited)))
		wake_up_var(&qp->kicks);
	return true;
}

/* The owner's: false, something is left, and it is the owner still. */
static __always_inline bool sim_run_plain(struct sim_qp *qp, u32 budget)
{
	int kicks;
	bool done;

	rcu_read_lock_sched();
	do {
		kicks = sim_kicks(qp);
		done = sim_exec_plain(qp, budget);
	} while (done && !sim_finish(qp, kicks));
	rcu_read_unlock_sched();
	return done;
}

/* WQEs were published. */
static __always_inline void sim_doorbell(struct sim_qp *qp)
{
	if (atomic_fetch_add(SIM_KICK_DOORBELL, &qp->kicks))
		return;
	if (READ_ONCE(sim_of_qp(qp)->config.context) != SIM_CONTEXT_POST ||
	    !sim_run_plain(qp, SIM_MAX_QP_WR))
		sim_engine_start(qp);
}

#endif /* _KVERBS_SIM_PLAIN_H */
