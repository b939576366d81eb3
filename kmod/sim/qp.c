// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Queue pairs: created, led through their states, destroyed. All devices share one space of
 * numbers, so that a peer is found by its number alone.
 *
 * The state is changed by modify_qp, one at a time, and to ERR or SQE by whoever finds an
 * error, at any time: both compare before they exchange.
 */
#include <linux/log2.h>
#include <rdma/ib_cache.h>

#include "sim.h"

atomic64_t sim_epoch = ATOMIC64_INIT(1);

static DEFINE_XARRAY_ALLOC(sim_qps);
static u32 next_qpn;

void sim_qps_cleanup(void)
{
	xa_destroy(&sim_qps);
}

/* Under rcu_read_lock(). */
struct sim_qp *sim_qp_find(u32 qpn)
{
	return xa_load(&sim_qps, qpn);
}

void sim_qp_event(struct sim_qp *qp, enum ib_event_type type)
{
	struct ib_event event = {
		.device = qp->ib.device,
		.element.qp = &qp->ib,
		.event = type,
	};

	if (qp->ib.event_handler)
		qp->ib.event_handler(&event, qp->ib.qp_context);
}

/* An error was found: to ERR, or from RTS to SQE. */
void sim_qp_fail(struct sim_qp *qp, u32 state)
{
	u32 old = READ_ONCE(qp->state);

	do {
		if (old == IB_QPS_ERR || old == IB_QPS_RESET ||
		    (state == IB_QPS_SQE && old != IB_QPS_RTS))
			return;
	} while (!try_cmpxchg(&qp->state, &old, state));
	sim_kick(qp);
}

/* How long a sender waits after it was told that there is no receive. */
u64 sim_rnr_ns(u8 timer)
{
	static const u32 usecs[32] = {
		655360, 10, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640, 960, 1280, 1920,
		2560, 3840, 5120, 7680, 10240, 15360, 20480, 30720, 40960, 61440, 81920, 122880,
		163840, 245760, 327680, 491520,
	};

	return (u64)usecs[timer & 31] * NSEC_PER_USEC;
}

static int check_init(const struct sim_device *sim, const struct ib_qp_init_attr *init)
{
	const struct sim_caps *caps = &sim->caps;
	const struct ib_qp_cap *cap = &init->cap;

	switch (init->qp_type) {
	case IB_QPT_RC:
	case IB_QPT_UC:
	case IB_QPT_UD:
	case IB_QPT_GSI:
		break;
	default:
		return -EOPNOTSUPP;
	}
	if (init->create_flags)
		return -EOPNOTSUPP;
	if (!init->send_cq || !init->recv_cq)
		return -EINVAL;
	if (cap->max_send_wr > caps->qp_wr || cap->max_recv_wr > caps->qp_wr ||
	    cap->max_send_sge > caps->sge || cap->max_recv_sge > caps->sge ||
	    cap->max_inline_data > caps->inline_bytes)
		return -EINVAL;
	return 0;
}

static struct sim_sq *sq_create(const struct ib_qp_init_attr *init, int node)
{
	const struct ib_qp_cap *cap = &init->cap;
	struct sim_sq *sq;
	size_t body;

	sq = kzalloc_node(sizeof(*sq), GFP_KERNEL, node);
	if (!sq)
		return NULL;
	body = max_t(size_t, cap->max_inline_data, sizeof(struct ib_sge) * cap->max_send_sge);
	sq->stride = ALIGN(sizeof(struct sim_wqe) + body, 64);
	sq->depth = cap->max_send_wr;
	sq->mask = roundup_pow_of_two(max(sq->depth, 1U)) - 1;
	sq->max_sge = cap->max_send_sge;
	sq->max_inline = cap->max_inline_data;
	sq->ops = sim_sq_ops(init->qp_type);
	sq->signal_all = init->sq_sig_type == IB_SIGNAL_ALL_WR ? IB_SEND_SIGNALED : 0;
	sq->ring = kvzalloc_node(array_size(sq->mask + 1, sq->stride), GFP_KERNEL, node);
	if (!sq->ring) {
		kfree(sq);
		return NULL;
	}
	return sq;
}

