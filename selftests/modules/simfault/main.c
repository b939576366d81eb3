// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A line is read, obeyed, and what was seen is told: for each call what it returned and
 * which request bad_wr named, then the requests in the order in which they were done, with
 * their status, and what the CQ's handler saw.
 */
#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "simfault.h"

#define LINE_MAX	256
#define OUTPUT_SIZE	16384
#define SETTLE_MS	20	/* for what comes unasked */

static char device[IB_DEVICE_NAME_MAX] = "sim0";
module_param_string(device, device, sizeof(device), 0644);
MODULE_PARM_DESC(device, "RDMA device to post on");

static DEFINE_MUTEX(run_lock);
static struct dentry *dir;
static char output[OUTPUT_SIZE];
static size_t output_len;
static struct ib_device *found;

void say(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	output_len += vscnprintf(output + output_len, OUTPUT_SIZE - output_len, fmt, args);
	va_end(args);
}

static const char *status_name(enum ib_wc_status status)
{
	return ib_wc_status_msg(status);
}

/* Which of a chain bad_wr names. */
static void say_bad(const struct rig_wr *wrs, u32 nr, const struct ib_send_wr *bad,
		    const struct ib_send_wr *preset)
{
	u32 i;

	for (i = 0; i < nr; i++) {
		if (bad == &wrs[i].wr) {
			say(" bad=%u", i);
			return;
		}
	}
	say(" bad=%s", bad == preset ? "unset" : "elsewhere");
}

/* One call. True if it returned no error. */
static bool post_chain(struct rig *rig, struct rig_wr *wrs, u32 first, u32 nr)
{
	static const struct ib_send_wr preset;
	const struct ib_send_wr *bad = &preset;
	u32 signal = rig->attr.signal, i;
	int ret;

	for (i = 0; i < nr; i++) {
		rig_wr(rig, &wrs[i], first + i, signal && (first + i + 1) % signal == 0);
		if (i)
			wrs[i - 1].wr.next = &wrs[i].wr;
	}
	ret = rig_post(rig, &wrs[0].wr, &bad);
	if (!ret)
		return true;
	say("post=%d", ret);
	say_bad(wrs, nr, bad, &preset);
	say("\n");
	return false;
}

static void post_all(struct rig *rig)
{
	struct rig_attr *attr = &rig->attr;
	struct rig_wr *wrs = kcalloc(attr->chain, sizeof(*wrs), GFP_KERNEL);
	u32 i, nr, count = attr->count - attr->irq;

	if (!wrs) {
		say("no memory\n");
		return;
	}
	for (i = 0; i < count; i += nr) {
		nr = min(attr->chain, count - i);
		if (!post_chain(rig, wrs, i, nr))
			break;
	}
	kfree(wrs);
}

static void wait_done(struct rig *rig)
{
	struct rig_attr *attr = &rig->attr;
	u32 expect = attr->signal ? attr->count / attr->signal : 0;
	unsigned long end = jiffies + msecs_to_jiffies(attr->wait_ms);

	if (attr->expect >= 0)
		expect = attr->expect;
	if (attr->cq != RIG_DIRECT) {
		wait_event_timeout(rig->wait, atomic_read(&rig->done) >= expect,
				   msecs_to_jiffies(attr->wait_ms));
		msleep(SETTLE_MS);
		return;
	}
	do {
		ib_process_cq_direct(rig->cq, -1);
		usleep_range(500, 1000);
	} while (atomic_read(&rig->done) < expect && time_before(jiffies, end));
}

static void say_result(struct rig *rig)
{
	u32 done = atomic_read(&rig->done), i, twice = 0;
	struct ib_qp_attr attr = {};
	struct ib_qp_init_attr init;

	say("done=%u", done);
	for (i = 0; i < min_t(u32, done, 32); i++)
		say(" %u", rig->order[i]);
	say("\n");
	for (i = 0; i < rig->attr.count; i++) {
		twice += rig->requests[i].times > 1;
		if (rig->requests[i].times && rig->requests[i].status != IB_WC_SUCCESS && i < 32)
			say("status %u %s\n", i, status_name(rig->requests[i].status));
	}
	ib_query_qp(rig->qp[0], &attr, IB_QP_STATE, &init);
	say("twice=%u received=%d events=%d in_post=%d locked=%d state=%d\n", twice,
	    atomic_read(&rig->received), atomic_read(&rig->events),
	    atomic_read(&rig->events_in_post), atomic_read(&rig->events_locked),
	    attr.qp_state);
	say("event_cpus=%*pbl\n", BITS_PER_LONG, &rig->event_cpus);
	say("fastest_post_ns=%llu\n", rig->fastest_post_ns);
	say("soonest_done_ns=%llu\n", rig->soonest_done_ns);
}

static void run(struct ib_device *ib, const struct rig_attr *attr)
{
	struct rig *rig = rig_create(ib, attr);

	if (!rig)
		return;
	rig_receive(rig, attr->recvs - min(attr->recvs, attr->irq));
	rig_irq_start(rig);
	post_all(rig);
	rig_irq_wait(rig);
	wait_done(rig);
	if (attr->fail) {
		rig_fail(rig);
		msleep(SETTLE_MS);
		if (attr->cq == RIG_DIRECT)
			ib_process_cq_direct(rig->cq, -1);
	}
	say_result(rig);
	rig_destroy(rig);
}

static int one_of(const char *value, const char * const *names, int nr)
{
	return match_string(names, nr, value);
}

