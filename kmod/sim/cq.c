// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Completion queues. Any number of writers reserve, fill and publish; any number of pollers
 * copy the oldest CQE and then claim it: a claim that fails discards the copy, since the
 * slot cannot have been written again before it was claimed.
 *
 * Polling a send CQE gives the slots it retires back to the send queue. The CQE names it by
 * a pointer that is freed by RCU, since the queue pair may be destroyed at the same time.
 */
#include <linux/log2.h>

#include "sim.h"

static const u8 wc_opcodes[] = {
	[IB_WR_RDMA_WRITE] = IB_WC_RDMA_WRITE,
	[IB_WR_RDMA_WRITE_WITH_IMM] = IB_WC_RDMA_WRITE,
	[IB_WR_SEND] = IB_WC_SEND,
	[IB_WR_SEND_WITH_IMM] = IB_WC_SEND,
	[IB_WR_SEND_WITH_INV] = IB_WC_SEND,
	[IB_WR_RDMA_READ] = IB_WC_RDMA_READ,
	[IB_WR_ATOMIC_CMP_AND_SWP] = IB_WC_COMP_SWAP,
	[IB_WR_ATOMIC_FETCH_AND_ADD] = IB_WC_FETCH_ADD,
	[IB_WR_REG_MR] = IB_WC_REG_MR,
	[IB_WR_LOCAL_INV] = IB_WC_LOCAL_INV,
};

static struct sim_cqe *cq_slot(const struct sim_cq *cq, u64 index)
{
	return &cq->ring[index & cq->mask];
}

/* Each event of a completion queue is raised here. True: its handler is to be called. */
static bool cq_raise(struct sim_cq *cq)
{
	atomic_set(&cq->held_back, 0);
	atomic64_inc(&cq->events);
	WRITE_ONCE(cq->judge.raised, atomic64_read(&cq->tail) + 1);
	return !sim_fault_raise(cq);
}

void sim_cq_raise(struct sim_cq *cq)
{
	if (cq_raise(cq))
		sim_vector_raise(cq);
}

/* On this CPU, whatever the vector. */
void sim_cq_raise_here(struct sim_cq *cq)
{
	if (cq_raise(cq))
		cq->ib.comp_handler(&cq->ib, cq->ib.cq_context);
}

static void cq_overflow(struct sim_cq *cq)
{
	struct ib_event event = {
		.device = cq->ib.device,
		.element.cq = &cq->ib,
		.event = IB_EVENT_CQ_ERR,
	};

	sim_judge_cq(cq, SIM_JUDGE_CQ_OVERFLOW);
	if (atomic64_inc_return(&cq->overflows) == 1 && cq->ib.event_handler)
		cq->ib.event_handler(&event, cq->ib.cq_context);
}

/* Whether an event can wait for more CQEs, or for the timer. */
static bool moderated(struct sim_cq *cq)
{
	u64 nsecs = (u64)READ_ONCE(cq->moderate_usecs) * NSEC_PER_USEC;
	u32 held, count = READ_ONCE(cq->moderate_count);

	if (count <= 1 || !nsecs)
		return false;
	held = atomic_inc_return(&cq->held_back);
	if (held >= count)
		return false;
	if (held == 1)
		hrtimer_start(&cq->timer, ns_to_ktime(nsecs), HRTIMER_MODE_REL);
	return true;
}

static inline void cq_notify(struct sim_cq *cq, bool solicited)
{
	int armed;

	smp_mb();	/* ORDER: the CQE before the arm; pairs with sim_req_notify_cq() */
	armed = atomic_read(&cq->armed);
	if (!armed || (armed == IB_CQ_SOLICITED && !solicited))
		return;
	if (moderated(cq))
		return;
	if (atomic_cmpxchg(&cq->armed, armed, 0) == armed)
		sim_cq_raise(cq);
}

static enum hrtimer_restart cq_timer(struct hrtimer *timer)
{
	struct sim_cq *cq = container_of(timer, struct sim_cq, timer);

	if (atomic_read(&cq->held_back) && atomic_xchg(&cq->armed, 0))
		sim_cq_raise(cq);
	return HRTIMER_NORESTART;
}

/* An event for so many CQEs, or after so many microseconds; without both, for each. */
int sim_modify_cq(struct ib_cq *ib, u16 count, u16 usecs)
{
	struct sim_cq *cq = to_sim_cq(ib);

	WRITE_ONCE(cq->moderate_usecs, usecs);
	WRITE_ONCE(cq->moderate_count, count);
	return 0;
}

