// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Completion queues and who dispatches them.
 *
 * A CQ has one dispatcher at a time:
 *
 *  interrupt  irq_poll, which a completion event schedules and which arms the CQ before
 *             it sleeps
 *  poll       a thread (poller.c), which never arms it
 *  hybrid     irq_poll; after a pass that found something it hands over to the thread,
 *  adaptive   which polls as long as that pays (core/pollmode.h) and gives back
 *
 * To give back, the thread schedules irq_poll, whose pass finds what came meanwhile and
 * arms the CQ. To change the mode, the old dispatcher is stopped, then the new one
 * started with a pass.
 *
 * The event handler only schedules: drivers call it with their CQ's lock held, and from
 * inside post_send.
 *
 * ORDER: arm with IB_CQ_REPORT_MISSED_EVENTS after the last poll; a completion that came
 * between the two is reported and polled for, any later one raises an event.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpumask.h>
#include <linux/sched.h>
#include <linux/sched/stat.h>
#include <linux/slab.h>

#include "clock.h"
#include "cq.h"
#include "trace.h"

/* All CQs, also of devices that have left; a CQ's lock is taken inside. */
static DEFINE_MUTEX(cqs_lock);
static LIST_HEAD(cqs);
static bool resting;		/* no thread polls: the machine is to sleep */

static void dispatch(struct kverbs_cq *cq, int n)
{
	struct ib_wc *wc;

	for (wc = cq->wc; wc < cq->wc + n; wc++)
		if (!WARN_ON_ONCE(!wc->wr_cqe))
			wc->wr_cqe->done(cq->ib, wc);
}

/* One turn of the dispatcher, bottom halves off: at most @budget CQEs, returns how many. */
int kverbs_cq_pass(struct kverbs_cq *cq, int budget)
{
	int n, done = 0;

	do {
		n = ib_poll_cq(cq->ib, min(KVERBS_POLL_BATCH, budget - done), cq->wc);
		kverbs_count(&cq->obj, KVERBS_POLLS, 1);
		if (n <= 0) {
			kverbs_count(&cq->obj, KVERBS_EMPTY_POLLS, 1);
			break;
		}
		if (!done)
			kverbs_pass_begin(&cq->pass);
		dispatch(cq, n);
		done += n;
	} while (n == KVERBS_POLL_BATCH && done < budget);
	if (!done)
		return 0;
	kverbs_pass_end(&cq->pass);
	kverbs_count(&cq->obj, KVERBS_CQES, done);
	kverbs_count(&cq->obj, KVERBS_PASSES, 1);
	trace_kverbs_poll(cq->dev_index, cq->obj.row->id, done, budget, cq->mode);
	return done;
}

static bool adapts(enum kverbs_cq_mode mode)
{
	return mode == KVERBS_CQ_HYBRID || mode == KVERBS_CQ_ADAPTIVE;
}

/* A pass found something: how long, in nanoseconds, to poll for what comes next? */
static u32 window(struct kverbs_cq *cq, bool spun)
{
	u64 before = cq->found_at;

	cq->found_at = cq->pass.now;
	return kverbs_pollmode_found(&cq->pollmode, kverbs_clock_ns(before, cq->found_at), spun);
}

/* The turn of irq_poll is over without arming, since the thread dispatches. Does it still? */
static void leave(struct kverbs_cq *cq)
{
	irq_poll_complete(&cq->iop);
	/* ORDER: pairs with the barrier in give_back(): it schedules, or this sees that it must */
	smp_mb();
	if (!READ_ONCE(cq->spinning))
		irq_poll_sched(&cq->iop);
}

static void hand_over(struct kverbs_cq *cq)
{
	trace_kverbs_spin(cq->dev_index, cq->obj.row->id, cq->pollmode.window_ns);
	/* ORDER: pairs with the acquire in poller.c is_polled(): this pass is over */
	smp_store_release(&cq->spinning, true);
	kverbs_poller_wake(cq);
	leave(cq);
}

static void end_spin(struct kverbs_cq *cq)
{
	trace_kverbs_spin(cq->dev_index, cq->obj.row->id, 0);
	/* ORDER: pairs with the acquire in irq_pass(): the thread's pass is over */
	smp_store_release(&cq->spinning, false);
}

static void give_back(struct kverbs_cq *cq)
{
	end_spin(cq);
	/* ORDER: pairs with the barrier in leave() */
	smp_mb();
	irq_poll_sched(&cq->iop);
}

/* A poll was in vain: look again? Not where somebody else could use the CPU. */
static bool spin_on(struct kverbs_cq *cq)
{
	if (need_resched() || !single_task_running()) {
		kverbs_pollmode_yield(&cq->pollmode);
		return false;
	}
	return !kverbs_pollmode_empty(&cq->pollmode) ||
	       !kverbs_pollmode_over(&cq->pollmode,
				     kverbs_clock_ns(cq->found_at, kverbs_clock()));
}

/* A look of the thread at a CQ that was handed over to it. */
void kverbs_cq_spin(struct kverbs_cq *cq)
{
	if (kverbs_cq_pass(cq, KVERBS_POLL_BUDGET) ? !window(cq, true) : !spin_on(cq))
		give_back(cq);
}

