// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A pair of QPs on one device. The client's sends complete on a completion queue of
 * the kind that the case asks for; the server, which only receives and opens memory,
 * has one of ib_core's in every case, so that it costs every engine the same.
 */
#include <linux/slab.h>

#include "perf.h"

#define CQ_SLACK	16
#define HYBRID_SPIN_NS	50000
#define DRAIN_STEP	(HZ / 10)

/* A device may grant a deeper queue than was asked for: it is not used deeper than this. */
static u32 client_cqes(const struct perf_run *run)
{
	if (run->attr.op == KVERBS_PERF_RPC)
		return PERF_RPC_CQES * (run->attr.depth + 1);
	return min_t(u32, run->attr.depth + CQ_SLACK, run->ib->attrs.max_cqe);
}

static u32 server_cqes(const struct perf_run *run)
{
	return min_t(u32, run->ring_size + CQ_SLACK, run->ib->attrs.max_cqe);
}

static struct kverbs_cq *kverbs_cq_of_case(struct perf_queue *queue, u32 vector)
{
	static const enum kverbs_cq_mode modes[KVERBS_PERF_NR_CQS] = {
		[KVERBS_PERF_CQ_INTERRUPT] = KVERBS_CQ_INTERRUPT,
		[KVERBS_PERF_CQ_POLL] = KVERBS_CQ_POLL,
		[KVERBS_PERF_CQ_HYBRID] = KVERBS_CQ_HYBRID,
		[KVERBS_PERF_CQ_ADAPTIVE] = KVERBS_CQ_ADAPTIVE,
	};
	struct kverbs_cq_attr attr = {
		.nr_cqe = client_cqes(queue->bench->run),
		.mode = modes[queue->bench->what.cq],
		.spin_ns = HYBRID_SPIN_NS,
		.max_cpu_percent = 100,
		.comp_vector = vector,
		.cpu = -1,
		.name = KBUILD_MODNAME,
	};

	return kverbs_cq_create(queue->bench->run->ib, &attr);
}

static int client_cq_create(struct perf_queue *queue, u32 vector)
{
	const struct perf_run *run = queue->bench->run;

	if (queue->bench->what.cq == KVERBS_PERF_CQ_IB) {
		queue->client_cq = ib_alloc_cq(run->ib, queue, client_cqes(run), vector,
					       IB_POLL_SOFTIRQ);
		return PTR_ERR_OR_ZERO(queue->client_cq);
	}
	queue->cq = kverbs_cq_of_case(queue, vector);
	if (IS_ERR(queue->cq))
		return PTR_ERR(queue->cq);
	queue->client_cq = kverbs_cq_ib(queue->cq);
	return 0;
}

static int cqs_create(struct perf_queue *queue)
{
	const struct perf_run *run = queue->bench->run;
	u32 vector = queue->index % run->ib->num_comp_vectors;
	int ret;

	ret = client_cq_create(queue, vector);
	if (ret)
		return ret;
	queue->server_cq = ib_alloc_cq(run->ib, queue, server_cqes(run), vector, IB_POLL_SOFTIRQ);
	return PTR_ERR_OR_ZERO(queue->server_cq);
}

static void cqs_destroy(struct perf_queue *queue)
{
	if (!IS_ERR_OR_NULL(queue->server_cq))
		ib_free_cq(queue->server_cq);
	if (!IS_ERR_OR_NULL(queue->cq))
		kverbs_cq_destroy(queue->cq);
	else if (!queue->cq && !IS_ERR_OR_NULL(queue->client_cq))
		ib_free_cq(queue->client_cq);
	queue->server_cq = NULL;
	queue->client_cq = NULL;
	queue->cq = NULL;
}

static enum ib_qp_type qp_type(const struct perf_run *run)
{
	return run->attr.transport == KVERBS_PERF_UD ? IB_QPT_UD : IB_QPT_RC;
}

static int sq_create(struct perf_queue *queue, struct ib_qp_init_attr *init)
{
	static const enum kverbs_batch_policy policies[KVERBS_PERF_NR_POLICIES] = {
		[KVERBS_PERF_DYNAMIC] = KVERBS_BATCH_DYNAMIC,
		[KVERBS_PERF_EACH] = KVERBS_BATCH_EACH,
		[KVERBS_PERF_FOUR] = KVERBS_BATCH_FOUR,
	};
	struct kverbs_sq_attr attr = {
		.init = init,
		.policy = policies[queue->bench->what.policy],
		.cq = queue->cq,
		.cq_room = queue->cq ? 0 : client_cqes(queue->bench->run),
		.name = KBUILD_MODNAME,
	};

	init->cap.max_send_wr = min(init->cap.max_send_wr, client_cqes(queue->bench->run));
	queue->sq = kverbs_sq_create(queue->client, &attr);
	return PTR_ERR_OR_ZERO(queue->sq);
}

