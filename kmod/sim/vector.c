// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Completion vectors. The handler of a completion queue runs on the CPU of its vector: at
 * once where the event comes from there, and otherwise in a tasklet over there. Nothing is
 * merged: a handler is called once for each event.
 *
 * What was raised and not delivered, @events_due of a CQ, keeps it on the list of its
 * vector, or on its timer: who raises it from zero puts it there.
 */
#include <linux/cpumask.h>
#include <linux/smp.h>
#include <linux/wait_bit.h>

#include "sim.h"

static void call(struct sim_cq *cq)
{
	cq->ib.comp_handler(&cq->ib, cq->ib.cq_context);
}

/* Once @delivered is all that was raised the CQ may go. */
static void deliver(struct sim_cq *cq)
{
	bool last;

	do {
		call(cq);
		last = atomic_dec_and_test(&cq->events_due);
		/* ORDER: the last that is done with it; pairs with sim_vector_flush() */
		atomic_inc_return(&cq->delivered);
		wake_up_var(&cq->delivered);
	} while (!last);
}

static void vector_tasklet(struct tasklet_struct *tasklet)
{
	struct sim_vector *vector = from_tasklet(vector, tasklet, tasklet);
	struct sim_cq *cq, *next;

	llist_for_each_entry_safe(cq, next,
				  llist_reverse_order(llist_del_all(&vector->due)), due)
		deliver(cq);
}

/* On the vector's CPU, in its interrupt. */
static void vector_interrupt(void *data)
{
	struct sim_vector *vector = data;

	tasklet_schedule(&vector->tasklet);
}

/* The tasklet empties the list, and before that the interrupt was: one at a time. */
static void vector_queue(struct sim_cq *cq)
{
	struct sim_vector *vector = cq->vector;

	if (!llist_add(&cq->due, &vector->due))
		return;
	preempt_disable();
	if (vector->cpu == smp_processor_id() ||
	    smp_call_function_single_async(vector->cpu, &vector->csd))
		tasklet_schedule(&vector->tasklet);
	preempt_enable();
}

static enum hrtimer_restart vector_timer(struct hrtimer *timer)
{
	vector_queue(container_of(timer, struct sim_cq, interrupt));
	return HRTIMER_NORESTART;
}

/* An event of a completion queue, from any context. */
void sim_vector_raise(struct sim_cq *cq)
{
	u32 ns = sim_cost_interrupt_ns(sim_of_cq(cq));

	if (likely(!ns && cq->vector->cpu == raw_smp_processor_id())) {
		call(cq);
		return;
	}
	atomic_inc(&cq->raised);
	if (atomic_inc_return(&cq->events_due) > 1)
		return;
	if (ns)
		hrtimer_start(&cq->interrupt, ns_to_ktime(ns), HRTIMER_MODE_REL);
	else
		vector_queue(cq);
}

/* What was raised so far is delivered. */
void sim_vector_flush(struct sim_cq *cq)
{
	int raised = atomic_read(&cq->raised);

	/* ORDER: pairs with deliver() */
	wait_var_event(&cq->delivered, atomic_read_acquire(&cq->delivered) - raised >= 0);
}

void sim_vector_init_cq(struct sim_cq *cq, u32 vector)
{
	cq->vector = &sim_of_cq(cq)->vectors[vector];
	hrtimer_setup(&cq->interrupt, vector_timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
}

/* The CPUs of the device's node come first. */
int sim_vectors_init(struct sim_device *sim, int node)
{
	u32 i, nr = sim->caps.comp_vectors;

	sim->vectors = kcalloc(nr, sizeof(*sim->vectors), GFP_KERNEL);
	if (!sim->vectors)
		return -ENOMEM;
	for (i = 0; i < nr; i++) {
		struct sim_vector *vector = &sim->vectors[i];

		vector->cpu = cpumask_local_spread(i, node);
		init_llist_head(&vector->due);
		tasklet_setup(&vector->tasklet, vector_tasklet);
		INIT_CSD(&vector->csd, vector_interrupt, vector);
	}
	return 0;
}

/* No completion queue is left. */
void sim_vectors_destroy(struct sim_device *sim)
{
	u32 i;

	for (i = 0; sim->vectors && i < sim->caps.comp_vectors; i++)
		tasklet_kill(&sim->vectors[i].tasklet);
	kfree(sim->vectors);
}
