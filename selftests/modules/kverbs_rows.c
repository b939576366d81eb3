// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The statistics of kverbs by themselves, with objects that a test adds and removes
 * as it likes: no device, no traffic, so that every number is known. Takes the place
 * of kverbs.ko and its /dev/kverbs.
 *
 * Words written to the parameter "command":
 *   device NAME      add a device
 *   cq NAME          add a CQ to it
 *   queue NAME       add a queue to it, on its newest CQ; QP numbers count up from 1
 *   post NAME N      its newest queue posts N times 16 work requests of 64 bytes
 *   fail NAME        its newest queue misses a completion of the last post
 *   pop NAME         remove the newest queue or CQ
 *   hide NAME        the device is leaving
 *   rename NAME      it is called "renamed" from now on
 *   remove NAME      remove it and all that is on it
 *   churn NAME       add queues, post and remove them, again and again
 *   rest             no more of that; only then use the device otherwise
 *
 * The parameter "truth" tells how many posts had begun and how many were counted.
 */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>

#include "../../kmod/clock.c"
#include "../../kmod/recorder.c"
#include "../../kmod/stats.c"
#include "../../kmod/chardev.c"

#define MAX_OBJECTS	4096
#define CHURN_QUEUES	40

struct fake {
	struct kverbs_object object;
	struct kverbs_hists hists;
	struct kverbs_sq *sq;	/* of a queue: what its recorder needs */
	struct ib_qp qp;
};

struct fake_device {
	struct list_head entry;
	struct ib_device ibdev;
	struct fake self;
	struct fake *on[MAX_OBJECTS];
	unsigned int nr;
	struct kverbs_object *cq;
	u32 qps;
};

static LIST_HEAD(fakes);
static DEFINE_MUTEX(fakes_lock);
static struct task_struct *churner;
static atomic64_t posts_begun;
static atomic64_t posts_ended;

static struct fake_device *fake_find(const char *name)
{
	struct fake_device *dev;

	list_for_each_entry(dev, &fakes, entry)
		if (!strcmp(dev->ibdev.name, name))
			return dev;
	return NULL;
}

static void fake_free(struct fake *fake)
{
	if (fake->sq)
		kverbs_recorder_free(fake->sq->recorder);
	kfree(fake->sq);
	kfree(fake);
}

static int fake_recorder(struct fake_device *dev, struct fake *fake, const struct kverbs_row *id)
{
	int ret;

	fake->sq = kzalloc_obj(*fake->sq);
	if (!fake->sq)
		return -ENOMEM;
	fake->qp.device = &dev->ibdev;
	fake->sq->qp = &fake->qp;
	fake->sq->qpn = id->number;
	fake->sq->stage.depth = id->depth;
	ret = kverbs_recorder_create(fake->sq, id->name);
	fake->object.recorder = fake->sq->recorder;
	return ret;
}

static int fake_add(struct fake_device *dev, const struct kverbs_row *id)
{
	struct fake *fake;
	int ret = 0;

	if (dev->nr == MAX_OBJECTS)
		return -ENOSPC;
	fake = kzalloc_obj(*fake);
	if (!fake)
		return -ENOMEM;
	fake->object.ibdev = &dev->ibdev;
	fake->object.hists = &fake->hists;
	fake->object.parent = &dev->self.object;
	if (id->type == KVERBS_ROW_QUEUE) {
		fake->object.cq = dev->cq;
		ret = fake_recorder(dev, fake, id);
	}
	if (!ret)
		ret = kverbs_object_add(&fake->object, id);
	if (ret) {
		fake_free(fake);
		return ret;
	}
	if (id->type == KVERBS_ROW_CQ)
		dev->cq = &fake->object;
	if (id->type == KVERBS_ROW_QUEUE) {
		fake->object.row->post_fixed_ns = 120;
		fake->object.row->post_wr_ps = 45500;
	}
	dev->on[dev->nr++] = fake;
	return 0;
}

static int fake_add_cq(struct fake_device *dev)
{
	struct kverbs_row id = {
		.type = KVERBS_ROW_CQ,
		.mode = KVERBS_CQ_INTERRUPT,
		.number = 3,
		.depth = 512,
		.memory = 700,
		.slot_memory = 32 * 512,
		.name = "a cq",
	};

	return fake_add(dev, &id);
}

