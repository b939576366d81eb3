// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Moderated events: a device that can gathers completions before it raises one. Fewer
 * events, the tail is not forgotten, and nothing comes once the CQ is gone.
 */
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/slab.h>

#include "engine.h"

#define BURST		8
#define CQES		400
#define PERIOD_US	2000

/* A request that does nothing but complete. */
struct empty {
	struct kverbs_req req;
	struct ib_rdma_wr wr;
	struct empties *of;
};

struct empties {
	struct rig *rig;
	atomic_t ended;
	atomic_t failed;
	wait_queue_head_t wait;
	struct empty empty[BURST];
};

static void empty_done(struct kverbs_req *req, enum ib_wc_status status)
{
	struct empties *of = container_of(req, struct empty, req)->of;

	if (status)
		atomic_inc(&of->failed);
	atomic_inc_return_release(&of->ended);
	wake_up(&of->wait);
}

/* Each post alone: then each has a CQE. NULL, and the case has failed. */
static struct empties *empties_create(enum rig_cq cq, u32 cqes, u32 us)
{
	struct rig_attr attr = {
		.cq = cq, .depth = BURST, .policy = KVERBS_BATCH_EACH,
		.moderate_cqes = cqes, .moderate_us = us,
	};
	struct empties *of = kzalloc(sizeof(*of), GFP_KERNEL);
	u32 i;

	if (!of) {
		engine_fail("no memory for requests");
		return NULL;
	}
	init_waitqueue_head(&of->wait);
	for (i = 0; i < BURST; i++) {
		of->empty[i].of = of;
		of->empty[i].wr.wr.opcode = IB_WR_RDMA_WRITE;
		of->empty[i].req.wr = &of->empty[i].wr.wr;
		of->empty[i].req.done = empty_done;
	}
	of->rig = rig_create(&attr);
	if (of->rig)
		return of;
	kfree(of);
	return NULL;
}

/* Not so fast that one event would do for them anyway. */
static void empties_post(struct empties *of, u32 nr)
{
	u32 i;

	atomic_set(&of->ended, 0);
	for (i = 0; i < nr; i++) {
		expect_is(kverbs_post(of->rig->queue[0].sq, &of->empty[i].req, 0), 0);
		usleep_range(100, 200);
	}
}

static bool empties_wait(struct empties *of, u32 nr)
{
	wait_event_timeout(of->wait, atomic_read_acquire(&of->ended) == nr, 15 * HZ);
	return expect_is(atomic_read(&of->ended), nr);
}

static void empties_destroy(struct empties *of)
{
	expect_is(atomic_read(&of->failed), 0);
	expect_is(rig_drain(&of->rig->queue[0]), 0);
	rig_destroy(of->rig);
	kfree(of);
}

/* How many events so many CQEs took, which come @cqes at a time. */
static u64 events_of(enum rig_cq cq, u32 cqes, u32 us)
{
	struct empties *of = empties_create(cq, us ? cqes : 0, us);
	u64 events;
	u32 i;

	if (!of)
		return 0;
	for (i = 0; i < CQES && !engine_failed(); i += cqes) {
		empties_post(of, cqes);
		empties_wait(of, cqes);
	}
	expect_is(kverbs_cq_counter(of->rig->kcq, KVERBS_CQES), CQES);
	events = kverbs_cq_counter(of->rig->kcq, KVERBS_WAKEUPS);
	empties_destroy(of);
	return events;
}

/*
 * As many as there are bursts; where the machine stalls the period may pass in one. And who
 * is late finds what came meanwhile without its event.
 */
static void moderate_count(enum rig_cq cq)
{
	u32 cqes;
	u64 nr;

	nr = events_of(cq, 1, 0);
	engine_note("%u CQEs, an event for each: %llu events", CQES, nr);
	expect(nr > CQES * 3 / 4 && nr <= CQES);
	for (cqes = 2; cqes <= BURST; cqes *= 2) {
		nr = events_of(cq, cqes, U16_MAX);
		engine_note("%u CQEs, an event for %u: %llu events", CQES, cqes, nr);
		expect(nr > CQES * 3 / cqes / 4 && nr < CQES * 3 / cqes / 2);
	}
}

