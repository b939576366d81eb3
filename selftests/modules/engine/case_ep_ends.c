// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Endpoints: every end that they can meet, at any moment of their traffic, hangs nobody,
 * leaves nothing behind, and every send that was accepted has had its done().
 */
#include <linux/delay.h>
#include <linux/slab.h>

#include "ep_rig.h"

#define FAULTS_MAX	600
#define ENDS		6

/* A send that the HCA refuses to do: its QP fails. */
struct bad_send {
	struct kverbs_req req;
	struct ib_send_wr wr;
	struct ib_sge sge;
};

static void bad_sent(struct kverbs_req *req, enum ib_wc_status status)
{
	expect(status != IB_WC_SUCCESS);
	kfree(container_of(req, struct bad_send, req));
}

static void send_badly(struct ep_side *side)
{
	struct bad_send *bad = kzalloc(sizeof(*bad), GFP_KERNEL);

	if (!expect(bad))
		return;
	bad->sge = (struct ib_sge){ .addr = 0x1000, .length = 64, .lkey = 0x12345 };
	bad->wr.opcode = IB_WR_SEND;
	bad->wr.sg_list = &bad->sge;
	bad->wr.num_sge = 1;
	bad->req.wr = &bad->wr;
	bad->req.done = bad_sent;
	if (kverbs_post_wait(kverbs_ep_sq(side->ep), &bad->req, 0, EP_WAIT))
		kfree(bad);
}

/* End a connection in one of several ways; true: both sides are to hear of it. */
static bool end_somehow(struct ep_side *side, u32 how)
{
	switch (how) {
	case 0:
		kverbs_ep_disconnect(side->ep);
		return true;
	case 1:
		kverbs_ep_disconnect(side->ep);
		kverbs_ep_disconnect(side->peer->ep);
		return true;
	case 2:
		send_badly(side);
		return true;
	case 3:
		ep_side_destroy(side);
		expect(eventually(ep_is_disconnected, side->peer));
		expect_is(side->peer->reason, -ECONNRESET);
		return false;
	default:
		return false;
	}
}

static void end_one(struct ep_rig *rig, u32 index, u32 how)
{
	struct ep_side *side = engine_random() % 2 ? &rig->client[index] : &rig->server[index];

	if (!end_somehow(side, how))
		return;
	expect(eventually(ep_is_disconnected, side));
	expect(eventually(ep_is_disconnected, side->peer));
	if (engine_failed())
		engine_note("end %u of connection %u, SRQ %d", how, index, rig->setup.srq);
}

/* At a random point of the traffic, by either side, in each way. */
static void ep_parts_under_load(enum rig_cq cq)
{
	struct ep_setup setup = { .connections = 2, .mode = ep_mode(cq), .may_end = true };
	struct ep_rig *rig;
	u32 i, sent = 0, cut = 0;

	for (i = 0; i < ENDS * 2 && !engine_failed(); i++) {
		setup.srq = i & 1;
		setup.batch = engine_random() % 2;
		rig = ep_rig_create(&setup);
		if (!rig)
			return;
		if (ep_rig_connect(rig) && ep_start(rig, U32_MAX)) {
			usleep_range(1, 1 + engine_random() % 30000);
			end_one(rig, 0, i / 2);
			end_one(rig, 1, engine_random() % ENDS);
			ep_join(rig);
			sent += rig->client[0].accepted + rig->server[0].accepted;
			cut += atomic_read(&rig->client[0].flushed) +
			       atomic_read(&rig->server[0].flushed);
		}
		ep_rig_destroy(rig);
	}
	engine_note("%u messages sent, %u of them flushed", sent, cut);
	expect(sent > 0);
}

static bool all_disconnected(void *data)
{
	struct ep_rig *rig = data;
	u32 i;

	for (i = 0; i < rig->setup.connections; i++) {
		if (!ep_is_disconnected(&rig->client[i]) || !ep_is_disconnected(&rig->server[i]))
			return false;
	}
	return true;
}