/* The place of one more CQE. What does not fit is lost, as the consumer is told once: -1. */
static inline s64 cq_reserve(struct sim_cq *cq)
{
	s64 head = atomic64_read(&cq->head);

	do {
		if (unlikely(head - atomic64_read(&cq->tail) >= cq->depth)) {
			cq_overflow(cq);
			return -1;
		}
	} while (!atomic64_try_cmpxchg(&cq->head, &head, head + 1));
	return head;
}

static void cq_publish(struct sim_cq *cq, struct sim_cqe *cqe, s64 index, bool solicited)
{
	/* ORDER: the CQE before its number; pairs with cq_ready() */
	smp_store_release(&cqe->seq, index + 1);
	cq_notify(cq, solicited);
}

void sim_cqe_put(struct sim_cq *cq, const struct sim_cqe *from, bool solicited)
{
	s64 index = cq_reserve(cq);
	struct sim_cqe *cqe;

	if (unlikely(index < 0))
		return;
	cqe = cq_slot(cq, index);
	cqe->retires = from->retires;
	cqe->gone = false;
	cqe->sq = from->sq;
	cqe->wc = from->wc;
	cq_publish(cq, cqe, index, solicited || from->wc.status != IB_WC_SUCCESS);
}

/* Any CQE is written here, that of a send WQE by sim_cqe_sent() if nothing is to go wrong. */
void sim_cqe_write(struct sim_cq *cq, const struct sim_cqe *from, bool solicited)
{
	if (!sim_fault_cqe(cq, from, solicited))
		sim_cqe_put(cq, from, solicited);
}

/* Field by field: it is faster than to clear all and then fill it. */
static void sent_fill(struct sim_cqe *cqe, struct sim_qp *qp, const struct sim_wqe *wqe,
		      u32 status, u32 retires)
{
	cqe->retires = retires;
	cqe->gone = false;
	cqe->sq = qp->sq;
	cqe->wc.wr_id = wqe->wr_id;
	cqe->wc.status = status;
	cqe->wc.opcode = wc_opcodes[wqe->opcode];
	cqe->wc.vendor_err = 0;
	cqe->wc.byte_len = wqe->length;
	cqe->wc.qp = &qp->ib;
	cqe->wc.ex.invalidate_rkey = 0;
	cqe->wc.src_qp = 0;
	cqe->wc.slid = 0;
	cqe->wc.wc_flags = 0;
	cqe->wc.pkey_index = 0;
	cqe->wc.sl = 0;
	cqe->wc.dlid_path_bits = 0;
	cqe->wc.port_num = 0;
	memset(cqe->wc.smac, 0, sizeof(cqe->wc.smac));
	cqe->wc.vlan_id = 0;
	cqe->wc.network_hdr_type = 0;
}

/* Faults look at a CQE before it is on the ring. */
static noinline void sent_faulty(struct sim_cq *cq, struct sim_qp *qp, const struct sim_wqe *wqe,
				 u32 status, u32 retires)
{
	struct sim_cqe cqe;

	sent_fill(&cqe, qp, wqe, status, retires);
	sim_cqe_write(cq, &cqe, false);
}

/* What a send WQE has ended with, written in its place. */
void sim_cqe_sent(struct sim_qp *qp, const struct sim_wqe *wqe, u32 status, u32 retires)
{
	struct sim_cq *cq = to_sim_cq(qp->ib.send_cq);
	struct sim_cqe *cqe;
	s64 index;

	if (sim_faulty()) {
		sent_faulty(cq, qp, wqe, status, retires);
		return;
	}
	index = cq_reserve(cq);
	if (unlikely(index < 0))
		return;
	cqe = cq_slot(cq, index);
	sent_fill(cqe, qp, wqe, status, retires);
	cq_publish(cq, cqe, index, status != IB_WC_SUCCESS);
}

static bool cq_ready(const struct sim_cqe *cqe, u64 index)
{
	/* ORDER: pairs with sim_cqe_put() */
	return smp_load_acquire(&cqe->seq) == (u32)index + 1;
}

/* Take the oldest CQE: false if there is none. */
static bool cq_take(struct sim_cq *cq, struct ib_wc *wc)
{
	s64 tail = atomic64_read(&cq->tail);
	struct sim_cqe *cqe;
	struct sim_sq *sq;
	u32 retires;
	bool gone;

	do {
		cqe = cq_slot(cq, tail);
		if (!cq_ready(cqe, tail))
			return false;
		*wc = cqe->wc;
		retires = cqe->retires;
		sq = cqe->sq;
		gone = READ_ONCE(cqe->gone);
	} while (!atomic64_try_cmpxchg(&cq->tail, &tail, tail + 1) || gone);

	if (retires)
		atomic_add(retires, &sq->retired);
	return true;
}

