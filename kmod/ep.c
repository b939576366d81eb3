// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * An endpoint: what it is made of, and its end.
 *
 * It ends in two steps. First it is known to be lost: the connection manager says so, a
 * receive is flushed, its owner asks. Then the QP goes to ERR, so that all in flight is
 * flushed, and the owner is told, once, in process context under the connection manager's lock
 * of handlers, so that it never hears of an end before the beginning or after the close.
 *
 * What its owner then does is the teardown: it waits for no peer, and for the HCA no longer than
 * the drain's time-out. A QP that is destroyed touches no buffer; once its CQ was polled
 * empty after that, nothing leads here.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/slab.h>

#include "compat.h"
#include "ep.h"
#include "path.h"

#define DRAIN_TIMEOUT	(10 * HZ)
#define MAX_RD_ATOMIC	16
#define RETRIES		7	/* of what was lost; 7 for no receive means for ever */

static void down_work(struct work_struct *work);

struct kverbs_ep *kverbs_ep_alloc(struct rdma_cm_id *id)
{
	struct kverbs_ep *ep = kzalloc(sizeof(*ep), GFP_KERNEL);

	if (!ep)
		return NULL;
	ep->id = id;
	ep->reason = KVERBS_EP_FINE;
	ep->responder_resources = MAX_RD_ATOMIC;
	ep->initiator_depth = MAX_RD_ATOMIC;
	INIT_WORK(&ep->down, down_work);
	init_completion(&ep->step);
	return ep;
}

/* Its device is still there. */
void kverbs_ep_put_pd(struct kverbs_ep *ep)
{
	if (ep->own_pd)
		ib_dealloc_pd(ep->pd);
	ep->own_pd = false;
}

void kverbs_ep_free(struct kverbs_ep *ep)
{
	kfree(ep);
}

/* Under the lock of handlers. */
void kverbs_ep_end(struct kverbs_ep *ep, int reason)
{
	rdma_disconnect(ep->id);
	if (!test_and_set_bit(KVERBS_EP_OVER, &ep->flags) && ep->ops->disconnected)
		ep->ops->disconnected(ep, reason);
}

static void down_work(struct work_struct *work)
{
	struct kverbs_ep *ep = container_of(work, struct kverbs_ep, down);

	rdma_lock_handler(ep->id);
	kverbs_ep_end(ep, READ_ONCE(ep->reason));
	rdma_unlock_handler(ep->id);
}

/* Any context. Before it is live whoever makes it so finds out. */
void kverbs_ep_lost(struct kverbs_ep *ep, int reason)
{
	/* ORDER: a full barrier, as in kverbs_ep_go_live(): one of the two sees both */
	if (cmpxchg(&ep->reason, KVERBS_EP_FINE, reason) != KVERBS_EP_FINE)
		return;
	if (test_bit(KVERBS_EP_LIVE, &ep->flags))
		queue_work(kverbs_wq, &ep->down);
}

void kverbs_ep_go_live(struct kverbs_ep *ep)
{
	set_bit(KVERBS_EP_LIVE, &ep->flags);
	/* ORDER: pairs with the barrier in kverbs_ep_lost() */
	smp_mb__after_atomic();
	if (READ_ONCE(ep->reason) != KVERBS_EP_FINE)
		queue_work(kverbs_wq, &ep->down);
}

void kverbs_ep_disconnect(struct kverbs_ep *ep)
{
	kverbs_ep_lost(ep, 0);
}
EXPORT_SYMBOL_GPL(kverbs_ep_disconnect);

/* Maybe with a lock of the driver held. */
static void qp_event(struct ib_event *event, void *context)
{
	struct kverbs_ep *ep = context;

	switch (event->event) {
	case IB_EVENT_COMM_EST:
		/* A message was quicker than the connection manager. */
		rdma_notify(ep->id, event->event);
		break;
	case IB_EVENT_QP_FATAL:
	case IB_EVENT_QP_REQ_ERR:
	case IB_EVENT_QP_ACCESS_ERR:
	case IB_EVENT_QP_LAST_WQE_REACHED:	/* with an SRQ: no receive is flushed */
		kverbs_ep_lost(ep, -EIO);
		break;
	default:
		break;
	}
}

static int check_attr(const struct kverbs_ep *ep, const struct kverbs_ep_attr *attr)
{
	const char *wrong = NULL;

	if (!attr->send_depth)
		wrong = "send_depth is 0";
	else if (!attr->max_send_sge)
		wrong = "max_send_sge is 0";
	else if (!attr->srq && !attr->recv_depth)
		wrong = "recv_depth is 0 and there is no SRQ";
	else if (attr->srq && attr->srq->cq != attr->cq)
		wrong = "cq is not that of the SRQ";
	else if (attr->srq && attr->srq->ib->pd != attr->pd)
		wrong = "pd is not that of the SRQ";
	if (!wrong)
		return 0;
	pr_warn("%s: endpoint of %s: %s\n", dev_name(&ep->id->device->dev), attr->name ?: "?",
		wrong);
	return -EINVAL;
}

