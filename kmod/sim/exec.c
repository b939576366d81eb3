// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The HCA's side: the owner of a queue pair executes its send WQEs in order. The connected
 * peer is found by number for each, and the data moves straight from the memory of the one
 * to that of the other; what a responder on the wire would answer is the status.
 */
#include <linux/atomic.h>

#include "plain.h"

#define SIM_FOREVER_RETRY_NS	(100 * NSEC_PER_MSEC)
#define RNR_RETRY_FOREVER	7

/* The queue pair that this one is connected to, as it is to this one, with both ports up. */
static struct sim_qp *peer_find(const struct sim_qp *qp)
{
	const struct sim_device *sim = sim_of_qp(qp);
	struct sim_qp *peer = sim_qp_find(qp->attr.dest_qp_num);
	struct sim_device *dest;

	if (!peer || peer->attr.dest_qp_num != qp->ib.qp_num || peer->ib.qp_type != qp->ib.qp_type)
		return NULL;
	dest = sim_of_qp(peer);
	if (dest->id != qp->dest_id || peer->dest_id != sim->id)
		return NULL;
	return READ_ONCE(sim->up) && READ_ONCE(dest->up) ? peer : NULL;
}

/* The first request that a responder sees before it was told that it may send. */
static void established(struct sim_qp *peer)
{
	if (!test_and_set_bit(0, &peer->heard))
		sim_qp_event(peer, IB_EVENT_COMM_EST);
}

/* The connected peer, if it is there and hears us. */
static struct sim_qp *peer_of(struct sim_qp *qp)
{
	s64 epoch = sim_epoch_now();
	struct sim_qp *peer;
	u32 state;

	if (unlikely(qp->hint.epoch != epoch)) {
		peer = peer_find(qp);
		if (!peer)
			return NULL;
		qp->hint = (struct sim_hint) { .epoch = epoch, .peer = peer };
	}
	peer = qp->hint.peer;
	state = READ_ONCE(peer->state);
	if (likely(state == IB_QPS_RTS))
		return peer;
	if (state == IB_QPS_RTR)
		established(peer);
	return sim_can_receive(state) ? peer : NULL;
}

static bool allows(const struct sim_qp *peer, int access)
{
	return READ_ONCE(peer->attr.qp_access_flags) & access;
}

/* The responder refuses: it goes to the error state itself. */
static u32 refuse(struct sim_qp *peer, u32 status)
{
	sim_qp_fail(peer, IB_QPS_ERR);
	sim_qp_event(peer, status == IB_WC_REM_INV_REQ_ERR ? IB_EVENT_QP_REQ_ERR :
							     IB_EVENT_QP_ACCESS_ERR);
	return status;
}

static u32 exec_write(struct sim_qp *qp, struct sim_wqe *wqe, struct sim_qp *peer)
{
	u32 status = sim_write(qp, wqe, peer);

	if (status == IB_WC_REM_INV_REQ_ERR || status == IB_WC_REM_ACCESS_ERR)
		return refuse(peer, status);
	return status;
}

static u32 exec_read(struct sim_qp *qp, struct sim_wqe *wqe, struct sim_qp *peer)
{
	struct ib_sge remote = {
		.addr = wqe->remote_addr,
		.length = wqe->length,
		.lkey = wqe->rkey,
	};
	struct sim_cursor from, to;
	enum sim_copied copied;

	if (!qp->attr.max_rd_atomic)
		return IB_WC_LOC_QP_OP_ERR;
	if (!allows(peer, IB_ACCESS_REMOTE_READ) || !peer->attr.max_dest_rd_atomic)
		return refuse(peer, IB_WC_REM_INV_REQ_ERR);
	sim_cursor_remote(&from, peer, &remote, IB_ACCESS_REMOTE_READ);
	sim_cursor_sgl(&to, qp, wqe->sge, wqe->num_sge, IB_ACCESS_LOCAL_WRITE);
	copied = sim_copy(&to, &from, wqe->length);
	sim_cursor_end(&from);
	sim_cursor_end(&to);
	if (copied == SIM_BAD_SOURCE)
		return refuse(peer, IB_WC_REM_ACCESS_ERR);
	return copied == SIM_BAD_TARGET ? IB_WC_LOC_PROT_ERR : IB_WC_SUCCESS;
}

static u64 atomic_apply(const struct sim_wqe *wqe, void *va)
{
	if (wqe->opcode == IB_WR_ATOMIC_CMP_AND_SWP)
		return cmpxchg64((u64 *)va, wqe->compare_add, wqe->swap);
	return atomic64_fetch_add(wqe->compare_add, va);
}

