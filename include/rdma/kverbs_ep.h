/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * kverbs_ep: a connection, by the RDMA connection manager. It has an RC QP, a &struct
 * kverbs_sq to send with, and receives that are posted again, in chains, as messages come.
 *
 * Order of a life, on the side that connects: kverbs_ep_resolve(), kverbs_ep_connect(),
 * use, kverbs_ep_close(), kverbs_ep_destroy(). On the side that listens an endpoint is born in
 * &kverbs_listen_ops.request, where kverbs_ep_accept() takes the place of the first two.
 *
 * The device is known from the start of an endpoint and stays until kverbs_ep_destroy(): what
 * its owner creates for it (a PD, a CQ, pools, an SRQ) is created after that start and
 * destroyed between kverbs_ep_close() and kverbs_ep_destroy().
 *
 * A device that leaves ends its connections: their owners are told by @disconnected, with
 * -ENODEV, and the removal waits until they have destroyed their endpoints.
 */
#ifndef _RDMA_KVERBS_EP_H
#define _RDMA_KVERBS_EP_H

#include <linux/socket.h>
#include <net/net_namespace.h>
#include <rdma/kverbs.h>

struct kverbs_ep;
struct kverbs_listener;
struct kverbs_srq;

/**
 * struct kverbs_ep_ops - what an endpoint tells its owner
 * @connected: the connection is there. @data are @len bytes of private data of the peer,
 *	which may be followed by zeros: the connection manager has fields of fixed size. On
 *	the side that accepts, the first message may come before. Process context, may
 *	sleep, but not destroy the endpoint. Optional
 * @received: a message has come: @len bytes in @data, which are the owner's until it returns. @wc
 *	tells the rest, such as immediate data; for an RDMA write with immediate data @len
 *	is 0, and @wc->byte_len what was written. The context of the CQ, bottom halves off:
 *	must not sleep, may post
 * @disconnected: the connection has ended. @reason is -ECONNRESET if the peer or the
 *	connection manager ended it, -EIO if the QP failed, -ENODEV if the device is
 *	leaving, 0 after kverbs_ep_disconnect(). Process context, may sleep, but neither close nor
 *	destroy the endpoint: let a work item or a thread of yours do that. Called once
 *	for each endpoint that was connected or accepted, unless it is closed
 *	before
 */
struct kverbs_ep_ops {
	void (*connected)(struct kverbs_ep *ep, const void *data, u8 len);
	void (*received)(struct kverbs_ep *ep, const void *data, u32 len, const struct ib_wc *wc);
	void (*disconnected)(struct kverbs_ep *ep, int reason);
};

/**
 * struct kverbs_ep_attr - what a connection should be
 * @pd: protection domain; NULL for one of its own
 * @cq: CQ for sends and receives, may be shared; NULL for one of its own
 * @mode: how an own CQ is served: KVERBS_CQ_INTERRUPT, KVERBS_CQ_POLL or
 *	KVERBS_CQ_ADAPTIVE
 * @srq: where it receives, may be shared; its CQ must be @cq. NULL for a ring of its own
 * @send_depth: work requests in flight
 * @max_send_sge: SGEs of each
 * @max_inline: bytes to send inline, if the device can
 * @recv_depth: messages of the peer that there is always room for; without @srq
 * @recv_size: bytes of a message at most; without @srq
 * @recv_batch: receives that are posted again together, 0 for a quarter of @recv_depth,
 *	1 for one by one; without @srq
 * @data: private data for the peer
 * @data_len: their bytes, at most 56 to connect and 196 to accept
 * @name: name of the consumer, for people; KBUILD_MODNAME serves
 */
struct kverbs_ep_attr {
	struct ib_pd *pd;
	struct kverbs_cq *cq;
	enum kverbs_cq_mode mode;
	struct kverbs_srq *srq;
	u32 send_depth;
	u32 max_send_sge;
	u32 max_inline;
	u32 recv_depth;
	u32 recv_size;
	u32 recv_batch;
	const void *data;
	u8 data_len;
	const char *name;
};

/**
 * kverbs_ep_resolve() - begin an endpoint that will connect
 * @net: network namespace
 * @addr: the peer's address and port
 * @ops: what it tells its owner; stays
 * @context: for kverbs_ep_context()
 * @timeout: jiffies for each of the two steps, to find the device and the route
 *
 * Context: process context, may sleep.
 * Return: the endpoint, whose device is known, or ERR_PTR: -ETIMEDOUT, -EHOSTUNREACH or
 *	another error of the connection manager if there is no way to @addr; -ENOMEM.
 */
