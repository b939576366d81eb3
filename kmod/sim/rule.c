// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Rules of faults in configfs: mkdir faults/NAME makes one. While it is enabled nothing of
 * it is changed, so the data path reads it without a lock.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/configfs.h>
#include <linux/module.h>

#include "knob.h"
#include "sim.h"

#define MAX_DELAY_NS	(3600 * NSEC_PER_SEC)
#define MAX_PPM		1000000

static const char * const kind_names[SIM_NR_FAULTS] = {
	[SIM_FAULT_POST_FAIL] = "post_fail",
	[SIM_FAULT_POST_HALF] = "post_half",
	[SIM_FAULT_POST_BAD_HEAD] = "post_bad_head",
	[SIM_FAULT_POST_BAD_UNSET] = "post_bad_unset",
	[SIM_FAULT_POST_BAD_WRONG] = "post_bad_wrong",
	[SIM_FAULT_POST_TAKEN] = "post_taken",
	[SIM_FAULT_ERROR] = "error",
	[SIM_FAULT_SQE] = "sqe",
	[SIM_FAULT_RNR] = "rnr",
	[SIM_FAULT_NO_ANSWER] = "no_answer",
	[SIM_FAULT_FLUSH_EXECUTED] = "flush_executed",
	[SIM_FAULT_READ_OVERTAKEN] = "read_overtaken",
	[SIM_FAULT_CQE_LATE] = "cqe_late",
	[SIM_FAULT_CQE_LOST] = "cqe_lost",
	[SIM_FAULT_CQE_TWICE] = "cqe_twice",
	[SIM_FAULT_EVENT_LOST] = "event_lost",
	[SIM_FAULT_EVENT_LOCKED] = "event_locked",
	[SIM_FAULT_EVENT_IN_POST] = "event_in_post",
	[SIM_FAULT_PORT_DOWN] = "port_down",
	[SIM_FAULT_REMOVE] = "remove",
};

static const char * const opcode_names[SIM_NR_OPS] = {
	[SIM_OP_ANY] = "any",
	[SIM_OP_SEND] = "send",
	[SIM_OP_SEND_IMM] = "send_imm",
	[SIM_OP_SEND_INV] = "send_inv",
	[SIM_OP_WRITE] = "write",
	[SIM_OP_WRITE_IMM] = "write_imm",
	[SIM_OP_READ] = "read",
	[SIM_OP_CAS] = "cas",
	[SIM_OP_FADD] = "fadd",
	[SIM_OP_REG_MR] = "reg_mr",
	[SIM_OP_LOCAL_INV] = "local_inv",
	[SIM_OP_RECV] = "recv",
};

static const char * const status_names[] = {
	[IB_WC_LOC_LEN_ERR] = "loc_len_err",
	[IB_WC_LOC_QP_OP_ERR] = "loc_qp_op_err",
	[IB_WC_LOC_EEC_OP_ERR] = "loc_eec_op_err",
	[IB_WC_LOC_PROT_ERR] = "loc_prot_err",
	[IB_WC_WR_FLUSH_ERR] = "wr_flush_err",
	[IB_WC_MW_BIND_ERR] = "mw_bind_err",
	[IB_WC_BAD_RESP_ERR] = "bad_resp_err",
	[IB_WC_LOC_ACCESS_ERR] = "loc_access_err",
	[IB_WC_REM_INV_REQ_ERR] = "rem_inv_req_err",
	[IB_WC_REM_ACCESS_ERR] = "rem_access_err",
	[IB_WC_REM_OP_ERR] = "rem_op_err",
	[IB_WC_RETRY_EXC_ERR] = "retry_exc_err",
	[IB_WC_RNR_RETRY_EXC_ERR] = "rnr_retry_exc_err",
	[IB_WC_LOC_RDD_VIOL_ERR] = "loc_rdd_viol_err",
	[IB_WC_REM_INV_RD_REQ_ERR] = "rem_inv_rd_req_err",
	[IB_WC_REM_ABORT_ERR] = "rem_abort_err",
	[IB_WC_INV_EECN_ERR] = "inv_eecn_err",
	[IB_WC_INV_EEC_STATE_ERR] = "inv_eec_state_err",
	[IB_WC_FATAL_ERR] = "fatal_err",
	[IB_WC_RESP_TIMEOUT_ERR] = "resp_timeout_err",
	[IB_WC_GENERAL_ERR] = "general_err",
};

