// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Threads that poll: one for all CQs of a device that are polled on the same CPU. It
 * sleeps while none of them is.
 */
#include <linux/cpuhotplug.h>
#include <linux/cpumask.h>
#include <linux/kthread.h>
#include <linux/slab.h>

#include "cq.h"

struct kverbs_poller {
	struct list_head entry;
	struct ib_device *ib;
	unsigned int cpu;
	struct task_struct *task;
	struct list_head cqs;		/* changed only while the thread is parked */
	unsigned int users;
};

/* Guards the pollers; taken inside a CQ's lock. */
static DEFINE_MUTEX(pollers_lock);
static LIST_HEAD(pollers);
static bool going_down;
static enum cpuhp_state hotplug_state;

/* Does the thread dispatch this CQ at the moment? */
static bool is_polled(const struct kverbs_cq *cq)
{
	/* ORDER: pairs with the release in cq.c hand_over(): the pass before is over */
	return cq->mode == KVERBS_CQ_POLL || smp_load_acquire(&cq->spinning);
}

/* A look at each CQ; whether there was one to look at. */
static bool poll_all(struct kverbs_poller *poller)
{
	struct kverbs_cq *cq;
	bool any = false;

	list_for_each_entry(cq, &poller->cqs, poller_entry) {
		if (!is_polled(cq))
			continue;
		any = true;
		local_bh_disable();
		if (cq->mode == KVERBS_CQ_POLL)
			kverbs_cq_pass(cq, KVERBS_POLL_BUDGET);
		else
			kverbs_cq_spin(cq);
		local_bh_enable();
	}
	return any;
}

static bool is_wanted(struct kverbs_poller *poller)
{
	struct kverbs_cq *cq;

	list_for_each_entry(cq, &poller->cqs, poller_entry)
		if (is_polled(cq))
			return true;
	return kthread_should_stop() || kthread_should_park();
}

/* Until a CQ is handed over. */
static void sleep(struct kverbs_poller *poller)
{
	set_current_state(TASK_IDLE);
	if (!is_wanted(poller))
		schedule();
	__set_current_state(TASK_RUNNING);
}

static int poller_main(void *data)
{
	struct kverbs_poller *poller = data;

	while (!kthread_should_stop()) {
		if (kthread_should_park())
			kthread_parkme();
		else if (poll_all(poller))
			cond_resched();
		else
			sleep(poller);
	}
	return 0;
}

/* A CQ was handed over. */
void kverbs_poller_wake(struct kverbs_cq *cq)
{
	wake_up_process(cq->poller->task);
}

static struct kverbs_poller *poller_create(struct ib_device *ib, unsigned int cpu)
{
	int node = cpu_to_node(cpu);
	struct kverbs_poller *poller;

	poller = kzalloc_node(sizeof(*poller), GFP_KERNEL, node);
	if (!poller)
		return ERR_PTR(-ENOMEM);
	INIT_LIST_HEAD(&poller->cqs);
	poller->ib = ib;
	poller->cpu = cpu;
	poller->task = kthread_create_on_node(poller_main, poller, node, "kverbs/%s-%u",
					      dev_name(&ib->dev), cpu);
	if (IS_ERR(poller->task)) {
		struct task_struct *err = poller->task;

		kfree(poller);
		return ERR_CAST(err);
	}
	/* A thread that starts with no binding of its own is given its node's CPUs. */
	kthread_bind(poller->task, cpu);
	wake_up_process(poller->task);
	list_add(&poller->entry, &pollers);
	return poller;
}

static struct kverbs_poller *poller_get(struct ib_device *ib, unsigned int cpu)
{
	struct kverbs_poller *poller;

	list_for_each_entry(poller, &pollers, entry)
		if (poller->ib == ib && poller->cpu == cpu)
			return poller;
	return poller_create(ib, cpu);
}

static void poller_put(struct kverbs_poller *poller)
{
	if (poller->users)
		return;
	list_del(&poller->entry);
	kthread_stop(poller->task);
	kfree(poller);
}

/* The thread knows the CQ from now on; irq_poll is stopped. */
int kverbs_poller_attach(struct kverbs_cq *cq)
{
	struct kverbs_poller *poller;
	int err = 0;

	mutex_lock(&pollers_lock);
	if (going_down) {
		err = -ESHUTDOWN;
		goto unlock;
	}
	poller = poller_get(cq->ib->device, cq->cpu);
	if (IS_ERR(poller)) {
		err = PTR_ERR(poller);
		goto unlock;
	}
	kthread_park(poller->task);
	list_add_tail(&cq->poller_entry, &poller->cqs);
	poller->users++;
	cq->poller = poller;
	kthread_unpark(poller->task);
unlock:
	mutex_unlock(&pollers_lock);
	return err;
}

void kverbs_poller_detach(struct kverbs_cq *cq)
{
	struct kverbs_poller *poller = cq->poller;

	mutex_lock(&pollers_lock);
	kthread_park(poller->task);
	list_del(&cq->poller_entry);
	poller->users--;
	cq->poller = NULL;
	kthread_unpark(poller->task);
	poller_put(poller);
	mutex_unlock(&pollers_lock);
}

/* Of a CQ that has a thread: it does not end while the CQ leaves it. */
struct kverbs_poller *kverbs_poller_hold(struct kverbs_cq *cq)
{
	struct kverbs_poller *poller;

	mutex_lock(&pollers_lock);
	poller = cq->poller;
	if (poller)
		poller->users++;
	mutex_unlock(&pollers_lock);
	return poller;
}

void kverbs_poller_unhold(struct kverbs_poller *poller)
{
	if (!poller)
		return;
	mutex_lock(&pollers_lock);
	poller->users--;
	poller_put(poller);
	mutex_unlock(&pollers_lock);
}

/* From now on there is no thread for anybody. */
void kverbs_pollers_close(void)
{
	mutex_lock(&pollers_lock);
	going_down = true;
	mutex_unlock(&pollers_lock);
}

/* A CPU is back: its pollers, which were moved off, return to it. */
static int cpu_is_online(unsigned int cpu)
{
	struct kverbs_poller *poller;

	mutex_lock(&pollers_lock);
	list_for_each_entry(poller, &pollers, entry)
		if (poller->cpu == cpu)
			set_cpus_allowed_ptr(poller->task, cpumask_of(cpu));
	mutex_unlock(&pollers_lock);
	return 0;
}

int kverbs_pollers_init(void)
{
	int state = cpuhp_setup_state_nocalls(CPUHP_AP_ONLINE_DYN, "rdma/kverbs:online",
					      cpu_is_online, NULL);

	if (state < 0)
		return state;
	hotplug_state = state;
	return 0;
}

void kverbs_pollers_exit(void)
{
	cpuhp_remove_state_nocalls(hotplug_state);
}
