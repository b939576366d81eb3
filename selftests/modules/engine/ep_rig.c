// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <linux/kthread.h>
#include <linux/nsproxy.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "ep_rig.h"

#define SENDS		(EP_DEPTH / 2)	/* of a side in flight, of messages not received */

/* What a message begins with; the rest follows from it. */
struct message_head {
	u32 seq;
	u32 len;
	u32 side;
};

struct message {
	struct kverbs_req req;
	struct ib_send_wr wr;
	struct ib_sge sge;
	struct ep_side *side;
	struct kverbs_buf *buf;
};

static u32 side_id(const struct ep_side *side)
{
	return side->index << 1 | (side == &side->rig->server[side->index]);
}

static void fill_message(struct ep_side *side, struct kverbs_buf *buf, u32 seq, u32 len)
{
	*(struct message_head *)buf->va = (struct message_head){
		.seq = seq, .len = len, .side = side_id(side),
	};
	memset(buf->va + sizeof(struct message_head), seq * 7 + side_id(side),
	       len - sizeof(struct message_head));
	kverbs_pool_for_hca(side->pool, buf, len);
}

/* In order, whole, and from the peer. */
static void received(struct kverbs_ep *ep, const void *data, u32 len, const struct ib_wc *wc)
{
	struct ep_side *side = kverbs_ep_context(ep);
	const struct message_head *head = data;
	u32 id = side_id(side->peer);

	if (len < sizeof(*head) || head->len != len || head->seq != side->received ||
	    head->side != id ||
	    memchr_inv(head + 1, (head->seq * 7 + id) & 0xff, len - sizeof(*head)))
		engine_fail("side %u: message %u of %u bytes is a wrong one", side_id(side),
			    side->received, len);
	WRITE_ONCE(side->received, side->received + 1);
	wake_up(&side->peer->wait);
	wake_up(&side->wait);
}

static void connected(struct kverbs_ep *ep, const void *data, u8 len)
{
	struct ep_side *side = kverbs_ep_context(ep);

	might_sleep();
	memcpy(side->said, data, min_t(size_t, len, sizeof(side->said) - 1));
	atomic_inc(&side->connected);
}

static void disconnected(struct kverbs_ep *ep, int reason)
{
	struct ep_side *side = kverbs_ep_context(ep);

	might_sleep();
	side->reason = reason;
	WRITE_ONCE(side->stop, true);
	atomic_inc(&side->disconnected);
	wake_up(&side->wait);
}

const struct kverbs_ep_ops ep_side_ops = {
	.connected = connected,
	.received = received,
	.disconnected = disconnected,
};

static void sent(struct kverbs_req *req, enum ib_wc_status status)
{
	struct message *message = container_of(req, struct message, req);
	struct ep_side *side = message->side;

	kverbs_pool_free(side->pool, message->buf);
	kfree(message);
	if (status == IB_WC_SUCCESS)
		atomic_inc(&side->succeeded);
	else if (status == IB_WC_WR_FLUSH_ERR)
		atomic_inc(&side->flushed);
	else
		atomic_inc(&side->failed);
	wake_up(&side->wait);
}

static int send_one(struct ep_side *side, u32 seq, u32 len)
{
	struct kverbs_buf *buf = kverbs_pool_alloc(side->pool);
	struct message *message = kzalloc(sizeof(*message), GFP_KERNEL);
	int err = -ENOMEM;

	if (buf && message) {
		fill_message(side, buf, seq, len);
		message->side = side;
		message->buf = buf;
		message->sge = (struct ib_sge){ .addr = buf->dma, .length = len,
						.lkey = kverbs_pool_lkey(side->pool) };
		message->wr.opcode = IB_WR_SEND;
		message->wr.sg_list = &message->sge;
		message->wr.num_sge = 1;
		message->req.wr = &message->wr;
		message->req.done = sent;
		side->accepted++;
		err = kverbs_post_wait(kverbs_ep_sq(side->ep), &message->req, 0, EP_WAIT);
		if (!err)
			return 0;
		side->accepted--;
	}
	if (buf)
		kverbs_pool_free(side->pool, buf);
	kfree(message);
	return err;
}

