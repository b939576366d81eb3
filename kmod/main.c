// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The module comes and goes. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/reboot.h>
#include <linux/suspend.h>

#include "clock.h"
#include "path.h"

/*
 * Pollers stop before the machine does; queues go on, since file systems still post
 * after this. Runs before drivers shut their devices down.
 */
static int quiesce(struct notifier_block *nb, unsigned long event, void *data)
{
	kverbs_cqs_quiesce();
	return NOTIFY_DONE;
}

static struct notifier_block reboot_nb = {
	.notifier_call = quiesce,
};

/* Before user space is frozen, and after it runs again. */
static int sleep_or_wake(struct notifier_block *nb, unsigned long event, void *data)
{
	switch (event) {
	case PM_SUSPEND_PREPARE:
	case PM_HIBERNATION_PREPARE:
	case PM_RESTORE_PREPARE:
		kverbs_cqs_rest(true);
		break;
	case PM_POST_SUSPEND:
	case PM_POST_HIBERNATION:
	case PM_POST_RESTORE:
		kverbs_cqs_rest(false);
		break;
	}
	return NOTIFY_DONE;
}

static struct notifier_block sleep_nb = {
	.notifier_call = sleep_or_wake,
};

static int __init kverbs_init(void)
{
	int err;

	kverbs_wq = alloc_workqueue("kverbs", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	if (!kverbs_wq)
		return -ENOMEM;
	kverbs_clock_init();
	err = kverbs_stats_init();
	if (err)
		goto destroy_wq;
	err = kverbs_chardev_init();
	if (err)
		goto exit_stats;
	err = kverbs_sqs_init();
	if (err)
		goto exit_chardev;
	err = kverbs_pollers_init();
	if (err)
		goto exit_sqs;
	err = kverbs_devices_init();
	if (err)
		goto exit_pollers;
	kverbs_hooks_init();
	err = register_reboot_notifier(&reboot_nb);
	if (err)
		goto exit_devices;
	err = register_pm_notifier(&sleep_nb);
	if (err)
		goto unregister_reboot;
	err = kverbs_pmu_init();
	if (err)
		goto unregister_pm;
	return 0;

unregister_pm:
	unregister_pm_notifier(&sleep_nb);
unregister_reboot:
	unregister_reboot_notifier(&reboot_nb);
exit_devices:
	kverbs_hooks_exit();
	kverbs_devices_exit();
exit_pollers:
	kverbs_pollers_exit();
exit_sqs:
	kverbs_sqs_exit();
exit_chardev:
	kverbs_chardev_exit();
exit_stats:
	kverbs_stats_exit();
destroy_wq:
	destroy_workqueue(kverbs_wq);
	return err;
}

static void __exit kverbs_exit(void)
{
	kverbs_pmu_exit();
	unregister_pm_notifier(&sleep_nb);
	unregister_reboot_notifier(&reboot_nb);
	kverbs_hooks_exit();
	kverbs_devices_exit();
	kverbs_pollers_exit();
	kverbs_sqs_exit();
	kverbs_chardev_exit();
	kverbs_stats_exit();
	destroy_workqueue(kverbs_wq);
}

module_init(kverbs_init);
module_exit(kverbs_exit);

MODULE_DESCRIPTION("RDMA send queues, completion pollers and their statistics");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION(KVERBS_VERSION);
