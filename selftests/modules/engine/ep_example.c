// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * An echo client and server in the least that they can be: the example of
 * Documentation/endpoints.rst, run by the case ep_example.
 */
#include <linux/completion.h>
#include <linux/slab.h>
#include <rdma/kverbs_ep.h>
#include <rdma/kverbs_pool.h>

#include "ep_example.h"

#define ECHO_SIZE	256	/* bytes of a message at most */
#define ECHO_DEPTH	8	/* messages on their way */

/* Of a connection, the server's side or the client's. */
struct echo {
	struct kverbs_ep *ep;
	struct kverbs_pool *pool;
	struct completion answered;
	char answer[ECHO_SIZE];
};

/* A message that is being sent; it lives until its done(). */
struct echo_message {
	struct kverbs_req req;
	struct ib_send_wr wr;
	struct ib_sge sge;
	struct kverbs_pool *pool;
	struct kverbs_buf *buf;
};

static void echo_sent(struct kverbs_req *req, enum ib_wc_status status)
{
	struct echo_message *message = container_of(req, struct echo_message, req);

	kverbs_pool_free(message->pool, message->buf);
	kfree(message);
}

/* Any context. */
static int echo_send(struct echo *echo, const void *data, u32 len)
{
	struct echo_message *message = kzalloc(sizeof(*message), GFP_ATOMIC);
	struct kverbs_buf *buf = kverbs_pool_alloc(echo->pool);
	int err = -ENOMEM;

	if (message && buf) {
		memcpy(buf->va, data, len);
		kverbs_pool_for_hca(echo->pool, buf, len);
		message->pool = echo->pool;
		message->buf = buf;
		message->sge.addr = buf->dma;
		message->sge.length = len;
		message->sge.lkey = kverbs_pool_lkey(echo->pool);
		message->wr.opcode = IB_WR_SEND;
		message->wr.sg_list = &message->sge;
		message->wr.num_sge = 1;
		message->req.wr = &message->wr;
		message->req.done = echo_sent;
		err = kverbs_post(kverbs_ep_sq(echo->ep), &message->req, 0);
		if (!err)
			return 0;
	}
	if (buf)
		kverbs_pool_free(echo->pool, buf);
	kfree(message);
	return err;
}

static void server_received(struct kverbs_ep *ep, const void *data, u32 len,
			    const struct ib_wc *wc)
{
	/* What cannot be answered: the client is to know. */
	if (echo_send(kverbs_ep_context(ep), data, len))
		kverbs_ep_disconnect(ep);
}

static void client_received(struct kverbs_ep *ep, const void *data, u32 len,
			    const struct ib_wc *wc)
{
	struct echo *echo = kverbs_ep_context(ep);

	memcpy(echo->answer, data, min_t(u32, len, ECHO_SIZE - 1));
	complete(&echo->answered);
}

static const struct kverbs_ep_ops server_ops = { .received = server_received };
static const struct kverbs_ep_ops client_ops = { .received = client_received };

static const struct kverbs_ep_attr echo_attr = {
	.mode = KVERBS_CQ_INTERRUPT,
	.send_depth = ECHO_DEPTH,
	.max_send_sge = 1,
	.recv_depth = ECHO_DEPTH,
	.recv_size = ECHO_SIZE,
	.name = KBUILD_MODNAME,
};

static const struct kverbs_pool_attr pool_attr = {
	.size = ECHO_SIZE,
	.nr = ECHO_DEPTH,
	.name = KBUILD_MODNAME,
};

/* A client wants to connect: its messages are sent back. */
static void server_request(struct kverbs_listener *listener, struct kverbs_ep *ep,
			   const void *data, u8 len)
{
	struct echo *echo = kverbs_listener_context(listener);
	struct kverbs_ep_attr attr = echo_attr;

	if (echo->ep)
		return;		/* without an answer it is rejected */
	/* The first message may come at once: what it needs is there before. */
	attr.pd = ib_alloc_pd(kverbs_ep_device(ep), 0);
	if (IS_ERR(attr.pd))
		return;
	echo->pool = kverbs_pool_create(attr.pd, &pool_attr);
	if (IS_ERR(echo->pool))
		goto free_pd;
	echo->ep = ep;
	if (!kverbs_ep_accept(ep, &attr, &server_ops, echo))
		return;
	echo->ep = NULL;
	kverbs_pool_destroy(echo->pool);
free_pd:
	echo->pool = NULL;
	ib_dealloc_pd(attr.pd);
}

static const struct kverbs_listen_ops listen_ops = { .request = server_request };

static void server_end(struct echo *echo)
{
	struct ib_pd *pd;

	if (!echo->ep)
		return;
	pd = kverbs_ep_pd(echo->ep);
	kverbs_ep_close(echo->ep);
	kverbs_pool_destroy(echo->pool);
	ib_dealloc_pd(pd);
	kverbs_ep_destroy(echo->ep);
}

static int client_run(struct echo *echo, const struct sockaddr *addr, const char *text)
{
	int err;

	init_completion(&echo->answered);
	echo->ep = kverbs_ep_resolve(&init_net, addr, &client_ops, echo, HZ);
	if (IS_ERR(echo->ep))
		return PTR_ERR(echo->ep);
	err = kverbs_ep_connect(echo->ep, &echo_attr, 10 * HZ);
	if (!err) {
		echo->pool = kverbs_pool_create(kverbs_ep_pd(echo->ep), &pool_attr);
		err = PTR_ERR_OR_ZERO(echo->pool);
	}
	if (!err) {
		err = echo_send(echo, text, strlen(text) + 1);
		if (!err && !wait_for_completion_timeout(&echo->answered, 10 * HZ))
			err = -ETIMEDOUT;
		kverbs_ep_close(echo->ep);
		kverbs_pool_destroy(echo->pool);
	}
	kverbs_ep_destroy(echo->ep);
	return err;
}

/* Send @text to ourselves at @addr; @answer has room for ECHO_SIZE bytes. */
int echo_example(const struct sockaddr *addr, const char *text, char *answer)
{
	struct echo *server = kzalloc(sizeof(*server), GFP_KERNEL);
	struct echo *client = kzalloc(sizeof(*client), GFP_KERNEL);
	struct kverbs_listener *listener;
	int err = -ENOMEM;

	if (server && client) {
		listener = kverbs_ep_listen(&init_net, addr, &listen_ops, server);
		err = PTR_ERR_OR_ZERO(listener);
	}
	if (!err) {
		err = client_run(client, addr, text);
		strscpy(answer, client->answer, ECHO_SIZE);
		kverbs_ep_unlisten(listener);
		server_end(server);
	}
	kfree(server);
	kfree(client);
	return err;
}