static u32 in_flight(struct ep_side *side)
{
	return side->accepted - atomic_read(&side->succeeded) - atomic_read(&side->flushed) -
	       atomic_read(&side->failed);
}

/* There is a receive for it, and a buffer. */
static bool may_send(struct ep_side *side, u32 seq)
{
	return READ_ONCE(side->stop) || kthread_should_stop() ||
	       (seq - READ_ONCE(side->peer->received) < SENDS && in_flight(side) < SENDS);
}

struct sender {
	struct ep_side *side;
	struct rnd_state rnd;
	u32 messages;
};

static int sender_main(void *data)
{
	struct sender *sender = data;
	struct ep_side *side = sender->side;
	u32 seq, len;
	int err = 0;

	for (seq = 0; seq < sender->messages && !err; seq++) {
		if (!wait_event_timeout(side->wait, may_send(side, seq), EP_WAIT)) {
			engine_fail("side %u: message %u was not received", side_id(side),
				    READ_ONCE(side->peer->received));
			break;
		}
		if (READ_ONCE(side->stop) || kthread_should_stop())
			break;
		len = sizeof(struct message_head) +
		      prandom_u32_state(&sender->rnd) % (EP_SIZE - sizeof(struct message_head));
		err = send_one(side, seq, len);
	}
	if (err && !side->rig->setup.may_end)
		engine_fail("side %u: message %u: error %d", side_id(side), seq - 1, err);
	while (!kthread_should_stop())
		wait_event_timeout(side->wait, kthread_should_stop(), HZ / 10);
	return 0;
}

static bool start_side(struct ep_side *side, u32 messages)
{
	struct sender *sender = kzalloc(sizeof(*sender), GFP_KERNEL);
	struct task_struct *task;

	if (!expect(sender))
		return false;
	sender->side = side;
	sender->messages = messages;
	prandom_seed_state(&sender->rnd, engine_random());
	task = kthread_run(sender_main, sender, "engine_ep/%u", side_id(side));
	if (!expect(!IS_ERR(task))) {
		kfree(sender);
		return false;
	}
	side->sender = sender;
	side->task = task;
	return true;
}

/* Each side sends so many messages. */
bool ep_start(struct ep_rig *rig, u32 messages)
{
	u32 i;

	for (i = 0; i < rig->setup.connections; i++) {
		if (!start_side(&rig->client[i], messages) ||
		    !start_side(&rig->server[i], messages))
			return false;
	}
	return true;
}

static void join_side(struct ep_side *side)
{
	if (side->task)
		kthread_stop(side->task);
	side->task = NULL;
	/* Not the thread's to free: one that is stopped at once never runs. */
	kfree(side->sender);
	side->sender = NULL;
}

void ep_join(struct ep_rig *rig)
{
	u32 i;

	for (i = 0; i < rig->setup.connections; i++) {
		join_side(&rig->client[i]);
		join_side(&rig->server[i]);
	}
}

int ep_find_address(struct sockaddr_in *addr)
{
	struct rig *rig = kzalloc(sizeof(*rig), GFP_KERNEL);
	int err;

	if (!rig)
		return -ENOMEM;
	rig->ib = engine_device();
	err = rig_find_path(rig);
	addr->sin_family = AF_INET;
	addr->sin_port = htons(7471);
	memcpy(&addr->sin_addr, &rig->ah.grh.dgid.raw[12], sizeof(addr->sin_addr));
	kfree(rig);
	return err;
}

