// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Each call of the driver that a good connection makes fails in turn: whatever it was, there
 * is an error or the connection is whole, everybody is told, and nothing is left behind.
 */
#include <linux/delay.h>
#include <linux/err.h>

#include "../../../kmod/compat.h"
#include "ep_rig.h"

#define CALLS_MAX	60	/* of one kind */
#define ALIKE		3	/* one for each element of a pool */

enum call {
	CALL_ALLOC_PD,
	CALL_CREATE_CQ,
	CALL_CREATE_QP,
	CALL_MODIFY_QP,
	CALL_REQ_NOTIFY_CQ,
	CALL_POST_SEND,
	CALL_POST_RECV,
	CALL_ALLOC_MR,
	CALL_MAP_MR_SG,
	CALL_CREATE_SRQ,
	CALL_POST_SRQ_RECV,
	NR_CALLS,
};

static const char *const call_names[NR_CALLS] = {
	"alloc_pd", "create_cq", "create_qp", "modify_qp", "req_notify_cq",
	"post_send", "post_recv", "alloc_mr", "map_mr_sg", "create_srq", "post_srq_recv",
};

static struct ib_device_ops driver;
static enum call kind;			/* of the call that is to fail */
static atomic_t calls_left;		/* of that kind, until it does; 0: none does */

static bool call_fails(enum call call)
{
	return call == kind && atomic_read(&calls_left) && !atomic_dec_return(&calls_left);
}

/* The connection manager's own are none of the consumer's. */
static bool is_ours(const struct ib_qp *qp)
{
	return qp->qp_type == IB_QPT_RC;
}

static int alloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return call_fails(CALL_ALLOC_PD) ? -EIO : driver.alloc_pd(pd, udata);
}

static KVERBS_CREATE_CQ(create_cq)
{
	return call_fails(CALL_CREATE_CQ) ? -EIO : driver.create_cq(ib, init, attrs);
}

static int create_qp(struct ib_qp *qp, struct ib_qp_init_attr *init, struct ib_udata *udata)
{
	return call_fails(CALL_CREATE_QP) ? -EIO : driver.create_qp(qp, init, udata);
}

static int modify_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	if (is_ours(qp) && call_fails(CALL_MODIFY_QP))
		return -EIO;
	return driver.modify_qp(qp, attr, mask, udata);
}

static int req_notify_cq(struct ib_cq *cq, enum ib_cq_notify_flags flags)
{
	if (!cq->wc && call_fails(CALL_REQ_NOTIFY_CQ))
		return -EIO;
	return driver.req_notify_cq(cq, flags);
}

static int post_send(struct ib_qp *qp, const struct ib_send_wr *wr, const struct ib_send_wr **bad)
{
	if (!is_ours(qp) || !call_fails(CALL_POST_SEND))
		return driver.post_send(qp, wr, bad);
	*bad = wr;
	return -EIO;
}

static int post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad)
{
	if (!is_ours(qp) || !call_fails(CALL_POST_RECV))
		return driver.post_recv(qp, wr, bad);
	*bad = wr;
	return -EIO;
}

static struct ib_mr *alloc_mr(struct ib_pd *pd, enum ib_mr_type type, u32 max_sg)
{
	return call_fails(CALL_ALLOC_MR) ? ERR_PTR(-EIO) : driver.alloc_mr(pd, type, max_sg);
}

static int map_mr_sg(struct ib_mr *mr, struct scatterlist *sg, int nr, unsigned int *offset)
{
	return call_fails(CALL_MAP_MR_SG) ? -EIO : driver.map_mr_sg(mr, sg, nr, offset);
}

static int create_srq(struct ib_srq *srq, struct ib_srq_init_attr *init, struct ib_udata *udata)
{
	return call_fails(CALL_CREATE_SRQ) ? -EIO : driver.create_srq(srq, init, udata);
}

static int post_srq_recv(struct ib_srq *srq, const struct ib_recv_wr *wr,
			 const struct ib_recv_wr **bad)
{
	if (!call_fails(CALL_POST_SRQ_RECV))
		return driver.post_srq_recv(srq, wr, bad);
	*bad = wr;
	return -EIO;
}

static void wrap(struct ib_device *ib)
{
	driver = ib->ops;
	ib->ops.alloc_pd = alloc_pd;
	ib->ops.create_cq = create_cq;
	ib->ops.create_qp = create_qp;
	ib->ops.modify_qp = modify_qp;
	ib->ops.req_notify_cq = req_notify_cq;
	ib->ops.post_send = post_send;
	ib->ops.post_recv = post_recv;
	ib->ops.alloc_mr = alloc_mr;
	ib->ops.map_mr_sg = map_mr_sg;
	ib->ops.create_srq = create_srq;
	ib->ops.post_srq_recv = post_srq_recv;
}

