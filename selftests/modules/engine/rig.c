// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What a case stands on: a CQ of one of seven kinds, queues whose sends complete on it,
 * and for each a peer that it is connected to, through a port of the device to itself.
 */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/slab.h>
#include <net/ipv6.h>
#include <rdma/ib_cache.h>

#include "engine.h"

#define RIG_SPIN_NS	20000
#define DRAIN_TIME	(10 * HZ)
#define RECEIVES	512	/* of a peer */

static const char *const cq_names[RIG_NR_CQS] = {
	[RIG_INTERRUPT] = "interrupt",
	[RIG_POLL] = "poll",
	[RIG_HYBRID] = "hybrid",
	[RIG_ADAPTIVE] = "adaptive",
	[RIG_SOFTIRQ] = "softirq",
	[RIG_WORKQUEUE] = "workqueue",
	[RIG_DIRECT] = "direct",
};

const char *rig_cq_name(enum rig_cq cq)
{
	return cq_names[cq];
}

static bool gid_serves(const struct ib_gid_attr *gid)
{
	return gid->gid_type == IB_GID_TYPE_ROCE_UDP_ENCAP &&
	       ipv6_addr_v4mapped((const struct in6_addr *)gid->gid.raw);
}

/* RoCE v2 over an IPv4 address, to our own MAC address. */
int rig_find_path(struct rig *rig)
{
	const struct ib_gid_attr *gid;
	struct ib_port_attr port;
	int i, err;

	rig->port = rdma_start_port(rig->ib);
	err = ib_query_port(rig->ib, rig->port, &port);
	if (err)
		return err;
	rig->mtu = port.active_mtu;
	rig->ah.type = rdma_ah_find_type(rig->ib, rig->port);
	rdma_ah_set_port_num(&rig->ah, rig->port);
	for (i = 0; i < port.gid_tbl_len; i++) {
		gid = rdma_get_gid_attr(rig->ib, rig->port, i);
		if (IS_ERR(gid))
			continue;
		err = gid_serves(gid) ? rdma_read_gid_l2_fields(gid, NULL, rig->ah.roce.dmac) : -1;
		if (!err)
			rdma_ah_set_grh(&rig->ah, (union ib_gid *)&gid->gid, 0, i, 64, 0);
		rdma_put_gid_attr(gid);
		if (!err)
			return 0;
	}
	return -EADDRNOTAVAIL;
}

static int to_init(struct rig *rig, struct ib_qp *qp)
{
	bool ud = rig->attr.type == IB_QPT_UD;
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = rig->port,
		.qkey = RIG_QKEY,
		.qp_access_flags = IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ |
				   IB_ACCESS_REMOTE_ATOMIC,
	};

	return ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
			    (ud ? IB_QP_QKEY : IB_QP_ACCESS_FLAGS));
}

static int to_rtr(struct rig *rig, struct ib_qp *qp, const struct ib_qp *peer)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTR,
		.ah_attr = rig->ah,
		.path_mtu = rig->mtu,
		.dest_qp_num = peer->qp_num,
		.max_dest_rd_atomic = 8,
		.min_rnr_timer = 1,
	};
	int mask = IB_QP_STATE;

	if (rig->attr.type != IB_QPT_UD)
		mask |= IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN;
	if (rig->attr.type == IB_QPT_RC)
		mask |= IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER;
	return ib_modify_qp(qp, &attr, mask);
}

static int to_rts(struct rig *rig, struct ib_qp *qp)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTS,
		/* 2 s: rxe does REG_MR over again when it sends again */
		.timeout = rig->attr.timeout ?: 19,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 8,
	};
	int mask = IB_QP_STATE | IB_QP_SQ_PSN;

	if (rig->attr.type == IB_QPT_RC)
		mask |= IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_MAX_QP_RD_ATOMIC;
	return ib_modify_qp(qp, &attr, mask);
}

