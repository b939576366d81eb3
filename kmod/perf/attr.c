// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What a run asks for, held against what the device can do. The first attribute that
 * does not fit is named, with its limit, so that whoever asked can say what to change.
 */
#include <linux/sizes.h>
#include <linux/string.h>

#include "perf.h"

#define MAX_QUEUES	256
#define MAX_THREADS	64
#define MAX_ROUNDS	100
#define MAX_TIMEOUT_MS	600000
#define MAX_ITERATIONS	BIT_ULL(PERF_KEY_LANE_SHIFT)
#define MAX_DURATION_NS	(24ULL * 3600 * NSEC_PER_SEC)
#define MAX_MSG_SIZE	SZ_1M
#define MAX_MEMORY	SZ_256M

static int refuse(struct perf_run *run, enum kverbs_perf_attr attr, u64 limit, int error)
{
	run->attr.bad_attr = attr;
	run->attr.limit = limit;
	return error;
}

static int check_range(struct perf_run *run, enum kverbs_perf_attr attr, u64 value, u64 least,
		       u64 most, int error)
{
	if (value < least)
		return refuse(run, attr, least, error);
	return value > most ? refuse(run, attr, most, error) : 0;
}

static bool case_exists(const struct kverbs_perf_case *c)
{
	return c->engine < KVERBS_PERF_NR_ENGINES && c->cq < KVERBS_PERF_NR_CQS &&
	       c->context < KVERBS_PERF_NR_CONTEXTS &&
	       c->policy < (c->engine == KVERBS_PERF_KVERBS ? KVERBS_PERF_NR_POLICIES : 1);
}

/* Endpoints have what is of kverbs only. */
static bool rpc_has(const struct kverbs_perf_case *c)
{
	return c->engine == KVERBS_PERF_KVERBS && c->cq != KVERBS_PERF_CQ_IB && !c->policy;
}

static int check_cases(struct perf_run *run)
{
	u32 i;
	int ret;

	ret = check_range(run, KVERBS_PERF_ATTR_CASES, run->attr.nr_cases, 1,
			  KVERBS_PERF_MAX_CASES, -ERANGE);
	for (i = 0; i < run->attr.nr_cases && !ret; i++)
		if (!case_exists(&run->attr.cases[i]) ||
		    (run->attr.op == KVERBS_PERF_RPC && !rpc_has(&run->attr.cases[i])))
			ret = refuse(run, KVERBS_PERF_ATTR_CASES, 0, -EOPNOTSUPP);
	return ret;
}

static int check_op(struct perf_run *run)
{
	const struct kverbs_perf_run *attr = &run->attr;

	if (attr->op >= KVERBS_PERF_NR_OPS)
		return refuse(run, KVERBS_PERF_ATTR_OP, 0, -EOPNOTSUPP);
	if (attr->transport >= KVERBS_PERF_NR_TRANSPORTS ||
	    (attr->transport == KVERBS_PERF_UD && attr->op != KVERBS_PERF_SEND))
		return refuse(run, KVERBS_PERF_ATTR_TRANSPORT, 0, -EOPNOTSUPP);
	return 0;
}

static int check_length(struct perf_run *run)
{
	const struct kverbs_perf_run *attr = &run->attr;
	int ret;

	if (!attr->iterations && !attr->duration_ns)
		return refuse(run, KVERBS_PERF_ATTR_LENGTH, 1, -ERANGE);
	ret = check_range(run, KVERBS_PERF_ATTR_LENGTH, attr->iterations, 0, MAX_ITERATIONS,
			  -ERANGE);
	if (!ret)
		ret = check_range(run, KVERBS_PERF_ATTR_LENGTH, attr->duration_ns, 0,
				  MAX_DURATION_NS, -ERANGE);
	if (!ret)
		ret = check_range(run, KVERBS_PERF_ATTR_ROUNDS, attr->rounds, 1, MAX_ROUNDS,
				  -ERANGE);
	if (!ret)
		ret = check_range(run, KVERBS_PERF_ATTR_TIMEOUT, attr->timeout_ms, 1,
				  MAX_TIMEOUT_MS, -ERANGE);
	return ret;
}

