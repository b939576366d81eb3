// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Request and reply over send, between two endpoints on one device. The client's requests
 * are slots as any other send; the server sends each back as it came, and a slot has ended
 * when its send has and its reply was received. What is measured is from the post of a
 * request to its reply.
 *
 * The server has a buffer for each request that the client may have out, and one for each
 * reply whose send has not ended: so there always is one. A reply for which the
 * queue has no place waits in line for it.
 */
#include <linux/slab.h>
#include <rdma/ib_addr.h>
#include <rdma/kverbs_ep.h>
#include <rdma/kverbs_pool.h>

#include "perf.h"

#define CONNECT_TIMEOUT	(10 * HZ)

struct perf_reply {
	struct kverbs_req req;
	struct ib_send_wr wr;
	struct ib_sge sge;
	struct perf_rpc *rpc;
	struct kverbs_buf *buf;
	struct list_head entry;		/* of those that wait */
};

struct perf_rpc {
	struct perf_queue *queue;
	struct kverbs_listener *listener;
	struct kverbs_ep *client;
	struct kverbs_ep *server;
	int accept_error;
	struct completion connected;	/* the server's side */
	struct kverbs_cq *server_cq;
	struct kverbs_pool *pool;	/* of replies */
	struct perf_reply *replies;	/* one for each element */
	spinlock_t lock;		/* guards what follows */
	struct list_head waiting;
	struct kverbs_credit_wait credit;
	bool waits;			/* for credit */
	bool ending;
};

static void rpc_failed(struct perf_rpc *rpc, const char *what, int error)
{
	if (!READ_ONCE(rpc->ending))
		perf_run_stop(rpc->queue->bench->run, PERF_STOP_WAITING, error,
			      "%s of queue %u: error %d", what, rpc->queue->index, error);
}

static void disconnected(struct kverbs_ep *ep, int reason)
{
	rpc_failed(kverbs_ep_context(ep), "the connection", reason ?: -ECONNRESET);
}

/* The client's side: the reply of the request that is longest out, of its lane. */
static void replied(struct kverbs_ep *ep, const void *data, u32 len, const struct ib_wc *wc)
{
	struct perf_rpc *rpc = kverbs_ep_context(ep);
	struct perf_queue *queue = rpc->queue;
	struct perf_bench *bench = queue->bench;
	struct perf_lane *lane;
	struct perf_slot *slot;
	bool last;

	lane = perf_queue_lane(queue, perf_lanes_share(bench) ? data : NULL);
	if (!lane || len != bench->run->attr.msg_size) {
		rpc_failed(rpc, "a reply that nobody waits for", -EBADMSG);
		return;
	}
	slot = perf_lane_slot(lane, lane->receive_head);
	lane->receive_head = perf_lane_next(lane, lane->receive_head);
	kverbs_hist_record(lane->done.latency,
			   perf_ticks_to_ns(bench->run, perf_ticks() - slot->posted_at), 1);
	if (memcmp(data, perf_memory_va(queue->client_memory, slot->index), len)) {
		lane->received_corrupt++;
		rpc_failed(rpc, "a reply that is wrong", -EBADMSG);
	}
	last = slot->last_of_burst;
	perf_count(&lane->received);
	perf_lane_advance(lane, last);
}

static const struct kverbs_ep_ops client_ops = {
	.received = replied,
	.disconnected = disconnected,
};

static void reply_sent(struct kverbs_req *req, enum ib_wc_status status)
{
	struct perf_reply *reply = container_of(req, struct perf_reply, req);

	if (status != IB_WC_SUCCESS)
		rpc_failed(reply->rpc, "a reply", -EIO);
	kverbs_pool_free(reply->rpc->pool, reply->buf);
}

static void credit_came(struct kverbs_credit_wait *credit);