/* Pollers that have claimed a CQE may still give slots back. */
static void sq_destroy(struct sim_sq *sq)
{
	kvfree(sq->ring);
	kfree_rcu(sq, rcu);
}

static int recv_create(struct sim_qp *qp, const struct ib_qp_init_attr *init, int node)
{
	if (!init->srq)
		return sim_rq_init(&qp->rq, init->cap.max_recv_wr, init->cap.max_recv_sge, node);
	qp->srq = to_sim_srq(init->srq);
	qp->srq_rwqe = kzalloc_node(struct_size(qp->srq_rwqe, sge, qp->srq->rq.max_sge),
				    GFP_KERNEL, node);
	return qp->srq_rwqe ? 0 : -ENOMEM;
}

static void recv_destroy(struct sim_qp *qp)
{
	sim_rq_destroy(&qp->rq);
	kfree(qp->srq_rwqe);
}

/* From here on it can be found. */
static int publish(struct sim_qp *qp)
{
	struct sim_device *sim = sim_of_qp(qp);
	int ret = 0;
	u32 qpn;

	if (qp->ib.qp_type == IB_QPT_GSI) {
		qp->ib.qp_num = SIM_GSI_QPN;
		mutex_lock(&sim->lock);
		if (rcu_access_pointer(sim->gsi))
			ret = -EBUSY;
		else
			rcu_assign_pointer(sim->gsi, qp);
		mutex_unlock(&sim->lock);
		return ret;
	}
	ret = xa_alloc_cyclic(&sim_qps, &qpn, NULL, XA_LIMIT(SIM_MIN_QPN, SIM_MAX_QPN), &next_qpn,
			      GFP_KERNEL);
	if (ret < 0)
		return ret;
	qp->ib.qp_num = qpn;
	xa_store(&sim_qps, qpn, qp, GFP_KERNEL);
	return 0;
}

static void unpublish(struct sim_qp *qp)
{
	if (qp->ib.qp_type == IB_QPT_GSI)
		rcu_assign_pointer(sim_of_qp(qp)->gsi, NULL);
	else
		xa_erase(&sim_qps, qp->ib.qp_num);
	sim_epoch_end();
}