int rig_connect(struct rig *rig, struct ib_qp *qp, const struct ib_qp *peer)
{
	int err = to_init(rig, qp);

	err = err ?: to_rtr(rig, qp, peer);
	return err ?: to_rts(rig, qp);
}

/* Polls a CQ that nobody else does, as its owner would. */
static int direct_main(void *data)
{
	struct rig *rig = data;
	u32 idle = 0;

	while (!kthread_should_stop()) {
		idle = ib_process_cq_direct(rig->cq, 64) ? 0 : idle + 1;
		if (idle > 100)
			usleep_range(20, 50);
		cond_resched();
	}
	return 0;
}

void rig_direct_stop(struct rig *rig)
{
	if (rig->direct)
		kthread_stop(rig->direct);
	rig->direct = NULL;
}

void rig_direct_start(struct rig *rig)
{
	struct task_struct *task;

	if (rig->attr.cq != RIG_DIRECT || rig->direct)
		return;
	task = kthread_run(direct_main, rig, "engine_direct");
	if (!IS_ERR(task))
		rig->direct = task;
}

static int create_cq(struct rig *rig)
{
	static const enum ib_poll_context contexts[] = {
		[RIG_SOFTIRQ] = IB_POLL_SOFTIRQ,
		[RIG_WORKQUEUE] = IB_POLL_WORKQUEUE,
		[RIG_DIRECT] = IB_POLL_DIRECT,
	};
	static const enum kverbs_cq_mode modes[] = {
		[RIG_INTERRUPT] = KVERBS_CQ_INTERRUPT,
		[RIG_POLL] = KVERBS_CQ_POLL,
		[RIG_HYBRID] = KVERBS_CQ_HYBRID,
		[RIG_ADAPTIVE] = KVERBS_CQ_ADAPTIVE,
	};
	struct kverbs_cq_attr attr = {
		.nr_cqe = rig->attr.nr_cqe,
		.spin_ns = RIG_SPIN_NS,
		.max_cpu_percent = 100,
		.moderate_cqes = rig->attr.moderate_cqes,
		.moderate_us = rig->attr.moderate_us,
		.comp_vector = -1,
		.cpu = rig->attr.last_cpu ? num_online_cpus() - 1 : -1,
		.name = KBUILD_MODNAME,
	};

	if (BIT(rig->attr.cq) & ON_KVERBS) {
		attr.mode = modes[rig->attr.cq];
		rig->kcq = kverbs_cq_create(rig->ib, &attr);
		if (IS_ERR(rig->kcq))
			return PTR_ERR(rig->kcq);
		WRITE_ONCE(rig->cq, kverbs_cq_ib(rig->kcq));
		return 0;
	}
	rig->cq = ib_alloc_cq(rig->ib, rig, attr.nr_cqe, 0, contexts[rig->attr.cq]);
	return PTR_ERR_OR_ZERO(rig->cq);
}