/* In the order in which their requests came, under the lock. */
static void post_waiting(struct perf_rpc *rpc)
{
	struct kverbs_sq *sq = kverbs_ep_sq(rpc->server);
	struct perf_reply *reply, *next;
	int ret = 0;

	if (rpc->waits)
		return;
	list_for_each_entry_safe(reply, next, &rpc->waiting, entry) {
		ret = kverbs_post(sq, &reply->req, 0);
		if (ret)
			break;
		list_del(&reply->entry);
	}
	if (ret == -EAGAIN) {
		rpc->waits = true;
		rpc->credit.nr_wrs = 1;
		rpc->credit.ready = credit_came;
		ret = kverbs_on_credit(sq, &rpc->credit);
	}
	if (ret)
		rpc_failed(rpc, "a reply", ret);
}

static void credit_came(struct kverbs_credit_wait *credit)
{
	struct perf_rpc *rpc = container_of(credit, struct perf_rpc, credit);

	spin_lock_bh(&rpc->lock);
	rpc->waits = false;
	if (!rpc->ending)
		post_waiting(rpc);
	spin_unlock_bh(&rpc->lock);
}

/* The server's side. */
static void requested(struct kverbs_ep *ep, const void *data, u32 len, const struct ib_wc *wc)
{
	struct perf_rpc *rpc = kverbs_ep_context(ep);
	struct kverbs_buf *buf = kverbs_pool_alloc(rpc->pool);
	struct perf_reply *reply;

	if (!buf || len > rpc->queue->bench->run->attr.msg_size) {
		rpc_failed(rpc, "a request too many or too long", -EBADMSG);
		if (buf)
			kverbs_pool_free(rpc->pool, buf);
		return;
	}
	memcpy(buf->va, data, len);
	kverbs_pool_for_hca(rpc->pool, buf, len);
	reply = buf->context;
	reply->sge.length = len;
	spin_lock_bh(&rpc->lock);
	list_add_tail(&reply->entry, &rpc->waiting);
	post_waiting(rpc);
	spin_unlock_bh(&rpc->lock);
}

static void established(struct kverbs_ep *ep, const void *data, u8 len)
{
	struct perf_rpc *rpc = kverbs_ep_context(ep);

	complete(&rpc->connected);
}

static const struct kverbs_ep_ops server_ops = {
	.connected = established,
	.received = requested,
	.disconnected = disconnected,
};

static void ep_attr(const struct perf_rpc *rpc, struct kverbs_cq *cq, struct kverbs_ep_attr *attr)
{
	const struct kverbs_perf_run *run = &rpc->queue->bench->run->attr;

	*attr = (struct kverbs_ep_attr){
		.pd = rpc->queue->bench->pd,
		.cq = cq,
		.send_depth = run->depth,
		.max_send_sge = 1,
		.recv_depth = run->depth,
		.recv_size = run->msg_size,
		.name = KBUILD_MODNAME,
	};
}

static void accept_client(struct kverbs_listener *listener, struct kverbs_ep *ep,
			  const void *data, u8 len)
{
	struct perf_rpc *rpc = kverbs_listener_context(listener);
	struct kverbs_ep_attr attr;

	if (rpc->server)
		return;
	ep_attr(rpc, rpc->server_cq, &attr);
	rpc->server = ep;
	rpc->accept_error = kverbs_ep_accept(ep, &attr, &server_ops, rpc);
	if (rpc->accept_error)
		rpc->server = NULL;
}

static const struct kverbs_listen_ops listen_ops = { .request = accept_client };

static int create_replies(struct perf_rpc *rpc)
{
	const struct kverbs_perf_run *run = &rpc->queue->bench->run->attr;
	struct kverbs_pool_attr attr = {
		.size = run->msg_size, .nr = 2 * run->depth, .name = KBUILD_MODNAME,
	};
	struct kverbs_pool *pool = kverbs_pool_create(rpc->queue->bench->pd, &attr);
	struct perf_reply *reply;
	struct kverbs_buf *buf;

	if (IS_ERR(pool))
		return PTR_ERR(pool);
	rpc->pool = pool;
	rpc->replies = kvcalloc(attr.nr, sizeof(*rpc->replies), GFP_KERNEL);
	if (!rpc->replies)
		return -ENOMEM;
	for (reply = rpc->replies; reply < rpc->replies + attr.nr; reply++) {
		buf = kverbs_pool_alloc(pool);
		buf->context = reply;
		reply->rpc = rpc;
		reply->buf = buf;
		reply->sge.addr = buf->dma;
		reply->sge.lkey = kverbs_pool_lkey(pool);
		reply->wr.opcode = IB_WR_SEND;
		reply->wr.sg_list = &reply->sge;
		reply->wr.num_sge = 1;
		reply->req.wr = &reply->wr;
		reply->req.done = reply_sent;
	}
	while (reply-- != rpc->replies)
		kverbs_pool_free(pool, reply->buf);
	return 0;
}