static int fake_add_queue(struct fake_device *dev)
{
	struct kverbs_row id = {
		.type = KVERBS_ROW_QUEUE,
		.mode = dev->cq ? KVERBS_CQ_INTERRUPT : KVERBS_CQ_FOREIGN,
		.number = ++dev->qps,
		.depth = 256,
		.memory = 900,
		.slot_memory = 16 * 256,
		.name = "a queue",
	};

	return fake_add(dev, &id);
}

static void fake_notes(struct kverbs_sq *sq)
{
	u64 now = kverbs_clock();

	kverbs_note_flush(sq->recorder, &sq->nr_flushes, (struct kverbs_flush_note){
		.at = now,
		.bytes = 16 * 64,
		.pos = sq->stage.taken,
		.ns = 1000,
		.nr = 16,
		.signaled = 1,
	});
	kverbs_note_cqe(sq->recorder, &sq->nr_cqes, (struct kverbs_cqe_note){
		.at = now,
		.posted_at = now,
		.pos = sq->stage.taken + 15,
		.retired = 16,
	});
	sq->head = sq->stage.taken;
	sq->stage.taken += 16;
}

/* A post of 16 requests takes 1000 ns, and they are back after 10,000. */
static void fake_post(struct fake *queue)
{
	struct kverbs_object *obj = &queue->object;

	atomic64_inc(&posts_begun);
	kverbs_count(obj, KVERBS_POST_CALLS, 1);
	kverbs_count(obj, KVERBS_WORK_REQUESTS, 16);
	kverbs_count(obj, KVERBS_SIGNALED, 1);
	kverbs_count(obj, KVERBS_BYTES, 16 * 64);
	kverbs_count(obj, KVERBS_OP_WRITE, 16);
	kverbs_count(obj, KVERBS_QUEUE_CQES, 1);
	kverbs_count(obj, KVERBS_COMPLETIONS, 16);
	kverbs_count_shared(obj, KVERBS_REFUSED_FULL);
	kverbs_hist_record(obj->hists->bucket[KVERBS_HIST_POST], 1000, 1);
	kverbs_hist_record(obj->hists->bucket[KVERBS_HIST_COMPLETE], 10000, 16);
	fake_notes(queue->sq);
	atomic64_inc(&posts_ended);
}

static int fake_pop(struct fake_device *dev)
{
	struct fake *fake;

	if (!dev->nr)
		return -ENOENT;
	fake = dev->on[--dev->nr];
	if (dev->cq == &fake->object)
		dev->cq = NULL;
	kverbs_object_del(&fake->object);
	fake_free(fake);
	return 0;
}

static int churn(void *arg)
{
	struct fake_device *dev = arg;
	unsigned int i, nr, round = 0;

	while (!kthread_should_stop()) {
		for (nr = 0; nr < CHURN_QUEUES && !fake_add_queue(dev); nr++)
			fake_post(dev->on[dev->nr - 1]);
		for (i = 0; i < nr; i++)
			fake_pop(dev);
		/* Hard on the readers, yet now and then there is rest. */
		if (++round % 64)
			cond_resched();
		else
			usleep_range(20, 100);
	}
	return 0;
}

static int fake_device_add(const char *name)
{
	struct kverbs_row id = { .type = KVERBS_ROW_DEVICE };
	struct fake_device *dev;
	int ret;

	if (fake_find(name))
		return -EEXIST;
	dev = kvzalloc_obj(*dev);
	if (!dev)
		return -ENOMEM;
	strscpy(dev->ibdev.name, name, sizeof(dev->ibdev.name));
	strscpy(id.name, name, sizeof(id.name));
	write_pnet(&dev->ibdev.coredev.rdma_net, &init_net);
	dev->ibdev.ops.owner = THIS_MODULE;
	dev->self.object.ibdev = &dev->ibdev;
	dev->self.object.hists = &dev->self.hists;
	ret = kverbs_object_add(&dev->self.object, &id);
	if (ret) {
		kvfree(dev);
		return ret;
	}
	list_add_tail(&dev->entry, &fakes);
	return 0;
}

