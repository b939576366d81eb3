// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * One fault on purpose, by which the harness proves that it sees faults: a test that
 * loads this module must fail. Nothing else uses it.
 */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>

static char *fault = "none";
module_param(fault, charp, 0444);
MODULE_PARM_DESC(fault, "warn, kasan, leak, hang, oops or none");

static int fault_warn(void)
{
	WARN(1, "kverbs_fault: a warning on purpose\n");
	return 0;
}

static int fault_kasan(void)
{
	u8 *p = kmalloc(16, GFP_KERNEL);

	if (!p)
		return -ENOMEM;
	/* Hidden, or the compiler sees it, too. */
	OPTIMIZER_HIDE_VAR(p);
	WRITE_ONCE(p[16], 1);
	kfree(p);
	return 0;
}

static int fault_leak(void)
{
	int i;

	/* Several: a scan may find a stale pointer to one of them somewhere. */
	for (i = 0; i < 8; i++) {
		void *p = kmalloc(200, GFP_KERNEL);

		if (!p)
			return -ENOMEM;
		/* Or the compiler drops the allocation. */
		OPTIMIZER_HIDE_VAR(p);
		memset(p, i, 200);
	}
	return 0;
}

static int fault_hang(void)
{
	set_current_state(TASK_UNINTERRUPTIBLE);
	schedule();
	return 0;
}

static int fault_oops(void)
{
	int *p = NULL;

	OPTIMIZER_HIDE_VAR(p);
	WRITE_ONCE(*p, 1);
	return 0;
}

static const struct {
	const char *name;
	int (*make)(void);
} faults[] = {
	{ "warn", fault_warn },
	{ "kasan", fault_kasan },
	{ "leak", fault_leak },
	{ "hang", fault_hang },
	{ "oops", fault_oops },
};

static int __init kverbs_fault_init(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(faults); i++)
		if (!strcmp(fault, faults[i].name))
			return faults[i].make();
	return 0;
}
module_init(kverbs_fault_init);

static void __exit kverbs_fault_exit(void)
{
}
module_exit(kverbs_fault_exit);

MODULE_DESCRIPTION("kverbs: faults that the test harness must see");
MODULE_LICENSE("Dual BSD/GPL");