struct kverbs_ep *kverbs_ep_resolve(struct net *net, const struct sockaddr *addr,
				    const struct kverbs_ep_ops *ops, void *context,
				    unsigned long timeout);

/**
 * kverbs_ep_connect() - connect an endpoint
 * @ep: from kverbs_ep_resolve(), not connected before
 * @attr: what the connection should be
 * @timeout: jiffies to wait at most
 *
 * @connected was called when this returns 0; @disconnected may have been, too.
 *
 * Context: process context, may sleep.
 * Return: 0; -ECONNREFUSED if the peer rejected it (see kverbs_ep_refusal()) or does not
 *	listen; -ETIMEDOUT; -ENODEV if the device is leaving; -EINVAL for an attribute out of
 *	range; -ENOSPC if the CQ could overflow; -ENOMEM; or what the driver says. Then it
 *	can only be destroyed.
 */
int kverbs_ep_connect(struct kverbs_ep *ep, const struct kverbs_ep_attr *attr,
		      unsigned long timeout);

/**
 * kverbs_ep_refusal() - what the peer said when it rejected a connection
 * @ep: whose kverbs_ep_connect() returned -ECONNREFUSED
 * @len: its bytes, which may be followed by zeros
 *
 * Context: any.
 * Return: the data, until the endpoint is destroyed.
 */
const void *kverbs_ep_refusal(const struct kverbs_ep *ep, u8 *len);

/**
 * struct kverbs_listen_ops - what a listener tells its owner
 * @request: a peer wants to connect; @data are @len bytes of its private data, which may
 *	be followed by zeros. Answers with kverbs_ep_accept() or kverbs_ep_reject() before it
 *	returns; without an answer, and if kverbs_ep_accept() fails, the peer is rejected
 *	and @ep gone. Process context, may sleep. One at a time for each device
 */
struct kverbs_listen_ops {
	void (*request)(struct kverbs_listener *listener, struct kverbs_ep *ep, const void *data,
			u8 len);
};

/**
 * kverbs_ep_listen() - listen for connections
 * @net: network namespace
 * @addr: address and port; an address of zeros for all devices, also those that come later
 * @ops: what it tells its owner; stays
 * @context: for kverbs_listener_context()
 *
 * If the device of @addr leaves, the listener goes deaf and is still to be destroyed.
 *
 * Context: process context, may sleep.
 * Return: the listener, or ERR_PTR: -EADDRINUSE, -EADDRNOTAVAIL or another error of the
 *	connection manager; -ENOMEM.
 */
struct kverbs_listener *kverbs_ep_listen(struct net *net, const struct sockaddr *addr,
					 const struct kverbs_listen_ops *ops, void *context);

/**
 * kverbs_listener_context() - what its owner gave to kverbs_ep_listen()
 * @listener: the listener
 *
 * Context: any.
 */
void *kverbs_listener_context(const struct kverbs_listener *listener);

/**
 * kverbs_listener_address() - where it listens
 * @listener: the listener
 * @addr: filled in; tells the port that was chosen where none was given
 *
 * Context: process context. Not once its device has left.
 */
void kverbs_listener_address(const struct kverbs_listener *listener,
			     struct sockaddr_storage *addr);

/**
 * kverbs_ep_unlisten() - listen no more
 * @listener: the listener
 *
 * Endpoints that it gave birth to stay. No request() runs when this returns.
 *
 * Context: process context, may sleep. Not from a callback.
 */
void kverbs_ep_unlisten(struct kverbs_listener *listener);

/**
 * kverbs_ep_accept() - accept a connection
 * @ep: from &kverbs_listen_ops.request, in which it is called
 * @attr: what the connection should be
 * @ops: what it tells its owner; stays
 * @context: for kverbs_ep_context()
 *
 * Context: process context, may sleep.
 * Return: 0, and the endpoint is the caller's to destroy; or as kverbs_ep_connect().
 */
int kverbs_ep_accept(struct kverbs_ep *ep, const struct kverbs_ep_attr *attr,
		     const struct kverbs_ep_ops *ops, void *context);

/**
 * kverbs_ep_reject() - reject a connection
 * @ep: from &kverbs_listen_ops.request, in which it is called; it is gone afterwards
 * @data: private data for the peer
 * @len: their bytes, at most 148
 *
 * Context: process context, may sleep.
 * Return: 0, or what the connection manager says; the peer is rejected in any case.
 */
int kverbs_ep_reject(struct kverbs_ep *ep, const void *data, u8 len);