/* What has claimed a CQE gives slots back without being preempted: that is RCU enough. */
static int cq_poll(struct sim_cq *cq, int nr, struct ib_wc *wc)
{
	int i;

	rcu_read_lock_sched();
	for (i = 0; i < nr && cq_take(cq, &wc[i]); i++)
		;
	rcu_read_unlock_sched();
	return i;
}

static noinline int poll_faulty(struct sim_cq *cq, int nr, struct ib_wc *wc)
{
	unsigned long flags;
	bool locked = sim_fault_enter(cq, &flags);
	int polled = cq_poll(cq, nr, wc);

	sim_fault_leave(cq, locked, flags);
	return polled;
}

int sim_poll_cq(struct ib_cq *ib, int nr, struct ib_wc *wc)
{
	struct sim_cq *cq = to_sim_cq(ib);

	if (unlikely(READ_ONCE(cq->judge.missed)))
		WRITE_ONCE(cq->judge.missed, false);
	return sim_faulty() ? poll_faulty(cq, nr, wc) : cq_poll(cq, nr, wc);
}

static int cq_arm(struct sim_cq *cq, enum ib_cq_notify_flags flags)
{
	int want = flags & IB_CQ_SOLICITED_MASK, armed;
	s64 tail;

	/* What was armed for the next CQE stays so. */
	armed = atomic_read(&cq->armed);
	while (armed < want && !atomic_try_cmpxchg(&cq->armed, &armed, want))
		;
	if (!(flags & IB_CQ_REPORT_MISSED_EVENTS))
		return 0;
	smp_mb();	/* ORDER: the arm before the CQE; pairs with cq_notify() */
	tail = atomic64_read(&cq->tail);
	return cq_ready(cq_slot(cq, tail), tail);
}

int sim_req_notify_cq(struct ib_cq *ib, enum ib_cq_notify_flags flags)
{
	struct sim_cq *cq = to_sim_cq(ib);
	unsigned long irq;
	bool locked;
	int missed;

	if (unlikely(READ_ONCE(cq->judge.missed)))
		sim_judge_cq(cq, SIM_JUDGE_MISSED_IGNORED);
	locked = sim_fault_enter(cq, &irq);
	missed = cq_arm(cq, flags);
	sim_fault_leave(cq, locked, irq);
	WRITE_ONCE(cq->judge.missed, missed);
	return missed;
}

/* The CQEs of a queue pair that leaves are not to be polled any more. */
void sim_cq_forget(struct sim_cq *cq, const struct sim_qp *qp)
{
	s64 head, index;

	sim_late_forget(cq, qp);
	head = atomic64_read(&cq->head);
	for (index = atomic64_read(&cq->tail); index != head; index++) {
		struct sim_cqe *cqe = cq_slot(cq, index);

		if (cq_ready(cqe, index) && cqe->wc.qp == &qp->ib)
			WRITE_ONCE(cqe->gone, true);
	}
}

KVERBS_CREATE_CQ(sim_create_cq)
{
	struct sim_device *sim = to_sim(ib->device);
	struct sim_cq *cq = to_sim_cq(ib);

	if (init->flags)
		return -EOPNOTSUPP;
	if (!init->cqe || init->cqe > sim->caps.cqe)
		return -EINVAL;
	if (init->comp_vector >= ib->device->num_comp_vectors)
		return -EINVAL;
	sim_late_init(cq);
	cq->depth = init->cqe;
	cq->mask = roundup_pow_of_two(init->cqe) - 1;
	cq->ring = kvzalloc_node(array_size(cq->mask + 1, sizeof(*cq->ring)), GFP_KERNEL,
				 dev_to_node(&sim->parent->dev));
	if (!cq->ring)
		return -ENOMEM;
	hrtimer_setup(&cq->timer, cq_timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	sim_vector_init_cq(cq, init->comp_vector);
	ib->cqe = cq->depth;
	mutex_lock(&sim->lock);
	list_add_tail(&cq->entry, &sim->cqs);
	mutex_unlock(&sim->lock);
	return 0;
}

int sim_destroy_cq(struct ib_cq *ib, struct ib_udata *udata)
{
	struct sim_cq *cq = to_sim_cq(ib);

	/* Once it is on no list who takes a rule away does not find it. */
	sim_stats_fold_cq(to_sim(ib->device), cq);
	sim_late_destroy(cq);
	hrtimer_cancel(&cq->timer);
	sim_vector_flush(cq);
	hrtimer_cancel(&cq->interrupt);
	kvfree(cq->ring);
	return 0;
}
