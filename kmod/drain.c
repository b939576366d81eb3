// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The end of a queue, and the worker that does what may sleep.
 *
 * A queue fails when a CQE tells of an error, when a driver leaves in doubt what it
 * took, when a CQE is missing or when the device leaves. A failed queue takes no more,
 * gives back what is staged, and moves the QP to ERR where it is not there yet, so that
 * all in flight gets its CQE. To drain is the same by the owner's wish, and to wait.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/jiffies.h>
#include <linux/ktime.h>

#include "ep.h"
#include "path.h"
#include "trace.h"

/* Jiffies after which the worker looks again: for dead slots that it could not retire. */
#define LATER	1

/* How long a wait for the last completions lasts before it looks for itself. */
#define IDLE_SLICE	msecs_to_jiffies(20)

void kverbs_kick(struct kverbs_sq *sq, unsigned long delay)
{
	if (delay)
		queue_delayed_work(kverbs_wq, &sq->work, delay);
	else
		mod_delayed_work(kverbs_wq, &sq->work, 0);
}

static void close_stage(struct kverbs_sq *sq, enum kverbs_sq_state state, int err)
{
	unsigned long irq;

	spin_lock_irqsave(&sq->lock, irq);
	if (state > sq->state) {
		WRITE_ONCE(sq->closed, err);
		WRITE_ONCE(sq->state, state);
		kverbs_stage_close(&sq->stage);
		kverbs_set_state(&sq->obj, state == KVERBS_SQ_FAILED ? KVERBS_STATE_FAILED :
								       KVERBS_STATE_STOPPED);
	}
	spin_unlock_irqrestore(&sq->lock, irq);
}

/* Any context. @fail_qp: the QP may not know yet; one that is drained, its owner moves. */
void kverbs_sq_fail(struct kverbs_sq *sq, bool fail_qp)
{
	unsigned long irq;

	close_stage(sq, KVERBS_SQ_FAILED, -EIO);
	spin_lock_irqsave(&sq->lock, irq);
	if (fail_qp && sq->state != KVERBS_SQ_STOPPED)
		WRITE_ONCE(sq->fail_qp, true);
	spin_unlock_irqrestore(&sq->lock, irq);
	kverbs_kick(sq, 0);
	/* Where receives come from an SRQ, nothing else need tell of it. */
	if (sq->ep)
		kverbs_ep_lost(sq->ep, -EIO);
}

/* The device is leaving: its users still destroy their queues afterwards. */
void kverbs_sq_device_gone(struct kverbs_sq *sq)
{
	unsigned long irq;

	if (READ_ONCE(sq->state) == KVERBS_SQ_LIVE)
		kverbs_record_end(sq, KVERBS_CAUSE_DEVICE_GONE);
	close_stage(sq, KVERBS_SQ_FAILED, -ENODEV);
	spin_lock_irqsave(&sq->lock, irq);
	WRITE_ONCE(sq->closed, -ENODEV);
	spin_unlock_irqrestore(&sq->lock, irq);
	kverbs_kick(sq, 0);
}

static int qp_to_error(struct kverbs_sq *sq)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	return ib_modify_qp(sq->qp, &attr, IB_QP_STATE);
}

static void serve_all(struct kverbs_sq *sq)
{
	local_bh_disable();
	kverbs_serve_waiters(sq);
	local_bh_enable();
}

/* The queue's worker. */
void kverbs_sq_work(struct work_struct *work)
{
	struct kverbs_sq *sq = container_of(to_delayed_work(work), struct kverbs_sq, work);
	bool dead = READ_ONCE(sq->dead_in) != READ_ONCE(sq->dead_out);

	if (READ_ONCE(sq->fail_qp)) {
		WRITE_ONCE(sq->fail_qp, false);
		kverbs_record_qp_state(sq);
		qp_to_error(sq);
	}
	if (kverbs_stage_own(&sq->stage)) {
		dead = kverbs_retire_dead(sq);
		kverbs_turn(sq, KVERBS_FLUSH_WORKER);
		dead |= READ_ONCE(sq->dead_in) != READ_ONCE(sq->dead_out);
	}
	if (READ_ONCE(sq->nr_waiters))
		serve_all(sq);
	if (READ_ONCE(sq->state) == KVERBS_SQ_STOPPED)
		wake_up_all(&sq->idle);
	if (dead || kverbs_look_again(sq))
		kverbs_kick(sq, LATER);
}

/*
 * Once a second: has the head moved? What stands still for the time-out with something
 * signaled in flight waits for a CQE that will not come. Its request ends when the
 * queue is destroyed; the others end by the flush.
 */
void kverbs_sq_watch(struct kverbs_sq *sq)
{
	u32 head = READ_ONCE(sq->head);

	if (READ_ONCE(sq->state) != KVERBS_SQ_LIVE || !kverbs_in_flight(sq) ||
	    head != sq->watch_head) {
		sq->watch_head = head;
		sq->watch_ticks = 0;
		return;
	}
	if (++sq->watch_ticks < sq->watch_limit)
		return;
	pr_warn_ratelimited("%s: QP %u: no completion for %u s with %u work requests in flight; moving the QP to the error state\n",
			    dev_name(&sq->obj.ibdev->dev), sq->qpn, sq->watch_limit,
			    kverbs_in_flight(sq));
	kverbs_record_end(sq, KVERBS_CAUSE_CQE_MISSING);
	kverbs_sq_fail(sq, true);
	/* Who sees it counted finds the queue failed. */
	kverbs_count_shared(&sq->obj, KVERBS_CQE_MISSING);
	trace_kverbs_error(sq->dev_index, sq->qpn, KVERBS_CQE_MISSING, 0, 0);
}

