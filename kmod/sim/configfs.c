// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * /sys/kernel/config/kverbs_sim/
 *
 *   defaults/   what the next device is created with
 *   faults/     a directory made there is a rule (rule.c)
 *   NAME/       a device: made with it, and gone with it; below it judge/, and cost/
 *               (cost_knobs.c)
 *
 * Rules are not below their devices: what a user has made cannot be taken away by the
 * kernel, and a device may leave at any time, by a rule's own doing, too.
 *
 * An attribute that is open outlives the directory, so what holds the groups of a device is
 * freed with the last of them. None of the functions here runs once they are unregistered.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/configfs.h>
#include <linux/module.h>
#include <linux/nodemask.h>

#include "knob.h"
#include "sim.h"

#define MAX_COMP_VECTORS	1024
#define MAX_PATIENCE_MS		(3600 * 1000)

struct sim_caps sim_default_caps = {
	.qp_wr = SIM_MAX_QP_WR,
	.sge = SIM_MAX_SGE,
	.inline_bytes = SIM_MAX_INLINE,
	.cqe = SIM_MAX_CQE,
	.qps = SIM_MAX_QPN - SIM_MIN_QPN,
	.mrs = U32_MAX >> SIM_KEY_SHIFT,
	.numa_node = NUMA_NO_NODE,
};

struct sim_cfs {
	refcount_t groups;
	struct sim_device *sim;
	struct config_group group;
	struct config_group judge;
	struct config_group cost;
	struct config_group caps;
};

static void cfs_put(struct sim_cfs *cfs)
{
	if (refcount_dec_and_test(&cfs->groups))
		kfree(cfs);
}

/* defaults/caps/ */

SIM_KNOB(caps_, qp_wr, sim_default_caps.qp_wr, 1, SIM_MAX_QP_WR);
SIM_KNOB(caps_, sge, sim_default_caps.sge, 1, SIM_MAX_SGE);
SIM_KNOB(caps_, inline_bytes, sim_default_caps.inline_bytes, 0, SIM_MAX_INLINE);
SIM_KNOB(caps_, cqe, sim_default_caps.cqe, 1, SIM_MAX_CQE);
SIM_KNOB(caps_, qps, sim_default_caps.qps, 1, SIM_MAX_QPN - SIM_MIN_QPN);
SIM_KNOB(caps_, mrs, sim_default_caps.mrs, 1, U32_MAX >> SIM_KEY_SHIFT);
SIM_KNOB(caps_, comp_vectors, sim_default_caps.comp_vectors, 1, MAX_COMP_VECTORS);

static ssize_t caps_numa_node_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%d\n", READ_ONCE(sim_default_caps.numa_node));
}

static ssize_t caps_numa_node_store(struct config_item *item, const char *page, size_t size)
{
	s64 node;
	int ret = sim_knob_number("numa_node", page, NUMA_NO_NODE, MAX_NUMNODES - 1, &node);

	if (ret)
		return ret;
	if (node != NUMA_NO_NODE && !node_online(node)) {
		pr_warn("numa_node: %lld is not online: write one of %*pbl, or -1 for that of the netdev\n",
			node, nodemask_pr_args(&node_online_map));
		return -ERANGE;
	}
	WRITE_ONCE(sim_default_caps.numa_node, node);
	return size;
}

CONFIGFS_ATTR(caps_, numa_node);

static struct configfs_attribute *caps_attrs[] = {
	&caps_attr_qp_wr,
	&caps_attr_sge,
	&caps_attr_inline_bytes,
	&caps_attr_cqe,
	&caps_attr_qps,
	&caps_attr_mrs,
	&caps_attr_comp_vectors,
	&caps_attr_numa_node,
	NULL,
};

static const struct config_item_type caps_type = {
	.ct_owner = THIS_MODULE,
	.ct_attrs = caps_attrs,
};

/* defaults/ */

static ssize_t defaults_context_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%s\n", sim_context_names[READ_ONCE(sim_default_context)]);
}