int sim_create_qp(struct ib_qp *ib, struct ib_qp_init_attr *init, struct ib_udata *udata)
{
	struct sim_device *sim = to_sim(ib->device);
	struct sim_qp *qp = to_sim_qp(ib);
	int node = dev_to_node(&sim->parent->dev);
	int ret = check_init(sim, init);

	if (ret)
		return ret;
	if (!sim_take_one(&sim->nr_qps, sim->caps.qps))
		return -ENOMEM;
	qp->state = IB_QPS_RESET;
	mutex_init(&qp->mutex);
	hrtimer_setup(&qp->timer, sim_qp_timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	hrtimer_setup(&qp->starter, sim_qp_starter, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED);
	qp->attr.cap = init->cap;
	qp->sq = sq_create(init, node);
	if (!qp->sq) {
		ret = -ENOMEM;
		goto give_back;
	}
	ret = recv_create(qp, init, node);
	if (ret)
		goto destroy_sq;
	mutex_lock(&sim->lock);
	list_add_tail(&qp->entry, &sim->qps);
	mutex_unlock(&sim->lock);
	ret = publish(qp);
	if (ret)
		goto unlist;
	sim_judge_claim(qp);
	return 0;

unlist:
	mutex_lock(&sim->lock);
	list_del(&qp->entry);
	mutex_unlock(&sim->lock);
	recv_destroy(qp);
destroy_sq:
	sq_destroy(qp->sq);
give_back:
	atomic_dec(&sim->nr_qps);
	return ret;
}

static void quiesce_cq(struct sim_cq *cq, struct sim_qp *qp)
{
	sim_cq_forget(cq, qp);
	sim_vector_flush(cq);
}

/*
 * Nobody runs it, nobody delivers to it, its CQEs are not to be seen any more, and no
 * handler is still to be called for them.
 */
static void quiesce(struct sim_qp *qp)
{
	sim_qp_wait_idle(qp);
	hrtimer_cancel(&qp->starter);
	synchronize_rcu_expedited();
	quiesce_cq(to_sim_cq(qp->ib.send_cq), qp);
	if (qp->ib.recv_cq != qp->ib.send_cq)
		quiesce_cq(to_sim_cq(qp->ib.recv_cq), qp);
}

int sim_destroy_qp(struct ib_qp *ib, struct ib_udata *udata)
{
	struct sim_qp *qp = to_sim_qp(ib);

	WRITE_ONCE(qp->state, IB_QPS_RESET);
	unpublish(qp);
	quiesce(qp);
	sim_judge_unclaim(qp);
	sim_stats_fold_qp(to_sim(ib->device), qp);
	atomic_dec(&to_sim(ib->device)->nr_qps);
	recv_destroy(qp);
	sq_destroy(qp->sq);
	return 0;
}

static void reset(struct sim_qp *qp)
{
	struct sim_sq *sq = qp->sq;

	quiesce(qp);
	memset(sq->ring, 0, (size_t)(sq->mask + 1) * sq->stride);
	atomic_set(&sq->head, 0);
	atomic_set(&sq->retired, 0);
	sq->next = 0;
	sq->silent = 0;
	sim_rq_reset(&qp->rq);
	qp->taken = NULL;
	qp->retries = 0;
	qp->rnr_retries = 0;
	qp->last_wqe_reached = false;
	qp->heard = 0;
	qp->cost = (struct sim_qp_cost) {};
}

/* The device that has the destination's GID. */
static u32 find_dest(struct sim_qp *qp, const struct rdma_ah_attr *ah)
{
	struct sim_device *dest;
	u32 id = 0;

	rcu_read_lock();
	dest = sim_find_gid(sim_of_qp(qp), &rdma_ah_read_grh(ah)->dgid);
	if (dest)
		id = dest->id;
	rcu_read_unlock();
	return id;
}

static int check_attr(const struct ib_qp_attr *attr, int mask)
{
	if (mask & IB_QP_PORT && attr->port_num != 1)
		return -EINVAL;
	if (mask & IB_QP_PKEY_INDEX && attr->pkey_index)
		return -EINVAL;
	if (mask & IB_QP_MAX_QP_RD_ATOMIC && attr->max_rd_atomic > SIM_MAX_RD_ATOMIC)
		return -EINVAL;
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC && attr->max_dest_rd_atomic > SIM_MAX_RD_ATOMIC)
		return -EINVAL;
	if (mask & IB_QP_AV && !(rdma_ah_get_ah_flags(&attr->ah_attr) & IB_AH_GRH))
		return -EINVAL;
	if (mask & (IB_QP_ALT_PATH | IB_QP_CAP))
		return -EOPNOTSUPP;
	return 0;
}

static void take_connection(struct ib_qp_attr *to, const struct ib_qp_attr *attr, int mask)
{
	if (mask & IB_QP_PATH_MTU)
		to->path_mtu = attr->path_mtu;
	if (mask & IB_QP_TIMEOUT)
		to->timeout = attr->timeout;
	if (mask & IB_QP_RETRY_CNT)
		to->retry_cnt = attr->retry_cnt;
	if (mask & IB_QP_RNR_RETRY)
		to->rnr_retry = attr->rnr_retry;
	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		to->max_rd_atomic = attr->max_rd_atomic;
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC)
		to->max_dest_rd_atomic = attr->max_dest_rd_atomic;
	if (mask & IB_QP_MIN_RNR_TIMER)
		to->min_rnr_timer = attr->min_rnr_timer;
	if (mask & IB_QP_DEST_QPN)
		to->dest_qp_num = attr->dest_qp_num;
}

