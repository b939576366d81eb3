// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Completion queues and who polls them.
 *
 * A CQ has one dispatcher at a time: in interrupt mode irq_poll, which a completion
 * event schedules and which arms the CQ before it sleeps; in poll mode a thread that
 * serves all polled CQs of its device and CPU. To change over, the old dispatcher is
 * stopped, then the new one started with a pass: what came meanwhile is found by it.
 *
 * The event handler only schedules: drivers call it with their CQ's lock held, and from
 * inside post_send.
 *
 * ORDER: arm with IB_CQ_REPORT_MISSED_EVENTS after the last poll; a completion that came
 * between the two is reported and polled for, any later one raises an event.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpuhotplug.h>
#include <linux/cpumask.h>
#include <linux/kthread.h>
#include <linux/slab.h>

#include "path.h"
#include "trace.h"

#define POLL_BATCH	32	/* CQEs in a call of ib_poll_cq(): 2 KB of ib_wc */
#define POLL_BUDGET	256	/* CQEs in a pass, as for ib_core's softirq CQs */

struct poller {
	struct list_head entry;
	struct ib_device *ib;
	unsigned int cpu;
	struct task_struct *task;
	struct list_head cqs;		/* changed only while the thread is parked */
	unsigned int users;
};

struct kverbs_cq {
	struct ib_cq *ib;
	struct kverbs_pass pass;
	enum kverbs_cq_mode mode;	/* as it is served */
	enum kverbs_cq_mode wanted;	/* as its owner wants it to be */
	u32 dev_index;
	struct irq_poll iop;
	struct poller *poller;
	struct list_head poller_entry;
	struct ib_wc wc[POLL_BATCH];
	u32 vector;
	struct mutex lock;		/* mode, claims, who dispatches */
	u64 claimed;
	unsigned int cpu;
	struct kverbs_device *dev;
	struct list_head entry;
	struct kverbs_object obj;
	struct kverbs_hists hists;	/* of queues that are gone */
};

/* All CQs, also of devices that have left; a CQ's lock is taken inside. */
static DEFINE_MUTEX(cqs_lock);
static LIST_HEAD(cqs);

/* Guards the pollers; taken inside a CQ's lock. */
static DEFINE_MUTEX(pollers_lock);
static LIST_HEAD(pollers);
static bool going_down;
static bool resting;		/* no thread polls: the machine is to sleep */
static enum cpuhp_state hotplug_state;

static void dispatch(struct kverbs_cq *cq, int n)
{
	struct ib_wc *wc;

	for (wc = cq->wc; wc < cq->wc + n; wc++)
		if (!WARN_ON_ONCE(!wc->wr_cqe))
			wc->wr_cqe->done(cq->ib, wc);
}

/* One turn of the dispatcher, bottom halves off: at most @budget CQEs, returns how many. */
static int cq_pass(struct kverbs_cq *cq, int budget)
{
	int n, done = 0;

	do {
		n = ib_poll_cq(cq->ib, min(POLL_BATCH, budget - done), cq->wc);
		kverbs_count(&cq->obj, KVERBS_POLLS, 1);
		if (n <= 0) {
			kverbs_count(&cq->obj, KVERBS_EMPTY_POLLS, 1);
			break;
		}
		if (!done)
			kverbs_pass_begin(&cq->pass);
		dispatch(cq, n);
		done += n;
	} while (n == POLL_BATCH && done < budget);
	if (!done)
		return 0;
	kverbs_pass_end(&cq->pass);
	kverbs_count(&cq->obj, KVERBS_CQES, done);
	kverbs_count(&cq->obj, KVERBS_PASSES, 1);
	trace_kverbs_poll(cq->dev_index, cq->obj.row->id, done, budget, cq->mode);
	return done;
}

static int irq_pass(struct irq_poll *iop, int budget)
{
	struct kverbs_cq *cq = container_of(iop, struct kverbs_cq, iop);
	int done = cq_pass(cq, budget);

	if (done == budget)
		return done;
	kverbs_count(&cq->obj, KVERBS_ARMS, 1);
	/* From here on another CPU may run the next pass. */
	irq_poll_complete(iop);
	if (ib_req_notify_cq(cq->ib, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) > 0) {
		kverbs_count_shared(&cq->obj, KVERBS_ARM_MISSED);
		irq_poll_sched(iop);
	}
	return done;
}

static int poller_main(void *data)
{
	struct poller *poller = data;
	struct kverbs_cq *cq;

	while (!kthread_should_stop()) {
		if (kthread_should_park()) {
			kthread_parkme();
			continue;
		}
		list_for_each_entry(cq, &poller->cqs, poller_entry) {
			local_bh_disable();
			cq_pass(cq, POLL_BUDGET);
			local_bh_enable();
		}
		cond_resched();
	}
	return 0;
}

