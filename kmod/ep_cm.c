// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The connection manager's events, and who listens.
 *
 * It calls the handler of an id under that id's lock of handlers. An id is destroyed
 * outside of it, or by the connection manager itself if its handler says so, which only a
 * rejected request does here. A device that leaves has all its ids told, and then waits
 * until they are destroyed.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/slab.h>

#include "compat.h"
#include "ep.h"
#include "path.h"

#define BACKLOG	128

struct kverbs_listener {
	struct rdma_cm_id *id;		/* NULL once its device has left */
	const struct kverbs_listen_ops *ops;
	void *context;
	struct work_struct deaf;
};

/* A step of who resolves or connects has ended. */
static void end_step(struct kverbs_ep *ep, int error)
{
	ep->error = error;
	complete(&ep->step);
}

static void refused(struct kverbs_ep *ep, const struct rdma_conn_param *param)
{
	ep->refusal_len = min_t(u32, param->private_data_len, sizeof(ep->refusal));
	if (param->private_data)
		memcpy(ep->refusal, param->private_data, ep->refusal_len);
	else
		ep->refusal_len = 0;
}

static void established(struct kverbs_ep *ep, const struct rdma_conn_param *param)
{
	if (test_bit(KVERBS_EP_OVER, &ep->flags))
		return;
	if (ep->ops->connected)
		ep->ops->connected(ep, param->private_data, param->private_data_len);
	if (!test_bit(KVERBS_EP_LIVE, &ep->flags)) {
		kverbs_ep_go_live(ep);
		end_step(ep, 0);
	}
}

/* The end of what is live, and otherwise of the step that somebody waits for. */
static void ended(struct kverbs_ep *ep, int reason, int error)
{
	if (test_bit(KVERBS_EP_LIVE, &ep->flags))
		kverbs_ep_end(ep, reason);
	else
		end_step(ep, error);
}

int kverbs_ep_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct kverbs_ep *ep = id->context;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		end_step(ep, 0);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
		end_step(ep, event->status ?: -EHOSTUNREACH);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		established(ep, &event->param.conn);
		break;
	case RDMA_CM_EVENT_REJECTED:
		if (!test_bit(KVERBS_EP_LIVE, &ep->flags))
			refused(ep, &event->param.conn);
		ended(ep, -ECONNRESET, -ECONNREFUSED);
		break;
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_CONNECT_ERROR:
		ended(ep, -ECONNRESET, event->status ?: -EHOSTUNREACH);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_ADDR_CHANGE:
		ended(ep, -ECONNRESET, -ECONNRESET);
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		WRITE_ONCE(ep->gone, true);
		ended(ep, -ENODEV, -ENODEV);
		break;
	default:
		break;
	}
	return 0;
}

static int next_step(struct kverbs_ep *ep, int err, unsigned long timeout)
{
	if (err)
		return err;
	if (!wait_for_completion_timeout(&ep->step, timeout))
		return -ETIMEDOUT;
	return ep->error;
}

struct kverbs_ep *kverbs_ep_resolve(struct net *net, const struct sockaddr *addr,
				    const struct kverbs_ep_ops *ops, void *context,
				    unsigned long timeout)
{
	unsigned int ms = jiffies_to_msecs(timeout);
	struct rdma_cm_id *id;
	struct kverbs_ep *ep;
	int err;

	might_sleep();
	ep = kverbs_ep_alloc(NULL);
	if (!ep)
		return ERR_PTR(-ENOMEM);
	ep->ops = ops;
	ep->context = context;
	id = rdma_create_id(net, kverbs_ep_event, ep, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id)) {
		kverbs_ep_free(ep);
		return ERR_CAST(id);
	}
	ep->id = id;
	err = next_step(ep, rdma_resolve_addr(id, NULL, (struct sockaddr *)addr, ms), timeout);
	if (!err) {
		reinit_completion(&ep->step);
		err = READ_ONCE(ep->gone) ? -ENODEV :
		      next_step(ep, rdma_resolve_route(id, ms), timeout);
	}
	if (!err)
		return ep;
	rdma_destroy_id(id);
	kverbs_ep_free(ep);
	return ERR_PTR(err);
}
EXPORT_SYMBOL_GPL(kverbs_ep_resolve);