/* The pass that a completion event caused shows what events cost. */
static void learn_event(struct kverbs_cq *cq, u64 event_at)
{
	if (event_at)
		kverbs_pollmode_event(&cq->pollmode, kverbs_clock_ns(event_at, cq->pass.now));
}

/* Arm; what came since the last poll is polled for. Without an arm no event would tell of it. */
static void arm(struct kverbs_cq *cq)
{
	int missed;

	kverbs_count(&cq->obj, KVERBS_ARMS, 1);
	/* From here on another CPU may run the next pass. */
	irq_poll_complete(&cq->iop);
	missed = ib_req_notify_cq(cq->ib, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS);
	if (unlikely(missed < 0))
		pr_warn_ratelimited("%s: CQ of %s: the driver arms no event: error %d; it is polled instead\n",
				    dev_name(&cq->ib->device->dev), cq->obj.row->name, missed);
	if (missed) {
		kverbs_count_shared(&cq->obj, KVERBS_ARM_MISSED);
		irq_poll_sched(&cq->iop);
	}
}

static int irq_pass(struct irq_poll *iop, int budget)
{
	struct kverbs_cq *cq = container_of(iop, struct kverbs_cq, iop);
	u64 event_at = READ_ONCE(cq->event_at);
	int done;

	WRITE_ONCE(cq->event_at, 0);
	/* ORDER: pairs with the release in give_back() */
	if (smp_load_acquire(&cq->spinning)) {
		leave(cq);
		return 0;
	}
	done = kverbs_cq_pass(cq, budget);
	if (done && adapts(cq->mode)) {
		learn_event(cq, event_at);
		if (window(cq, false)) {
			hand_over(cq);
			return 0;
		}
	}
	if (done < budget)
		arm(cq);
	return done;
}