/* A turn that is not given up again: nothing will be posted any more. */
static void own_for_good(struct kverbs_sq *sq)
{
	while (!kverbs_stage_own(&sq->stage))
		usleep_range(20, 100);
}

static bool all_ended(struct kverbs_sq *sq)
{
	/* ORDER: pairs with the release of head in complete.c */
	return smp_load_acquire(&sq->head) == kverbs_stage_tail(&sq->stage);
}

/* What a driver refused once it may do the next time: without it nothing is flushed. */
static bool wait_idle(struct kverbs_sq *sq, unsigned long timeout)
{
	unsigned long end = jiffies + timeout;
	int err = -EAGAIN;

	for (;;) {
		if (err)
			err = qp_to_error(sq);
		/* Nobody but its owner polls a direct CQ. */
		if (!sq->cq && sq->ibcq->poll_ctx == IB_POLL_DIRECT)
			ib_process_cq_direct(sq->ibcq, -1);
		kverbs_retire_dead(sq);
		if (all_ended(sq))
			return true;
		if (time_after(jiffies, end))
			return false;
		wait_event_timeout(sq->idle, all_ended(sq), IDLE_SLICE);
	}
}

/* Take no more, give back what is staged; the QP is left alone. Once or more. */
void kverbs_sq_stop(struct kverbs_sq *sq)
{
	close_stage(sq, KVERBS_SQ_STOPPED, -ESHUTDOWN);
	hrtimer_cancel(&sq->hold);
	if (sq->stopped)
		return;
	sq->stopped = true;
	own_for_good(sq);
	while (!kverbs_kill_staged(sq, KVERBS_FLUSH_CALL))
		cpu_relax();
}

/* The end of the line and of the worker: who joined after the drain is told, too. */
void kverbs_sq_end_wait(struct kverbs_sq *sq)
{
	serve_all(sq);
	cancel_delayed_work_sync(&sq->work);
}

int kverbs_sq_drain(struct kverbs_sq *sq, unsigned long timeout)
{
	bool idle;

	might_sleep();
	kverbs_sq_stop(sq);
	/* The worker may have been about to do the same; nobody sets it again. */
	WRITE_ONCE(sq->fail_qp, false);
	cancel_delayed_work_sync(&sq->work);
	kverbs_record_qp_state(sq);
	idle = wait_idle(sq, timeout);
	if (!idle) {
		kverbs_record_end(sq, KVERBS_CAUSE_DRAIN);
		kverbs_record_qp_state(sq);
	}
	serve_all(sq);
	/* Callbacks run with bottom halves off: when this returns, the last of them has ended. */
	synchronize_rcu();
	return idle ? 0 : -ETIMEDOUT;
}
EXPORT_SYMBOL_GPL(kverbs_sq_drain);

static bool may_recover(const struct kverbs_sq *sq)
{
	return READ_ONCE(sq->state) == KVERBS_SQ_FAILED && READ_ONCE(sq->closed) != -ENODEV;
}

int kverbs_sq_recover(struct kverbs_sq *sq)
{
	struct ib_qp_attr attr = {};
	struct ib_qp_init_attr init;
	unsigned long irq;
	int err;

	might_sleep();
	if (!may_recover(sq))
		return -EINVAL;
	if (!all_ended(sq))
		return -EBUSY;
	/* If the worker is to move the QP to ERR, it does so now, and the QP is lost. */
	flush_delayed_work(&sq->work);
	err = ib_query_qp(sq->qp, &attr, IB_QP_STATE, &init);
	if (err)
		return err;
	if (attr.qp_state != IB_QPS_SQE)
		return -EINVAL;
	attr.qp_state = IB_QPS_RTS;
	attr.cur_qp_state = IB_QPS_SQE;
	kverbs_record_qp_state(sq);
	err = ib_modify_qp(sq->qp, &attr, IB_QP_STATE | IB_QP_CUR_STATE);
	if (err)
		return err;
	kverbs_recorder_resume(sq);
	spin_lock_irqsave(&sq->lock, irq);
	/* It may have been stopped, or the device have left, meanwhile. */
	if (may_recover(sq)) {
		WRITE_ONCE(sq->state, KVERBS_SQ_LIVE);
		WRITE_ONCE(sq->closed, 0);
		sq->signal.run = 0;
		kverbs_set_state(&sq->obj, KVERBS_STATE_LIVE);
		kverbs_stage_open(&sq->stage);
	} else {
		err = -EINVAL;
	}
	spin_unlock_irqrestore(&sq->lock, irq);
	return err;
}
EXPORT_SYMBOL_GPL(kverbs_sq_recover);