static int set_name(struct rig_attr *attr, const char *key, const char *value)
{
	static const char * const cqs[] = { "softirq", "workqueue", "direct", "raw" };
	static const char * const types[] = { "rc", "uc", "ud" };
	static const enum ib_qp_type qp_types[] = { IB_QPT_RC, IB_QPT_UC, IB_QPT_UD };
	static const char * const ops[] = { "write", "read", "send" };
	static const enum ib_wr_opcode opcodes[] = { IB_WR_RDMA_WRITE, IB_WR_RDMA_READ,
						     IB_WR_SEND };
	int i = -EINVAL;

	if (!strcmp(key, "cq")) {
		i = one_of(value, cqs, ARRAY_SIZE(cqs));
		attr->cq = max(i, 0);
	} else if (!strcmp(key, "type")) {
		i = one_of(value, types, ARRAY_SIZE(types));
		attr->type = qp_types[max(i, 0)];
	} else if (!strcmp(key, "op")) {
		i = one_of(value, ops, ARRAY_SIZE(ops));
		attr->op = opcodes[max(i, 0)];
	}
	return min(i, 0);
}

static int set_number(struct rig_attr *attr, const char *key, s32 value)
{
	const struct {
		const char *name;
		u32 *field;
	} fields[] = {
		{ "depth", &attr->depth }, { "cqe", &attr->cqe }, { "count", &attr->count },
		{ "chain", &attr->chain }, { "signal", &attr->signal },
		{ "recvs", &attr->recvs }, { "irq", &attr->irq }, { "wait_ms", &attr->wait_ms },
		{ "rnr_retry", &attr->rnr_retry }, { "expect", (u32 *)&attr->expect },
		{ "vector", &attr->vector }, { "inline", &attr->inline_data },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(fields); i++) {
		if (!strcmp(key, fields[i].name)) {
			*fields[i].field = value;
			return 0;
		}
	}
	if (strcmp(key, "fail"))
		return -EINVAL;
	attr->fail = value;
	return 0;
}

/* Words of KEY=VALUE, or BREAK=RULE alone. */
static int parse(char *line, struct rig_attr *attr, const char **rule)
{
	char *word, *value;
	s32 number;
	int ret;

	while ((word = strsep(&line, " "))) {
		if (!*word)
			continue;
		value = strchr(word, '=');
		if (!value)
			return -EINVAL;
		*value++ = '\0';
		if (!strcmp(word, "break")) {
			*rule = value;
			continue;
		}
		ret = kstrtos32(value, 0, &number) ? set_name(attr, word, value) :
						     set_number(attr, word, number);
		if (ret)
			return ret;
	}
	return attr->count && attr->count <= RIG_REQUESTS && attr->chain &&
	       attr->irq <= attr->count ? 0 : -EINVAL;
}

/* A client for a moment: that is how a device is found by its name. */
static int find_add(struct ib_device *ib)
{
	if (!found && !strcmp(dev_name(&ib->dev), device) && ib_device_try_get(ib))
		found = ib;
	return 0;
}

static void find_remove(struct ib_device *ib, void *data)
{
}

static struct ib_device *find_device(void)
{
	static struct ib_client finder = {
		.name = KBUILD_MODNAME,
		.add = find_add,
		.remove = find_remove,
	};

	found = NULL;
	if (!ib_register_client(&finder))
		ib_unregister_client(&finder);
	return found;
}

static int obey(char *line)
{
	struct rig_attr attr = {
		.type = IB_QPT_RC,
		.op = IB_WR_RDMA_WRITE,
		.depth = RIG_REQUESTS,
		.count = 1,
		.chain = 1,
		.signal = 1,
		.expect = -1,
		.wait_ms = 2000,
		.rnr_retry = 7,
	};
	const char *rule = NULL;
	struct ib_device *ib;
	int ret;

	ret = parse(line, &attr, &rule);
	if (ret)
		return ret;
	ib = find_device();
	if (!ib)
		return -ENODEV;
	if (!rule)
		run(ib, &attr);
	else if (!breach(ib, rule))
		ret = -ENOENT;
	ib_device_put(ib);
	return ret;
}

static ssize_t run_write(struct file *file, const char __user *buffer, size_t size, loff_t *pos)
{
	static char line[LINE_MAX];
	int ret = -EFAULT;

	if (!size || size >= sizeof(line))
		return -EINVAL;
	if (mutex_lock_interruptible(&run_lock))
		return -ERESTARTSYS;
	if (!copy_from_user(line, buffer, size)) {
		line[size] = '\0';
		output_len = 0;
		ret = obey(strim(line));
	}
	mutex_unlock(&run_lock);
	return ret ?: size;
}

static const struct file_operations run_fops = {
	.owner = THIS_MODULE,
	.write = run_write,
};

static ssize_t result_read(struct file *file, char __user *buffer, size_t size, loff_t *pos)
{
	return simple_read_from_buffer(buffer, size, pos, output, output_len);
}

static const struct file_operations result_fops = {
	.owner = THIS_MODULE,
	.read = result_read,
};

static int __init simfault_init(void)
{
	dir = debugfs_create_dir("kverbs_simfault", NULL);
	debugfs_create_file("run", 0200, dir, NULL, &run_fops);
	debugfs_create_file("result", 0400, dir, NULL, &result_fops);
	return 0;
}
module_init(simfault_init);

static void __exit simfault_exit(void)
{
	debugfs_remove(dir);
}
module_exit(simfault_exit);

MODULE_DESCRIPTION("kverbs: a plain consumer, for what a simulated HCA does to it");
MODULE_LICENSE("Dual BSD/GPL");
