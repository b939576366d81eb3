// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Who runs a queue pair. A kick that finds nobody at it starts it in the context that the
 * device is set to; one that finds somebody is seen by the owner before it leaves. What an
 * owner cannot finish goes on in the engine's thread.
 */
#include <linux/kthread.h>
#include <linux/wait_bit.h>

#include "sim.h"

static void thread_queue(struct sim_qp *qp)
{
	struct sim_engine *engine = &sim_of_qp(qp)->engine;

	if (llist_add(&qp->ready, &engine->ready))
		wake_up_process(engine->task);
}

/*
 * The owner waits, unless the state was changed since it had looked: true, it goes on. Once
 * the timer runs the ownership is the timer's.
 */
static bool pause(struct sim_qp *qp, int kicks)
{
	hrtimer_start(&qp->timer, ns_to_ktime(qp->pause_ns), HRTIMER_MODE_REL);
	smp_mb();	/* ORDER: the timer before the kicks; pairs with sim_kick() */
	return atomic_read(&qp->kicks) - kicks >= SIM_KICK_STATE &&
	       hrtimer_try_to_cancel(&qp->timer) == 1;
}

/* Give up the ownership, unless there were more kicks: true, it is given up. */
static bool release(struct sim_qp *qp, int kicks)
{
	if (atomic_sub_return(kicks, &qp->kicks))
		return false;
	if (unlikely(READ_ONCE(qp->awaited)))
		wake_up_var(&qp->kicks);
	return true;
}

/*
 * The owner goes on later: doorbells are counted and taken off all but one, since a queue
 * pair that is never idle would have them reach the bits of the state. Returns the kicks
 * that are left.
 */
static int settle_doorbells(struct sim_qp *qp, int kicks)
{
	int doorbells = kicks & (SIM_KICK_STATE - 1);

	if (doorbells <= 1)
		return kicks;
	sim_count(qp, SIM_CNT_DOORBELLS, doorbells - 1);
	atomic_sub(doorbells - 1, &qp->kicks);
	return kicks - (doorbells - 1);
}

static void run(struct sim_qp *qp)
{
	int kicks;

	for (;;) {
		kicks = atomic_read(&qp->kicks);
		switch (sim_qp_exec(qp)) {
		case SIM_IDLE:
			sim_count(qp, SIM_CNT_DOORBELLS, kicks & (SIM_KICK_STATE - 1));
			if (release(qp, kicks))
				return;
			break;
		case SIM_AGAIN:
			settle_doorbells(qp, kicks);
			thread_queue(qp);
			return;
		case SIM_PAUSE:
			if (!pause(qp, settle_doorbells(qp, kicks)))
				return;
			break;
		}
	}
}

/*
 * Bottom halves are off: completion handlers raise softirqs, which run when it is over, and
 * a run is not preempted while it holds a lock bit. It is an RCU read side section.
 */
static void qp_run(struct sim_qp *qp)
{
	if (unlikely(in_hardirq() || irqs_disabled())) {
		rcu_read_lock();
		run(qp);
		rcu_read_unlock();
	} else {
		rcu_read_lock_bh();
		run(qp);
		rcu_read_unlock_bh();
	}
}

static void list_run(struct llist_node *list)
{
	struct sim_qp *qp, *next;

	llist_for_each_entry_safe(qp, next, llist_reverse_order(list), ready)
		qp_run(qp);
}

static int engine_thread(void *data)
{
	struct sim_engine *engine = data;

	while (!kthread_should_stop()) {
		set_current_state(TASK_IDLE);
		if (llist_empty(&engine->ready) && !kthread_should_stop())
			schedule();
		__set_current_state(TASK_RUNNING);
		list_run(llist_del_all(&engine->ready));
		cond_resched();
	}
	return 0;
}

static void engine_tasklet(struct tasklet_struct *tasklet)
{
	struct sim_engine *engine = from_tasklet(engine, tasklet, tasklet);

	list_run(llist_del_all(&engine->softirq_ready));
}

static u32 context_of(const struct sim_qp *qp)
{
	return READ_ONCE(sim_of_qp(qp)->config.context);
}

static void start(struct sim_qp *qp, u32 context)
{
	struct sim_engine *engine = &sim_of_qp(qp)->engine;

	switch (context) {
	case SIM_CONTEXT_POST:
		qp_run(qp);
		break;
	case SIM_CONTEXT_SOFTIRQ:
		if (llist_add(&qp->ready, &engine->softirq_ready))
			tasklet_schedule(&engine->tasklet);
		break;
	case SIM_CONTEXT_HRTIMER:
		hrtimer_start(&qp->starter, 0, HRTIMER_MODE_REL_PINNED);
		break;
	default:
		thread_queue(qp);
	}
}

/* WQEs were published. */
void sim_doorbell(struct sim_qp *qp)
{
	if (!atomic_fetch_add(SIM_KICK_DOORBELL, &qp->kicks))
		start(qp, context_of(qp));
}

/* The state was changed: whoever waits is to look again. */
void sim_kick(struct sim_qp *qp)
{
	if (!atomic_fetch_add(SIM_KICK_STATE, &qp->kicks) ||
	    hrtimer_try_to_cancel(&qp->timer) == 1)
		thread_queue(qp);
}

/*
 * The owner has waited. It never runs in this very interrupt: a timer cannot be cancelled
 * by its own function, nor by others meanwhile, and if it has to wait again it must be.
 */
enum hrtimer_restart sim_qp_timer(struct hrtimer *timer)
{
	struct sim_qp *qp = container_of(timer, struct sim_qp, timer);
	u32 context = context_of(qp);

	start(qp, context == SIM_CONTEXT_POST ? SIM_CONTEXT_THREAD : context);
	return HRTIMER_NORESTART;
}

enum hrtimer_restart sim_qp_starter(struct hrtimer *timer)
{
	qp_run(container_of(timer, struct sim_qp, starter));
	return HRTIMER_NORESTART;
}

/* Whoever runs it looks at its state once more and leaves. */
void sim_qp_wait_idle(struct sim_qp *qp)
{
	WRITE_ONCE(qp->awaited, true);
	sim_kick(qp);
	wait_var_event(&qp->kicks, !atomic_read(&qp->kicks));
	WRITE_ONCE(qp->awaited, false);
}

int sim_engine_init(struct sim_device *sim)
{
	struct sim_engine *engine = &sim->engine;
	struct task_struct *task;

	init_llist_head(&engine->ready);
	init_llist_head(&engine->softirq_ready);
	tasklet_setup(&engine->tasklet, engine_tasklet);
	task = kthread_run(engine_thread, engine, "kverbs_sim/%u", sim->id);
	if (IS_ERR(task))
		return PTR_ERR(task);
	engine->task = task;
	return 0;
}

/* No queue pair is left. */
void sim_engine_destroy(struct sim_device *sim)
{
	tasklet_kill(&sim->engine.tasklet);
	if (sim->engine.task)
		kthread_stop(sim->engine.task);
}
