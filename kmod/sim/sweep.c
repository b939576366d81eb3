// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What a look at a standing device shows: queues on which nothing moves though there is
 * something left to do, and memory regions that leave while requests name them.
 */
#include "sim.h"

#define SWEEP_MIN_MS	5U

static bool waited(unsigned long since, u32 ms)
{
	return time_after(jiffies, since + msecs_to_jiffies(ms));
}

/* Everything was executed, and the last was silent. */
static bool tail_is_silent(const struct sim_qp *qp, u32 head)
{
	const struct sim_sq *sq = qp->sq;

	return READ_ONCE(qp->state) == IB_QPS_RTS && READ_ONCE(sq->next) == head &&
	       READ_ONCE(sq->silent) && !(sim_sq_slot(sq, head - 1)->flags & IB_SEND_SIGNALED);
}

static void sweep_qp(struct sim_qp *qp, u32 patience_ms)
{
	struct sim_qp_judge *judge = &qp->judge;
	u32 head = atomic_read(&qp->sq->head);

	if (judge->head != head || !tail_is_silent(qp, head)) {
		judge->head = head;
		judge->since = jiffies;
		judge->told = false;
	} else if (!judge->told && waited(judge->since, patience_ms)) {
		judge->told = true;
		sim_judge_qp(qp, head - 1, SIM_JUDGE_SILENT_TAIL);
	}
}

/*
 * A consumer that was told of a CQE and has not polled since is slow; one that has polled
 * and was not told of what is there now is not coming. A DIRECT queue is polled when its
 * owner likes.
 */
static void sweep_cq(struct sim_cq *cq, u32 patience_ms)
{
	struct sim_cq_judge *judge = &cq->judge;
	s64 tail = atomic64_read(&cq->tail);
	bool waits = atomic64_read(&cq->head) != tail && READ_ONCE(judge->raised) != tail + 1 &&
		     !(cq->ib.wc && cq->ib.poll_ctx == IB_POLL_DIRECT);

	if (judge->tail != tail || !waits) {
		judge->tail = tail;
		judge->since = jiffies;
		judge->told = false;
	} else if (!judge->told && waited(judge->since, patience_ms)) {
		judge->told = true;
		sim_judge_cq(cq, SIM_JUDGE_LOST_ARM);
	}
}

void sim_judge_sweep(struct work_struct *work)
{
	struct sim_device *sim = container_of(work, struct sim_device, judge.sweep.work);
	u32 silent_ms = READ_ONCE(sim->judge.silent_tail_ms);
	u32 arm_ms = READ_ONCE(sim->judge.lost_arm_ms);
	struct sim_qp *qp;
	struct sim_cq *cq;

	mutex_lock(&sim->lock);
	list_for_each_entry(qp, &sim->qps, entry)
		sweep_qp(qp, silent_ms);
	list_for_each_entry(cq, &sim->cqs, entry)
		sweep_cq(cq, arm_ms);
	mutex_unlock(&sim->lock);
	schedule_delayed_work(&sim->judge.sweep,
			      msecs_to_jiffies(max(min(silent_ms, arm_ms) / 4, SWEEP_MIN_MS)));
}

/* Whether a WQE that is in its place names a key; read while it may be written again. */
static bool wqe_names(const struct sim_sq *sq, u32 index, u32 key)
{
	const struct sim_wqe *wqe = sim_sq_slot(sq, index);
	bool found = false;
	u32 i;

	/* ORDER: pairs with post_accept() */
	if (smp_load_acquire(&wqe->seq) != index + 1 || wqe->flags & IB_SEND_INLINE)
		return false;
	for (i = 0; i < min_t(u32, wqe->num_sge, sq->max_sge); i++)
		found |= wqe->sge[i].lkey == key;
	smp_rmb();	/* ORDER: the list before its number; pairs with post_accept() */
	return found && READ_ONCE(wqe->seq) == index + 1;
}

static bool rwqe_names(const struct sim_rq *rq, u32 index, u32 key)
{
	const struct sim_rwqe *rwqe = sim_rq_slot(rq, index);
	bool found = false;
	u32 i;

	/* ORDER: pairs with rq_post_one() */
	if (smp_load_acquire(&rwqe->seq) != index + 1)
		return false;
	for (i = 0; i < min(READ_ONCE(rwqe->num_sge), rq->max_sge); i++)
		found |= rwqe->sge[i].lkey == key;
	smp_rmb();	/* ORDER: the list before its number; pairs with rq_post_one() */
	return found && READ_ONCE(rwqe->seq) == index + 1;
}

/* Until its CQE, or that of a later request, was polled a request uses what it names. */
static bool send_names(const struct sim_sq *sq, u32 key, u32 *at)
{
	u32 head = atomic_read(&sq->head);

	for (*at = atomic_read(&sq->retired); *at != head; ++*at)
		if (wqe_names(sq, *at, key))
			return true;
	return false;
}

/* So does a receive until a message takes it. */
static bool receive_names(const struct sim_rq *rq, u32 key, u32 *at)
{
	u32 head = READ_ONCE(rq->head);

	for (*at = atomic_read(&rq->retired); *at != head; ++*at)
		if (rwqe_names(rq, *at, key))
			return true;
	return false;
}

static void dereg_check(struct sim_qp *qp, u32 key)
{
	u32 at;

	if (send_names(qp->sq, key, &at) || receive_names(&qp->rq, key, &at))
		sim_judge_qp(qp, at, SIM_JUDGE_MR_IN_USE);
}

void sim_judge_dereg(struct sim_mr *mr)
{
	struct sim_device *sim = to_sim(mr->ib.device);
	struct sim_qp *qp;

	mutex_lock(&sim->lock);
	list_for_each_entry(qp, &sim->qps, entry)
		if (qp->ib.pd == mr->ib.pd && READ_ONCE(qp->state) == IB_QPS_RTS)
			dereg_check(qp, mr->key);
	mutex_unlock(&sim->lock);
}