static int fake_device_remove(struct fake_device *dev)
{
	while (dev->nr)
		fake_pop(dev);
	kverbs_object_del(&dev->self.object);
	list_del(&dev->entry);
	kvfree(dev);
	return 0;
}

static int churn_begin(struct fake_device *dev)
{
	struct task_struct *task;

	if (churner)
		return -EBUSY;
	task = kthread_run(churn, dev, "kverbs_rows");
	if (IS_ERR(task))
		return PTR_ERR(task);
	churner = task;
	return 0;
}

static void churn_end(void)
{
	if (churner)
		kthread_stop(churner);
	churner = NULL;
}

static int post_many(struct fake_device *dev, unsigned int count)
{
	if (!dev->nr || !dev->on[dev->nr - 1]->sq)
		return -ENOENT;
	while (count--)
		fake_post(dev->on[dev->nr - 1]);
	return 0;
}

static int fail(struct fake_device *dev)
{
	if (!dev->nr || !dev->on[dev->nr - 1]->sq)
		return -ENOENT;
	kverbs_record_end(dev->on[dev->nr - 1]->sq, KVERBS_CAUSE_CQE_MISSING);
	return 0;
}

static int command_locked(const char *word, const char *name, unsigned int count)
{
	struct fake_device *dev;

	if (!strcmp(word, "rest")) {
		churn_end();
		return 0;
	}
	if (!strcmp(word, "device"))
		return fake_device_add(name);
	dev = fake_find(name);
	if (!dev)
		return -ENODEV;
	if (!strcmp(word, "cq"))
		return fake_add_cq(dev);
	if (!strcmp(word, "queue"))
		return fake_add_queue(dev);
	if (!strcmp(word, "post"))
		return post_many(dev, count);
	if (!strcmp(word, "fail"))
		return fail(dev);
	if (!strcmp(word, "pop"))
		return fake_pop(dev);
	if (!strcmp(word, "churn"))
		return churn_begin(dev);
	if (!strcmp(word, "remove"))
		return fake_device_remove(dev);
	if (!strcmp(word, "hide"))
		kverbs_object_hide(&dev->self.object);
	else if (!strcmp(word, "rename"))
		kverbs_object_rename(&dev->self.object, "renamed");
	else
		return -EINVAL;
	return 0;
}

static int command_set(const char *text, const struct kernel_param *kp)
{
	char word[16], name[IB_DEVICE_NAME_MAX] = "";
	unsigned int count = 0;
	int ret;

	if (sscanf(text, "%15s %63s %u", word, name, &count) < 1)
		return -EINVAL;
	mutex_lock(&fakes_lock);
	ret = command_locked(word, name, count);
	mutex_unlock(&fakes_lock);
	return ret;
}

static const struct kernel_param_ops command_ops = {
	.set = command_set,
};
module_param_cb(command, &command_ops, NULL, 0200);
MODULE_PARM_DESC(command, "see the head of the source");

static int truth_get(char *buffer, const struct kernel_param *kp)
{
	return sysfs_emit(buffer, "%lld %lld\n", atomic64_read(&posts_begun),
			  atomic64_read(&posts_ended));
}

static const struct kernel_param_ops truth_ops = {
	.get = truth_get,
};
module_param_cb(truth, &truth_ops, NULL, 0444);
MODULE_PARM_DESC(truth, "posts begun, posts counted");

static int __init kverbs_rows_init(void)
{
	int ret;

	ret = kverbs_stats_init();
	if (ret)
		return ret;
	ret = kverbs_chardev_init();
	if (ret)
		kverbs_stats_exit();
	return ret;
}
module_init(kverbs_rows_init);

static void __exit kverbs_rows_exit(void)
{
	struct fake_device *dev, *next;

	churn_end();
	list_for_each_entry_safe(dev, next, &fakes, entry)
		fake_device_remove(dev);
	kverbs_chardev_exit();
	kverbs_stats_exit();
}
module_exit(kverbs_rows_exit);

MODULE_DESCRIPTION("kverbs: its statistics with objects made up by a test");
MODULE_LICENSE("Dual BSD/GPL");