void ep_attr(const struct ep_side *side, struct kverbs_ep_attr *attr)
{
	const struct ep_rig *rig = side->rig;
	bool server = side == &rig->server[side->index];

	*attr = (struct kverbs_ep_attr){
		.mode = rig->setup.mode,
		.send_depth = SENDS,
		.max_send_sge = 1,
		.recv_depth = EP_DEPTH,
		.recv_size = EP_SIZE,
		.recv_batch = rig->setup.batch,
		.data = server ? "server" : "client",
		.data_len = 7,
		.name = KBUILD_MODNAME,
	};
	if (server && rig->setup.srq) {
		attr->pd = rig->pd;
		attr->cq = rig->cq;
		attr->srq = rig->srq;
	}
}

int ep_get_pool(struct ep_side *side)
{
	struct kverbs_pool_attr attr = { .size = EP_SIZE, .nr = SENDS, .name = KBUILD_MODNAME };
	struct kverbs_pool *pool = kverbs_pool_create(kverbs_ep_pd(side->ep), &attr);

	if (IS_ERR(pool))
		return PTR_ERR(pool);
	side->pool = pool;
	return 0;
}

/* What the servers share is made for the device of the first. */
static int share(struct ep_rig *rig, struct ib_device *ib)
{
	struct kverbs_srq_attr srq_attr = {
		.depth = EP_DEPTH, .size = EP_SIZE, .batch = rig->setup.batch,
		.name = KBUILD_MODNAME,
	};
	struct kverbs_cq_attr cq_attr = {
		.nr_cqe = 2 * EP_DEPTH + EP_MAX * SENDS, .mode = rig->setup.mode, .comp_vector = -1,
		.cpu = -1, .max_cpu_percent = 100, .name = KBUILD_MODNAME,
	};

	if (!rig->setup.srq || rig->srq)
		return 0;
	rig->pd = ib_alloc_pd(ib, 0);
	if (IS_ERR(rig->pd))
		return PTR_ERR(rig->pd);
	rig->cq = kverbs_cq_create(ib, &cq_attr);
	if (IS_ERR(rig->cq))
		return PTR_ERR(rig->cq);
	rig->srq = kverbs_srq_create(rig->pd, rig->cq, &srq_attr);
	return PTR_ERR_OR_ZERO(rig->srq);
}

static void unshare(struct ep_rig *rig)
{
	if (!IS_ERR_OR_NULL(rig->srq))
		kverbs_srq_destroy(rig->srq);
	if (!IS_ERR_OR_NULL(rig->cq))
		kverbs_cq_destroy(rig->cq);
	if (!IS_ERR_OR_NULL(rig->pd))
		ib_dealloc_pd(rig->pd);
	rig->srq = NULL;
	rig->cq = NULL;
	rig->pd = NULL;
}

void ep_accept_one(struct ep_rig *rig, struct kverbs_ep *ep)
{
	struct ep_side *side = &rig->server[rig->accepted];
	struct kverbs_ep_attr attr;
	int err;

	err = share(rig, kverbs_ep_device(ep));
	ep_attr(side, &attr);
	side->ep = ep;
	rig->accepted++;
	if (!err)
		err = kverbs_ep_accept(ep, &attr, &ep_side_ops, side);
	if (err) {
		side->ep = NULL;
		rig->accepted--;
		rig->accept_error = err;
	}
}

static void request(struct kverbs_listener *listener, struct kverbs_ep *ep, const void *data,
		    u8 len)
{
	struct ep_rig *rig = kverbs_listener_context(listener);

	might_sleep();
	if (len < 7 || strcmp(data, "client"))
		engine_fail("the client's private data is wrong");
	if (rig->answer)
		rig->answer(rig, ep);
	else if (rig->accepted < EP_MAX)
		ep_accept_one(rig, ep);
}

static const struct kverbs_listen_ops listen_ops = { .request = request };

static void init_side(struct ep_rig *rig, struct ep_side *side, struct ep_side *peer, u32 index)
{
	side->rig = rig;
	side->peer = peer;
	side->index = index;
	init_waitqueue_head(&side->wait);
}