/* An endpoint's receives are more than its sends, and both complete on one CQ. */
static u32 max_depth(const struct perf_run *run)
{
	const struct ib_device_attr *dev = &run->ib->attrs;

	if (run->attr.op == KVERBS_PERF_RPC)
		return min(dev->max_qp_wr / 2, dev->max_cqe / PERF_RPC_CQES - 1);
	return min(dev->max_qp_wr, dev->max_cqe);
}

/* Once the shape is known, what follows from it is kept in the run. */
static int check_shape(struct perf_run *run)
{
	const struct ib_device_attr *dev = &run->ib->attrs;
	struct kverbs_perf_run *attr = &run->attr;
	u32 lanes;
	int ret;

	ret = check_range(run, KVERBS_PERF_ATTR_QUEUES, attr->queues, 1,
			  min(MAX_QUEUES, dev->max_qp / 2), -ERANGE);
	if (!ret)
		ret = check_range(run, KVERBS_PERF_ATTR_DEPTH, attr->depth, 1, max_depth(run),
				  -ERANGE);
	if (!ret)
		ret = check_range(run, KVERBS_PERF_ATTR_THREADS, attr->threads, 1,
				  min_t(u64, MAX_THREADS, (u64)attr->queues * attr->depth),
				  -ERANGE);
	if (!ret)
		ret = check_range(run, KVERBS_PERF_ATTR_BATCH, attr->batch, 1, U32_MAX, -ERANGE);
	if (ret)
		return ret;

	lanes = DIV_ROUND_UP(attr->threads, attr->queues);
	run->lane_depth = attr->depth / lanes;
	attr->batch = min(attr->batch, run->lane_depth);
	if (attr->op == KVERBS_PERF_SEND)
		run->ring_size = min_t(u64, (u64)attr->depth + attr->batch,
				       min(dev->max_qp_wr, dev->max_cqe));
	return 0;
}

static u32 max_size(struct perf_run *run, u32 port_max)
{
	if (run->attr.transport == KVERBS_PERF_UD)
		return ib_mtu_enum_to_int(run->path.mtu);
	if (perf_op_sends(&run->attr))
		return min_t(u32, port_max, MAX_MSG_SIZE);
	return min3(port_max, perf_regions_max_size(run->ib), (u32)MAX_MSG_SIZE);
}

/* Threads that share a queue are told apart by the first word of what they send. */
static u32 min_size(const struct perf_run *run)
{
	bool shared = run->attr.threads > run->attr.queues;

	return shared && perf_op_sends(&run->attr) ? sizeof(u64) : 1;
}

static int check_size(struct perf_run *run)
{
	const struct kverbs_perf_run *attr = &run->attr;
	struct ib_port_attr port;
	size_t each;
	int ret;

	ret = ib_query_port(run->ib, run->path.port, &port);
	if (!ret)
		ret = check_range(run, KVERBS_PERF_ATTR_MSG_SIZE, attr->msg_size, min_size(run),
				  max_size(run, port.max_msg_sz), -EMSGSIZE);
	if (ret)
		return ret;
	each = perf_memory_bytes(attr->msg_size, attr->depth) +
	       perf_memory_bytes(attr->msg_size + perf_receive_offset(run),
				 run->ring_size ?: attr->depth) +
	       array_size(attr->depth, sizeof(struct perf_slot));
	if (each > MAX_MEMORY / attr->queues)
		return refuse(run, KVERBS_PERF_ATTR_MEMORY, MAX_MEMORY, -EFBIG);
	return 0;
}

static int check_device(struct perf_run *run)
{
	int ret;

	ret = perf_path_find(&run->path, run->ib);
	if (ret)
		return refuse(run, KVERBS_PERF_ATTR_DEVICE, 0, ret);
	if (!perf_op_sends(&run->attr) && !perf_regions_possible(run->ib))
		return refuse(run, KVERBS_PERF_ATTR_DEVICE, 0, -EPROTONOSUPPORT);
	return 0;
}

int perf_attr_check(struct perf_run *run)
{
	int ret;

	if (run->attr.flags & ~KVERBS_PERF_VERIFY)
		return -EOPNOTSUPP;
	ret = check_op(run);
	if (!ret)
		ret = check_cases(run);
	if (!ret)
		ret = check_length(run);
	if (!ret)
		ret = check_shape(run);
	if (!ret)
		ret = check_device(run);
	return ret ?: check_size(run);
}