/* The device leaves; it waits for its endpoints, whose owners take them down. */
static void ep_unplug(enum rig_cq cq)
{
	struct ep_setup setup = { .connections = 3, .mode = ep_mode(cq), .may_end = true,
				  .srq = engine_random() % 2 };
	struct ep_rig *rig = ep_rig_create(&setup);
	u32 i;

	if (!rig)
		return;
	if (ep_rig_connect(rig)) {
		engine_device_put();
		expect(ep_start(rig, U32_MAX));
		engine_note("unplug the device now: %s/%s", __func__, rig_cq_name(cq));
		for (i = 0; i < 600 && !all_disconnected(rig); i++)
			msleep(100);
		expect(all_disconnected(rig));
		for (i = 0; i < setup.connections; i++)
			expect(rig->client[i].reason && rig->server[i].reason);
	}
	ep_rig_destroy(rig);
}

/* The network namespace is deleted; it lives on until its endpoints are gone. */
static void ep_namespace(enum rig_cq cq)
{
	struct ep_setup setup = { .connections = 2, .mode = ep_mode(cq) };
	struct ep_rig *rig = ep_rig_create(&setup);
	u32 before;

	if (!rig)
		return;
	if (ep_rig_connect(rig)) {
		engine_device_put();
		expect(ep_start(rig, U32_MAX));
		engine_note("unplug the device now: %s/%s", __func__, rig_cq_name(cq));
		msleep(1000);
		before = READ_ONCE(rig->client[0].received);
		msleep(500);
		expect(READ_ONCE(rig->client[0].received) > before);
		expect(!ep_is_disconnected(&rig->client[0]));
	}
	ep_rig_destroy(rig);
}

/* A driver that refuses a QP where it could grant less, as some do. */
static struct ib_device_ops driver;
static u32 inline_cap;
static u32 too_much;

static int picky_create_qp(struct ib_qp *qp, struct ib_qp_init_attr *init, struct ib_udata *udata)
{
	if (init->cap.max_inline_data <= inline_cap)
		return driver.create_qp(qp, init, udata);
	too_much++;
	return -EINVAL;
}

static void run_inline(struct ep_rig *rig, u32 asked, u32 cap)
{
	struct ep_side *side = &rig->client[0];
	struct kverbs_sq_info info = {};
	struct kverbs_ep_attr attr;

	inline_cap = cap;
	too_much = 0;
	if (!expect_is(ep_resolve(side), 0))
		return;
	ep_attr(side, &attr);
	attr.max_inline = asked;
	if (expect_is(kverbs_ep_connect(side->ep, &attr, EP_WAIT), 0)) {
		kverbs_sq_query(kverbs_ep_sq(side->ep), &info);
		engine_note("%u asked for of %u: %u are granted", asked, cap, info.max_inline);
		expect(info.max_inline >= min(asked, cap) / 2);
		expect_is(!!too_much, asked > cap);
	}
	ep_side_destroy(side);
	ep_side_destroy(&rig->server[0]);
	rig->accepted = 0;
}

/* More inline was asked for than the device has, and there was no connection at all. */
static void ep_inline_refused(enum rig_cq cq)
{
	struct ep_setup setup = { .connections = 1, .mode = ep_mode(cq) };
	struct ib_device *ib = engine_device();
	struct ep_rig *rig = ep_rig_create(&setup);

	if (!rig)
		return;
	driver = ib->ops;
	WRITE_ONCE(ib->ops.create_qp, picky_create_qp);
	run_inline(rig, 220, 256);
	run_inline(rig, 220, 101);
	run_inline(rig, 220, 0);
	run_inline(rig, 1, 0);
	WRITE_ONCE(ib->ops.create_qp, driver.create_qp);
	ep_rig_destroy(rig);
}

#ifdef CONFIG_FAILSLAB
static void refuse(struct ep_rig *rig, struct kverbs_ep *ep)
{
}