/* What real drivers were seen to do, by their names. */
static const char * const presets[] = { "irdma", "erdma", "siw", "mlx5", "iwarp" };

static const struct sim_rule_attr preset_attrs[ARRAY_SIZE(presets)] = {
	/* An error flushes all that has no CQE, also what had succeeded. */
	{ .kind = SIM_FAULT_FLUSH_EXECUTED },
	/* bad_wr is the head of the chain, whatever was taken. */
	{ .kind = SIM_FAULT_POST_BAD_HEAD, .errnum = -ENOMEM },
	/* An error after all was taken, and bad_wr is of no use. */
	{ .kind = SIM_FAULT_POST_TAKEN, .errnum = -EINVAL },
	/* The handler is called by who posts, as in its drain, armed or not. */
	{ .kind = SIM_FAULT_EVENT_IN_POST },
	/* Responses to READs come in their own time. */
	{ .kind = SIM_FAULT_READ_OVERTAKEN, .delay_ns = NSEC_PER_MSEC },
};

static const struct sim_rule_attr rule_defaults = {
	.status = IB_WC_GENERAL_ERR,
	.errnum = -ENOMEM,
	.probability_ppm = MAX_PPM,
	.count_hits = 1,
	.delay_ns = NSEC_PER_MSEC,
};

struct cfs_rule {
	struct config_item item;
	struct sim_rule rule;
};

static DEFINE_MUTEX(rule_lock);		/* of what is written to rules */

static struct sim_rule *rule_of(struct config_item *item)
{
	return &container_of(item, struct cfs_rule, item)->rule;
}

/* What is written to a rule that may not be changed is not taken. */
static int rule_closed(struct config_item *item)
{
	lockdep_assert_held(&rule_lock);
	if (!rule_of(item)->enabled)
		return 0;
	pr_warn("faults/%s is enabled: write 0 to enabled before you change it\n",
		config_item_name(item));
	return -EBUSY;
}

static ssize_t number_show(struct config_item *item, char *page, size_t offset)
{
	const u64 *number = (void *)&rule_of(item)->attr + offset;

	return sysfs_emit(page, "%llu\n", *number);
}

static ssize_t number_store(struct config_item *item, const char *page, size_t size,
			    const char *knob, s64 max, size_t offset)
{
	u64 *number = (void *)&rule_of(item)->attr + offset;
	s64 value;
	int ret;

	mutex_lock(&rule_lock);
	ret = sim_knob_number(knob, page, 0, max, &value) ?: rule_closed(item);
	if (!ret)
		*number = value;
	mutex_unlock(&rule_lock);
	return ret ?: size;
}

#define RULE_NUMBER(_name, _max)							\
static const size_t rule_##_name##_at = offsetof(struct sim_rule_attr, _name);		\
											\
static ssize_t rule_##_name##_show(struct config_item *item, char *page)		\
{											\
	return number_show(item, page, rule_##_name##_at);				\
}											\
											\
static ssize_t rule_##_name##_store(struct config_item *item, const char *page,	\
				    size_t size)					\
{											\
	return number_store(item, page, size, #_name, _max, rule_##_name##_at);		\
}

RULE_NUMBER(qp_num, SIM_MAX_QPN)
RULE_NUMBER(probability_ppm, MAX_PPM)
RULE_NUMBER(after_hits, S64_MAX)
RULE_NUMBER(count_hits, S64_MAX)
RULE_NUMBER(delay_ns, MAX_DELAY_NS)
RULE_NUMBER(seed, S64_MAX)

CONFIGFS_ATTR(rule_, qp_num);
CONFIGFS_ATTR(rule_, probability_ppm);
CONFIGFS_ATTR(rule_, after_hits);
CONFIGFS_ATTR(rule_, count_hits);
CONFIGFS_ATTR(rule_, delay_ns);
CONFIGFS_ATTR(rule_, seed);

static ssize_t name_store(struct config_item *item, const char *page, size_t size,
			  const char *knob, const char * const *names, int nr, u32 *field)
{
	int value, ret;

	mutex_lock(&rule_lock);
	value = sim_knob_name(knob, page, names, nr);
	ret = value < 0 ? value : rule_closed(item);
	if (!ret)
		*field = value;
	mutex_unlock(&rule_lock);
	return ret ?: size;
}

static ssize_t rule_kind_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%s\n", kind_names[rule_of(item)->attr.kind] ?: "none");
}

