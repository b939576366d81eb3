// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What broke once, each case named after it.
 */
#include <linux/bottom_half.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/sched.h>

#include "engine.h"

/*
 * The owner stops the queue while a turn is in the driver with a chain that ends
 * silently, since what follows it did not fit in. The chain is executed; what follows is
 * not to be posted any more, but for what closes the tail: else the drain never ends.
 */
struct stopped {
	struct shots *shots;
	struct completion in_driver;
	struct completion go_on;
	struct completion posted;
	struct completion drained;
	int drain;
};

static struct stopped *stopped;

static void hold_driver(struct hca *hca)
{
	hca->on_post = NULL;
	hca->in_post = U32_MAX;
	complete(&stopped->in_driver);
	wait_for_completion(&stopped->go_on);
}

/* A chain holds 64, each 65th is signaled. */
static int poster_main(void *data)
{
	u32 i;

	for (i = 0; i < 17; i++)
		expect_is(shot_post(stopped->shots, i == 15 ? 3 : 4, KVERBS_MORE), 0);
	kthread_complete_and_exit(&stopped->posted, 0);
}

static int drainer_main(void *data)
{
	stopped->drain = kverbs_sq_drain(stopped->shots->queue->sq, 10 * HZ);
	kthread_complete_and_exit(&stopped->drained, 0);
}

static bool is_closed(void *data)
{
	return shot_post(data, 1, KVERBS_MORE) == -ESHUTDOWN;
}

/* As many as show whether the driver raises softirqs: bottom halves are on afterwards. */
static void warm_up(struct shots *shots)
{
	u32 i;

	for (i = 0; i < 10; i++)
		expect_is(shot_post(shots, 1, 0), 0);
	hca_execute(shots->hca, U32_MAX);
	shots_wait(shots, 10);
	shots->nr = 0;
	memset(shots->shot, 0, sizeof(shots->shot));
	atomic_set(&shots->ended, 0);
}

static void drain_after_silent_chain(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 260 };
	struct stopped state = { .shots = shots_create(&attr) };
	struct shots *shots = state.shots;
	u32 i;

	if (!shots)
		return;
	stopped = &state;
	init_completion(&state.in_driver);
	init_completion(&state.go_on);
	init_completion(&state.posted);
	init_completion(&state.drained);
	warm_up(shots);
	rig_direct_stop(shots->rig);
	shots->hca->on_post = hold_driver;
	kthread_run(poster_main, NULL, "engine_poster");
	wait_for_completion(&state.in_driver);
	kthread_run(drainer_main, NULL, "engine_drainer");
	expect(eventually(is_closed, shots));
	complete(&state.go_on);
	wait_for_completion(&state.posted);
	wait_for_completion(&state.drained);
	expect_is(state.drain, 0);
	expect_is(rig_credits(shots->queue), 260);
	/* The one that found the queue closed is none. */
	for (i = 0; i + 1 < shots->nr; i++)
		expect_is(shots->shot[i].ended, 1);
	shots_destroy(shots);
}

/*
 * An interrupt comes between a producer's two steps, and the queue fails in it: it has nothing
 * to post any more, but to give back. It waited for the place to be published, for ever.
 */
static void interrupt_fail(void *data, u32 dev, u32 qp, u32 seq, u32 wrs, u32 bytes)
{
	struct shots *shots = data;

	/* The softirq that the event raises runs here. */
	local_bh_disable();
	hca_execute(shots->hca, U32_MAX);
	local_bh_enable();
	expect_is(atomic_read(&shots->ended), 1);
	kverbs_flush(shots->queue->sq);
}

static void unpublished_place_spins(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 64 };
	struct shots *shots = shots_create(&attr);

	if (!shots)
		return;
	shots->hca->fail_at = 0;
	shots->hca->fail_status = IB_WC_LOC_PROT_ERR;
	expect_is(shot_post(shots, 1, 0), 0);
	if (!expect_is(probe_attach("kverbs_post", interrupt_fail, shots), 0))
		goto destroy;
	expect_is(shot_post(shots, 2, KVERBS_MORE), 0);
	probe_detach();
	shots_wait(shots, 2);
	shots_expect(shots, 0, IB_WC_LOC_PROT_ERR);
	shots_expect(shots, 1, IB_WC_WR_FLUSH_ERR);
	expect_is(shots->hca->posted, 1);
destroy:
	shots_destroy(shots);
}

/*
 * The first group's done() is still running when the second one's post is refused and
 * nothing else is in flight: the worker, who ends it, must wait. (On one CPU it cannot
 * come too early.)
 */
static void refuse_next(struct shot *shot)
{
	struct shots *shots = shot->shots;

	shots->hca->refuse = HCA_REFUSE_NAMED;
	shots->hca->refuse_at = shots->hca->posted;
	expect_is(shot_post(shots, 1, 0), 0);
	kverbs_flush(shots->queue->sq);
	mdelay(30);
	expect_is(shot[1].ended, 0);
}

static void worker_overtakes_done(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 8 };
	struct shots *shots = shots_create(&attr);

	if (!shots)
		return;
	shots->shot[0].on_done = refuse_next;
	expect_is(shot_post(shots, 1, 0), 0);
	hca_execute(shots->hca, 1);
	shots_wait(shots, 2);
	shots_expect(shots, 0, IB_WC_SUCCESS);
	shots_expect(shots, 1, IB_WC_LOC_QP_OP_ERR);
	shots_destroy(shots);
}