static void take_attr(struct sim_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	struct ib_qp_attr *to = &qp->attr;

	if (mask & IB_QP_PORT)
		to->port_num = attr->port_num;
	if (mask & IB_QP_PKEY_INDEX)
		to->pkey_index = attr->pkey_index;
	if (mask & IB_QP_ACCESS_FLAGS)
		WRITE_ONCE(to->qp_access_flags, attr->qp_access_flags);
	if (mask & IB_QP_QKEY)
		WRITE_ONCE(to->qkey, attr->qkey);
	if (mask & IB_QP_RQ_PSN)
		to->rq_psn = attr->rq_psn;
	if (mask & IB_QP_SQ_PSN)
		to->sq_psn = attr->sq_psn;
	take_connection(to, attr, mask);
	if (mask & IB_QP_AV) {
		to->ah_attr = attr->ah_attr;
		/* The core holds the GID entry for the queue pair, not for this copy. */
		to->ah_attr.grh.sgid_attr = NULL;
		WRITE_ONCE(qp->dest_id, find_dest(qp, &attr->ah_attr));
	}
	sim_epoch_end();
}

static int change_state(struct sim_qp *qp, u32 from, u32 to)
{
	u32 old = READ_ONCE(qp->state);

	if (to == IB_QPS_RESET || to == IB_QPS_ERR)
		xchg(&qp->state, to);
	else if (old != from || cmpxchg(&qp->state, old, to) != old)
		return -EINVAL;
	if (to == IB_QPS_RESET)
		reset(qp);
	else
		sim_kick(qp);
	return 0;
}

static int modify_locked(struct sim_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	u32 from, to;
	int ret;

	from = mask & IB_QP_CUR_STATE ? attr->cur_qp_state : READ_ONCE(qp->state);
	to = mask & IB_QP_STATE ? attr->qp_state : from;
	if (!ib_modify_qp_is_ok(from, to, qp->ib.qp_type, mask))
		return -EINVAL;
	ret = check_attr(attr, mask);
	if (ret)
		return ret;
	take_attr(qp, attr, mask);
	if (!(mask & IB_QP_STATE))
		return 0;
	ret = change_state(qp, from, to);
	if (ret)
		return ret;
	if (to == IB_QPS_SQD && mask & IB_QP_EN_SQD_ASYNC_NOTIFY && attr->en_sqd_async_notify)
		sim_qp_event(qp, IB_EVENT_SQ_DRAINED);
	/* What was being delivered has been. */
	if (to == IB_QPS_ERR)
		synchronize_rcu_expedited();
	return 0;
}

int sim_modify_qp(struct ib_qp *ib, struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	struct sim_qp *qp = to_sim_qp(ib);
	int ret;

	if (mask & ~IB_QP_ATTR_STANDARD_BITS)
		return -EOPNOTSUPP;
	mutex_lock(&qp->mutex);
	ret = modify_locked(qp, attr, mask);
	mutex_unlock(&qp->mutex);
	return ret;
}

int sim_query_qp(struct ib_qp *ib, struct ib_qp_attr *attr, int mask, struct ib_qp_init_attr *init)
{
	struct sim_qp *qp = to_sim_qp(ib);

	mutex_lock(&qp->mutex);
	*attr = qp->attr;
	attr->qp_state = READ_ONCE(qp->state);
	attr->cur_qp_state = attr->qp_state;
	mutex_unlock(&qp->mutex);

	init->event_handler = ib->event_handler;
	init->qp_context = ib->qp_context;
	init->send_cq = ib->send_cq;
	init->recv_cq = ib->recv_cq;
	init->srq = ib->srq;
	init->cap = attr->cap;
	init->sq_sig_type = qp->sq->signal_all ? IB_SIGNAL_ALL_WR : IB_SIGNAL_REQ_WR;
	init->qp_type = ib->qp_type;
	init->port_num = ib->port;
	return 0;
}
