// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The counters as a PMU, so that "perf stat -e kverbs/post_calls/" counts.
 *
 * A counter belongs to a queue, a CQ or a device, whichever CPUs work on it, so there is
 * one value for the host. As the PMUs of a package do, this one counts on a single CPU
 * and names it in its cpumask: an event on every CPU would count everything as often as
 * there are CPUs. Reading adds up the rows; nothing is added to where they are written.
 *
 * An event on a device holds the device's object, and so counts what its queues do until
 * they are gone, though the device may have left. Events hold the module.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/cpumask.h>
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/perf_event.h>

#include "path.h"

static cpumask_t counting_cpu;
static enum cpuhp_state hotplug_state;

static struct kverbs_object *object_of(const struct perf_event *event)
{
	struct kverbs_device *dev = event->pmu_private;

	return dev ? &dev->obj : NULL;
}

/* With interrupts off, as all that follows up to event_del(). */
static void event_read(struct perf_event *event)
{
	u64 now;

	if (!kverbs_stats_total(object_of(event), event->attr.config, &now))
		return;
	local64_add(now - local64_xchg(&event->hw.prev_count, now), &event->count);
}

static void event_start(struct perf_event *event, int flags)
{
	u64 now;

	/* In an NMI nobody starts anything. */
	if (kverbs_stats_total(object_of(event), event->attr.config, &now))
		local64_set(&event->hw.prev_count, now);
	event->hw.state = 0;
}

static void event_stop(struct perf_event *event, int flags)
{
	if (event->hw.state & PERF_HES_STOPPED)
		return;
	event_read(event);
	event->hw.state = PERF_HES_STOPPED | PERF_HES_UPTODATE;
}

static int event_add(struct perf_event *event, int flags)
{
	event->hw.state = PERF_HES_STOPPED | PERF_HES_UPTODATE;
	if (flags & PERF_EF_START)
		event_start(event, flags);
	return 0;
}

static void event_del(struct perf_event *event, int flags)
{
	event_stop(event, flags | PERF_EF_UPDATE);
}

static void event_destroy(struct perf_event *event)
{
	if (event->pmu_private)
		kverbs_device_put(event->pmu_private);
}

static int event_init(struct perf_event *event)
{
	struct kverbs_device *dev = NULL;

	if (event->attr.type != event->pmu->type)
		return -ENOENT;
	if (is_sampling_event(event))
		return -EOPNOTSUPP;
	/* One value for the host cannot be a task's. */
	if (event->attach_state & PERF_ATTACH_TASK || event->cpu < 0)
		return -EINVAL;
	if (event->attr.config >= KVERBS_NR_COUNTERS || event->attr.config1 > U32_MAX ||
	    event->attr.config2)
		return -EINVAL;
	if (event->attr.config1) {
		dev = kverbs_device_find(current->nsproxy->net_ns,
					 event->attr.config1 - kverbs_pmu_device(0));
		if (!dev)
			return -ENODEV;
	}
	event->pmu_private = dev;
	event->destroy = event_destroy;
	event->cpu = cpumask_first(&counting_cpu);
	return 0;
}

static ssize_t name_show(struct device *dev, struct device_attribute *attr, char *page)
{
	struct perf_pmu_events_attr *event = container_of(attr, typeof(*event), attr);

	return sysfs_emit(page, "event=0x%02llx\n", event->id);
}