static ssize_t rule_kind_store(struct config_item *item, const char *page, size_t size)
{
	return name_store(item, page, size, "kind", kind_names, SIM_NR_FAULTS,
			  &rule_of(item)->attr.kind);
}

CONFIGFS_ATTR(rule_, kind);

static ssize_t rule_opcode_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%s\n", opcode_names[rule_of(item)->attr.opcode]);
}

static ssize_t rule_opcode_store(struct config_item *item, const char *page, size_t size)
{
	return name_store(item, page, size, "opcode", opcode_names, SIM_NR_OPS,
			  &rule_of(item)->attr.opcode);
}

CONFIGFS_ATTR(rule_, opcode);

static ssize_t rule_status_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%s\n", status_names[rule_of(item)->attr.status]);
}

static ssize_t rule_status_store(struct config_item *item, const char *page, size_t size)
{
	return name_store(item, page, size, "status", status_names, ARRAY_SIZE(status_names),
			  &rule_of(item)->attr.status);
}

CONFIGFS_ATTR(rule_, status);

/* @parse takes what was written into the attributes of a rule. */
static ssize_t text_store(struct config_item *item, const char *page, size_t size,
			  int (*parse)(const char *page, struct sim_rule_attr *attr))
{
	struct sim_rule_attr attr;
	int ret;

	mutex_lock(&rule_lock);
	attr = rule_of(item)->attr;
	ret = parse(page, &attr) ?: rule_closed(item);
	if (!ret)
		rule_of(item)->attr = attr;
	mutex_unlock(&rule_lock);
	return ret ?: size;
}

static int parse_errno(const char *page, struct sim_rule_attr *attr)
{
	s64 value;
	int ret = sim_knob_number("errno", page, -MAX_ERRNO, MAX_ERRNO, &value);

	if (ret)
		return ret;
	if (!value) {
		pr_warn("errno: 0 is no error: write a negative errno, or a positive one as some drivers return\n");
		return -ERANGE;
	}
	attr->errnum = value;
	return 0;
}

static ssize_t rule_errnum_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%d\n", rule_of(item)->attr.errnum);
}

static ssize_t rule_errnum_store(struct config_item *item, const char *page, size_t size)
{
	return text_store(item, page, size, parse_errno);
}

/* The word errno is a macro in some kernels. */
static struct configfs_attribute rule_attr_errnum = {
	.ca_name = "errno",
	.ca_mode = 0644,
	.ca_owner = THIS_MODULE,
	.show = rule_errnum_show,
	.store = rule_errnum_store,
};

static int parse_device(const char *page, struct sim_rule_attr *attr)
{
	size_t length = strcspn(page, "\n");

	if (length >= sizeof(attr->device)) {
		pr_warn("device: %zu characters are too many: write the name of a device, or nothing for any\n",
			length);
		return -ERANGE;
	}
	strscpy(attr->device, page, length + 1);
	return 0;
}

static ssize_t rule_device_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%s\n", rule_of(item)->attr.device);
}

static ssize_t rule_device_store(struct config_item *item, const char *page, size_t size)
{
	return text_store(item, page, size, parse_device);
}

CONFIGFS_ATTR(rule_, device);