static int create_qps(struct rig_queue *queue)
{
	struct rig *rig = queue->rig;
	struct ib_qp_init_attr peer = {
		.send_cq = rig->peer_cq,
		.recv_cq = rig->peer_cq,
		.cap = { .max_send_wr = 1, .max_recv_wr = RECEIVES, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = rig->attr.type,
	};

	queue->init = (struct ib_qp_init_attr){
		.send_cq = rig->cq,
		.recv_cq = rig->peer_cq,
		.srq = rig->srq,
		.cap = { .max_send_wr = rig->attr.depth, .max_recv_wr = 1, .max_send_sge = 4,
			 .max_recv_sge = 1, .max_inline_data = rig->attr.max_inline },
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = rig->attr.type,
	};
	queue->peer = ib_create_qp(rig->pd, &peer);
	if (IS_ERR(queue->peer))
		return PTR_ERR(queue->peer);
	queue->qp = ib_create_qp(rig->pd, &queue->init);
	return PTR_ERR_OR_ZERO(queue->qp);
}

/* A device may grant more, which the rig does not use. */
int rig_sq_create(struct rig_queue *queue, struct kverbs_sq_attr *attr)
{
	struct ib_port_immutable *port = &queue->rig->ib->port_data[queue->rig->port].immutable;
	u32 flags = port->core_cap_flags;

	queue->init.cap.max_send_wr = queue->rig->attr.depth;
	if (queue->rig->attr.no_inline)
		queue->init.cap.max_inline_data = 0;
	attr->init = &queue->init;
	attr->cq = queue->rig->kcq;
	if (!attr->cq && !attr->cq_room)
		attr->cq_room = queue->rig->attr.depth;
	attr->name = KBUILD_MODNAME;
	if (queue->rig->attr.iwarp)
		port->core_cap_flags |= RDMA_CORE_CAP_PROT_IWARP;
	queue->sq = kverbs_sq_create(queue->qp, attr);
	port->core_cap_flags = flags;
	return PTR_ERR_OR_ZERO(queue->sq);
}

static int create_queue(struct rig *rig, u32 index)
{
	struct rig_queue *queue = &rig->queue[index];
	struct kverbs_sq_attr attr = {
		.copy_sge = rig->attr.copy_sge,
		.policy = rig->attr.policy,
		.hold_max_ns = rig->attr.hold_max_ns,
		.cqe_timeout_ms = rig->attr.cqe_timeout_ms,
	};
	int err;

	queue->rig = rig;
	queue->index = index;
	err = create_qps(queue);
	err = err ?: rig_connect(rig, queue->peer, queue->qp);
	err = err ?: rig_connect(rig, queue->qp, queue->peer);
	if (!err && rig->attr.scripted)
		err = hca_create(queue);
	if (!err && !rig->attr.no_sq)
		err = rig_sq_create(queue, &attr);
	return err;
}

/* The scripted HCA works in bursts of random length. */
static u32 run_once(struct rig *rig)
{
	struct hca *hca;
	u32 done = 0, i;

	for (i = 0; i < rig->attr.queues; i++) {
		hca = READ_ONCE(rig->queue[i].hca);
		if (hca && !READ_ONCE(hca->by_hand))
			done += hca_execute(hca, 1 + prandom_u32_state(&rig->rnd) %
						 READ_ONCE(rig->burst));
	}
	return done;
}

static int runner_main(void *data)
{
	struct rig *rig = data;

	while (!kthread_should_stop()) {
		wait_event_timeout(rig->posted, run_once(rig) || kthread_should_stop(), HZ / 10);
		cond_resched();
	}
	return 0;
}

static int start(struct rig *rig)
{
	struct task_struct *task;

	prandom_seed_state(&rig->rnd, engine_random());
	rig->burst = 16;
	rig_direct_start(rig);
	if (!rig->attr.scripted)
		return 0;
	task = kthread_run(runner_main, rig, "engine_hca");
	if (IS_ERR(task))
		return PTR_ERR(task);
	rig->runner = task;
	return 0;
}

static int build(struct rig *rig)
{
	struct ib_srq_init_attr srq = { .attr = { .max_wr = 16, .max_sge = 1 } };
	int err = rig_find_path(rig);
	u32 i;

	if (err)
		return err;
	if (rig->attr.scripted) {
		err = hca_cq_create(rig);
		if (err)
			return err;
	}
	hook_install(rig);
	rig->pd = ib_alloc_pd(rig->ib, rig->attr.scripted ? 0 : IB_PD_UNSAFE_GLOBAL_RKEY);
	if (IS_ERR(rig->pd))
		return PTR_ERR(rig->pd);
	if (rig->attr.type == IB_QPT_UD && !rig->attr.scripted) {
		rig->peer_ah = rdma_create_ah(rig->pd, &rig->ah, RDMA_CREATE_AH_SLEEPABLE);
		if (IS_ERR(rig->peer_ah))
			return PTR_ERR(rig->peer_ah);
	}
	rig->peer_cq = ib_alloc_cq(rig->ib, rig, (RECEIVES + 2) * rig->attr.queues, 0,
				   IB_POLL_SOFTIRQ);
	if (IS_ERR(rig->peer_cq))
		return PTR_ERR(rig->peer_cq);
	if (rig->attr.srq) {
		rig->srq = ib_create_srq(rig->pd, &srq);
		if (IS_ERR(rig->srq))
			return PTR_ERR(rig->srq);
	}
	err = create_cq(rig);
	for (i = 0; !err && i < rig->attr.queues; i++)
		err = create_queue(rig, i);
	return err ?: start(rig);
}

/* NULL, and the case has failed. */
struct rig *rig_create(const struct rig_attr *attr)
{
	struct rig *rig = kzalloc(sizeof(*rig), GFP_KERNEL);
	int err;

	if (!rig) {
		engine_fail("no memory for a rig");
		return NULL;
	}
	rig->attr = *attr;
	rig->attr.queues = attr->queues ?: 1;
	rig->attr.type = attr->type ?: IB_QPT_RC;
	rig->attr.nr_cqe = attr->nr_cqe ?: rig->attr.queues * rig->attr.depth;
	rig->ib = engine_device();
	init_waitqueue_head(&rig->posted);
	err = build(rig);
	if (!err)
		return rig;
	engine_fail("the rig (%s, depth %u) could not be built: error %d", rig_cq_name(attr->cq),
		    attr->depth, err);
	rig_destroy(rig);
	return NULL;
}

u32 rig_credits(const struct rig_queue *queue)
{
	struct kverbs_sq_info info;

	kverbs_sq_query(queue->sq, &info);
	return info.credits;
}

/* Nobody else polls a direct CQ while it is drained. */
int rig_drain_for(struct rig_queue *queue, unsigned long timeout)
{
	int err;

	rig_direct_stop(queue->rig);
	err = kverbs_sq_drain(queue->sq, timeout);
	rig_direct_start(queue->rig);
	return err;
}

int rig_drain(struct rig_queue *queue)
{
	return rig_drain_for(queue, DRAIN_TIME);
}

void rig_queue_destroy(struct rig_queue *queue)
{
	struct ib_qp *qp = queue->qp;

	if (!IS_ERR_OR_NULL(qp)) {
		WRITE_ONCE(queue->qp, NULL);
		ib_destroy_qp(qp);
	}
	if (!IS_ERR_OR_NULL(queue->sq))
		kverbs_sq_destroy(queue->sq);
	queue->sq = NULL;
	if (!IS_ERR_OR_NULL(queue->peer))
		ib_destroy_qp(queue->peer);
	queue->peer = NULL;
}

/* The queues have been drained, or were never used. */
void rig_destroy(struct rig *rig)
{
	u32 i;

	if (rig->runner)
		kthread_stop(rig->runner);
	rig_direct_stop(rig);
	for (i = 0; i < rig->attr.queues; i++)
		rig_queue_destroy(&rig->queue[i]);
	if (!IS_ERR_OR_NULL(rig->kcq))
		kverbs_cq_destroy(rig->kcq);
	else if (!rig->kcq && !IS_ERR_OR_NULL(rig->cq))
		ib_free_cq(rig->cq);
	/* A CQE that was not polled leads to its HCA. */
	for (i = 0; i < rig->attr.queues; i++)
		hca_destroy(&rig->queue[i]);
	if (!IS_ERR_OR_NULL(rig->srq))
		ib_destroy_srq(rig->srq);
	if (!IS_ERR_OR_NULL(rig->peer_cq))
		ib_free_cq(rig->peer_cq);
	if (!IS_ERR_OR_NULL(rig->peer_ah))
		rdma_destroy_ah(rig->peer_ah, RDMA_DESTROY_AH_SLEEPABLE);
	if (!IS_ERR_OR_NULL(rig->pd))
		ib_dealloc_pd(rig->pd);
	hook_remove(rig);
	hca_cq_destroy(rig);
	kfree(rig);
}