static ssize_t defaults_context_store(struct config_item *item, const char *page, size_t size)
{
	int context = sim_knob_name("context", page, sim_context_names, SIM_NR_CONTEXTS);

	if (context < 0)
		return context;
	WRITE_ONCE(sim_default_context, context);
	return size;
}

CONFIGFS_ATTR(defaults_, context);

static ssize_t defaults_virtual_dma_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%d\n", READ_ONCE(sim_default_virtual_dma));
}

static ssize_t defaults_virtual_dma_store(struct config_item *item, const char *page, size_t size)
{
	s64 value;
	int ret = sim_knob_number("virtual_dma", page, 0, 1, &value);

	if (ret)
		return ret;
	WRITE_ONCE(sim_default_virtual_dma, value);
	return size;
}

CONFIGFS_ATTR(defaults_, virtual_dma);

static struct configfs_attribute *defaults_attrs[] = {
	&defaults_attr_context,
	&defaults_attr_virtual_dma,
	NULL,
};

static const struct config_item_type defaults_type = {
	.ct_owner = THIS_MODULE,
	.ct_attrs = defaults_attrs,
};

/* NAME/judge/ */

static struct sim_judge *judge_of(struct config_item *item)
{
	return &container_of(to_config_group(item), struct sim_cfs, judge)->sim->judge;
}

static ssize_t patience_store(struct config_item *item, const char *knob, const char *page,
			      size_t size, u32 *ms)
{
	ssize_t ret = sim_knob_store(knob, page, size, 1, MAX_PATIENCE_MS, ms);

	if (ret > 0)
		sim_judge_look(judge_of(item));
	return ret;
}

static ssize_t judge_silent_tail_ms_show(struct config_item *item, char *page)
{
	return sim_knob_show(&judge_of(item)->silent_tail_ms, page);
}

static ssize_t judge_silent_tail_ms_store(struct config_item *item, const char *page, size_t size)
{
	return patience_store(item, "silent_tail_ms", page, size, &judge_of(item)->silent_tail_ms);
}

CONFIGFS_ATTR(judge_, silent_tail_ms);

static ssize_t judge_lost_arm_ms_show(struct config_item *item, char *page)
{
	return sim_knob_show(&judge_of(item)->lost_arm_ms, page);
}

static ssize_t judge_lost_arm_ms_store(struct config_item *item, const char *page, size_t size)
{
	return patience_store(item, "lost_arm_ms", page, size, &judge_of(item)->lost_arm_ms);
}

CONFIGFS_ATTR(judge_, lost_arm_ms);