static u32 ring_size(const struct kverbs_ep_attr *attr)
{
	return attr->srq ? 0 : kverbs_ring_size(attr->recv_depth, attr->recv_batch);
}

static int get_pd(struct kverbs_ep *ep, const struct kverbs_ep_attr *attr)
{
	struct ib_pd *pd = attr->pd ?: ib_alloc_pd(ep->id->device, 0);

	if (IS_ERR(pd))
		return PTR_ERR(pd);
	ep->pd = pd;
	ep->own_pd = !attr->pd;
	return 0;
}

static int get_cq(struct kverbs_ep *ep, const struct kverbs_ep_attr *attr)
{
	struct kverbs_cq_attr cq_attr = {
		.nr_cqe = attr->send_depth + ring_size(attr),
		.mode = attr->mode,
		.comp_vector = -1,
		.cpu = -1,
		.max_cpu_percent = 100,
		.name = attr->name,
	};
	struct kverbs_cq *cq = attr->cq ?: kverbs_cq_create(ep->id->device, &cq_attr);

	if (IS_ERR(cq))
		return PTR_ERR(cq);
	ep->cq = cq;
	ep->own_cq = !attr->cq;
	return 0;
}

static int try_qp(struct kverbs_ep *ep, const struct kverbs_ep_attr *attr, u32 max_inline,
		  struct ib_qp_init_attr *init)
{
	*init = (struct ib_qp_init_attr){
		.event_handler = qp_event,
		.qp_context = ep,
		.send_cq = kverbs_cq_ib(ep->cq),
		.recv_cq = kverbs_cq_ib(ep->cq),
		.srq = attr->srq ? attr->srq->ib : NULL,
		.cap.max_send_wr = attr->send_depth,
		.cap.max_send_sge = attr->max_send_sge,
		.cap.max_inline_data = max_inline,
		.cap.max_recv_wr = ring_size(attr),
		.cap.max_recv_sge = attr->srq ? 0 : 1,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
	};
	return rdma_create_qp(ep->id, ep->pd, init);
}

/*
 * What a device can send inline no verb tells. Some grant less than was asked for, others
 * refuse the whole QP: there less is asked for, down to nothing.
 */
static int create_qp(struct kverbs_ep *ep, const struct kverbs_ep_attr *attr)
{
	struct ib_qp_init_attr init;
	struct kverbs_sq_attr sq_attr = { .init = &init, .cq = ep->cq, .name = attr->name };
	u32 max_inline = attr->max_inline;
	struct kverbs_sq *sq;
	int err;

	err = try_qp(ep, attr, max_inline, &init);
	while ((err == -EINVAL || err == -ENOMEM) && max_inline) {
		max_inline /= 2;
		err = try_qp(ep, attr, max_inline, &init);
	}
	if (err)
		return err;
	ep->qp = ep->id->qp;
	/* A device may grant more, for which the CQ need have no room: it is not used. */
	init.cap.max_send_wr = min(init.cap.max_send_wr, attr->send_depth);
	init.cap.max_recv_wr = ring_size(attr);
	sq = kverbs_sq_create(ep->qp, &sq_attr);
	if (IS_ERR(sq))
		return PTR_ERR(sq);
	sq->ep = ep;
	ep->sq = sq;
	return 0;
}

static int get_receives(struct kverbs_ep *ep, const struct kverbs_ep_attr *attr)
{
	int err;

	if (attr->srq) {
		ep->srq = attr->srq;
		kverbs_srq_join(ep->srq, ep);
		return 0;
	}
	ep->ring.ep = ep;
	err = kverbs_ring_create(&ep->ring, ep->pd, attr->recv_depth, attr->recv_size,
				 attr->recv_batch, attr->name);
	return err ?: kverbs_ring_fill(&ep->ring);
}

/* If it fails, kverbs_ep_take_down() takes down what there is. */
static int build(struct kverbs_ep *ep, const struct kverbs_ep_attr *attr)
{
	int err;

	err = check_attr(ep, attr);
	if (!err)
		err = get_pd(ep, attr);
	if (!err)
		err = get_cq(ep, attr);
	if (!err)
		err = create_qp(ep, attr);
	return err ?: get_receives(ep, attr);
}

static void init_param(const struct kverbs_ep *ep, const struct kverbs_ep_attr *attr,
		       struct rdma_conn_param *param)
{
	const struct ib_device_attr *dev = &ep->id->device->attrs;

	*param = (struct rdma_conn_param){
		.private_data = attr->data,
		.private_data_len = attr->data_len,
		.responder_resources = min_t(u32, ep->responder_resources, dev->max_qp_rd_atom),
		.initiator_depth = min_t(u32, ep->initiator_depth, dev->max_qp_init_rd_atom),
		.flow_control = 1,
		.retry_count = RETRIES,
		.rnr_retry_count = RETRIES,
	};
}