/* Up to the peer's answer, which is a refusal. */
static void sweep_client(struct ep_rig *rig)
{
	struct ep_side *side = &rig->client[0];
	u32 n, refusals = 0;
	bool struck = true;
	int err;

	rig->answer = refuse;
	for (n = 1; n < FAULTS_MAX && struck && !engine_failed(); n++) {
		fail_at(n);
		err = ep_connect(side);
		struck = fault_struck();
		expect(err);
		if (err != -ECONNREFUSED) {
			expect(struck);
			refusals++;
		}
		ep_side_destroy(side);
	}
	engine_note("to connect: %u allocations, %u that it cannot do without", n - 1, refusals);
	expect(n < FAULTS_MAX && refusals > 5);
}

static void accept_or_fail(struct ep_rig *rig, struct kverbs_ep *ep)
{
	fail_at(rig->fail_at);
	ep_accept_one(rig, ep);
	rig->struck = fault_struck();
	complete(&rig->answered);
}

static void sweep_server(struct ep_rig *rig)
{
	u32 n, refusals = 0;
	int err;

	rig->answer = accept_or_fail;
	rig->struck = true;
	for (n = 1; n < FAULTS_MAX && rig->struck && !engine_failed(); n++) {
		rig->fail_at = n;
		rig->accept_error = 0;
		err = ep_connect(&rig->client[0]);
		if (!expect(wait_for_completion_timeout(&rig->answered, EP_WAIT)))
			break;
		if (rig->accept_error) {
			expect_is(err, -ECONNREFUSED);
			expect(rig->struck);
			refusals++;
		} else {
			expect_is(err, 0);
		}
		ep_side_destroy(&rig->client[0]);
		ep_side_destroy(&rig->server[0]);
		rig->accepted = 0;
	}
	engine_note("to accept: %u allocations, %u that it cannot do without", n - 1, refusals);
	expect(n < FAULTS_MAX && refusals > 5);
}

static void sweep_srq(enum rig_cq cq)
{
	struct kverbs_srq_attr attr = { .depth = 8, .size = 64, .name = KBUILD_MODNAME };
	struct kverbs_cq_attr cq_attr = { .nr_cqe = 64, .mode = ep_mode(cq), .comp_vector = -1,
					  .cpu = -1, .max_cpu_percent = 100 };
	struct ib_pd *pd = ib_alloc_pd(engine_device(), 0);
	struct kverbs_cq *kcq = kverbs_cq_create(engine_device(), &cq_attr);
	struct kverbs_srq *srq;
	u32 n, refusals = 0;
	bool struck = true;

	if (!expect(!IS_ERR(pd) && !IS_ERR(kcq)))
		return;
	for (n = 1; n < FAULTS_MAX && struck; n++) {
		fail_at(n);
		srq = kverbs_srq_create(pd, kcq, &attr);
		struck = fault_struck();
		refusals += IS_ERR(srq);
		expect(!IS_ERR(srq) || struck);
		if (!IS_ERR(srq))
			kverbs_srq_destroy(srq);
	}
	engine_note("an SRQ: %u allocations, %u that it cannot do without", n - 1, refusals);
	expect(n < FAULTS_MAX && refusals > 3);
	kverbs_cq_destroy(kcq);
	ib_dealloc_pd(pd);
}

static void ep_no_memory(enum rig_cq cq)
{
	struct ep_setup setup = { .connections = 1, .mode = ep_mode(cq) };
	struct ep_rig *rig = ep_rig_create(&setup);

	if (!rig)
		return;
	sweep_client(rig);
	sweep_server(rig);
	sweep_srq(cq);
	ep_rig_destroy(rig);
}
#else
static void ep_no_memory(enum rig_cq cq)
{
	engine_skip("this kernel has no fault injection");
}
#endif

const struct engine_case ep_end_cases[] = {
	{ "ep_parts_under_load", BIT(RIG_INTERRUPT) | BIT(RIG_POLL), ep_parts_under_load },
	{ "ep_unplug", BIT(RIG_INTERRUPT) | BIT(RIG_POLL), ep_unplug },
	{ "ep_namespace", BIT(RIG_INTERRUPT), ep_namespace },
	{ "ep_inline_refused", BIT(RIG_INTERRUPT), ep_inline_refused },
	{ "ep_no_memory", BIT(RIG_INTERRUPT) | BIT(RIG_POLL), ep_no_memory },
	{}
};