/* A completion event. In poll mode the thread is about to look anyway. */
static void completion_event(struct ib_cq *ib, void *context)
{
	struct kverbs_cq *cq = context;

	/* From a driver that is quicker than kverbs_cq_create(): the first pass finds it. */
	if (unlikely(!READ_ONCE(cq->obj.row)))
		return;
	kverbs_count_shared(&cq->obj, KVERBS_WAKEUPS);
	WRITE_ONCE(cq->obj.row->cpu, raw_smp_processor_id());
	irq_poll_sched(&cq->iop);
}

static void cq_error(struct ib_event *event, void *context)
{
	struct kverbs_cq *cq = context;
	const struct kverbs_row *row = READ_ONCE(cq->obj.row);

	pr_err_ratelimited("%s: CQ of %s: %s; its queues will see no more completions\n",
			   dev_name(&event->device->dev), row ? row->name : "?",
			   ib_event_msg(event->event));
}

static struct poller *poller_create(struct ib_device *ib, unsigned int cpu)
{
	int node = cpu_to_node(cpu);
	struct poller *poller;

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

static struct poller *poller_get(struct ib_device *ib, unsigned int cpu)
{
	struct poller *poller;

	list_for_each_entry(poller, &pollers, entry)
		if (poller->ib == ib && poller->cpu == cpu)
			return poller;
	return poller_create(ib, cpu);
}

static void poller_put(struct poller *poller)
{
	if (poller->users)
		return;
	list_del(&poller->entry);
	kthread_stop(poller->task);
	kfree(poller);
}

/* The thread starts to serve the CQ; irq_poll is stopped. */
static int poller_attach(struct kverbs_cq *cq)
{
	struct poller *poller;
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

static void poller_detach(struct kverbs_cq *cq)
{
	struct poller *poller = cq->poller;

	mutex_lock(&pollers_lock);
	kthread_park(poller->task);
	list_del(&cq->poller_entry);
	poller->users--;
	cq->poller = NULL;
	kthread_unpark(poller->task);
	poller_put(poller);
	mutex_unlock(&pollers_lock);
}

/*
 * Stop whoever dispatches. Process context, under cq->lock. The last turn of irq_poll may
 * be over and still about to arm the CQ: softirqs are readers of RCU.
 */
static void dispatcher_stop(struct kverbs_cq *cq)
{
	if (cq->mode == KVERBS_CQ_POLL) {
		poller_detach(cq);
	} else {
		irq_poll_disable(&cq->iop);
		synchronize_rcu();
	}
}

/*
 * Start the dispatcher of @mode, while none runs; its first pass finds what came
 * meanwhile. Without a thread the CQ stays in interrupt mode, so that it is served, and
 * while threads rest it is served so. Who lets them rest comes to this CQ afterwards.
 */
static int dispatcher_start(struct kverbs_cq *cq, enum kverbs_cq_mode mode)
{
	int err = 0;

	cq->wanted = mode;
	if (READ_ONCE(resting))
		mode = KVERBS_CQ_INTERRUPT;
	WRITE_ONCE(cq->mode, mode);
	if (mode == KVERBS_CQ_POLL)
		err = poller_attach(cq);
	if (err)
		cq->wanted = KVERBS_CQ_INTERRUPT;
	if (mode == KVERBS_CQ_INTERRUPT || err) {
		WRITE_ONCE(cq->mode, KVERBS_CQ_INTERRUPT);
		irq_poll_enable(&cq->iop);
		irq_poll_sched(&cq->iop);
	}
	kverbs_object_set_mode(&cq->obj, cq->mode);
	return err;
}

static bool mode_is_legal(enum kverbs_cq_mode mode)
{
	return mode == KVERBS_CQ_INTERRUPT || mode == KVERBS_CQ_POLL;
}

int kverbs_cq_set_mode(struct kverbs_cq *cq, enum kverbs_cq_mode mode)
{
	int err = 0;

	might_sleep();
	if (!mode_is_legal(mode))
		return -EINVAL;
	mutex_lock(&cq->lock);
	if (mode != cq->wanted) {
		dispatcher_stop(cq);
		err = dispatcher_start(cq, mode);
	}
	mutex_unlock(&cq->lock);
	return err;
}
EXPORT_SYMBOL_GPL(kverbs_cq_set_mode);

/* Of a polled CQ, whose lock is held: its thread does not end while the CQ leaves it. */
static struct poller *poller_hold(struct kverbs_cq *cq)
{
	struct poller *poller;

	mutex_lock(&pollers_lock);
	poller = cq->poller;
	if (poller)
		poller->users++;
	mutex_unlock(&pollers_lock);
	return poller;
}

static void poller_unhold(struct poller *poller)
{
	if (!poller)
		return;
	mutex_lock(&pollers_lock);
	poller->users--;
	poller_put(poller);
	mutex_unlock(&pollers_lock);
}

/*
 * Poll what is in the CQ, with the dispatcher stopped: then none of a destroyed QP is
 * left. Other queues on it may go on: what comes meanwhile is theirs.
 */
void kverbs_cq_sync(struct kverbs_cq *cq)
{
	int n, left = cq->ib->cqe;
	struct poller *poller;

	mutex_lock(&cq->lock);
	poller = poller_hold(cq);
	dispatcher_stop(cq);
	do {
		local_bh_disable();
		n = cq_pass(cq, POLL_BUDGET);
		local_bh_enable();
		cond_resched();
		left -= n;
	} while (n && left > 0);
	dispatcher_start(cq, cq->wanted);
	poller_unhold(poller);
	mutex_unlock(&cq->lock);
}

static int check_attr(struct ib_device *dev, const struct kverbs_cq_attr *attr)
{
	if (!attr->nr_cqe || attr->nr_cqe > dev->attrs.max_cqe) {
		pr_warn("%s: nr_cqe %u is not between 1 and %d of the device\n",
			dev_name(&dev->dev), attr->nr_cqe, dev->attrs.max_cqe);
		return -EINVAL;
	}
	if (attr->comp_vector >= dev->num_comp_vectors) {
		pr_warn("%s: comp_vector %d is not below %d of the device: -1 chooses one\n",
			dev_name(&dev->dev), attr->comp_vector, dev->num_comp_vectors);
		return -EINVAL;
	}
	if (attr->cpu >= (int)nr_cpu_ids || (attr->cpu >= 0 && !cpu_online(attr->cpu))) {
		pr_warn("%s: cpu %d is not online: -1 chooses one\n", dev_name(&dev->dev),
			attr->cpu);
		return -EINVAL;
	}
	return mode_is_legal(attr->mode) ? 0 : -EINVAL;
}

static int create_ib_cq(struct kverbs_cq *cq, struct ib_device *dev,
			const struct kverbs_cq_attr *attr)
{
	struct ib_cq_init_attr init = { .cqe = attr->nr_cqe };
	int vector = attr->comp_vector;

	if (vector < 0)
		vector = raw_smp_processor_id() % dev->num_comp_vectors;
	init.comp_vector = vector;
	cq->vector = vector;
	cq->cpu = attr->cpu >= 0 ? attr->cpu :
		  cpumask_local_spread(vector, ibdev_to_node(dev));
	cq->ib = ib_create_cq(dev, completion_event, cq_error, cq, &init);
	return PTR_ERR_OR_ZERO(cq->ib);
}

static int add_row(struct kverbs_cq *cq, const struct kverbs_cq_attr *attr)
{
	struct kverbs_row id = {
		.type = KVERBS_ROW_CQ,
		.mode = attr->mode,
		.number = cq->vector,
		.depth = cq->ib->cqe,
		.memory = sizeof(*cq) + sizeof(struct kverbs_row),
		.cpu = U32_MAX,
	};

	strscpy(id.name, attr->name ?: "?", sizeof(id.name));
	cq->obj.ibdev = cq->ib->device;
	cq->obj.hists = &cq->hists;
	cq->obj.parent = &cq->dev->obj;
	return kverbs_object_add(&cq->obj, &id);
}

static struct kverbs_cq *alloc_cq(struct ib_device *dev)
{
	struct kverbs_cq *cq;

	cq = kzalloc_node(sizeof(*cq), GFP_KERNEL, ibdev_to_node(dev));
	if (!cq)
		return NULL;
	cq->dev_index = dev->index;
	mutex_init(&cq->lock);
	INIT_LIST_HEAD(&cq->pass.touched);
	irq_poll_init(&cq->iop, POLL_BUDGET, irq_pass);
	/* Closed until the CQ is whole: an event may come at once. */
	irq_poll_disable(&cq->iop);
	return cq;
}

static int join(struct kverbs_cq *cq)
{
	int err = 0;

	mutex_lock(&cqs_lock);
	if (READ_ONCE(cq->dev->gone))
		err = -ENODEV;
	else
		list_add_tail(&cq->entry, &cqs);
	mutex_unlock(&cqs_lock);
	return err;
}

struct kverbs_cq *kverbs_cq_create(struct ib_device *dev, const struct kverbs_cq_attr *attr)
{
	struct kverbs_device *kdev;
	struct kverbs_cq *cq;
	int err;

	might_sleep();
	err = check_attr(dev, attr);
	if (err)
		return ERR_PTR(err);
	kdev = kverbs_device_get(dev);
	if (!kdev)
		return ERR_PTR(-ENODEV);
	cq = alloc_cq(dev);
	err = -ENOMEM;
	if (!cq)
		goto put_device;
	cq->dev = kdev;
	err = create_ib_cq(cq, dev, attr);
	if (err)
		goto free_cq;
	err = add_row(cq, attr);
	if (err)
		goto destroy_ib;
	err = join(cq);
	if (err)
		goto del_row;
	mutex_lock(&cq->lock);
	err = dispatcher_start(cq, attr->mode);
	mutex_unlock(&cq->lock);
	if (err) {
		kverbs_cq_destroy(cq);
		return ERR_PTR(err);
	}
	return cq;

del_row:
	kverbs_object_del(&cq->obj);
destroy_ib:
	ib_destroy_cq(cq->ib);
free_cq:
	kfree(cq);
put_device:
	kverbs_device_put(kdev);
	return ERR_PTR(err);
}
EXPORT_SYMBOL_GPL(kverbs_cq_create);

void kverbs_cq_destroy(struct kverbs_cq *cq)
{
	struct kverbs_device *dev = cq->dev;

	might_sleep();
	WARN_ON_ONCE(cq->claimed);
	mutex_lock(&cqs_lock);
	list_del(&cq->entry);
	mutex_unlock(&cqs_lock);
	mutex_lock(&cq->lock);
	dispatcher_stop(cq);
	mutex_unlock(&cq->lock);
	ib_destroy_cq(cq->ib);
	kverbs_object_del(&cq->obj);
	kfree(cq);
	kverbs_device_put(dev);
}
EXPORT_SYMBOL_GPL(kverbs_cq_destroy);

struct ib_cq *kverbs_cq_ib(struct kverbs_cq *cq)
{
	return cq->ib;
}
EXPORT_SYMBOL_GPL(kverbs_cq_ib);

u64 kverbs_cq_counter(struct kverbs_cq *cq, enum kverbs_counter counter)
{
	return READ_ONCE(cq->obj.row->counter[counter]);
}
EXPORT_SYMBOL_GPL(kverbs_cq_counter);

struct kverbs_object *kverbs_cq_object(struct kverbs_cq *cq)
{
	return &cq->obj;
}

struct kverbs_pass *kverbs_cq_pass_of(struct kverbs_cq *cq)
{
	return &cq->pass;
}

/* Set aside room for all CQEs that a QP may leave; -ENOSPC with the sum in the log. */
int kverbs_cq_claim(struct kverbs_cq *cq, u32 send_wr, u32 recv_wr)
{
	u64 claim = kverbs_credit_claim(send_wr, recv_wr);
	int err = 0;

	mutex_lock(&cq->lock);
	if (kverbs_credit_cq_fits(cq->claimed, claim, cq->ib->cqe)) {
		cq->claimed += claim;
	} else {
		pr_warn("%s: CQ of %s: %llu claimed + %u sends + %u receives exceed its %d CQEs: create it larger\n",
			dev_name(&cq->ib->device->dev), cq->obj.row->name, cq->claimed, send_wr,
			recv_wr, cq->ib->cqe);
		err = -ENOSPC;
	}
	mutex_unlock(&cq->lock);
	return err;
}

void kverbs_cq_unclaim(struct kverbs_cq *cq, u32 send_wr, u32 recv_wr)
{
	mutex_lock(&cq->lock);
	cq->claimed -= kverbs_credit_claim(send_wr, recv_wr);
	mutex_unlock(&cq->lock);
}

/* Whoever is to be polled is served anew, as is possible now. */
static void serve_anew(void)
{
	struct kverbs_cq *cq;
	int err;

	mutex_lock(&cqs_lock);
	list_for_each_entry(cq, &cqs, entry) {
		mutex_lock(&cq->lock);
		/* One whose dispatcher has not been started yet finds out by itself. */
		if (cq->wanted == KVERBS_CQ_POLL) {
			dispatcher_stop(cq);
			err = dispatcher_start(cq, KVERBS_CQ_POLL);
			if (err && err != -ESHUTDOWN)
				pr_warn("%s: CQ of %s: no thread polls it any more: error %d\n",
					dev_name(&cq->ib->device->dev), cq->obj.row->name, err);
		}
		mutex_unlock(&cq->lock);
	}
	mutex_unlock(&cqs_lock);
}

/* The machine goes down: no thread may poll while drivers shut their devices down. */
void kverbs_pollers_quiesce(void)
{
	mutex_lock(&pollers_lock);
	going_down = true;
	mutex_unlock(&pollers_lock);
	serve_anew();
}

/*
 * The machine is to sleep, or has slept: no thread may poll a device that is suspended.
 * The threads are not frozen instead: a driver may remove its device while it suspends,
 * and whoever then destroys a CQ would wait for a frozen thread.
 */
void kverbs_pollers_rest(bool rest)
{
	WRITE_ONCE(resting, rest);
	serve_anew();
}

/* A CPU is back: its pollers, which were moved off, return to it. */
static int cpu_is_online(unsigned int cpu)
{
	struct poller *poller;

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