/* To the address that the path's GID stands for, and a port that nobody else has. */
static int connect_client(struct perf_rpc *rpc)
{
	const struct perf_run *run = rpc->queue->bench->run;
	struct sockaddr_storage addr = {};
	struct kverbs_ep_attr attr;
	struct kverbs_ep *ep;
	int ret;

	rdma_gid2ip((struct sockaddr *)&addr, &run->path.ah.grh.dgid);
	rpc->listener = kverbs_ep_listen(&init_net, (struct sockaddr *)&addr, &listen_ops, rpc);
	if (IS_ERR(rpc->listener))
		return PTR_ERR(rpc->listener);
	kverbs_listener_address(rpc->listener, &addr);
	ep = kverbs_ep_resolve(&init_net, (struct sockaddr *)&addr, &client_ops, rpc,
			       CONNECT_TIMEOUT);
	if (IS_ERR(ep))
		return PTR_ERR(ep);
	rpc->client = ep;
	if (kverbs_ep_device(ep) != run->ib)
		return -EADDRNOTAVAIL;
	ep_attr(rpc, rpc->queue->cq, &attr);
	ret = kverbs_ep_connect(ep, &attr, CONNECT_TIMEOUT);
	if (ret)
		return rpc->accept_error ?: ret;
	return wait_for_completion_timeout(&rpc->connected, CONNECT_TIMEOUT) ? 0 : -ETIMEDOUT;
}

/* If it fails, perf_rpc_destroy() takes down what there is. */
int perf_rpc_create(struct perf_queue *queue, struct kverbs_cq *server_cq)
{
	struct perf_rpc *rpc = kzalloc(sizeof(*rpc), GFP_KERNEL);
	int ret;

	if (!rpc) {
		kverbs_cq_destroy(server_cq);
		return -ENOMEM;
	}
	rpc->queue = queue;
	rpc->server_cq = server_cq;
	queue->rpc = rpc;
	init_completion(&rpc->connected);
	spin_lock_init(&rpc->lock);
	INIT_LIST_HEAD(&rpc->waiting);
	ret = create_replies(rpc);
	if (!ret)
		ret = connect_client(rpc);
	if (ret)
		return ret;
	queue->sq = kverbs_ep_sq(rpc->client);
	queue->qpn = kverbs_ep_qp(rpc->client)->qp_num;
	return 0;
}

/* Its end is no failure from now on. */
void perf_rpc_end(struct perf_rpc *rpc)
{
	spin_lock_bh(&rpc->lock);
	WRITE_ONCE(rpc->ending, true);
	spin_unlock_bh(&rpc->lock);
}

/* Replies that were never posted go with their pool. */
static void drop_waiting(struct perf_rpc *rpc)
{
	struct perf_reply *reply;

	list_for_each_entry(reply, &rpc->waiting, entry)
		kverbs_pool_free(rpc->pool, reply->buf);
}

void perf_rpc_destroy(struct perf_queue *queue)
{
	struct perf_rpc *rpc = queue->rpc;

	if (!rpc)
		return;
	perf_rpc_end(rpc);
	if (!IS_ERR_OR_NULL(rpc->listener))
		kverbs_ep_unlisten(rpc->listener);
	if (rpc->client)
		kverbs_ep_destroy(rpc->client);
	if (rpc->server)
		kverbs_ep_destroy(rpc->server);
	drop_waiting(rpc);
	kverbs_cq_destroy(rpc->server_cq);
	if (rpc->pool)
		kverbs_pool_destroy(rpc->pool);
	kvfree(rpc->replies);
	kfree(rpc);
	queue->rpc = NULL;
	queue->sq = NULL;
}
