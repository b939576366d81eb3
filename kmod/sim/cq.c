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

#include "cqe.h"

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

void sim_cq_overflow(struct sim_cq *cq)
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

/* A CQE was published, and the queue was seen armed. */
void sim_cq_notify(struct sim_cq *cq, bool solicited)
{
	int armed = atomic_read(&cq->armed);

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

void sim_cqe_put(struct sim_cq *cq, const struct sim_cqe *from, bool solicited)
{
	struct sim_cqe *cqe;
	s64 index;

	if (unlikely(!sim_cq_reserve(cq, &index)))
		return;
	cqe = sim_cq_slot(cq, index);
	cqe->retires = from->retires;
	cqe->gone = false;
	cqe->sq = from->sq;
	cqe->wc = from->wc;
	sim_cq_publish(cq, cqe, index, solicited || from->wc.status != IB_WC_SUCCESS);
}

/* Any CQE is written here, that of a send WQE by sim_cqe_sent() if nothing is to go wrong. */
void sim_cqe_write(struct sim_cq *cq, const struct sim_cqe *from, bool solicited)
{
	if (!sim_fault_cqe(cq, from, solicited))
		sim_cqe_put(cq, from, solicited);
}

/* Faults look at a CQE before it is on the ring. */
void sim_cqe_sent_faulty(struct sim_qp *qp, const struct sim_wqe *wqe, u32 status,
			 enum ib_wc_opcode opcode, u32 retires)
{
	struct sim_cqe cqe;

	sim_cqe_fill(&cqe, qp, wqe, status, opcode, retires);
	sim_cqe_write(to_sim_cq(qp->ib.send_cq), &cqe, false);
}

static bool cq_ready(const struct sim_cqe *cqe, u64 index)
{
	/* ORDER: pairs with sim_cq_publish() */
	return smp_load_acquire(&cqe->seq) == (u32)index + 1;
}

/* Take the oldest CQE: false if there is none. */
static __always_inline bool cq_take(struct sim_cq *cq, struct ib_wc *wc)
{
	s64 tail = atomic64_read(&cq->tail);
	struct sim_cqe *cqe;
	struct sim_sq *sq;
	u32 retires;
	bool gone;

	do {
		cqe = sim_cq_slot(cq, tail);
		if (!cq_ready(cqe, tail))
			return false;
		*wc = cqe->wc;
		retires = cqe->retires;
		sq = cqe->sq;
		gone = READ_ONCE(cqe->gone);
	} while (unlikely(!atomic64_try_cmpxchg(&cq->tail, &tail, tail + 1) || gone));

	if (retires)
		atomic_add(retires, &sq->retired);
	return true;
}

/* What has claimed a CQE gives slots back without being preempted: that is RCU enough. */
static __always_inline int cq_poll(struct sim_cq *cq, int nr, struct ib_wc *wc)
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
		WRITE_ONCE(cq->judge.missed, 0);
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
	smp_mb();	/* ORDER: the arm before the CQE; pairs with sim_cq_publish() */
	tail = atomic64_read(&cq->tail);
	return cq_ready(sim_cq_slot(cq, tail), tail);
}

int sim_req_notify_cq(struct ib_cq *ib, enum ib_cq_notify_flags flags)
{
	struct sim_cq *cq = to_sim_cq(ib);
	unsigned long irq;
	bool locked;
	int missed;

	/* On another CPU who was told may be about to poll, while a later event is served here. */
	if (unlikely(READ_ONCE(cq->judge.missed) == raw_smp_processor_id() + 1))
		sim_judge_cq(cq, SIM_JUDGE_MISSED_IGNORED);
	locked = sim_fault_enter(cq, &irq);
	missed = cq_arm(cq, flags);
	sim_fault_leave(cq, locked, irq);
	WRITE_ONCE(cq->judge.missed, missed ? raw_smp_processor_id() + 1 : 0);
	return missed;
}

/* The CQEs of a queue pair that leaves are not to be polled any more. */
void sim_cq_forget(struct sim_cq *cq, const struct sim_qp *qp)
{
	s64 head, index;

	sim_late_forget(cq, qp);
	head = atomic64_read(&cq->head);
	for (index = atomic64_read(&cq->tail); index != head; index++) {
		struct sim_cqe *cqe = sim_cq_slot(cq, index);

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