/* Others of the device may still be inside a wrapper: they stay. */
static void unwrap(struct ib_device *ib)
{
	atomic_set(&calls_left, 0);
	ib->ops.alloc_pd = driver.alloc_pd;
	ib->ops.create_cq = driver.create_cq;
	ib->ops.create_qp = driver.create_qp;
	ib->ops.modify_qp = driver.modify_qp;
	ib->ops.req_notify_cq = driver.req_notify_cq;
	ib->ops.post_send = driver.post_send;
	ib->ops.post_recv = driver.post_recv;
	ib->ops.alloc_mr = driver.alloc_mr;
	ib->ops.map_mr_sg = driver.map_mr_sg;
	ib->ops.create_srq = driver.create_srq;
	ib->ops.post_srq_recv = driver.post_srq_recv;
	synchronize_rcu();
}

/* What is sent has arrived, or its sender knows that it may not have. */
static bool is_over(const struct ep_side *side)
{
	return !side->ep || READ_ONCE(side->peer->received) || atomic_read(&side->flushed) ||
	       atomic_read(&side->failed) || atomic_read(&side->disconnected);
}

static bool both_over(void *data)
{
	struct ep_rig *rig = data;

	return is_over(&rig->client[0]) && is_over(&rig->server[0]);
}

static bool is_answered(void *data)
{
	struct ep_side *server = data;

	return atomic_read(&server->connected) || atomic_read(&server->disconnected);
}

/* A message each way, and keys for the peer. */
static int talk(struct ep_rig *rig)
{
	struct ep_side *client = &rig->client[0], *server = &rig->server[0];
	int err;

	expect(eventually(is_answered, server));
	err = ep_get_pool(client);
	err = err ?: ep_get_pool(server);
	err = err ?: kverbs_pool_open(client->pool, kverbs_ep_sq(client->ep),
				      IB_ACCESS_REMOTE_READ, EP_WAIT);
	if (err)
		return err;
	if (ep_start(rig, 1))
		expect(eventually(both_over, rig));
	ep_join(rig);
	if (client->received != 1 || server->received != 1)
		err = -EIO;
	return err;
}

/* A life; @struck: whether a call was made to fail in it. */
static int live(const struct ep_setup *setup, u32 nth, bool *struck)
{
	struct ep_rig *rig = ep_rig_create(setup);
	int err;

	if (!rig)
		return -ENOMEM;
	atomic_set(&calls_left, nth);
	err = ep_connect(&rig->client[0]);
	err = err ?: rig->accept_error;
	err = err ?: talk(rig);
	kverbs_ep_unlisten(rig->listener);
	rig->listener = NULL;
	ep_rig_destroy(rig);
	*struck = !atomic_read(&calls_left);
	atomic_set(&calls_left, 0);
	return err;
}

/* How many calls of a kind there are in a life. */
static u32 run_kind(const struct ep_setup *setup, enum call call)
{
	bool alike = call == CALL_ALLOC_MR || call == CALL_MAP_MR_SG, struck = true;
	u32 n, max = alike ? ALIKE : CALLS_MAX, errors = 0;
	int err;

	kind = call;
	for (n = 0; n < max && struck && !engine_failed(); n++) {
		err = live(setup, n + 1, &struck);
		/* Without a failure all is well; with one, not all needs it. */
		if (!struck)
			expect_is(err, 0);
		errors += !!err;
	}
	if (engine_failed())
		engine_note("number %u of %s failed", n, call_names[call]);
	else
		engine_note("%s: %u calls, %u that it cannot do without", call_names[call],
			    struck ? n : n - 1, errors);
	expect(alike || !struck);
	return struck ? n : n - 1;
}

static void run_calls(enum rig_cq cq, bool srq, enum call first, enum call end)
{
	struct ep_setup setup = {
		.connections = 1, .mode = ep_mode(cq), .srq = srq, .may_end = true,
	};
	struct ib_device *ib = engine_device();
	enum call call;
	u32 nr;

	wrap(ib);
	for (call = first; call < end && !engine_failed(); call++) {
		nr = run_kind(&setup, call);
		expect(nr || (call == CALL_REQ_NOTIFY_CQ && cq == RIG_POLL));
	}
	unwrap(ib);
}

static void calls_fail(enum rig_cq cq)
{
	run_calls(cq, false, 0, CALL_CREATE_SRQ);
}

static void calls_fail_srq(enum rig_cq cq)
{
	run_calls(cq, true, CALL_CREATE_SRQ, NR_CALLS);
}

const struct engine_case calls_cases[] = {
	{ "driver_fails", BIT(RIG_INTERRUPT) | BIT(RIG_POLL), calls_fail },
	{ "driver_fails_srq", BIT(RIG_INTERRUPT), calls_fail_srq },
	{}
};
