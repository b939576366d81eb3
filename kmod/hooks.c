// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Events of all consumers, on any driver: enabling one hooks the functions that devices have
 * as their operations, the last that is disabled unhooks them.
 *
 * A function is hooked once, whichever devices share it. It is unhooked when the last of
 * them leaves, and a device leaves this client before its driver's code does, so no hook
 * outlives what it is on, and none holds the driver.
 *
 * ORDER: hooks_lock is taken under the RDMA core's locks (a device comes or goes) and under
 * event_mutex and tracepoints_mutex (an event is enabled); under it come the locks of kprobes
 * and of ftrace only. In particular nothing here registers notifiers of modules, under
 * whose lock events of modules are disabled.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugfs.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "clock.h"
#include "hooks.h"
#include "probe.h"
#include "trace.h"

/* As "kverbs trace" does: a bad list must not keep a processor for ever. */
#define MAX_WRS		1024U
#define MAX_SGES	32U

/*
 * @devices: that have the function as their operation
 * @missed: by probes before this one
 * @err: why it is not hooked though it is wanted
 */
struct kverbs_hook {
	struct list_head entry;
	enum kverbs_hook_op op;
	void *function;
	unsigned int devices;
	bool hooked;
	int err;
	unsigned long missed;
	struct kverbs_probe probe;
};

/* What is kept of a post until it returns: then its work requests may be gone. */
struct post {
	const struct ib_qp *qp;
	u64 begin;
	u64 bytes;
	u32 opcode;
	u32 wrs;
	u32 signaled;
	u32 inlined;
	bool truncated;
};

struct poll {
	const struct ib_cq *cq;
	u32 budget;
};

static_assert(sizeof(struct post) <= KVERBS_PROBE_DATA);
static_assert(sizeof(struct poll) <= KVERBS_PROBE_DATA);

static DEFINE_MUTEX(hooks_lock);
static LIST_HEAD(hooks);
static unsigned int wanted[KVERBS_NR_HOOKS];
static struct dentry *debugfs;

static const char *consumer(const struct rdma_restrack_entry *res)
{
	return res->kern_name ?: "user";
}

/* A QP of an XRC target has no PD, and posts nothing. */
static const char *poster(const struct ib_qp *qp)
{
	return consumer(qp->pd ? &qp->pd->res : &qp->res);
}

/* What moves no data need not say that it has no SGEs: no driver looks there. */
static bool has_sges(const struct ib_send_wr *wr)
{
	switch (wr->opcode) {
	case IB_WR_LOCAL_INV:
	case IB_WR_REG_MR:
	case IB_WR_REG_MR_INTEGRITY:
	case IB_WR_BIND_MW:
		return false;
	default:
		return true;
	}
}

static u64 bytes_of(const struct ib_send_wr *wr, bool *truncated)
{
	u32 i, nr = min_t(u32, wr->num_sge, MAX_SGES);
	u64 bytes = 0;

	if (!has_sges(wr))
		return 0;
	for (i = 0; i < nr; i++)
		bytes += wr->sg_list[i].length;
	*truncated |= nr < (u32)wr->num_sge;
	return bytes;
}

static void look_at(struct post *post, const struct ib_send_wr *wr)
{
	/* A user's call leaves its work requests in the user's memory. */
	post->opcode = wr ? wr->opcode : KVERBS_NO_OPCODE;
	for (; wr && post->wrs < MAX_WRS; wr = wr->next) {
		post->wrs++;
		post->signaled += !!(wr->send_flags & IB_SEND_SIGNALED);
		post->inlined += !!(wr->send_flags & IB_SEND_INLINE);
		post->bytes += bytes_of(wr, &post->truncated);
	}
	post->truncated |= !!wr;
}

static bool post_enter(unsigned long arg0, unsigned long arg1, void *data)
{
	struct post *post = data;

	*post = (struct post){ .qp = (const struct ib_qp *)arg0 };
	look_at(post, (const struct ib_send_wr *)arg1);
	trace_ib_post_send(dev_name(&post->qp->device->dev), poster(post->qp), post->qp->qp_num,
			   post->opcode, post->wrs, post->signaled, post->inlined, post->bytes,
			   post->truncated);
	if (!trace_ib_post_send_done_enabled())
		return false;
	post->begin = kverbs_clock();
	return true;
}

/* The QP is there: its owner's call has not returned. */
static void post_leave(unsigned long ret, void *data)
{
	const struct post *post = data;
	u64 ns = kverbs_clock_ns(post->begin, kverbs_clock());

	trace_ib_post_send_done(dev_name(&post->qp->device->dev), poster(post->qp),
				post->qp->qp_num, post->opcode, post->wrs, post->bytes,
				post->truncated, (s32)ret, ns);
}

static bool poll_enter(unsigned long arg0, unsigned long arg1, void *data)
{
	struct poll *poll = data;

	*poll = (struct poll){ .cq = (const struct ib_cq *)arg0, .budget = arg1 };
	return true;
}

static void poll_leave(unsigned long ret, void *data)
{
	const struct poll *poll = data;

	trace_ib_poll_cq(dev_name(&poll->cq->device->dev), consumer(&poll->cq->res),
			 poll->cq->res.id, poll->budget, (s32)ret);
}

