// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Two queue pairs of one device, connected to each other.
 */
#include <linux/sched.h>
#include <linux/slab.h>
#include <net/ipv6.h>
#include <rdma/ib_cache.h>

#include "simfault.h"

#define QKEY		0x4b5653
#define ACCESS		(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ)
#define MEMORY_ORDER	1

/* The way to ourselves: a GID that is an IPv4 address. */
static int find_path(struct rig *rig)
{
	const struct ib_gid_attr *gid;
	int i, ret = -EADDRNOTAVAIL;

	rig->path.type = rdma_ah_find_type(rig->ib, 1);
	rdma_ah_set_port_num(&rig->path, 1);
	for (i = 0; i < 16 && ret; i++) {
		gid = rdma_get_gid_attr(rig->ib, 1, i);
		if (IS_ERR(gid))
			continue;
		if (gid->gid_type == IB_GID_TYPE_ROCE_UDP_ENCAP &&
		    ipv6_addr_v4mapped((const struct in6_addr *)gid->gid.raw))
			ret = rdma_read_gid_l2_fields(gid, NULL, rig->path.roce.dmac);
		if (!ret)
			rdma_ah_set_grh(&rig->path, (union ib_gid *)&gid->gid, 0, i, 64, 0);
		rdma_put_gid_attr(gid);
	}
	return ret;
}

static int to_init(struct rig *rig, struct ib_qp *qp)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = 1,
		.qkey = QKEY,
		.qp_access_flags = ACCESS,
	};

	return ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
			    (rig->attr.type == IB_QPT_UD ? IB_QP_QKEY : IB_QP_ACCESS_FLAGS));
}

static int to_rtr(struct rig *rig, struct ib_qp *qp, const struct ib_qp *peer)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTR,
		.ah_attr = rig->path,
		.path_mtu = IB_MTU_1024,
		.dest_qp_num = peer->qp_num,
		.max_dest_rd_atomic = 4,
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
		.timeout = 8,	/* a millisecond */
		.retry_cnt = 2,
		.rnr_retry = rig->attr.rnr_retry,
		.max_rd_atomic = 4,
	};
	int mask = IB_QP_STATE | IB_QP_SQ_PSN;

	if (rig->attr.type == IB_QPT_RC)
		mask |= IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_MAX_QP_RD_ATOMIC;
	return ib_modify_qp(qp, &attr, mask);
}

static int connect(struct rig *rig)
{
	int ret = find_path(rig), i;

	for (i = 0; !ret && i < 2; i++)
		ret = to_init(rig, rig->qp[i]);
	for (i = 0; !ret && i < 2; i++)
		ret = to_rtr(rig, rig->qp[i], rig->qp[!i]);
	for (i = 0; !ret && i < 2; i++)
		ret = to_rts(rig, rig->qp[i]);
	if (ret || rig->attr.type != IB_QPT_UD)
		return ret;
	rig->ah = rdma_create_ah(rig->pd, &rig->path, RDMA_CREATE_AH_SLEEPABLE);
	ret = PTR_ERR_OR_ZERO(rig->ah);
	if (ret)
		rig->ah = NULL;
	return ret;
}

static void request_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct request *request = container_of(wc->wr_cqe, struct request, cqe);
	struct rig *rig = request->rig;
	u32 nr = atomic_read(&rig->done);

	/* One at a time on a CQ. */
	if (nr < ARRAY_SIZE(rig->order))
		rig->order[nr] = request - rig->requests;
	if (!request->times++)
		request->status = wc->status;
	rig->soonest_done_ns = min(rig->soonest_done_ns, ktime_get_ns() - request->posted_ns);
	atomic_inc(&rig->done);
	wake_up(&rig->wait);
}

static void receive_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rig *rig = container_of(wc->wr_cqe, struct rig, recv_cqe);

	if (wc->status == IB_WC_SUCCESS)
		atomic_inc(&rig->received);
}