struct ep_rig *ep_rig_create(const struct ep_setup *setup)
{
	struct ep_rig *rig = kzalloc(sizeof(*rig), GFP_KERNEL);
	u32 i;

	if (!expect(rig))
		return NULL;
	rig->setup = *setup;
	init_completion(&rig->answered);
	for (i = 0; i < EP_MAX; i++) {
		init_side(rig, &rig->client[i], &rig->server[i], i);
		init_side(rig, &rig->server[i], &rig->client[i], i);
	}
	if (expect_is(ep_find_address(&rig->addr), 0)) {
		rig->listener = kverbs_ep_listen(current->nsproxy->net_ns,
						 (struct sockaddr *)&rig->addr, &listen_ops, rig);
		if (expect_is(PTR_ERR_OR_ZERO(rig->listener), 0))
			return rig;
	}
	kfree(rig);
	return NULL;
}

int ep_resolve(struct ep_side *side)
{
	struct kverbs_ep *ep;

	ep = kverbs_ep_resolve(current->nsproxy->net_ns, (struct sockaddr *)&side->rig->addr,
			       &ep_side_ops, side, 5 * HZ);
	if (IS_ERR(ep))
		return PTR_ERR(ep);
	side->ep = ep;
	return 0;
}

int ep_connect(struct ep_side *side)
{
	struct kverbs_ep_attr attr;
	int err = ep_resolve(side);

	if (err)
		return err;
	ep_attr(side, &attr);
	return kverbs_ep_connect(side->ep, &attr, EP_WAIT);
}

bool ep_is_disconnected(void *side)
{
	return atomic_read(&((struct ep_side *)side)->disconnected);
}

static bool is_connected(void *data)
{
	return atomic_read(&((struct ep_side *)data)->connected);
}

bool ep_rig_connect(struct ep_rig *rig)
{
	u32 i;

	for (i = 0; i < rig->setup.connections; i++) {
		if (!expect_is(ep_connect(&rig->client[i]), 0) ||
		    !expect_is(rig->accept_error, 0) ||
		    !expect(eventually(is_connected, &rig->server[i])) ||
		    !expect_is(ep_get_pool(&rig->client[i]), 0) ||
		    !expect_is(ep_get_pool(&rig->server[i]), 0))
			return false;
	}
	return true;
}

/* Then its messages are back, and its PD is still there. */
static void close_side(struct ep_side *side)
{
	join_side(side);
	if (side->ep)
		kverbs_ep_close(side->ep);
	if (side->pool)
		expect_is(kverbs_pool_destroy(side->pool), 0);
	side->pool = NULL;
}

void ep_side_destroy(struct ep_side *side)
{
	close_side(side);
	if (side->ep)
		kverbs_ep_destroy(side->ep);
	side->ep = NULL;
	atomic_set(&side->disconnected, 0);
}

/* Every group that was accepted has ended, once. */
void ep_expect_settled(struct ep_rig *rig)
{
	struct ep_side *side;
	u32 i;

	for (i = 0; i < 2 * rig->setup.connections; i++) {
		side = i & 1 ? &rig->server[i / 2] : &rig->client[i / 2];
		expect_is(in_flight(side), 0);
		expect(atomic_read(&side->disconnected) <= 1);
	}
}

/* Before the last endpoint goes, and its device may, too. */
void ep_rig_destroy(struct ep_rig *rig)
{
	u32 i;

	if (rig->listener)
		kverbs_ep_unlisten(rig->listener);
	for (i = 0; i < EP_MAX; i++) {
		close_side(&rig->client[i]);
		close_side(&rig->server[i]);
	}
	ep_expect_settled(rig);
	unshare(rig);
	for (i = 0; i < EP_MAX; i++) {
		ep_side_destroy(&rig->client[i]);
		ep_side_destroy(&rig->server[i]);
	}
	kfree(rig);
}