/* A burst whose last post is refused: what came before it is not left in the stage. */
static void burst_left_staged(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 16 };
	struct shots *shots = shots_create(&attr);
	struct shot *shot;

	if (!shots)
		return;
	expect_is(shot_post(shots, 1, KVERBS_MORE), 0);
	expect_is(shots->hca->posted, 0);
	shot = shot_new(shots, 1);
	shot->wr[0].wr.opcode = IB_WR_REG_MR_INTEGRITY;
	expect_is(kverbs_post(shots->queue->sq, &shot->req, 0), -EINVAL);
	expect_is(shots->hca->posted, 1);
	hca_execute(shots->hca, U32_MAX);
	shots_wait(shots, 1);
	shots_expect(shots, 0, IB_WC_SUCCESS);
	shots_destroy(shots);
}

/*
 * A group is posted again as it came back. Its chain went on into that of the group behind
 * it, and its SGL was still the virtual one once it had gone inline.
 */
static void group_posted_again(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 16, .max_inline = 16 };
	struct shots *shots = shots_create(&attr);
	struct ib_sge virtual = { .length = 8 };
	u32 round, i;

	if (!shots)
		return;
	for (i = 0; i < 3; i++)
		shot_new(shots, 1);
	for (round = 0; round < 4 && !engine_failed(); round++) {
		/* Small enough to go inline, then too large. */
		virtual.length = round & 1 ? 4096 : 8;
		for (i = 0; i < 3; i++) {
			shots->shot[i].sge[0].length = virtual.length;
			shots->shot[i].req.inline_sge = &virtual;
			expect_is(kverbs_post(shots->queue->sq, &shots->shot[i].req,
					      i < 2 ? KVERBS_MORE : 0), 0);
		}
		expect_is(shots->hca->posted, 3 * (round + 1));
		expect_is(hca_wqe(shots->hca, shots->hca->posted - 1)->inlined, !(round & 1));
		hca_execute(shots->hca, U32_MAX);
		shots_wait(shots, 3 * (round + 1));
	}
	for (i = 0; i < 3; i++)
		expect_is(shots->shot[i].ended, 4);
	for (i = 0; i < 3; i++)
		shots->shot[i].ended = 1;
	shots_destroy(shots);
}

/*
 * Registrations and invalidations were not counted against the queue, which wrapped. Among sends,
 * over a depth that few of them fit into: the scripted HCA tells of a place taken twice.
 */
static void registrations_uncounted(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .scripted = true };
	struct traffic_attr work = {
		.producers = 3,
		.count = engine_count / 25,
		.kinds = BIT(GROUP_REG) | BIT(GROUP_SEND),
		.max_group = GROUP_MAX,
		.from_done = 4,
		.more = 2,
		.wait = true,
	};
	struct traffic *traffic;
	struct rig *rig;

	for (attr.depth = 5; attr.depth < 17 && !engine_failed(); attr.depth += 4) {
		rig = rig_create(&attr);
		if (!rig)
			return;
		traffic = traffic_create(&rig->queue[0], &work);
		if (traffic) {
			traffic_start(traffic);
			traffic_wait(traffic);
			traffic_stop(traffic);
			expect_is(rig_credits(&rig->queue[0]), attr.depth);
			expect_is(rig_counter(&rig->queue[0], KVERBS_WORK_REQUESTS),
				  rig->queue[0].hca->posted);
			expect(rig_counter(&rig->queue[0], KVERBS_OP_REG_MR) > 0);
			expect_is(rig_drain(&rig->queue[0]), 0);
			rig_queue_destroy(&rig->queue[0]);
			traffic_destroy(traffic);
		}
		rig_destroy(rig);
	}
}

/* The driver could not arm the CQ. Nobody looked any more, and no event told of what came. */
static void arm_refused(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 8 };
	struct shots *shots = shots_create(&attr);
	u32 i;

	for (i = 1; shots && i <= 20 && !engine_failed(); i++) {
		WRITE_ONCE(shots->rig->hca_cq.deaf, 1 + i % 3);
		expect_is(shot_post(shots, 1, 0), 0);
		hca_execute(shots->hca, 1);
		shots_wait(shots, i);
		/* By an event whose pass could not arm, then by a pass that nobody asked for. */
		expect_is(shot_post(shots, 1, 0), 0);
		hca_execute(shots->hca, 1);
		shots_wait(shots, ++i);
	}
	if (shots)
		shots_destroy(shots);
}

/* The driver did not move the QP to ERR at once: nothing was flushed, and the drain timed out. */
static void drain_refused(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 8 };
	struct shots *shots = shots_create(&attr);
	u32 i;

	if (!shots)
		return;
	for (i = 0; i < 5; i++)
		expect_is(shot_post(shots, 1, 0), 0);
	shots->queue->refuse_modify = 2;
	expect_is(rig_drain(shots->queue), 0);
	shots_wait(shots, 5);
	for (i = 0; i < 5; i++)
		shots_expect(shots, i, IB_WC_WR_FLUSH_ERR);
	shots_destroy(shots);
}

const struct engine_case regress_cases[] = {
	{ "regress_drain_after_silent_chain", ON_ALL, drain_after_silent_chain },
	{ "regress_unpublished_place_spins", BIT(RIG_INTERRUPT) | BIT(RIG_SOFTIRQ),
	  unpublished_place_spins },
	{ "regress_worker_overtakes_done", ON_ALL, worker_overtakes_done },
	{ "regress_burst_left_staged", ON_ALL, burst_left_staged },
	{ "regress_group_posted_again", ON_ALL, group_posted_again },
	{ "regress_registrations_uncounted", ON_ALL, registrations_uncounted },
	{ "regress_arm_refused", ON_KVERBS, arm_refused },
	{ "regress_drain_refused", ON_ALL, drain_refused },
	{}
};