/**
 * kverbs_ep_disconnect() - end a connection
 * @ep: an endpoint that was connected or accepted, and not closed
 *
 * What is in flight is flushed, and @disconnected called. For whoever finds out that the
 * connection is of no use any more, a send that ended with an error, say.
 *
 * Context: any.
 */
void kverbs_ep_disconnect(struct kverbs_ep *ep);

/**
 * kverbs_ep_close() - take a connection down, but keep its device
 * @ep: an endpoint, in any state
 *
 * Disconnects, drains the send queue, destroys the QP and what the endpoint created for
 * itself, but for its PD, on which its owner may have pools to destroy. Every group that was
 * posted has had its done() when this returns, no callback is running, and none will.
 *
 * Context: process context, may sleep. Not from a callback.
 */
void kverbs_ep_close(struct kverbs_ep *ep);

/**
 * kverbs_ep_destroy() - destroy an endpoint
 * @ep: an endpoint, in any state; closed first if it was not
 *
 * Context: process context, may sleep. Not from a callback.
 */
void kverbs_ep_destroy(struct kverbs_ep *ep);

/**
 * kverbs_ep_sq() - its send queue
 * @ep: an endpoint that was connected or accepted, and not closed
 *
 * Context: any.
 */
struct kverbs_sq *kverbs_ep_sq(const struct kverbs_ep *ep);

/**
 * kverbs_ep_qp() - its QP
 * @ep: an endpoint that was connected or accepted, and not closed
 *
 * Posts to it go through kverbs_ep_sq() only.
 *
 * Context: any.
 */
struct ib_qp *kverbs_ep_qp(const struct kverbs_ep *ep);

/**
 * kverbs_ep_device() - its device
 * @ep: the endpoint
 *
 * Context: any.
 */
struct ib_device *kverbs_ep_device(const struct kverbs_ep *ep);

/**
 * kverbs_ep_pd() - its protection domain
 * @ep: an endpoint that was connected or accepted, and not closed
 *
 * Context: any.
 */
struct ib_pd *kverbs_ep_pd(const struct kverbs_ep *ep);

/**
 * kverbs_ep_context() - what its owner gave with its operations
 * @ep: the endpoint
 *
 * Context: any.
 */
void *kverbs_ep_context(const struct kverbs_ep *ep);

/**
 * struct kverbs_ep_stats - what an endpoint's receives did
 * @received: messages that came
 * @posts: calls of ib_post_recv() or ib_post_srq_recv()
 * @posted: receives that they posted
 * @refused: calls that did not post all of what they were given
 * @batch: receives that are posted together; 1 once a driver has refused a chain
 */
struct kverbs_ep_stats {
	u64 received;
	u64 posts;
	u64 posted;
	u64 refused;
	u32 batch;
};

/**
 * kverbs_ep_query() - what the receives of an endpoint did
 * @ep: an endpoint that was connected or accepted, and not closed; with an SRQ, the
 *	figures are those of the SRQ
 * @stats: filled in
 *
 * Context: any.
 */
void kverbs_ep_query(const struct kverbs_ep *ep, struct kverbs_ep_stats *stats);

/**
 * struct kverbs_srq_attr - what a shared receive queue should be
 * @depth: messages that there is always room for, of all endpoints together
 * @size: bytes of a message at most
 * @batch: receives that are posted again together, 0 for a quarter of @depth, 1 for one
 *	by one
 * @name: name of the consumer, for people; KBUILD_MODNAME serves
 */
struct kverbs_srq_attr {
	u32 depth;
	u32 size;
	u32 batch;
	const char *name;
};

/**
 * kverbs_srq_create() - create a receive queue that endpoints share
 * @pd: their protection domain
 * @cq: their CQ, on which it claims room for all its receives
 * @attr: what it should be
 *
 * Context: process context, may sleep.
 * Return: the SRQ, or ERR_PTR: -EINVAL for an attribute out of range (the log names it and
 *	the limit), -ENOSPC if the CQ could overflow, -ENOMEM, or what the driver says.
 */
struct kverbs_srq *kverbs_srq_create(struct ib_pd *pd, struct kverbs_cq *cq,
				     const struct kverbs_srq_attr *attr);

/**
 * kverbs_srq_destroy() - destroy a shared receive queue
 * @srq: the SRQ; every endpoint on it has been closed
 *
 * Context: process context, may sleep.
 */
void kverbs_srq_destroy(struct kverbs_srq *srq);

#endif /* _RDMA_KVERBS_EP_H */