static int client_create(struct perf_queue *queue, struct ib_qp_init_attr *init)
{
	*init = (struct ib_qp_init_attr){
		.send_cq = queue->client_cq,
		.recv_cq = queue->server_cq,
		.cap.max_send_wr = queue->bench->run->attr.depth,
		.cap.max_recv_wr = 1,
		.cap.max_send_sge = 1,
		.cap.max_recv_sge = 1,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = qp_type(queue->bench->run),
	};
	queue->client = ib_create_qp(queue->bench->pd, init);
	if (IS_ERR(queue->client))
		return PTR_ERR(queue->client);
	queue->qpn = queue->client->qp_num;
	return 0;
}

static int server_create(struct perf_queue *queue)
{
	struct ib_qp_init_attr init = {
		.send_cq = queue->server_cq,
		.recv_cq = queue->server_cq,
		.cap.max_send_wr = 1,
		.cap.max_recv_wr = max_t(u32, queue->bench->run->ring_size, 1),
		.cap.max_send_sge = 1,
		.cap.max_recv_sge = 1,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = qp_type(queue->bench->run),
	};

	queue->server = ib_create_qp(queue->bench->pd, &init);
	return PTR_ERR_OR_ZERO(queue->server);
}

/* Two endpoints in place of the QPs, the server's CQ like the client's. */
static int create_rpc(struct perf_queue *queue)
{
	u32 vector = queue->index % queue->bench->run->ib->num_comp_vectors;
	struct kverbs_cq *server_cq;
	int ret;

	ret = client_cq_create(queue, vector);
	if (ret)
		return ret;
	server_cq = kverbs_cq_of_case(queue, vector);
	return IS_ERR(server_cq) ? PTR_ERR(server_cq) : perf_rpc_create(queue, server_cq);
}

/* If it fails, perf_queue_destroy() takes down what there is. */
int perf_queue_create(struct perf_queue *queue)
{
	const struct perf_run *run = queue->bench->run;
	struct ib_qp_init_attr init;
	int ret;

	if (run->attr.op == KVERBS_PERF_RPC)
		return create_rpc(queue);
	ret = cqs_create(queue);
	if (!ret)
		ret = client_create(queue, &init);
	if (!ret)
		ret = server_create(queue);
	if (!ret)
		ret = perf_connect(queue);
	if (!ret)
		ret = run->attr.op == KVERBS_PERF_SEND ?
		      perf_ring_create(queue) : perf_regions_create(&queue->regions, queue);
	if (!ret && queue->bench->what.engine == KVERBS_PERF_KVERBS)
		ret = sq_create(queue, &init);
	return ret;
}

/* In steps: the device may leave meanwhile, and then there is less time. */
static void drain(struct perf_queue *queue, u64 since_ns)
{
	while (kverbs_sq_drain(queue->sq, DRAIN_STEP) == -ETIMEDOUT &&
	       ktime_get_ns() - since_ns < perf_run_patience_ns(queue->bench->run))
		;
}

/*
 * Nothing is in flight, unless the run was given up: then what is, is flushed. All queues
 * together have the time from @since_ns on.
 */
void perf_queue_stop(struct perf_queue *queue, u64 since_ns)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	if (queue->rpc)
		perf_rpc_end(queue->rpc);
	if (!IS_ERR_OR_NULL(queue->sq))
		drain(queue, since_ns);
	else if (!IS_ERR_OR_NULL(queue->client))
		ib_modify_qp(queue->client, &attr, IB_QP_STATE);
}

/* May be called again. Slots and receives outlive the CQs, whose CQEs point at them. */
void perf_queue_destroy(struct perf_queue *queue)
{
	perf_rpc_destroy(queue);
	if (!IS_ERR_OR_NULL(queue->client))
		ib_destroy_qp(queue->client);
	if (!IS_ERR_OR_NULL(queue->sq))
		kverbs_sq_destroy(queue->sq);
	if (!IS_ERR_OR_NULL(queue->server))
		ib_destroy_qp(queue->server);
	if (queue->ah)
		rdma_destroy_ah(queue->ah, RDMA_DESTROY_AH_SLEEPABLE);
	perf_regions_destroy(&queue->regions);
	cqs_destroy(queue);
	kfree(queue->registration);
	queue->client = NULL;
	queue->sq = NULL;
	queue->server = NULL;
	queue->ah = NULL;
	queue->registration = NULL;
}