/* PMU_EVENT_ATTR_ID() would expand the name "inline". */
#define KVERBS_EVENT(_name, _counter)						\
	(&((struct perf_pmu_events_attr[]) { {					\
		.attr = {							\
			.attr = { .name = #_name, .mode = 0444 },		\
			.show = name_show,					\
		},								\
		.id = (_counter),						\
	} })[0].attr.attr)

PMU_EVENT_ATTR_STRING(bytes.unit, bytes_unit, "B");
PMU_EVENT_ATTR_STRING(bytes.scale, bytes_scale, "1");

/* The names that "kverbs stat" has for them. */
static struct attribute *event_attrs[] = {
	KVERBS_EVENT(post_calls, KVERBS_POST_CALLS),
	KVERBS_EVENT(work_requests, KVERBS_WORK_REQUESTS),
	KVERBS_EVENT(signaled, KVERBS_SIGNALED),
	KVERBS_EVENT(inline, KVERBS_INLINE),
	KVERBS_EVENT(bytes, KVERBS_BYTES),
	KVERBS_EVENT(noops, KVERBS_NOOPS),
	KVERBS_EVENT(op_send, KVERBS_OP_SEND),
	KVERBS_EVENT(op_write, KVERBS_OP_WRITE),
	KVERBS_EVENT(op_read, KVERBS_OP_READ),
	KVERBS_EVENT(op_atomic, KVERBS_OP_ATOMIC),
	KVERBS_EVENT(op_reg_mr, KVERBS_OP_REG_MR),
	KVERBS_EVENT(op_local_inv, KVERBS_OP_LOCAL_INV),
	KVERBS_EVENT(queue_cqes, KVERBS_QUEUE_CQES),
	KVERBS_EVENT(completions, KVERBS_COMPLETIONS),
	KVERBS_EVENT(errors, KVERBS_ERRORS),
	KVERBS_EVENT(flushed, KVERBS_FLUSHED),
	KVERBS_EVENT(cqe_stale, KVERBS_CQE_STALE),
	KVERBS_EVENT(cqe_missing, KVERBS_CQE_MISSING),
	KVERBS_EVENT(refused_full, KVERBS_REFUSED_FULL),
	KVERBS_EVENT(refused_depth, KVERBS_REFUSED_DEPTH),
	KVERBS_EVENT(refused_sge, KVERBS_REFUSED_SGE),
	KVERBS_EVENT(refused_inline, KVERBS_REFUSED_INLINE),
	KVERBS_EVENT(refused_length, KVERBS_REFUSED_LENGTH),
	KVERBS_EVENT(refused_opcode, KVERBS_REFUSED_OPCODE),
	KVERBS_EVENT(refused_state, KVERBS_REFUSED_STATE),
	KVERBS_EVENT(refused_device, KVERBS_REFUSED_DEVICE),
	KVERBS_EVENT(refused_driver, KVERBS_REFUSED_DRIVER),
	KVERBS_EVENT(polls, KVERBS_POLLS),
	KVERBS_EVENT(empty_polls, KVERBS_EMPTY_POLLS),
	KVERBS_EVENT(cqes, KVERBS_CQES),
	KVERBS_EVENT(arms, KVERBS_ARMS),
	KVERBS_EVENT(arm_missed, KVERBS_ARM_MISSED),
	KVERBS_EVENT(wakeups, KVERBS_WAKEUPS),
	KVERBS_EVENT(passes, KVERBS_PASSES),
	/* What is no event of its own comes after those. */
	&bytes_unit.attr.attr,
	&bytes_scale.attr.attr,
	NULL
};

static_assert(ARRAY_SIZE(event_attrs) == KVERBS_NR_COUNTERS + 3);

static const struct attribute_group events_group = {
	.name = "events",
	.attrs = event_attrs,
};

PMU_FORMAT_ATTR(event, "config:0-7");
PMU_FORMAT_ATTR(device, "config1:0-31");

static struct attribute *format_attrs[] = {
	&format_attr_event.attr,
	&format_attr_device.attr,
	NULL
};

static const struct attribute_group format_group = {
	.name = "format",
	.attrs = format_attrs,
};

static ssize_t cpumask_show(struct device *dev, struct device_attribute *attr, char *page)
{
	return cpumap_print_to_pagebuf(true, page, &counting_cpu);
}
static DEVICE_ATTR_RO(cpumask);

/* The values of the field "device", since a format field holds numbers only. */
static ssize_t devices_show(struct device *dev, struct device_attribute *attr, char *page)
{
	return kverbs_devices_show(current->nsproxy->net_ns, page);
}
static DEVICE_ATTR_RO(devices);

static struct attribute *pmu_attrs[] = {
	&dev_attr_cpumask.attr,
	&dev_attr_devices.attr,
	NULL
};

static const struct attribute_group pmu_group = {
	.attrs = pmu_attrs,
};

static const struct attribute_group *pmu_groups[] = {
	&pmu_group,
	&events_group,
	&format_group,
	NULL
};

static struct pmu pmu = {
	.module = THIS_MODULE,
	.attr_groups = pmu_groups,
	.capabilities = PERF_PMU_CAP_NO_INTERRUPT | PERF_PMU_CAP_NO_EXCLUDE,
	.task_ctx_nr = perf_invalid_context,
	.event_init = event_init,
	.add = event_add,
	.del = event_del,
	.start = event_start,
	.stop = event_stop,
	.read = event_read,
};

static int cpu_comes(unsigned int cpu)
{
	if (cpumask_empty(&counting_cpu))
		cpumask_set_cpu(cpu, &counting_cpu);
	return 0;
}

/* Another CPU takes over what is counted. */
static int cpu_goes(unsigned int cpu)
{
	unsigned int target = cpumask_any_but(cpu_online_mask, cpu);

	if (!cpumask_test_and_clear_cpu(cpu, &counting_cpu) || target >= nr_cpu_ids)
		return 0;
	cpumask_set_cpu(target, &counting_cpu);
	perf_pmu_migrate_context(&pmu, cpu, target);
	return 0;
}

int kverbs_pmu_init(void)
{
	int err;

	/* No CPU goes between the two, or what it counts would move in a PMU that is not there. */
	cpus_read_lock();
	err = cpuhp_setup_state_cpuslocked(CPUHP_AP_ONLINE_DYN, "rdma/kverbs:online", cpu_comes,
					   cpu_goes);
	if (err < 0)
		goto unlock;
	hotplug_state = err;
	err = perf_pmu_register(&pmu, "kverbs", -1);
	if (err)
		cpuhp_remove_state_nocalls_cpuslocked(hotplug_state);
unlock:
	cpus_read_unlock();
	return err;
}

void kverbs_pmu_exit(void)
{
	cpuhp_remove_state_nocalls(hotplug_state);
	perf_pmu_unregister(&pmu);
}