/* How often a rule was broken. */
#define BROKEN(_name, _rule)								\
static ssize_t judge_##_name##_show(struct config_item *item, char *page)		\
{											\
	return sysfs_emit(page, "%lld\n",						\
			  atomic64_read(&judge_of(item)->broken[SIM_JUDGE_##_rule]));	\
}											\
											\
CONFIGFS_ATTR_RO(judge_, _name)

BROKEN(sq_overrun, SQ_OVERRUN);
BROKEN(sq_silent, SQ_SILENT);
BROKEN(silent_tail, SILENT_TAIL);
BROKEN(cq_undersized, CQ_UNDERSIZED);
BROKEN(cq_overflow, CQ_OVERFLOW);
BROKEN(lost_arm, LOST_ARM);
BROKEN(missed_ignored, MISSED_IGNORED);
BROKEN(poll_in_handler, POLL_IN_HANDLER);
BROKEN(inline_dma, INLINE_DMA);
BROKEN(mr_in_use, MR_IN_USE);
BROKEN(dma_address, DMA_ADDRESS);
BROKEN(dma_unmap, DMA_UNMAP);
BROKEN(dma_leaked, DMA_LEAKED);

static struct configfs_attribute *judge_attrs[] = {
	&judge_attr_silent_tail_ms,
	&judge_attr_lost_arm_ms,
	&judge_attr_sq_overrun,
	&judge_attr_sq_silent,
	&judge_attr_silent_tail,
	&judge_attr_cq_undersized,
	&judge_attr_cq_overflow,
	&judge_attr_lost_arm,
	&judge_attr_missed_ignored,
	&judge_attr_poll_in_handler,
	&judge_attr_inline_dma,
	&judge_attr_mr_in_use,
	&judge_attr_dma_address,
	&judge_attr_dma_unmap,
	&judge_attr_dma_leaked,
	NULL,
};

static void judge_release(struct config_item *item)
{
	cfs_put(container_of(to_config_group(item), struct sim_cfs, judge));
}

static struct configfs_item_operations judge_ops = {
	.release = judge_release,
};

static const struct config_item_type judge_type = {
	.ct_owner = THIS_MODULE,
	.ct_item_ops = &judge_ops,
	.ct_attrs = judge_attrs,
};

/* NAME/cost/ */

struct sim_device *sim_of_cost_item(struct config_item *item)
{
	return container_of(to_config_group(item), struct sim_cfs, cost)->sim;
}

void sim_cost_item_release(struct config_item *item)
{
	cfs_put(container_of(to_config_group(item), struct sim_cfs, cost));
}

/* NAME/caps/: what it was created with */

static const struct sim_caps *caps_of(struct config_item *item)
{
	return &container_of(to_config_group(item), struct sim_cfs, caps)->sim->caps;
}

/* @_field is reached by the configfs item that is named item. */
#define CAP(_name, _field)								\
static ssize_t cap_##_name##_show(struct config_item *item, char *page)		\
{											\
	return sysfs_emit(page, "%lld\n", (s64)(_field));				\
}											\
											\
CONFIGFS_ATTR_RO(cap_, _name)

CAP(qp_wr, caps_of(item)->qp_wr);
CAP(sge, caps_of(item)->sge);
CAP(inline_bytes, caps_of(item)->inline_bytes);
CAP(cqe, caps_of(item)->cqe);
CAP(qps, caps_of(item)->qps);
CAP(mrs, caps_of(item)->mrs);
CAP(comp_vectors, caps_of(item)->comp_vectors);
CAP(numa_node, caps_of(item)->numa_node);

static struct configfs_attribute *cap_attrs[] = {
	&cap_attr_qp_wr,
	&cap_attr_sge,
	&cap_attr_inline_bytes,
	&cap_attr_cqe,
	&cap_attr_qps,
	&cap_attr_mrs,
	&cap_attr_comp_vectors,
	&cap_attr_numa_node,
	NULL,
};

static void cap_release(struct config_item *item)
{
	cfs_put(container_of(to_config_group(item), struct sim_cfs, caps));
}

static struct configfs_item_operations cap_ops = {
	.release = cap_release,
};

static const struct config_item_type cap_type = {
	.ct_owner = THIS_MODULE,
	.ct_item_ops = &cap_ops,
	.ct_attrs = cap_attrs,
};

/* NAME/ */

static struct sim_device *sim_of(struct config_item *item)
{
	return container_of(to_config_group(item), struct sim_cfs, group)->sim;
}

static ssize_t device_context_show(struct config_item *item, char *page)
{
	u32 context = READ_ONCE(sim_of(item)->config.context);

	return sysfs_emit(page, "%s\n", sim_context_names[context]);
}

static ssize_t device_context_store(struct config_item *item, const char *page, size_t size)
{
	int context = sim_knob_name("context", page, sim_context_names, SIM_NR_CONTEXTS);

	if (context < 0)
		return context;
	WRITE_ONCE(sim_of(item)->config.context, context);
	return size;
}

CONFIGFS_ATTR(device_, context);

static ssize_t device_virtual_dma_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%d\n", sim_of(item)->virtual_dma);
}

CONFIGFS_ATTR_RO(device_, virtual_dma);

/* All of one moment, a name and a number a line. What the judge counts is in its own. */
static ssize_t device_counters_show(struct config_item *item, char *page)
{
	struct ib_device *ib = &sim_of(item)->ib;
	struct rdma_hw_stats *stats = sim_alloc_hw_port_stats(ib, 1);
	int i, size = 0;

	if (!stats)
		return -ENOMEM;
	sim_get_hw_stats(ib, stats, 1, 0);
	for (i = 0; i < SIM_NR_COUNTERS; i++)
		size += sysfs_emit_at(page, size, "%s %llu\n", stats->descs[i].name,
				      stats->value[i]);
	rdma_free_hw_stats_struct(stats);
	return size;
}

CONFIGFS_ATTR_RO(device_, counters);
SIM_KNOB(device_, strict, sim_of(item)->judge.strict, 0, 1);

static struct configfs_attribute *device_attrs[] = {
	&device_attr_context,
	&device_attr_counters,
	&device_attr_strict,
	&device_attr_virtual_dma,
	NULL,
};

static void device_release(struct config_item *item)
{
	cfs_put(container_of(to_config_group(item), struct sim_cfs, group));
}

static struct configfs_item_operations device_ops = {
	.release = device_release,
};

static const struct config_item_type device_type = {
	.ct_owner = THIS_MODULE,
	.ct_item_ops = &device_ops,
	.ct_attrs = device_attrs,
};

static struct config_group defaults_group;
static struct config_group caps_group;

static struct configfs_subsystem subsystem = {
	.su_group = {
		.cg_item = {
			.ci_namebuf = KBUILD_MODNAME,
			.ci_type = &(const struct config_item_type) { .ct_owner = THIS_MODULE },
		},
	},
	.su_mutex = __MUTEX_INITIALIZER(subsystem.su_mutex),
};

static void cfs_free(struct sim_cfs *cfs)
{
	configfs_remove_default_groups(&cfs->group);
	config_group_put(&cfs->group);
}

int sim_cfs_add(struct sim_device *sim, const char *name)
{
	struct sim_cfs *cfs = kzalloc_obj(*cfs);
	int ret;

	if (!cfs)
		return -ENOMEM;
	cfs->sim = sim;
	refcount_set(&cfs->groups, 4);
	config_group_init_type_name(&cfs->group, name, &device_type);
	config_group_init_type_name(&cfs->judge, "judge", &judge_type);
	configfs_add_default_group(&cfs->judge, &cfs->group);
	config_group_init_type_name(&cfs->cost, "cost", &sim_cost_type);
	configfs_add_default_group(&cfs->cost, &cfs->group);
	config_group_init_type_name(&cfs->caps, "caps", &cap_type);
	configfs_add_default_group(&cfs->caps, &cfs->group);
	ret = configfs_register_group(&subsystem.su_group, &cfs->group);
	if (ret) {
		pr_warn("'%s' cannot have a directory in configfs (%d): choose another name\n",
			name, ret);
		cfs_free(cfs);
		return ret;
	}
	sim->cfs = cfs;
	return 0;
}

void sim_cfs_remove(struct sim_device *sim)
{
	if (!sim->cfs)
		return;
	configfs_unregister_group(&sim->cfs->group);
	cfs_free(sim->cfs);
	sim->cfs = NULL;
}

/* One that cannot be called so in configfs goes on without a directory. */
void sim_cfs_rename(struct sim_device *sim)
{
	sim_cfs_remove(sim);
	sim_cfs_add(sim, dev_name(&sim->ib.dev));
}

int sim_cfs_init(void)
{
	int ret;

	sim_default_caps.comp_vectors = num_possible_cpus();
	config_group_init(&subsystem.su_group);
	config_group_init_type_name(&defaults_group, "defaults", &defaults_type);
	configfs_add_default_group(&defaults_group, &subsystem.su_group);
	config_group_init_type_name(&caps_group, "caps", &caps_type);
	configfs_add_default_group(&caps_group, &defaults_group);
	config_group_init_type_name(&sim_faults_group, "faults", &sim_faults_type);
	configfs_add_default_group(&sim_faults_group, &subsystem.su_group);
	ret = configfs_register_subsystem(&subsystem);
	if (ret)
		pr_err("no directory in configfs (%d): is it loaded?\n", ret);
	return ret;
}

void sim_cfs_exit(void)
{
	configfs_unregister_subsystem(&subsystem);
}