static u32 exec_atomic(struct sim_qp *qp, struct sim_wqe *wqe, struct sim_qp *peer)
{
	struct ib_sge remote = {
		.addr = wqe->remote_addr,
		.length = sizeof(u64),
		.lkey = wqe->rkey,
	};
	struct sim_cursor target, from, to;
	enum sim_copied copied;
	u64 old;

	if (!qp->attr.max_rd_atomic)
		return IB_WC_LOC_QP_OP_ERR;
	if (wqe->length != sizeof(u64))
		return IB_WC_LOC_LEN_ERR;
	if (!allows(peer, IB_ACCESS_REMOTE_ATOMIC) || !peer->attr.max_dest_rd_atomic ||
	    !IS_ALIGNED(wqe->remote_addr, sizeof(u64)))
		return refuse(peer, IB_WC_REM_INV_REQ_ERR);
	sim_cursor_remote(&target, peer, &remote, IB_ACCESS_REMOTE_ATOMIC);
	/* A piece that is shorter, or not aligned, is a region that was mapped oddly. */
	if (!sim_cursor_fill(&target) || target.length < sizeof(u64) ||
	    !IS_ALIGNED((uintptr_t)target.va, sizeof(u64))) {
		sim_cursor_end(&target);
		return refuse(peer, IB_WC_REM_ACCESS_ERR);
	}
	old = atomic_apply(wqe, target.va);
	sim_cursor_end(&target);
	sim_cursor_buffer(&from, &old, sizeof(old));
	sim_cursor_sgl(&to, qp, wqe->sge, wqe->num_sge, IB_ACCESS_LOCAL_WRITE);
	copied = sim_copy(&to, &from, sizeof(old));
	sim_cursor_end(&to);
	return copied == SIM_COPIED ? IB_WC_SUCCESS : IB_WC_LOC_PROT_ERR;
}

/* What the receive of a message reports, and what its sender hears. */
static u32 answer(struct sim_qp *peer, u32 recv_status)
{
	switch (recv_status) {
	case IB_WC_SUCCESS:
		return IB_WC_SUCCESS;
	case IB_WC_LOC_LEN_ERR:
		return IB_WC_REM_INV_REQ_ERR;
	default:
		return IB_WC_REM_OP_ERR;
	}
}

static u32 send_taken(struct sim_qp *qp, struct sim_wqe *wqe, struct sim_qp *peer)
{
	struct sim_arrival arrival = {
		.opcode = IB_WC_RECV,
		.src_qpn = qp->ib.qp_num,
		.length = wqe->length,
		.solicited = wqe->flags & IB_SEND_SOLICITED,
	};
	struct sim_cursor from;
	u32 status;

	sim_cursor_payload(&from, qp, wqe);
	status = sim_recv_scatter(peer, &from, wqe->length, NULL);
	sim_cursor_end(&from);
	if (status == IB_WC_GENERAL_ERR)
		return IB_WC_LOC_PROT_ERR;
	if (wqe->opcode == IB_WR_SEND_WITH_IMM) {
		arrival.wc_flags = IB_WC_WITH_IMM;
		arrival.ex = wqe->ex;
	} else if (wqe->opcode == IB_WR_SEND_WITH_INV && status == IB_WC_SUCCESS) {
		arrival.wc_flags = IB_WC_WITH_INVALIDATE;
		arrival.ex = wqe->ex;
		status = sim_mr_invalidate(peer, wqe->ex);
		if (status == SIM_BUSY)
			return status;
	}
	if (status != IB_WC_SUCCESS)
		sim_qp_fail(peer, IB_QPS_ERR);
	sim_recv_done(peer, status, &arrival);
	return answer(peer, status);
}

static u32 write_imm_taken(struct sim_qp *qp, struct sim_wqe *wqe, struct sim_qp *peer)
{
	struct sim_arrival arrival = {
		.opcode = IB_WC_RECV_RDMA_WITH_IMM,
		.src_qpn = qp->ib.qp_num,
		.length = wqe->length,
		.wc_flags = IB_WC_WITH_IMM,
		.ex = wqe->ex,
		.solicited = wqe->flags & IB_SEND_SOLICITED,
	};
	u32 status = exec_write(qp, wqe, peer);

	if (status == IB_WC_SUCCESS)
		sim_recv_done(peer, IB_WC_SUCCESS, &arrival);
	return status;
}

/* It takes a receive, so that it may have to wait, or be dropped. */
static bool sends(const struct sim_wqe *wqe)
{
	return wqe->opcode == IB_WR_SEND || wqe->opcode == IB_WR_SEND_WITH_IMM ||
	       wqe->opcode == IB_WR_SEND_WITH_INV || wqe->opcode == IB_WR_RDMA_WRITE_WITH_IMM;
}

