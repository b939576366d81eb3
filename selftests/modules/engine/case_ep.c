// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Endpoints: who connects, what is said meanwhile, and that all messages come, in order and
 * whole, however the receives are posted.
 */
#include <linux/delay.h>
#include <linux/slab.h>

#include "ep_example.h"
#include "ep_rig.h"

#define ON_EP	(BIT(RIG_INTERRUPT) | BIT(RIG_POLL) | BIT(RIG_ADAPTIVE))

/* Private data goes both ways, and both are told of the end, whoever wants it. */
static void ep_connect_and_part(enum rig_cq cq)
{
	struct ep_setup setup = { .connections = 1, .mode = ep_mode(cq) };
	struct ep_rig *rig;
	u32 i;

	for (i = 0; i < 2; i++) {
		struct ep_side *first, *second;

		rig = ep_rig_create(&setup);
		if (!rig)
			return;
		if (ep_rig_connect(rig)) {
			expect_is(strcmp(rig->client[0].said, "server"), 0);
			expect(kverbs_ep_device(rig->client[0].ep) == engine_device());
			first = i ? &rig->server[0] : &rig->client[0];
			second = first->peer;
			kverbs_ep_disconnect(first->ep);
			kverbs_ep_disconnect(first->ep);
			expect(eventually(ep_is_disconnected, first));
			expect(eventually(ep_is_disconnected, second));
			expect_is(first->reason, 0);
			expect_is(second->reason, -ECONNRESET);
			expect_is(atomic_read(&rig->client[0].connected), 1);
			expect_is(atomic_read(&rig->server[0].connected), 1);
		}
		ep_rig_destroy(rig);
	}
}

static void reject_with_data(struct ep_rig *rig, struct kverbs_ep *ep)
{
	expect_is(kverbs_ep_reject(ep, "no room", 8), 0);
}

static void say_nothing(struct ep_rig *rig, struct kverbs_ep *ep)
{
}

static void accept_badly(struct ep_rig *rig, struct kverbs_ep *ep)
{
	struct kverbs_ep_attr attr;

	ep_attr(&rig->server[0], &attr);
	attr.recv_depth = 0;
	expect_is(kverbs_ep_accept(ep, &attr, &ep_side_ops, &rig->server[0]), -EINVAL);
}

/* Rejected in each way: with a word, without one, and because it could not be accepted. */
static void ep_rejected(enum rig_cq cq)
{
	static void (*const answers[])(struct ep_rig *rig, struct kverbs_ep *ep) = {
		reject_with_data, say_nothing, accept_badly,
	};
	struct ep_setup setup = { .connections = 1, .mode = ep_mode(cq) };
	struct ep_rig *rig = ep_rig_create(&setup);
	const char *said;
	u32 i;
	u8 len;

	if (!rig)
		return;
	for (i = 0; i < ARRAY_SIZE(answers); i++) {
		rig->answer = answers[i];
		expect_is(ep_connect(&rig->client[0]), -ECONNREFUSED);
		if (!expect(rig->client[0].ep))
			break;
		said = kverbs_ep_refusal(rig->client[0].ep, &len);
		if (!i)
			expect(len >= 8 && !strcmp(said, "no room"));
		ep_side_destroy(&rig->client[0]);
	}
	expect_is(atomic_read(&rig->client[0].connected), 0);
	expect_is(atomic_read(&rig->client[0].disconnected), 0);
	ep_rig_destroy(rig);
}

/* Nobody there, an attribute that cannot be, a CQ without room, an address taken. */
static void ep_bad_input(enum rig_cq cq)
{
	struct ep_setup setup = { .connections = 1, .mode = ep_mode(cq) };
	struct kverbs_cq_attr cq_attr = {
		.nr_cqe = EP_DEPTH, .mode = ep_mode(cq), .comp_vector = -1, .cpu = -1,
		.max_cpu_percent = 100, .name = KBUILD_MODNAME,
	};
	struct ep_rig *rig = ep_rig_create(&setup);
	struct ep_side *side = &rig->client[0];
	struct kverbs_ep_attr attr;
	struct kverbs_cq *small;
	u32 i;

	if (!rig)
		return;
	expect_is(PTR_ERR(kverbs_ep_listen(&init_net, (struct sockaddr *)&rig->addr, NULL, NULL)),
		  -EADDRINUSE);
	small = kverbs_cq_create(engine_device(), &cq_attr);
	for (i = 0; i < 5; i++) {
		if (!expect_is(ep_resolve(side), 0))
			break;
		ep_attr(side, &attr);
		if (i == 0)
			attr.send_depth = 0;
		else if (i == 1)
			attr.max_send_sge = 0;
		else if (i == 2)
			attr.recv_size = 0;
		else if (i == 3)
			attr.data_len = 255;
		else
			attr.cq = small;
		expect_is(kverbs_ep_connect(side->ep, &attr, EP_WAIT), i < 4 ? -EINVAL : -ENOSPC);
		expect_is(kverbs_ep_connect(side->ep, &attr, EP_WAIT), -EINVAL);
		ep_side_destroy(side);
	}
	if (expect(!IS_ERR(small)))
		kverbs_cq_destroy(small);
	kverbs_ep_unlisten(rig->listener);
	rig->listener = NULL;
	expect_is(ep_connect(side), -ECONNREFUSED);
	ep_rig_destroy(rig);
}