/* Between the device and ib_core: who is told, and how. */
static void event(struct ib_cq *cq, void *context)
{
	struct rig *rig = context;
	struct ib_wc wc;

	atomic_inc(&rig->events);
	set_bit(raw_smp_processor_id() % BITS_PER_LONG, &rig->event_cpus);
	if (READ_ONCE(rig->posting) == current && in_task())
		atomic_inc(&rig->events_in_post);
	if (irqs_disabled())
		atomic_inc(&rig->events_locked);
	if (rig->poll_in_handler)
		ib_poll_cq(cq, 1, &wc);
	if (rig->handler)
		rig->handler(cq, context);
}

static int create_cq(struct rig *rig)
{
	static const enum ib_poll_context contexts[] = {
		[RIG_SOFTIRQ] = IB_POLL_SOFTIRQ,
		[RIG_WORKQUEUE] = IB_POLL_WORKQUEUE,
		[RIG_DIRECT] = IB_POLL_DIRECT,
	};
	struct rig_attr *attr = &rig->attr;
	u32 cqe = attr->cqe ?: 2 * attr->depth + attr->recvs + 2;
	struct ib_cq_init_attr init = { .cqe = cqe, .comp_vector = attr->vector };
	struct ib_cq *cq;

	if (attr->cq == RIG_RAW)
		cq = ib_create_cq(rig->ib, event, NULL, rig, &init);
	else
		cq = ib_alloc_cq(rig->ib, rig, cqe, attr->vector, contexts[attr->cq]);
	if (IS_ERR(cq))
		return PTR_ERR(cq);
	rig->cq = cq;
	if (attr->cq == RIG_RAW)
		return 0;
	rig->handler = cq->comp_handler;
	cq->comp_handler = event;
	return 0;
}

static int create_qps(struct rig *rig)
{
	struct ib_qp *qp;
	int i;

	for (i = 0; i < 2; i++) {
		struct ib_qp_init_attr init = {
			.send_cq = rig->cq,
			.recv_cq = rig->cq,
			.qp_type = rig->attr.type,
			.sq_sig_type = IB_SIGNAL_REQ_WR,
			.cap = {
				.max_send_wr = i ? 1 : rig->attr.depth,
				.max_recv_wr = i ? rig->attr.recvs + 1 : 1,
				.max_send_sge = 1,
				.max_recv_sge = 1,
				.max_inline_data = RIG_BYTES,
			},
		};

		qp = ib_create_qp(rig->pd, &init);
		if (IS_ERR(qp))
			return PTR_ERR(qp);
		rig->qp[i] = qp;
	}
	return 0;
}

static int create_memory(struct rig *rig)
{
	rig->memory = (void *)__get_free_pages(GFP_KERNEL | __GFP_ZERO, MEMORY_ORDER);
	if (!rig->memory)
		return -ENOMEM;
	rig->dma = ib_dma_map_single(rig->ib, rig->memory, 2 * PAGE_SIZE, DMA_BIDIRECTIONAL);
	if (!ib_dma_mapping_error(rig->ib, rig->dma))
		return 0;
	free_pages((unsigned long)rig->memory, MEMORY_ORDER);
	rig->memory = NULL;
	return -EIO;
}

static int create(struct rig *rig)
{
	struct ib_pd *pd;
	int ret;

	pd = ib_alloc_pd(rig->ib, IB_PD_UNSAFE_GLOBAL_RKEY);
	if (IS_ERR(pd))
		return PTR_ERR(pd);
	rig->pd = pd;
	ret = create_memory(rig);
	if (!ret)
		ret = create_cq(rig);
	if (!ret)
		ret = create_qps(rig);
	return ret ?: connect(rig);
}

struct rig *rig_create(struct ib_device *ib, const struct rig_attr *attr)
{
	struct rig *rig = kvzalloc(sizeof(*rig), GFP_KERNEL);
	int ret, i;