static noinline u32 exec_message(struct sim_qp *qp, struct sim_wqe *wqe, struct sim_qp *peer)
{
	u32 status;

	if (!sim_rx_trylock(peer))
		return SIM_BUSY;
	/* It may have been flushed since it was found. */
	if (!sim_can_receive(READ_ONCE(peer->state)))
		status = SIM_NO_ANSWER;
	else
		status = sim_recv_take(peer);
	if (status == IB_WC_SUCCESS)
		status = wqe->opcode == IB_WR_RDMA_WRITE_WITH_IMM ?
				 write_imm_taken(qp, wqe, peer) : send_taken(qp, wqe, peer);
	sim_rx_unlock(peer);
	if (status == SIM_RNR_NAK)
		qp->pause_ns = sim_rnr_ns(peer->attr.min_rnr_timer);
	return status;
}

static u32 exec_connected(struct sim_qp *qp, struct sim_wqe *wqe)
{
	struct sim_qp *peer;

	/* The sender's own fault shows, whatever the peer is up to. */
	if (sends(wqe) && !(wqe->flags & IB_SEND_INLINE) &&
	    !sim_sgl_ok(qp, wqe->sge, wqe->num_sge))
		return IB_WC_LOC_PROT_ERR;
	peer = peer_of(qp);
	if (!peer)
		return SIM_NO_ANSWER;
	switch (wqe->opcode) {
	case IB_WR_RDMA_WRITE:
		return exec_write(qp, wqe, peer);
	case IB_WR_RDMA_READ:
		return exec_read(qp, wqe, peer);
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		return exec_atomic(qp, wqe, peer);
	default:
		return exec_message(qp, wqe, peer);
	}
}

/* Unreliable: what is wrong over there is not heard of. */
static u32 unheard(struct sim_qp *qp, u32 status)
{
	switch (status) {
	case SIM_NO_ANSWER:
	case SIM_RNR_NAK:
	case IB_WC_REM_INV_REQ_ERR:
	case IB_WC_REM_ACCESS_ERR:
	case IB_WC_REM_OP_ERR:
		sim_count(qp, SIM_CNT_DROPPED, 1);
		return IB_WC_SUCCESS;
	default:
		return status;
	}
}

static u32 execute(struct sim_qp *qp, struct sim_wqe *wqe)
{
	if (wqe->opcode == IB_WR_RDMA_WRITE && sim_write_again(qp, wqe))
		return IB_WC_SUCCESS;
	if (wqe->length > SIM_MAX_MSG)
		return IB_WC_LOC_LEN_ERR;
	switch (wqe->opcode) {
	case IB_WR_REG_MR:
		return sim_mr_register(qp, wqe);
	case IB_WR_LOCAL_INV:
		return sim_mr_invalidate(qp, wqe->ex);
	}
	switch (qp->ib.qp_type) {
	case IB_QPT_RC:
		return exec_connected(qp, wqe);
	case IB_QPT_UC:
		return unheard(qp, exec_connected(qp, wqe));
	default:
		return unheard(qp, sim_deliver_datagram(qp, wqe));
	}
}

/* What is counted of an opcode, and what its CQE calls it. */
static const struct {
	u8 counter;
	u8 wc;
} kinds[] = {
	[IB_WR_RDMA_WRITE] = { SIM_CNT_WRITES, IB_WC_RDMA_WRITE },
	[IB_WR_RDMA_WRITE_WITH_IMM] = { SIM_CNT_WRITES, IB_WC_RDMA_WRITE },
	[IB_WR_SEND] = { SIM_CNT_SENDS, IB_WC_SEND },
	[IB_WR_SEND_WITH_IMM] = { SIM_CNT_SENDS, IB_WC_SEND },
	[IB_WR_SEND_WITH_INV] = { SIM_CNT_SENDS, IB_WC_SEND },
	[IB_WR_RDMA_READ] = { SIM_CNT_READS, IB_WC_RDMA_READ },
	[IB_WR_ATOMIC_CMP_AND_SWP] = { SIM_CNT_ATOMICS, IB_WC_COMP_SWAP },
	[IB_WR_ATOMIC_FETCH_AND_ADD] = { SIM_CNT_ATOMICS, IB_WC_FETCH_ADD },
	[IB_WR_REG_MR] = { SIM_CNT_REGISTRATIONS, IB_WC_REG_MR },
	[IB_WR_LOCAL_INV] = { SIM_CNT_INVALIDATIONS, IB_WC_LOCAL_INV },
};