const void *kverbs_ep_refusal(const struct kverbs_ep *ep, u8 *len)
{
	*len = ep->refusal_len;
	return ep->refusal;
}
EXPORT_SYMBOL_GPL(kverbs_ep_refusal);

/*
 * A peer wants to connect. The id is new, and has its listener's context and handler.
 * Whoever returns an error here has it rejected, if it was not, and destroyed.
 */
static int requested(struct kverbs_listener *listener, struct rdma_cm_id *id,
		     const struct rdma_conn_param *param)
{
	struct kverbs_ep *ep = kverbs_ep_alloc(id);

	if (!ep)
		return -ENOMEM;
	ep->responder_resources = param->responder_resources;
	ep->initiator_depth = param->initiator_depth;
	id->context = ep;
	id->event_handler = kverbs_ep_event;
	listener->ops->request(listener, ep, param->private_data, param->private_data_len);
	if (test_bit(KVERBS_EP_LIVE, &ep->flags))
		return 0;
	kverbs_ep_take_down(ep);
	kverbs_ep_put_pd(ep);
	kverbs_ep_free(ep);
	return -ECONNREFUSED;
}

int kverbs_ep_reject(struct kverbs_ep *ep, const void *data, u8 len)
{
	return rdma_reject(ep->id, data, len, IB_CM_REJ_CONSUMER_DEFINED);
}
EXPORT_SYMBOL_GPL(kverbs_ep_reject);

static int listen_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct kverbs_listener *listener = id->context;

	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		return requested(listener, id, &event->param.conn);
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		queue_work(kverbs_wq, &listener->deaf);
		break;
	default:
		break;
	}
	return 0;
}

/* Its device is leaving, and waits for this. */
static void go_deaf(struct work_struct *work)
{
	struct kverbs_listener *listener = container_of(work, struct kverbs_listener, deaf);
	struct rdma_cm_id *id = xchg(&listener->id, NULL);

	if (id)
		rdma_destroy_id(id);
}

struct kverbs_listener *kverbs_ep_listen(struct net *net, const struct sockaddr *addr,
					 const struct kverbs_listen_ops *ops, void *context)
{
	struct kverbs_listener *listener;
	struct rdma_cm_id *id;
	int err;

	might_sleep();
	listener = kzalloc(sizeof(*listener), GFP_KERNEL);
	if (!listener)
		return ERR_PTR(-ENOMEM);
	listener->ops = ops;
	listener->context = context;
	INIT_WORK(&listener->deaf, go_deaf);
	id = rdma_create_id(net, listen_event, listener, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id)) {
		kfree(listener);
		return ERR_CAST(id);
	}
	listener->id = id;
	err = rdma_bind_addr(id, (struct sockaddr *)addr);
	if (!err)
		err = rdma_listen(id, BACKLOG);
	if (!err)
		return listener;
	kverbs_ep_unlisten(listener);
	return ERR_PTR(err);
}
EXPORT_SYMBOL_GPL(kverbs_ep_listen);

void kverbs_ep_unlisten(struct kverbs_listener *listener)
{
	struct rdma_cm_id *id = xchg(&listener->id, NULL);

	might_sleep();
	if (id)
		rdma_destroy_id(id);
	/* Without an id nobody queues it any more. */
	cancel_work_sync(&listener->deaf);
	kfree(listener);
}
EXPORT_SYMBOL_GPL(kverbs_ep_unlisten);

void *kverbs_listener_context(const struct kverbs_listener *listener)
{
	return listener->context;
}
EXPORT_SYMBOL_GPL(kverbs_listener_context);

void kverbs_listener_address(const struct kverbs_listener *listener,
			     struct sockaddr_storage *addr)
{
	*addr = listener->id->route.addr.src_addr;
}
EXPORT_SYMBOL_GPL(kverbs_listener_address);