/* A completion event. In poll mode the thread is about to look anyway. */
static void completion_event(struct ib_cq *ib, void *context)
{
	struct kverbs_cq *cq = context;

	/* From a driver that is quicker than kverbs_cq_create(): the first pass finds it. */
	if (unlikely(!READ_ONCE(cq->obj.row)))
		return;
	kverbs_count_shared(&cq->obj, KVERBS_WAKEUPS);
	if (cq->mode == KVERBS_CQ_ADAPTIVE && !READ_ONCE(cq->event_at))
		WRITE_ONCE(cq->event_at, kverbs_clock());
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

/*
 * Stop whoever dispatches. Process context, under cq->lock. The last turn of irq_poll may
 * be over and still about to arm the CQ: softirqs are readers of RCU.
 */
static void dispatcher_stop(struct kverbs_cq *cq)
{
	if (cq->mode != KVERBS_CQ_POLL) {
		irq_poll_disable(&cq->iop);
		synchronize_rcu();
	}
	if (cq->poller)
		kverbs_poller_detach(cq);
	if (cq->spinning)
		end_spin(cq);
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
	cq->pollmode.fixed_ns = mode == KVERBS_CQ_HYBRID ? cq->spin_ns : 0;
	cq->found_at = kverbs_clock();
	if (mode != KVERBS_CQ_INTERRUPT)
		err = kverbs_poller_attach(cq);
	if (err) {
		cq->wanted = KVERBS_CQ_INTERRUPT;
		WRITE_ONCE(cq->mode, KVERBS_CQ_INTERRUPT);
	}
	if (cq->mode != KVERBS_CQ_POLL) {
		irq_poll_enable(&cq->iop);
		irq_poll_sched(&cq->iop);
	}
	kverbs_object_set_mode(&cq->obj, cq->mode);
	return err;
}

/* @spin_ns is what the CQ has for hybrid mode. */
static bool mode_is_legal(enum kverbs_cq_mode mode, u32 spin_ns)
{
	switch (mode) {
	case KVERBS_CQ_INTERRUPT:
	case KVERBS_CQ_POLL:
	case KVERBS_CQ_ADAPTIVE:
		return true;
	case KVERBS_CQ_HYBRID:
		return spin_ns;
	default:
		return false;
	}
}

int kverbs_cq_set_mode(struct kverbs_cq *cq, enum kverbs_cq_mode mode)
{
	int err = 0;

	might_sleep();
	if (!mode_is_legal(mode, cq->spin_ns))
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

/*
 * Poll what is in the CQ, with the dispatcher stopped: then none of a destroyed QP is
 * left. Other queues on it may go on: what comes meanwhile is theirs.
 */
void kverbs_cq_sync(struct kverbs_cq *cq)
{
	int n, left = cq->ib->cqe;
	struct kverbs_poller *poller;

	mutex_lock(&cq->lock);
	poller = kverbs_poller_hold(cq);
	dispatcher_stop(cq);
	do {
		local_bh_disable();
		n = kverbs_cq_pass(cq, KVERBS_POLL_BUDGET);
		local_bh_enable();
		cond_resched();
		left -= n;
	} while (n && left > 0);
	dispatcher_start(cq, cq->wanted);
	kverbs_poller_unhold(poller);
	mutex_unlock(&cq->lock);
}

/* No device's default, and nobody's: one that is asked for is had, or there is no CQ. */
static int check_moderation(struct ib_device *dev, const struct kverbs_cq_attr *attr)
{
	const struct ib_cq_caps *caps = &dev->attrs.cq_caps;

	if (!attr->moderate_cqes && !attr->moderate_us)
		return 0;
	if (!dev->ops.modify_cq || !caps->max_cq_moderation_count ||
	    !caps->max_cq_moderation_period) {
		pr_warn("%s: moderate_cqes %u: the device moderates no events: leave it 0\n",
			dev_name(&dev->dev), attr->moderate_cqes);
		return -EOPNOTSUPP;
	}
	if (!attr->moderate_cqes || attr->moderate_cqes > caps->max_cq_moderation_count) {
		pr_warn("%s: moderate_cqes %u is not between 1 and %u of the device, as moderate_us needs\n",
			dev_name(&dev->dev), attr->moderate_cqes, caps->max_cq_moderation_count);
		return -EINVAL;
	}
	if (!attr->moderate_us || attr->moderate_us > caps->max_cq_moderation_period) {
		pr_warn("%s: moderate_us %u is not between 1 and %u of the device, as moderate_cqes needs\n",
			dev_name(&dev->dev), attr->moderate_us, caps->max_cq_moderation_period);
		return -EINVAL;
	}
	return 0;
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
	if (attr->spin_ns > KVERBS_SPIN_MAX_NS ||
	    (attr->mode == KVERBS_CQ_HYBRID && !attr->spin_ns)) {
		pr_warn("%s: spin_ns %u is not between 1 and %u, as hybrid mode needs\n",
			dev_name(&dev->dev), attr->spin_ns, KVERBS_SPIN_MAX_NS);
		return -EINVAL;
	}
	if (attr->max_cpu_percent > 100) {
		pr_warn("%s: max_cpu_percent %u exceeds 100\n", dev_name(&dev->dev),
			attr->max_cpu_percent);
		return -EINVAL;
	}
	if (!mode_is_legal(attr->mode, attr->spin_ns))
		return -EINVAL;
	return check_moderation(dev, attr);
}

static int create_ib_cq(struct kverbs_cq *cq, struct ib_device *dev,
			const struct kverbs_cq_attr *attr)
{
	struct ib_cq_init_attr init = { .cqe = attr->nr_cqe };
	int vector = attr->comp_vector, err;

	if (vector < 0)
		vector = raw_smp_processor_id() % dev->num_comp_vectors;
	init.comp_vector = vector;
	cq->vector = vector;
	cq->cpu = attr->cpu >= 0 ? attr->cpu :
		  cpumask_local_spread(vector, ibdev_to_node(dev));
	cq->ib = ib_create_cq(dev, completion_event, cq_error, cq, &init);
	if (IS_ERR(cq->ib))
		return PTR_ERR(cq->ib);
	err = attr->moderate_cqes ? rdma_set_cq_moderation(cq->ib, attr->moderate_cqes,
							   attr->moderate_us) : 0;
	if (err) {
		pr_warn("%s: moderate_cqes %u with moderate_us %u: the driver refuses: error %d\n",
			dev_name(&dev->dev), attr->moderate_cqes, attr->moderate_us, err);
		ib_destroy_cq(cq->ib);
	}
	return err;
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

static struct kverbs_cq *alloc_cq(struct ib_device *dev, const struct kverbs_cq_attr *attr)
{
	struct kverbs_cq *cq;

	cq = kzalloc_node(sizeof(*cq), GFP_KERNEL, ibdev_to_node(dev));
	if (!cq)
		return NULL;
	cq->dev_index = dev->index;
	cq->spin_ns = attr->spin_ns;
	kverbs_pollmode_init(&cq->pollmode, 0, attr->max_latency_ns, attr->max_cpu_percent);
	mutex_init(&cq->lock);
	INIT_LIST_HEAD(&cq->pass.touched);
	irq_poll_init(&cq->iop, KVERBS_POLL_BUDGET, irq_pass);
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
	cq = alloc_cq(dev, attr);
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
		if (cq->wanted != KVERBS_CQ_FOREIGN && cq->wanted != KVERBS_CQ_INTERRUPT) {
			dispatcher_stop(cq);
			err = dispatcher_start(cq, cq->wanted);
			if (err && err != -ESHUTDOWN)
				pr_warn("%s: CQ of %s: no thread polls it any more: error %d\n",
					dev_name(&cq->ib->device->dev), cq->obj.row->name, err);
		}
		mutex_unlock(&cq->lock);
	}
	mutex_unlock(&cqs_lock);
}

/* The machine goes down: no thread may poll while drivers shut their devices down. */
void kverbs_cqs_quiesce(void)
{
	kverbs_pollers_close();
	serve_anew();
}

/*
 * The machine is to sleep, or has slept: no thread may poll a device that is suspended.
 * The threads are not frozen instead: a driver may remove its device while it suspends,
 * and whoever then destroys a CQ would wait for a frozen thread.
 */
void kverbs_cqs_rest(bool rest)
{
	WRITE_ONCE(resting, rest);
	serve_anew();
}