static void succeeded(struct sim_qp *qp, const struct sim_wqe *wqe)
{
	qp->retries = 0;
	qp->rnr_retries = 0;
	sim_count(qp, kinds[wqe->opcode].counter, 1);
	if (wqe->opcode == IB_WR_RDMA_WRITE || sends(wqe))
		sim_count_payload(qp, wqe);
	else if (wqe->opcode == IB_WR_RDMA_READ)
		sim_count(qp, SIM_CNT_BYTES, wqe->length);
	sim_wqe_end(qp, wqe, IB_WC_SUCCESS, kinds[wqe->opcode].wc);
}

static void failed(struct sim_qp *qp, const struct sim_wqe *wqe, u32 status)
{
	sim_fault_flush(qp);
	qp->retries = 0;
	qp->rnr_retries = 0;
	sim_count(qp, status == IB_WC_WR_FLUSH_ERR ? SIM_CNT_FLUSHED : SIM_CNT_ERRORS, 1);
	sim_wqe_end(qp, wqe, status, kinds[wqe->opcode].wc);
}

/* The peer is not there: again after the time-out, so often as was agreed. */
static enum sim_verdict no_answer(struct sim_qp *qp)
{
	sim_count(qp, SIM_CNT_RETRIES, 1);
	/* No time-out: it tries for ever. */
	if (!qp->attr.timeout) {
		qp->pause_ns = SIM_FOREVER_RETRY_NS;
		return SIM_PAUSE;
	}
	qp->retries++;
	qp->pause_ns = 4096ULL << qp->attr.timeout;
	return SIM_PAUSE;
}

static enum sim_verdict rnr_nak(struct sim_qp *qp, const struct sim_wqe *wqe)
{
	sim_count(qp, SIM_CNT_RNR, 1);
	if (qp->attr.rnr_retry != RNR_RETRY_FOREVER && qp->rnr_retries++ >= qp->attr.rnr_retry) {
		sim_qp_fail(qp, IB_QPS_ERR);
		failed(qp, wqe, IB_WC_RNR_RETRY_EXC_ERR);
		return SIM_AGAIN;
	}
	/* exec_message() has left the time that the peer asks for. */
	return SIM_PAUSE;
}

static void fail(struct sim_qp *qp, const struct sim_wqe *wqe, u32 status)
{
	sim_qp_fail(qp, qp->ib.qp_type == IB_QPT_RC ? IB_QPS_ERR : IB_QPS_SQE);
	failed(qp, wqe, status);
}

/* SIM_IDLE: it was executed. */
static enum sim_verdict exec_one(struct sim_qp *qp, struct sim_wqe *wqe)
{
	u32 status;

	if (unlikely(qp->retries > qp->attr.retry_cnt)) {
		fail(qp, wqe, IB_WC_RETRY_EXC_ERR);
		return SIM_IDLE;
	}
	status = sim_fault_exec(qp, wqe) ?: execute(qp, wqe);
	switch (status) {
	case IB_WC_SUCCESS:
		succeeded(qp, wqe);
		return SIM_IDLE;
	case SIM_BUSY:
		return SIM_AGAIN;
	case SIM_NO_ANSWER:
		return no_answer(qp);
	case SIM_RNR_NAK:
		return rnr_nak(qp, wqe);
	default:
		fail(qp, wqe, status);
		return SIM_IDLE;
	}
}

/* All that was posted and not executed ends as flushed. */
static void flush_sends(struct sim_qp *qp)
{
	struct sim_wqe *wqe;

	sim_fault_flush(qp);
	while (sim_sq_peek(qp->sq, &wqe))
		failed(qp, wqe, IB_WC_WR_FLUSH_ERR);
}

/* It is not in RTS: nothing is executed. */
static noinline enum sim_verdict exec_stopped(struct sim_qp *qp, u32 state)
{
	switch (state) {
	case IB_QPS_SQE:
		flush_sends(qp);
		return SIM_IDLE;
	case IB_QPS_ERR:
		flush_sends(qp);
		return sim_recv_flush(qp) ? SIM_IDLE : SIM_AGAIN;
	default:
		return SIM_IDLE;
	}
}

enum sim_verdict sim_qp_exec(struct sim_qp *qp, u32 budget)
{
	enum sim_verdict verdict;
	struct sim_wqe *wqe;
	u32 state;

	for (;;) {
		state = READ_ONCE(qp->state);
		if (unlikely(state != IB_QPS_RTS))
			return exec_stopped(qp, state);
		if (!sim_sq_peek(qp->sq, &wqe))
			return SIM_IDLE;
		if (unlikely(!budget--))
			return SIM_AGAIN;
		if (sim_cost_early(qp, wqe))
			return SIM_PAUSE;
		verdict = exec_one(qp, wqe);
		if (unlikely(verdict != SIM_IDLE))
			return verdict;
	}
}
