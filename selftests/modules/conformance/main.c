// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * In debugfs: "cases" lists them, a name written to "run" runs that one in the writer's
 * context, and "result" tells what came of it: lines with a "#" that say what is wrong,
 * then "pass", "fail" or "skip REASON".
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>
#include <linux/uaccess.h>

#include "conformance.h"

#define OUTPUT_SIZE	8192
#define NAME_SIZE	64
#define MESSAGES_MAX	12	/* of a case */
#define WAIT		(10 * HZ)
#define WAIT_FAILED	(HZ / 5)	/* what has failed already need not wait for the rest */

static char device[IB_DEVICE_NAME_MAX] = "rxe0";
module_param_string(device, device, sizeof(device), 0644);
MODULE_PARM_DESC(device, "RDMA device to test");

char conf_address[16] = "192.168.77.1";
module_param_string(address, conf_address, sizeof(conf_address), 0644);
MODULE_PARM_DESC(address, "IPv4 address of the device's interface, for iWARP");

u32 conf_load_requests = 10000;
module_param_named(load_requests, conf_load_requests, uint, 0644);
MODULE_PARM_DESC(load_requests, "work requests of a load");

u32 conf_load_threads = 2;
module_param_named(load_threads, conf_load_threads, uint, 0644);
MODULE_PARM_DESC(load_threads, "threads of a load, 1 to 8");

u32 conf_load_seed = 1;
module_param_named(load_seed, conf_load_seed, uint, 0644);
MODULE_PARM_DESC(load_seed, "of its random choices");

static const struct conf_case *const suites[] = {
	op_cases, state_cases, flush_cases, access_cases, key_cases, order_cases, retry_cases,
	limit_cases, queue_cases, uc_cases, ud_cases, srq_cases, cq_cases, mr_cases,
	atomic_cases, life_cases,
};

static DEFINE_MUTEX(run_lock);
/* Guards what follows. */
static DEFINE_SPINLOCK(output_lock);
static char output[OUTPUT_SIZE];
static size_t output_len;
static unsigned int failures;
static const char *skipped;
static struct ib_device *ib;
static struct dentry *dir;

static __printf(1, 0) void say(const char *fmt, va_list args)
{
	output_len += vscnprintf(output + output_len, OUTPUT_SIZE - output_len, fmt, args);
}

void conf_say(const char *fmt, ...)
{
	unsigned long irq;
	va_list args;

	spin_lock_irqsave(&output_lock, irq);
	va_start(args, fmt);
	say(fmt, args);
	va_end(args);
	spin_unlock_irqrestore(&output_lock, irq);
}

void conf_fail(const char *fmt, ...)
{
	struct va_format vaf = { .fmt = fmt };
	va_list args;

	va_start(args, fmt);
	vaf.va = &args;
	if (failures < MESSAGES_MAX)
		conf_say("# %pV\n", &vaf);
	va_end(args);
	WRITE_ONCE(failures, failures + 1);
}

void conf_skip(const char *reason)
{
	skipped = reason;
}

bool conf_failed(void)
{
	return READ_ONCE(failures);
}

/* When to give up waiting for what must come. */
unsigned long conf_deadline(void)
{
	return jiffies + (conf_failed() ? WAIT_FAILED : WAIT);
}

static const char *lacks(u32 needs)
{
	const struct ib_device_attr *attrs = &ib->attrs;
	u32 port = rdma_start_port(ib);

	if (needs & NEED_IB && rdma_protocol_iwarp(ib, port))
		return "not a rule of iWARP";
	if (needs & NEED_REG && !(attrs->device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS))
		return "the device has no memory management extensions";
	if (needs & NEED_ATOMIC && attrs->atomic_cap == IB_ATOMIC_NONE)
		return "the device has no atomics";
	if (needs & NEED_SRQ && !attrs->max_srq)
		return "the device has no shared receive queues";
	if (needs & NEED_READ_INV && !rdma_cap_read_inv(ib, port))
		return "no RDMA_READ_WITH_INV in this transport";
	if (needs & NEED_READ_INV && !(attrs->device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS))
		return "the device has no memory management extensions";
	return NULL;
}