	if (!rig)
		return NULL;
	rig->ib = ib;
	rig->attr = *attr;
	rig->recv_cqe.done = receive_done;
	rig->fastest_post_ns = U64_MAX;
	rig->soonest_done_ns = U64_MAX;
	init_waitqueue_head(&rig->wait);
	for (i = 0; i < RIG_REQUESTS; i++) {
		rig->requests[i].cqe.done = request_done;
		rig->requests[i].rig = rig;
	}
	ret = create(rig);
	if (!ret)
		return rig;
	say("rig=%d\n", ret);
	rig_destroy(rig);
	return NULL;
}

void rig_destroy(struct rig *rig)
{
	int i;

	if (rig->ah)
		rdma_destroy_ah(rig->ah, RDMA_DESTROY_AH_SLEEPABLE);
	for (i = 0; i < 2; i++)
		if (rig->qp[i])
			ib_destroy_qp(rig->qp[i]);
	if (rig->cq && rig->attr.cq == RIG_RAW)
		ib_destroy_cq(rig->cq);
	else if (rig->cq)
		ib_free_cq(rig->cq);
	if (rig->memory) {
		ib_dma_unmap_single(rig->ib, rig->dma, 2 * PAGE_SIZE, DMA_BIDIRECTIONAL);
		free_pages((unsigned long)rig->memory, MEMORY_ORDER);
	}
	if (rig->pd)
		ib_dealloc_pd(rig->pd);
	kvfree(rig);
}

int rig_fail(struct rig *rig)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	return ib_modify_qp(rig->qp[0], &attr, IB_QP_STATE);
}

static void set_remote(struct rig *rig, struct rig_wr *wr)
{
	if (rig->attr.type == IB_QPT_UD) {
		wr->ud.ah = rig->ah;
		wr->ud.remote_qpn = rig->qp[1]->qp_num;
		wr->ud.remote_qkey = QKEY;
	} else {
		wr->rdma.remote_addr = rig->dma + PAGE_SIZE;
		wr->rdma.rkey = rig->pd->unsafe_global_rkey;
	}
}

void rig_wr(struct rig *rig, struct rig_wr *wr, u32 index, bool signaled)
{
	memset(wr, 0, sizeof(*wr));
	wr->sge.addr = rig->dma;
	wr->sge.length = RIG_BYTES;
	wr->sge.lkey = rig->pd->local_dma_lkey;
	if (rig->attr.inline_data)
		wr->sge.addr = (uintptr_t)rig->memory;
	wr->wr.wr_cqe = &rig->requests[index % RIG_REQUESTS].cqe;
	wr->wr.opcode = rig->attr.op;
	wr->wr.send_flags = signaled ? IB_SEND_SIGNALED : 0;
	if (rig->attr.inline_data)
		wr->wr.send_flags |= IB_SEND_INLINE;
	wr->wr.sg_list = &wr->sge;
	wr->wr.num_sge = 1;
	set_remote(rig, wr);
}

int rig_post(struct rig *rig, const struct ib_send_wr *wr, const struct ib_send_wr **bad_wr)
{
	const struct ib_send_wr *each;
	u64 begin = ktime_get_ns();
	int ret;

	for (each = wr; each; each = each->next)
		container_of(each->wr_cqe, struct request, cqe)->posted_ns = begin;
	WRITE_ONCE(rig->posting, current);
	ret = ib_post_send(rig->qp[0], wr, bad_wr);
	WRITE_ONCE(rig->posting, NULL);
	rig->fastest_post_ns = min(rig->fastest_post_ns, ktime_get_ns() - begin);
	return ret;
}

void rig_receive(struct rig *rig, u32 nr)
{
	struct ib_sge sge = {
		.addr = rig->dma + PAGE_SIZE,
		.length = PAGE_SIZE,
		.lkey = rig->pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = {
		.wr_cqe = &rig->recv_cqe,
		.sg_list = &sge,
		.num_sge = 1,
	};

	while (nr--)
		if (ib_post_recv(rig->qp[1], &wr, NULL))
			say("receive refused\n");
}
