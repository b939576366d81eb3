// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The device's operations while a rig stands: those of its own queues and CQ go through
 * here, everybody else's to the driver as before. One rig at a time.
 *
 * Also who is inside a post at this moment: done() must never run there.
 */
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/sched.h>

#include "engine.h"

static typeof_member(struct ib_device, ops) driver;
static struct rig *hooked;

/* Posts under way: one in a task each, one on a CPU in each kind of interrupt. */
#define POSTERS	32
static struct task_struct *posters[POSTERS];
static DEFINE_PER_CPU(int, posts_in_softirq);
static DEFINE_PER_CPU(int, posts_in_hardirq);

static int poster_slot(struct task_struct *from, struct task_struct *to)
{
	int i;

	for (i = 0; i < POSTERS; i++)
		if (READ_ONCE(posters[i]) == from && cmpxchg(&posters[i], from, to) == from)
			return i;
	return -1;
}

void hook_post_begin(void)
{
	if (in_hardirq())
		this_cpu_inc(posts_in_hardirq);
	else if (in_serving_softirq())
		this_cpu_inc(posts_in_softirq);
	else if (poster_slot(NULL, current) < 0)
		engine_fail("more than %d tasks post", POSTERS);
}

void hook_post_end(void)
{
	if (in_hardirq())
		this_cpu_dec(posts_in_hardirq);
	else if (in_serving_softirq())
		this_cpu_dec(posts_in_softirq);
	else
		poster_slot(current, NULL);
}

/* Is this call made from inside a post? An interrupt in the middle of one is not. */
bool hook_in_post(void)
{
	int i;

	if (in_hardirq())
		return this_cpu_read(posts_in_hardirq);
	if (in_serving_softirq())
		return this_cpu_read(posts_in_softirq);
	for (i = 0; i < POSTERS; i++)
		if (READ_ONCE(posters[i]) == current)
			return true;
	return false;
}

static struct rig_queue *queue_of(const struct ib_qp *qp)
{
	struct rig *rig = READ_ONCE(hooked);
	u32 i;

	for (i = 0; rig && i < rig->attr.queues; i++)
		if (READ_ONCE(rig->queue[i].qp) == qp)
			return &rig->queue[i];
	return NULL;
}

static struct rig *rig_of(const struct ib_cq *cq)
{
	struct rig *rig = READ_ONCE(hooked);

	return rig && rig->attr.scripted && READ_ONCE(rig->cq) == cq ? rig : NULL;
}

/* Let the driver take what is before @stop, which it refuses. */
static int refuse_at(struct ib_qp *qp, const struct ib_send_wr *wr, struct ib_send_wr *before,
		     const struct ib_send_wr *stop, const struct ib_send_wr **bad)
{
	int err;

	if (before) {
		before->next = NULL;
		err = driver.post_send(qp, wr, bad);
		before->next = (struct ib_send_wr *)stop;
		if (err)
			return err;
	}
	*bad = stop;
	return -EINVAL;
}

static int queue_post(struct rig_queue *queue, struct ib_qp *qp, const struct ib_send_wr *wr,
		      const struct ib_send_wr **bad)
{
	struct ib_send_wr *before = NULL;
	const struct ib_send_wr *at;

	if (queue->hca)
		return hca_post(queue->hca, wr, bad);
	for (at = wr; queue->refuse_at && at; at = at->next) {
		if (++queue->seen % queue->refuse_at == 0)
			return refuse_at(qp, wr, before, at, bad);
		before = (struct ib_send_wr *)at;
	}
	return driver.post_send(qp, wr, bad);
}

static int post_send(struct ib_qp *qp, const struct ib_send_wr *wr, const struct ib_send_wr **bad)
{
	struct rig_queue *queue = queue_of(qp);
	int err;

	if (!queue)
		return driver.post_send(qp, wr, bad);
	hook_post_begin();
	err = queue_post(queue, qp, wr, bad);
	hook_post_end();
	return err;
}

static int poll_cq(struct ib_cq *cq, int nr, struct ib_wc *wc)
{
	struct rig *rig = rig_of(cq);

	return rig ? hca_poll(rig, nr, wc) : driver.poll_cq(cq, nr, wc);
}

static int req_notify_cq(struct ib_cq *cq, enum ib_cq_notify_flags flags)
{
	struct rig *rig = rig_of(cq);

	return rig ? hca_arm(rig, flags) : driver.req_notify_cq(cq, flags);
}

static int modify_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	struct rig_queue *queue = queue_of(qp);
	int err;

	if (queue && queue->refuse_modify) {
		queue->refuse_modify--;
		return -EIO;
	}
	err = driver.modify_qp(qp, attr, mask, udata);
	if (!err && queue && queue->hca && mask & IB_QP_STATE && attr->qp_state == IB_QPS_ERR)
		hca_error(queue->hca);
	return err;
}

static int query_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
		    struct ib_qp_init_attr *init)
{
	struct rig_queue *queue = queue_of(qp);
	int err = driver.query_qp(qp, attr, mask, init);

	if (!err && queue && queue->fake_query)
		*attr = *queue->fake_query;
	return err;
}

void hook_install(struct rig *rig)
{
	struct ib_device *ib = rig->ib;

	driver = ib->ops;
	WRITE_ONCE(hooked, rig);
	WRITE_ONCE(ib->ops.post_send, post_send);
	WRITE_ONCE(ib->ops.poll_cq, poll_cq);
	WRITE_ONCE(ib->ops.req_notify_cq, req_notify_cq);
	WRITE_ONCE(ib->ops.modify_qp, modify_qp);
	WRITE_ONCE(ib->ops.query_qp, query_qp);
}

/* Nobody is inside a wrapper of this rig any more, but others of the device may be. */
void hook_remove(struct rig *rig)
{
	struct ib_device *ib = rig->ib;

	if (hooked != rig)
		return;
	WRITE_ONCE(ib->ops.post_send, driver.post_send);
	WRITE_ONCE(ib->ops.poll_cq, driver.poll_cq);
	WRITE_ONCE(ib->ops.req_notify_cq, driver.req_notify_cq);
	WRITE_ONCE(ib->ops.modify_qp, driver.modify_qp);
	WRITE_ONCE(ib->ops.query_qp, driver.query_qp);
	WRITE_ONCE(hooked, NULL);
	synchronize_rcu();
}