static bool all_received(void *data)
{
	struct ep_rig *rig = data;
	u32 i;

	for (i = 0; i < rig->setup.connections; i++) {
		if (READ_ONCE(rig->client[i].received) < engine_count ||
		    READ_ONCE(rig->server[i].received) < engine_count)
			return engine_failed();
	}
	return true;
}

static void expect_all_received(struct ep_rig *rig)
{
	u32 i;

	while (!all_received(rig))
		msleep(20);
	ep_join(rig);
	for (i = 0; i < rig->setup.connections; i++) {
		expect_is(rig->client[i].received, engine_count);
		expect_is(rig->server[i].received, engine_count);
	}
}

static void run_messages(const struct ep_setup *setup)
{
	struct ep_rig *rig = ep_rig_create(setup);
	struct kverbs_ep_stats stats;

	if (!rig)
		return;
	if (ep_rig_connect(rig) && ep_start(rig, engine_count)) {
		expect_all_received(rig);
		kverbs_ep_query(rig->server[0].ep, &stats);
		engine_note("%llu messages, %llu receives posted in %llu calls", stats.received,
			    stats.posted, stats.posts);
		expect_is(stats.received, setup->srq ? setup->connections * engine_count :
						       engine_count);
		expect_is(stats.refused, 0);
		if (setup->batch == 1)
			expect_is(stats.posts, stats.posted);
		else
			expect(stats.posts <= 2 + stats.received / stats.batch);
	}
	ep_rig_destroy(rig);
}

static void ep_messages(enum rig_cq cq)
{
	run_messages(&(struct ep_setup){ .connections = 2, .mode = ep_mode(cq) });
}

static void ep_messages_single(enum rig_cq cq)
{
	run_messages(&(struct ep_setup){ .connections = 1, .mode = ep_mode(cq), .batch = 1 });
}

static void ep_messages_srq(enum rig_cq cq)
{
	run_messages(&(struct ep_setup){ .connections = EP_MAX, .mode = ep_mode(cq), .srq = true });
}

static void ep_messages_srq_single(enum rig_cq cq)
{
	struct ep_setup setup = {
		.connections = 2, .mode = ep_mode(cq), .srq = true, .batch = 1,
	};

	run_messages(&setup);
}

/* A driver that takes receives one by one only, as some did, or tells lies about the rest. */
static struct ib_device_ops driver;
static u32 refusals;
static bool says_where;

static int post_one_recv(struct ib_qp *qp, const struct ib_recv_wr *wr,
			 const struct ib_recv_wr **bad)
{
	struct ib_recv_wr one = *wr;

	if (!wr->next)
		return driver.post_recv(qp, wr, bad);
	refusals++;
	one.next = NULL;
	driver.post_recv(qp, &one, bad);
	if (says_where)
		*bad = wr->next;
	return -EINVAL;
}

static void run_refused_chain(enum rig_cq cq, bool where)
{
	struct ep_setup setup = { .connections = 1, .mode = ep_mode(cq) };
	struct ib_device *ib = engine_device();
	struct ep_rig *rig = ep_rig_create(&setup);
	struct kverbs_ep_stats stats;

	if (!rig)
		return;
	driver = ib->ops;
	says_where = where;
	refusals = 0;
	WRITE_ONCE(ib->ops.post_recv, post_one_recv);
	if (!where) {
		expect_is(ep_connect(&rig->client[0]), -EIO);
	} else if (ep_rig_connect(rig) && ep_start(rig, engine_count)) {
		expect_all_received(rig);
		kverbs_ep_query(rig->server[0].ep, &stats);
		expect_is(stats.batch, 1);
		expect_is(stats.refused, 1);
	}
	expect(refusals > 0);
	ep_rig_destroy(rig);
	WRITE_ONCE(ib->ops.post_recv, driver.post_recv);
}

/* A chain of receives is refused half-way: the rest goes one by one, none is lost. */
static void ep_refused_chain(enum rig_cq cq)
{
	run_refused_chain(cq, true);
	run_refused_chain(cq, false);
}

static void ep_example(enum rig_cq cq)
{
	struct sockaddr_in addr = {};
	char answer[256] = "";

	if (!expect_is(ep_find_address(&addr), 0))
		return;
	expect_is(echo_example((struct sockaddr *)&addr, "Hello, kernel", answer), 0);
	expect_is(strcmp(answer, "Hello, kernel"), 0);
}

const struct engine_case ep_cases[] = {
	{ "ep_example", BIT(RIG_INTERRUPT), ep_example },
	{ "ep_connect_and_part", ON_EP, ep_connect_and_part },
	{ "ep_rejected", BIT(RIG_INTERRUPT), ep_rejected },
	{ "ep_bad_input", BIT(RIG_INTERRUPT), ep_bad_input },
	{ "ep_messages", ON_EP, ep_messages },
	{ "ep_messages_single", BIT(RIG_INTERRUPT), ep_messages_single },
	{ "ep_messages_srq", ON_EP, ep_messages_srq },
	{ "ep_messages_srq_single", BIT(RIG_INTERRUPT), ep_messages_srq_single },
	{ "ep_refused_chain", BIT(RIG_INTERRUPT) | BIT(RIG_POLL), ep_refused_chain },
	{}
};
