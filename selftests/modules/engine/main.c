// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The cases: started by writing a pattern to "run" in debugfs, "c1_*" or
 * "c8_named/softirq"; "ktap" tells what came of the last run. A case runs in the
 * writer's context, one at a time.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugfs.h>
#include <linux/glob.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "engine.h"

#define OUTPUT_SIZE	(256 * 1024)
#define PATTERN_MAX	64
#define MESSAGES_MAX	12	/* of a case; the rest is only counted */

static char device[IB_DEVICE_NAME_MAX] = "rxe0";
module_param_string(device, device, sizeof(device), 0644);
MODULE_PARM_DESC(device, "RDMA device to test on");

unsigned int engine_count = 100000;
module_param_named(count, engine_count, uint, 0644);
MODULE_PARM_DESC(count, "requests of the large cases");

static unsigned long long seed;
module_param(seed, ullong, 0644);
MODULE_PARM_DESC(seed, "of the random choices; 0 chooses one and prints it");

u64 engine_seed;
struct dentry *engine_dir;
static struct rnd_state rnd;

static DEFINE_MUTEX(run_lock);
static char *output;
static size_t output_len;
/* Guards the output and the state of the case that runs. */
static DEFINE_SPINLOCK(output_lock);
static unsigned int failures;
static const char *skipped;
static struct ib_device *ib;

static const struct engine_case *const suites[] = {
	once_cases, retire_cases, credit_cases, post_cases, refuse_cases, limit_cases, drain_cases,
	poller_cases, life_cases, regress_cases, ends_cases, why_cases, buf_cases,
	ep_cases, ep_end_cases, ledger_cases, moderate_cases, calls_cases,
	many_cases,
};

static __printf(1, 2) void say(const char *fmt, ...)
{
	unsigned long irq;
	va_list args;

	spin_lock_irqsave(&output_lock, irq);
	va_start(args, fmt);
	output_len += vscnprintf(output + output_len, OUTPUT_SIZE - output_len, fmt, args);
	va_end(args);
	spin_unlock_irqrestore(&output_lock, irq);
}

void engine_note(const char *fmt, ...)
{
	struct va_format vaf = { .fmt = fmt };
	va_list args;

	va_start(args, fmt);
	vaf.va = &args;
	say("# %pV\n", &vaf);
	va_end(args);
}

void engine_fail(const char *fmt, ...)
{
	struct va_format vaf = { .fmt = fmt };
	unsigned long irq;
	unsigned int nr;
	va_list args;

	spin_lock_irqsave(&output_lock, irq);
	nr = failures++;
	spin_unlock_irqrestore(&output_lock, irq);
	if (nr >= MESSAGES_MAX)
		return;
	va_start(args, fmt);
	vaf.va = &args;
	say("# %pV\n", &vaf);
	va_end(args);
}

void engine_skip(const char *reason)
{
	skipped = reason;
}

bool engine_failed(void)
{
	return READ_ONCE(failures);
}

/* Only from the thread of the case. */
u32 engine_random(void)
{
	return prandom_u32_state(&rnd);
}

struct ib_device *engine_device(void)
{
	return ib;
}

static unsigned int run_case(const struct engine_case *test, enum rig_cq cq, const char *name,
			     unsigned int number)
{
	u64 begin = ktime_get_ns();

	failures = 0;
	skipped = NULL;
	/* So it is the same alone. */
	prandom_seed_state(&rnd, engine_seed);
	pr_info("%s\n", name);
	test->run(cq);
	say("# %s took %llu ms\n", name, div_u64(ktime_get_ns() - begin, NSEC_PER_MSEC));
	if (failures > MESSAGES_MAX)
		say("# %u failures in all\n", failures);
	if (failures)
		say("# %s failed with seed %llu\n", name, engine_seed);
	say("%sok %u - %s%s%s\n", failures ? "not " : "", number, name,
	    skipped && !failures ? " # SKIP " : "", skipped && !failures ? skipped : "");
	cond_resched();
	return failures;
}

/* All cases that match, on each kind of CQ that they are for. */
static unsigned int run_matching(const char *pattern)
{
	const struct engine_case *test;
	unsigned int number = 0, i;
	char name[PATTERN_MAX];
	enum rig_cq cq;

	for (i = 0; i < ARRAY_SIZE(suites); i++) {
		for (test = suites[i]; test->name; test++) {
			for (cq = 0; cq < RIG_NR_CQS; cq++) {
				if (!(test->cqs & BIT(cq)))
					continue;
				snprintf(name, sizeof(name), "%s/%s", test->name, rig_cq_name(cq));
				if (glob_match(pattern, name))
					run_case(test, cq, name, ++number);
			}
		}
	}
	return number;
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

static void find_device(void)
{
	static struct ib_client finder = {
		.name = KBUILD_MODNAME,
		.add = find_add,
		.remove = find_remove,
	};

	ib = NULL;
	if (!ib_register_client(&finder))
		ib_unregister_client(&finder);
}

/* The case gives the device back itself, so that it can leave. */
void engine_device_put(void)
{
	ib_device_put(ib);
	ib = NULL;
}

static ssize_t run_write(struct file *file, const char __user *buffer, size_t size, loff_t *pos)
{
	char pattern[PATTERN_MAX];
	unsigned int number;

	if (!size || size >= sizeof(pattern))
		return -EINVAL;
	if (copy_from_user(pattern, buffer, size))
		return -EFAULT;
	pattern[size] = '\0';
	if (mutex_lock_interruptible(&run_lock))
		return -ERESTARTSYS;
	output_len = 0;
	engine_seed = seed ?: get_random_u32();
	find_device();
	say("KTAP version 1\n# seed %llu, device %s, count %u\n", engine_seed, device,
	    engine_count);
	if (ib) {
		number = run_matching(strim(pattern));
		if (number)
			say("1..%u\n", number);
		else
			say("Bail out! no case matches '%s'\n", strim(pattern));
		if (ib)
			engine_device_put();
	} else {
		say("Bail out! there is no RDMA device '%s'\n", device);
	}
	mutex_unlock(&run_lock);
	return size;
}

static const struct file_operations run_fops = {
	.owner = THIS_MODULE,
	.write = run_write,
};

static ssize_t ktap_read(struct file *file, char __user *buffer, size_t size, loff_t *pos)
{
	return simple_read_from_buffer(buffer, size, pos, output, READ_ONCE(output_len));
}

static const struct file_operations ktap_fops = {
	.owner = THIS_MODULE,
	.read = ktap_read,
};

static int __init engine_init(void)
{
	output = vzalloc(OUTPUT_SIZE);
	if (!output)
		return -ENOMEM;
	engine_dir = debugfs_create_dir("kverbs_engine", NULL);
	debugfs_create_file("run", 0200, engine_dir, NULL, &run_fops);
	debugfs_create_file("ktap", 0400, engine_dir, NULL, &ktap_fops);
	return 0;
}
module_init(engine_init);

static void __exit engine_exit(void)
{
	debugfs_remove(engine_dir);
	vfree(output);
}
module_exit(engine_exit);

MODULE_DESCRIPTION("kverbs: tests of the send queue and the poller");
MODULE_LICENSE("Dual BSD/GPL");