static int parse_preset(const char *page, struct sim_rule_attr *attr)
{
	int i = sim_knob_name("preset", page, presets, ARRAY_SIZE(presets));

	if (i < 0)
		return i;
	attr->kind = preset_attrs[i].kind;
	attr->errnum = preset_attrs[i].errnum ?: attr->errnum;
	attr->delay_ns = preset_attrs[i].delay_ns ?: attr->delay_ns;
	attr->count_hits = 0;
	return 0;
}

static ssize_t rule_preset_store(struct config_item *item, const char *page, size_t size)
{
	return text_store(item, page, size, parse_preset);
}

CONFIGFS_ATTR_WO(rule_, preset);

/* What is asked for must be something that the kind can tell. */
static int rule_check(struct config_item *item)
{
	const struct sim_rule_attr *attr = &rule_of(item)->attr;
	const char *name = config_item_name(item);

	switch (attr->kind) {
	case SIM_FAULT_NONE:
		pr_warn("faults/%s has no kind: write one to kind, or a driver's name to preset\n",
			name);
		return -EINVAL;
	case SIM_FAULT_EVENT_LOST:
	case SIM_FAULT_EVENT_LOCKED:
		if (!attr->qp_num && attr->opcode == SIM_OP_ANY)
			return 0;
		pr_warn("faults/%s: an event is of a CQ: write 0 to qp_num and any to opcode\n",
			name);
		return -EINVAL;
	case SIM_FAULT_FLUSH_EXECUTED:
		if (attr->opcode == SIM_OP_ANY)
			return 0;
		pr_warn("faults/%s: a flush is of all opcodes: write any to opcode\n", name);
		return -EINVAL;
	}
	return 0;
}

static ssize_t rule_enabled_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%d\n", READ_ONCE(rule_of(item)->enabled));
}

static ssize_t rule_enabled_store(struct config_item *item, const char *page, size_t size)
{
	s64 enabled;
	int ret = sim_knob_number("enabled", page, 0, 1, &enabled);

	if (ret)
		return ret;
	mutex_lock(&rule_lock);
	if (enabled)
		ret = rule_check(item);
	if (!ret)
		sim_rule_enable(rule_of(item), enabled);
	mutex_unlock(&rule_lock);
	return ret ?: size;
}

CONFIGFS_ATTR(rule_, enabled);

static ssize_t rule_hits_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%lld\n", atomic64_read(&rule_of(item)->hits));
}

CONFIGFS_ATTR_RO(rule_, hits);

static struct configfs_attribute *rule_attrs[] = {
	&rule_attr_device,
	&rule_attr_kind,
	&rule_attr_opcode,
	&rule_attr_qp_num,
	&rule_attr_status,
	&rule_attr_errnum,
	&rule_attr_probability_ppm,
	&rule_attr_after_hits,
	&rule_attr_count_hits,
	&rule_attr_delay_ns,
	&rule_attr_seed,
	&rule_attr_preset,
	&rule_attr_enabled,
	&rule_attr_hits,
	NULL,
};

static void rule_release(struct config_item *item)
{
	kfree(container_of(item, struct cfs_rule, item));
}

static struct configfs_item_operations rule_ops = {
	.release = rule_release,
};

static const struct config_item_type rule_type = {
	.ct_owner = THIS_MODULE,
	.ct_item_ops = &rule_ops,
	.ct_attrs = rule_attrs,
};

static struct config_item *rule_make(struct config_group *group, const char *name)
{
	struct cfs_rule *rule = kzalloc_obj(*rule);

	if (!rule)
		return ERR_PTR(-ENOMEM);
	rule->rule.attr = rule_defaults;
	config_item_init_type_name(&rule->item, name, &rule_type);
	sim_rule_add(&rule->rule);
	return &rule->item;
}

static void rule_drop(struct config_group *group, struct config_item *item)
{
	sim_rule_remove(rule_of(item));
	config_item_put(item);
}

static struct configfs_group_operations faults_ops = {
	.make_item = rule_make,
	.drop_item = rule_drop,
};

const struct config_item_type sim_faults_type = {
	.ct_owner = THIS_MODULE,
	.ct_group_ops = &faults_ops,
};

struct config_group sim_faults_group;
