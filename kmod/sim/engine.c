// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Who runs a queue pair. A kick that finds nobody at it starts it in the context that the
 * device is set to; one that finds somebody is seen by the owner before it leaves. What an
 * owner cannot finish goes on in the engine's thread.
 *
 * A run is a read side section of RCU, and is not preempted while it holds a lock bit. It
 * begins with what is plain, and goes on with bottom halves off: completion handlers raise
 * softirqs, which run when it is over.
 */
#include <linux/kthread.h>
#include <linux/wait_bit.h>

#include "plain.h"

/* WQEs of a run, before others have their turn. */
#define SIM_BUDGET	64

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

static void run(struct sim_qp *qp, u32 budget)
{
	int kicks;

	for (;;) {
		kicks = sim_kicks(qp);
		switch (sim_qp_exec(qp, budget)) {
		case SIM_IDLE:
			if (sim_finish(qp, kicks))
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

static void run_rest(struct sim_qp *qp, u32 budget)
{
	if (in_hardirq() || irqs_disabled()) {
		rcu_read_lock();
		run(qp, budget);
		rcu_read_unlock();
	} else {
		rcu_read_lock_bh();
		run(qp, budget);
		rcu_read_unlock_bh();
	}
}

static void qp_run(struct sim_qp *qp)
{
	if (!sim_run_plain(qp, SIM_BUDGET))
		run_rest(qp, SIM_BUDGET);
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

/* Later, in the context that is asked for; for that of post_send the thread stands in. */
static void start(struct sim_qp *qp, u32 context)
{
	struct sim_engine *engine = &sim_of_qp(qp)->engine;

	switch (context) {
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

/* Who has posted owns it. Inside post_send all is executed that a send queue can hold. */
void sim_engine_start(struct sim_qp *qp)
{
	u32 context = context_of(qp);

	if (context == SIM_CONTEXT_POST)
		run_rest(qp, SIM_MAX_QP_WR);
	else
		start(qp, context);
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

	start(qp, context_of(qp));
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