int kverbs_ep_connect(struct kverbs_ep *ep, const struct kverbs_ep_attr *attr,
		      unsigned long timeout)
{
	struct rdma_conn_param param;
	int err;

	might_sleep();
	if (ep->qp || test_bit(KVERBS_EP_CLOSED, &ep->flags))
		return -EINVAL;
	err = build(ep, attr);
	if (err)
		return err;
	init_param(ep, attr, &param);
	reinit_completion(&ep->step);
	if (READ_ONCE(ep->gone))
		return -ENODEV;
	err = rdma_connect(ep->id, &param);
	if (err)
		return err;
	if (wait_for_completion_timeout(&ep->step, timeout))
		return ep->error;
	/* Should it come about after all, nobody is told. */
	rdma_lock_handler(ep->id);
	err = completion_done(&ep->step) ? ep->error : -ETIMEDOUT;
	if (err)
		set_bit(KVERBS_EP_OVER, &ep->flags);
	rdma_unlock_handler(ep->id);
	return err;
}
EXPORT_SYMBOL_GPL(kverbs_ep_connect);

int kverbs_ep_accept(struct kverbs_ep *ep, const struct kverbs_ep_attr *attr,
		     const struct kverbs_ep_ops *ops, void *context)
{
	struct rdma_conn_param param;
	int err;

	might_sleep();
	if (ep->qp)
		return -EINVAL;
	ep->ops = ops;
	ep->context = context;
	err = build(ep, attr);
	if (err)
		return err;
	init_param(ep, attr, &param);
	err = rdma_accept(ep->id, &param);
	if (err)
		return err;
	kverbs_ep_go_live(ep);
	return 0;
}
EXPORT_SYMBOL_GPL(kverbs_ep_accept);

/* The QP and all that completes on it. */
static void stop(struct kverbs_ep *ep)
{
	if (test_bit(KVERBS_EP_LIVE, &ep->flags))
		rdma_disconnect(ep->id);
	if (ep->sq && kverbs_sq_drain(ep->sq, DRAIN_TIMEOUT))
		pr_warn("%s: endpoint: its QP is destroyed with work requests in flight\n",
			dev_name(&ep->id->device->dev));
	/* What has come is delivered; after this nothing is posted again. */
	if (ep->srq) {
		kverbs_cq_sync(ep->cq);
		kverbs_srq_leave(ep->srq, ep);
	} else {
		WRITE_ONCE(ep->ring.closed, true);
		kverbs_cq_sync(ep->cq);
	}
	rdma_destroy_qp(ep->id);
	if (ep->sq)
		kverbs_sq_destroy(ep->sq);
	ep->sq = NULL;
	ep->qp = NULL;
}

/* Under the lock of handlers, or after KVERBS_EP_OVER was set under it. */
void kverbs_ep_take_down(struct kverbs_ep *ep)
{
	set_bit(KVERBS_EP_CLOSED, &ep->flags);
	if (ep->qp)
		stop(ep);
	kverbs_ring_destroy(&ep->ring);
	if (ep->own_cq)
		kverbs_cq_destroy(ep->cq);
	ep->own_cq = false;
}

void kverbs_ep_close(struct kverbs_ep *ep)
{
	might_sleep();
	rdma_lock_handler(ep->id);
	set_bit(KVERBS_EP_OVER, &ep->flags);
	rdma_unlock_handler(ep->id);
	if (!test_bit(KVERBS_EP_CLOSED, &ep->flags))
		kverbs_ep_take_down(ep);
	cancel_work_sync(&ep->down);
}
EXPORT_SYMBOL_GPL(kverbs_ep_close);

void kverbs_ep_destroy(struct kverbs_ep *ep)
{
	kverbs_ep_close(ep);
	kverbs_ep_put_pd(ep);
	rdma_destroy_id(ep->id);
	kverbs_ep_free(ep);
}
EXPORT_SYMBOL_GPL(kverbs_ep_destroy);

struct kverbs_sq *kverbs_ep_sq(const struct kverbs_ep *ep)
{
	return ep->sq;
}
EXPORT_SYMBOL_GPL(kverbs_ep_sq);

struct ib_qp *kverbs_ep_qp(const struct kverbs_ep *ep)
{
	return ep->qp;
}
EXPORT_SYMBOL_GPL(kverbs_ep_qp);

struct ib_device *kverbs_ep_device(const struct kverbs_ep *ep)
{
	return ep->id->device;
}
EXPORT_SYMBOL_GPL(kverbs_ep_device);

struct ib_pd *kverbs_ep_pd(const struct kverbs_ep *ep)
{
	return ep->pd;
}
EXPORT_SYMBOL_GPL(kverbs_ep_pd);

void *kverbs_ep_context(const struct kverbs_ep *ep)
{
	return ep->context;
}
EXPORT_SYMBOL_GPL(kverbs_ep_context);

void kverbs_ep_query(const struct kverbs_ep *ep, struct kverbs_ep_stats *stats)
{
	const struct kverbs_ring *ring = ep->srq ? &ep->srq->ring : &ep->ring;

	*stats = ring->stats;
	stats->batch = ring->batch;
}
EXPORT_SYMBOL_GPL(kverbs_ep_query);