static void hook(struct kverbs_hook *hook)
{
	hook->err = kverbs_probe_add(&hook->probe, hook->function);
	hook->hooked = !hook->err;
	if (hook->err)
		pr_warn("%ps cannot be hooked: error %d; its events are not seen\n",
			hook->function, hook->err);
}

static void unhook(struct kverbs_hook *hook)
{
	unsigned long missed;

	hook->err = 0;
	if (!hook->hooked)
		return;
	hook->hooked = false;
	kverbs_probe_del(&hook->probe);
	missed = kverbs_probe_missed(&hook->probe);
	hook->missed += missed;
	if (missed)
		pr_notice("%lu calls of %ps were missed by trace events\n", missed,
			  hook->function);
}

static int want(enum kverbs_hook_op op)
{
	struct kverbs_hook *each;
	bool hooked = false;
	int err = 0;

	mutex_lock(&hooks_lock);
	if (!wanted[op]++) {
		list_for_each_entry(each, &hooks, entry) {
			if (each->op != op)
				continue;
			hook(each);
			hooked |= each->hooked;
			err = each->err ?: err;
		}
		/* Some are better than none. Devices to come are no reason to refuse. */
		if (err && !hooked)
			wanted[op]--;
		else
			err = 0;
	}
	mutex_unlock(&hooks_lock);
	return err;
}

static void unwant(enum kverbs_hook_op op)
{
	struct kverbs_hook *each;

	mutex_lock(&hooks_lock);
	if (!--wanted[op])
		list_for_each_entry(each, &hooks, entry)
			if (each->op == op)
				unhook(each);
	mutex_unlock(&hooks_lock);
}

int kverbs_hook_posts(void)
{
	return want(KVERBS_HOOK_POST);
}

void kverbs_unhook_posts(void)
{
	unwant(KVERBS_HOOK_POST);
}

int kverbs_hook_polls(void)
{
	return want(KVERBS_HOOK_POLL);
}

void kverbs_unhook_polls(void)
{
	unwant(KVERBS_HOOK_POLL);
}

static struct kverbs_hook *hook_create(enum kverbs_hook_op op, void *function)
{
	struct kverbs_hook *new;

	new = kzalloc_obj(*new);
	if (!new)
		return NULL;
	new->op = op;
	new->function = function;
	if (op == KVERBS_HOOK_POST) {
		new->probe.enter = post_enter;
		new->probe.leave = post_leave;
	} else {
		new->probe.enter = poll_enter;
		new->probe.leave = poll_leave;
	}
	list_add_tail(&new->entry, &hooks);
	if (wanted[op])
		hook(new);
	return new;
}

static struct kverbs_hook *hook_get(enum kverbs_hook_op op, void *function)
{
	struct kverbs_hook *each;

	list_for_each_entry(each, &hooks, entry)
		if (each->op == op && each->function == function)
			goto found;
	each = hook_create(op, function);
	if (!each)
		return NULL;
found:
	each->devices++;
	return each;
}

static void hook_put(struct kverbs_hook *hook)
{
	if (!hook || --hook->devices)
		return;
	unhook(hook);
	list_del(&hook->entry);
	kfree(hook);
}

int kverbs_hooks_add(struct kverbs_hooked *hooked, const struct ib_device *ib)
{
	void *function[KVERBS_NR_HOOKS] = {
		[KVERBS_HOOK_POST] = ib->ops.post_send,
		[KVERBS_HOOK_POLL] = ib->ops.poll_cq,
	};
	int op, err = 0;

	mutex_lock(&hooks_lock);
	for (op = 0; op < KVERBS_NR_HOOKS && !err; op++) {
		if (!function[op])
			continue;
		hooked->hook[op] = hook_get(op, function[op]);
		if (!hooked->hook[op])
			err = -ENOMEM;
	}
	mutex_unlock(&hooks_lock);
	if (err)
		kverbs_hooks_del(hooked);
	return err;
}

void kverbs_hooks_del(struct kverbs_hooked *hooked)
{
	int op;

	mutex_lock(&hooks_lock);
	for (op = 0; op < KVERBS_NR_HOOKS; op++)
		hook_put(hooked->hook[op]);
	mutex_unlock(&hooks_lock);
	*hooked = (struct kverbs_hooked){};
}

/* What is hooked, how, and what that has missed. */
static int hooks_show(struct seq_file *file, void *data)
{
	static const char *const name[] = {
		[KVERBS_HOOK_POST] = "post_send",
		[KVERBS_HOOK_POLL] = "poll_cq",
	};
	const struct kverbs_hook *each;
	unsigned long missed;

	mutex_lock(&hooks_lock);
	list_for_each_entry(each, &hooks, entry) {
		missed = each->missed + (each->hooked ? kverbs_probe_missed(&each->probe) : 0);
		seq_printf(file, "%s %ps devices=%u hook=%s error=%d missed=%lu\n",
			   name[each->op], each->function, each->devices,
			   each->hooked ? KVERBS_PROBE_KIND : "none", each->err, missed);
	}
	mutex_unlock(&hooks_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(hooks);

void kverbs_hooks_init(void)
{
	debugfs = debugfs_create_dir("kverbs", NULL);
	debugfs_create_file("hooks", 0400, debugfs, NULL, &hooks_fops);
}

/* An event may still be enabled: it is disabled when the module's code goes, after this. */
void kverbs_hooks_exit(void)
{
	debugfs_remove_recursive(debugfs);
}