/* One that has no company ends nevertheless, after the period and not before. */
static void moderate_tail(enum rig_cq cq)
{
	u64 begin = ktime_get_ns(), events;
	struct empties *of = empties_create(cq, BURST, PERIOD_US);
	u32 i;

	if (!of)
		return;
	for (i = 0; i < 20 && !engine_failed(); i++) {
		empties_post(of, 1);
		empties_wait(of, 1);
	}
	/* Who polls on after a completion, or is late, finds the next one without its event. */
	if (cq == RIG_INTERRUPT) {
		events = kverbs_cq_counter(of->rig->kcq, KVERBS_WAKEUPS);
		expect(events > 15 && events <= 20);
		expect(ktime_get_ns() - begin >= events * PERIOD_US * NSEC_PER_USEC);
	}
	empties_destroy(of);
}

/* Of random traffic each group ends once, as without. */
static void moderate_traffic(enum rig_cq cq)
{
	struct rig_attr rig_attr = {
		.cq = cq, .depth = 60, .moderate_cqes = 16, .moderate_us = 200,
	};
	struct traffic_attr attr = {
		.producers = 2,
		.count = engine_count / 2,
		.kinds = BIT(GROUP_WRITE) | BIT(GROUP_READ) | BIT(GROUP_SEND),
		.max_group = 3,
		.from_done = 4,
		.more = 3,
		.lists = true,
		.wait = true,
	};
	struct rig *rig = rig_create(&rig_attr);
	struct traffic *traffic;

	if (!rig)
		return;
	traffic = traffic_create(&rig->queue[0], &attr);
	if (traffic) {
		traffic_start(traffic);
		traffic_wait(traffic);
		traffic_stop(traffic);
		expect_is(rig_drain(&rig->queue[0]), 0);
		expect(traffic_settled(traffic));
		expect_is(atomic_read(&traffic->succeeded), atomic_read(&traffic->ended));
		rig_queue_destroy(&rig->queue[0]);
		traffic_destroy(traffic);
	}
	rig_destroy(rig);
}

/* The CQ goes while the device still waits for company: its event comes no more. */
static void moderate_destroyed(enum rig_cq cq)
{
	struct empties *of;
	u32 i;

	for (i = 1; i < BURST && !engine_failed(); i++) {
		of = empties_create(cq, BURST, 1000 * i);
		if (!of)
			return;
		empties_post(of, i);
		rig_drain_for(&of->rig->queue[0], 0);
		rig_destroy(of->rig);
		expect_is(atomic_read(&of->ended), i);
		kfree(of);
	}
}

static void no_cq(u32 cqes, u32 us, int err)
{
	struct kverbs_cq_attr attr = {
		.nr_cqe = 16, .mode = KVERBS_CQ_INTERRUPT, .comp_vector = -1, .cpu = -1,
		.moderate_cqes = cqes, .moderate_us = us,
	};
	struct kverbs_cq *cq = kverbs_cq_create(engine_device(), &attr);

	if (!IS_ERR(cq))
		kverbs_cq_destroy(cq);
	expect_is(PTR_ERR_OR_ZERO(cq), err);
}

static int refuse(struct ib_cq *cq, u16 count, u16 us)
{
	return -EIO;
}

/* What a device cannot do is refused, not left out in silence. */
static void moderate_refused(enum rig_cq cq)
{
	struct ib_device *ib = engine_device();
	typeof(ib->ops.modify_cq) modify_cq = ib->ops.modify_cq;

	no_cq(0, 10, -EINVAL);
	no_cq(4, 0, -EINVAL);
	no_cq(ib->attrs.cq_caps.max_cq_moderation_count + 1, 10, -EINVAL);
	no_cq(4, ib->attrs.cq_caps.max_cq_moderation_period + 1, -EINVAL);
	no_cq(ib->attrs.cq_caps.max_cq_moderation_count,
	      ib->attrs.cq_caps.max_cq_moderation_period, 0);
	ib->ops.modify_cq = refuse;
	no_cq(4, 10, -EIO);
	ib->ops.modify_cq = NULL;
	no_cq(4, 10, -EOPNOTSUPP);
	no_cq(0, 0, 0);
	ib->ops.modify_cq = modify_cq;
}

/* On a device that moderates: kverbs_sim, not rxe. */
const struct engine_case moderate_cases[] = {
	{ "moderate_count", BIT(RIG_INTERRUPT), moderate_count },
	{ "moderate_tail", ON_KVERBS, moderate_tail },
	{ "moderate_traffic", ON_KVERBS, moderate_traffic },
	{ "moderate_destroyed", ON_KVERBS, moderate_destroyed },
	{ "moderate_refused", BIT(RIG_INTERRUPT), moderate_refused },
	{}
};
