// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * /sys/kernel/config/kverbs_sim/NAME/cost/: the constants of the cost model, each with its
 * unit in its name (struct kverbs_cost says what they are), and presets, which set them all.
 * What is set holds for doorbells that are rung and requests that are executed afterwards.
 */
#include <linux/configfs.h>
#include <linux/module.h>

#include "knob.h"
#include "sim.h"

#define MAX_NS			NSEC_PER_SEC
#define MIN_FETCH_BYTES		64
#define MAX_FETCH_BYTES		4096
#define MAX_BLUEFLAME_BYTES	2048

static const struct {
	const char *name;
	void (*fill)(struct kverbs_cost *cost);
} presets[] = {
	{ "zero", kverbs_cost_zero },
	{ "articles", kverbs_cost_articles },
};

static ssize_t cost_show(struct config_item *item, char *page, size_t offset)
{
	struct kverbs_cost cost;

	sim_cost_get(sim_of_cost_item(item), &cost);
	return sim_knob_show((void *)&cost + offset, page);
}

static ssize_t cost_store(struct config_item *item, const char *knob, const char *page,
			  size_t size, s64 min, s64 max, size_t offset)
{
	s64 value;
	int ret = sim_knob_number(knob, page, min, max, &value);

	if (!ret)
		ret = sim_cost_set_one(sim_of_cost_item(item), offset, value);
	return ret ?: size;
}

/* A constant as a file; CONFIGFS_ATTR() would have to be said of each beside it. */
#define COST_KNOB(_name, _min, _max)							\
static const size_t cost_##_name##_at = offsetof(struct kverbs_cost, _name);		\
											\
static ssize_t cost_##_name##_show(struct config_item *item, char *page)		\
{											\
	return cost_show(item, page, cost_##_name##_at);				\
}											\
											\
static ssize_t cost_##_name##_store(struct config_item *item, const char *page,		\
				    size_t size)					\
{											\
	return cost_store(item, #_name, page, size, _min, _max, cost_##_name##_at);	\
}											\
											\
static struct configfs_attribute cost_attr_##_name = {					\
	.ca_name = #_name,								\
	.ca_mode = 0644,								\
	.ca_owner = THIS_MODULE,							\
	.show = cost_##_name##_show,							\
	.store = cost_##_name##_store,							\
}

COST_KNOB(doorbell_ns, 0, SIM_MAX_DOORBELL_NS);
COST_KNOB(notice_ns, 0, MAX_NS);
COST_KNOB(fetch_ns, 0, MAX_NS);
COST_KNOB(fetch_bytes, MIN_FETCH_BYTES, MAX_FETCH_BYTES);
COST_KNOB(parse_ns, 0, MAX_NS);
COST_KNOB(payload_ns, 0, MAX_NS);
COST_KNOB(wire_ns, 0, MAX_NS);
COST_KNOB(wire_ns_per_kib, 0, MAX_NS);
COST_KNOB(cqe_ns, 0, MAX_NS);
COST_KNOB(interrupt_ns, 0, MAX_NS);
COST_KNOB(blueflame_bytes, 0, MAX_BLUEFLAME_BYTES);

/* Which preset the constants are those of, or "none". */
static ssize_t cost_preset_show(struct config_item *item, char *page)
{
	struct kverbs_cost cost, preset;
	u32 i;

	sim_cost_get(sim_of_cost_item(item), &cost);
	for (i = 0; i < ARRAY_SIZE(presets); i++) {
		presets[i].fill(&preset);
		if (!memcmp(&cost, &preset, sizeof(cost)))
			return sysfs_emit(page, "%s\n", presets[i].name);
	}
	return sysfs_emit(page, "none\n");
}

static ssize_t cost_preset_store(struct config_item *item, const char *page, size_t size)
{
	const char *names[ARRAY_SIZE(presets)];
	struct kverbs_cost cost;
	int i;

	for (i = 0; i < ARRAY_SIZE(presets); i++)
		names[i] = presets[i].name;
	i = sim_knob_name("preset", page, names, ARRAY_SIZE(names));
	if (i < 0)
		return i;
	presets[i].fill(&cost);
	return sim_cost_set(sim_of_cost_item(item), &cost) ?: size;
}

CONFIGFS_ATTR(cost_, preset);

static struct configfs_attribute *cost_attrs[] = {
	&cost_attr_preset,
	&cost_attr_doorbell_ns,
	&cost_attr_notice_ns,
	&cost_attr_fetch_ns,
	&cost_attr_fetch_bytes,
	&cost_attr_parse_ns,
	&cost_attr_payload_ns,
	&cost_attr_wire_ns,
	&cost_attr_wire_ns_per_kib,
	&cost_attr_cqe_ns,
	&cost_attr_interrupt_ns,
	&cost_attr_blueflame_bytes,
	NULL,
};

static struct configfs_item_operations cost_ops = {
	.release = sim_cost_item_release,
};

const struct config_item_type sim_cost_type = {
	.ct_owner = THIS_MODULE,
	.ct_item_ops = &cost_ops,
	.ct_attrs = cost_attrs,
};