static void run_case(const struct conf_case *test)
{
	struct bed *bed;

	skipped = lacks(test->needs);
	if (skipped)
		return;
	bed = bed_create(ib, &test->bed);
	if (!bed)
		return;
	test->run(bed, test->arg);
	bed_destroy(bed);
}

static const struct conf_case *find_in(const struct conf_case *test, const char *name)
{
	for (; test->name; test++) {
		if (!strcmp(test->name, name))
			return test;
	}
	return NULL;
}

/* Loads and costs are found, and not listed: they are none of the rules. */
static const struct conf_case *find_case(const char *name)
{
	const struct conf_case *test = find_in(load_cases, name) ?: find_in(cost_cases, name);
	unsigned int i;

	for (i = 0; !test && i < ARRAY_SIZE(suites); i++)
		test = find_in(suites[i], name);
	return test;
}

/* A client for a moment: that is how a device is found by its name. */
static int find_add(struct ib_device *found)
{
	if (!ib && !strcmp(dev_name(&found->dev), device) && ib_device_try_get(found))
		ib = found;
	return 0;
}

static void find_remove(struct ib_device *found, void *data)
{
}

static bool find_device(void)
{
	static struct ib_client finder = {
		.name = KBUILD_MODNAME,
		.add = find_add,
		.remove = find_remove,
	};

	ib = NULL;
	if (!ib_register_client(&finder))
		ib_unregister_client(&finder);
	return ib;
}

static void run_found(const struct conf_case *test)
{
	pr_info("%s\n", test->name);
	output_len = 0;
	WRITE_ONCE(failures, 0);
	skipped = NULL;
	run_case(test);
	if (conf_failed())
		conf_say("fail\n");
	else if (skipped)
		conf_say("skip %s\n", skipped);
	else
		conf_say("pass\n");
}

static ssize_t run_write(struct file *file, const char __user *buffer, size_t size, loff_t *pos)
{
	const struct conf_case *test;
	char name[NAME_SIZE];
	ssize_t ret = size;

	if (!size || size >= sizeof(name))
		return -EINVAL;
	if (copy_from_user(name, buffer, size))
		return -EFAULT;
	name[size] = '\0';
	test = find_case(strim(name));
	if (!test)
		return -ENOENT;
	if (mutex_lock_interruptible(&run_lock))
		return -ERESTARTSYS;
	if (find_device()) {
		run_found(test);
		ib_device_put(ib);
	} else {
		ret = -ENODEV;
	}
	mutex_unlock(&run_lock);
	return ret;
}

static const struct file_operations run_fops = {
	.owner = THIS_MODULE,
	.write = run_write,
};

static int result_show(struct seq_file *seq, void *unused)
{
	mutex_lock(&run_lock);
	seq_write(seq, output, output_len);
	mutex_unlock(&run_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(result);

static int cases_show(struct seq_file *seq, void *unused)
{
	const struct conf_case *test;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(suites); i++) {
		for (test = suites[i]; test->name; test++)
			seq_printf(seq, "%s\n", test->name);
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(cases);

static int __init conformance_init(void)
{
	dir = debugfs_create_dir("kverbs_conformance", NULL);
	debugfs_create_file("cases", 0400, dir, NULL, &cases_fops);
	debugfs_create_file("run", 0200, dir, NULL, &run_fops);
	debugfs_create_file("result", 0400, dir, NULL, &result_fops);
	return 0;
}
module_init(conformance_init);

static void __exit conformance_exit(void)
{
	debugfs_remove(dir);
}
module_exit(conformance_exit);

MODULE_DESCRIPTION("kverbs: conformance of an RDMA device's kernel verbs");
MODULE_LICENSE("Dual BSD/GPL");
