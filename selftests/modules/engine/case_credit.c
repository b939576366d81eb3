// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Contract 3: credits count every work request; what can never fit is refused at once;
 * who waits is served in turn, and nobody waits for ever.
 */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/sched.h>

#include "engine.h"

/* Registrations and invalidations take places like sends. */
static void c3_all_kinds_count(enum rig_cq cq)
{
	static const enum ib_wr_opcode opcodes[] = {
		IB_WR_REG_MR, IB_WR_SEND, IB_WR_LOCAL_INV, IB_WR_RDMA_READ,
	};
	struct rig_attr attr = { .cq = cq, .depth = 9 };
	struct shots *shots = shots_create(&attr);
	struct shot *shot;
	u32 round, i, k;

	if (!shots)
		return;
	for (round = 0; round < 7; round++) {
		for (i = 0; i < 2; i++) {
			shot = shot_new(shots, 4);
			for (k = 0; k < 4; k++)
				shot->wr[k].wr.opcode = opcodes[k];
			expect_is(kverbs_post(shots->queue->sq, &shot->req, KVERBS_MORE), 0);
			expect_is(rig_credits(shots->queue), 9 - 4 * (i + 1));
		}
		kverbs_flush(shots->queue->sq);
		shot = shot_new(shots, 4);
		expect_is(kverbs_post(shots->queue->sq, &shot->req, 0), -EAGAIN);
		shots->nr--;
		hca_execute(shots->hca, U32_MAX);
		shots_wait(shots, 2 * (round + 1));
	}
	expect_is(rig_counter(shots->queue, KVERBS_OP_REG_MR), 14);
	expect_is(rig_counter(shots->queue, KVERBS_OP_LOCAL_INV), 14);
	shots_destroy(shots);
}

/* The places of what ends are free before done() runs: it may post into them. */
static void post_once_more(struct shot *shot)
{
	if (atomic_read(&shot->shots->ended) < 20)
		expect_is(shot_post(shot->shots, shot->nr, 0), 0);
	shot[1].on_done = post_once_more;
}

static void run_back_before_done(enum rig_cq cq, u32 depth)
{
	struct rig_attr attr = { .cq = cq, .depth = depth };
	struct shots *shots = shots_create(&attr);

	if (!shots)
		return;
	shots->shot[0].on_done = post_once_more;
	WRITE_ONCE(shots->hca->by_hand, false);
	expect_is(shot_post(shots, depth, 0), 0);
	shots_wait(shots, 21);
	expect_is(rig_credits(shots->queue), depth);
	shots_destroy(shots);
}

static void c3_back_before_done(enum rig_cq cq)
{
	run_back_before_done(cq, 1);
	run_back_before_done(cq, 4);
}

static void no_ready(struct kverbs_credit_wait *wait)
{
	engine_fail("credit that can never be is there");
}

/* A caller that waits for more than the queue can ever have is told so at once. */
static void c3_never_fits(enum rig_cq cq)
{
	struct kverbs_credit_wait wait = { .nr_wrs = 4, .ready = no_ready };
	struct rig_attr attr = { .cq = cq, .depth = 3 };
	struct shots *shots = shots_create(&attr);
	struct shot *shot;

	if (!shots)
		return;
	shot = shot_new(shots, 4);
	expect_is(kverbs_post(shots->queue->sq, &shot->req, 0), -EMSGSIZE);
	expect_is(kverbs_post_wait(shots->queue->sq, &shot->req, 0, MAX_SCHEDULE_TIMEOUT),
		  -EMSGSIZE);
	expect_is(kverbs_on_credit(shots->queue->sq, &wait), -EMSGSIZE);
	/* Also behind others. */
	expect_is(shot_post(shots, 3, 0), 0);
	expect_is(kverbs_post_wait(shots->queue->sq, &shot->req, 0, HZ), -EMSGSIZE);
	shots_destroy(shots);
}

/* One who waits: sleeping, or for a call. */
struct waiter {
	struct kverbs_credit_wait wait;
	struct shots *shots;
	struct shot *shot;
	struct completion over;
	unsigned long timeout;
	u32 place;
	int err;
};

static atomic_t places;

static void waiter_ready(struct kverbs_credit_wait *wait)
{
	struct waiter *waiter = container_of(wait, struct waiter, wait);

	waiter->place = atomic_inc_return(&places);
	waiter->err = kverbs_post(waiter->shots->queue->sq, &waiter->shot->req, 0);
	complete(&waiter->over);
}

static int waiter_main(void *data)
{
	struct waiter *waiter = data;

	waiter->err = kverbs_post_wait(waiter->shots->queue->sq, &waiter->shot->req, 0,
				       waiter->timeout);
	waiter->place = atomic_inc_return(&places);
	kthread_complete_and_exit(&waiter->over, 0);
}

static void init_waiter(struct waiter *waiter, struct shots *shots, u32 nr_wrs)
{
	memset(waiter, 0, sizeof(*waiter));
	waiter->shots = shots;
	waiter->shot = shot_new(shots, nr_wrs);
	waiter->wait.nr_wrs = nr_wrs;
	waiter->wait.ready = waiter_ready;
	init_completion(&waiter->over);
}

/* Returns once it is in line: the count of refusals tells. */
static void start_sleeper(struct waiter *waiter, struct shots *shots, u32 nr_wrs,
			  unsigned long timeout)
{
	u64 full = rig_counter(shots->queue, KVERBS_REFUSED_FULL);
	struct task_struct *task;

	init_waiter(waiter, shots, nr_wrs);
	waiter->timeout = timeout;
	task = kthread_run(waiter_main, waiter, "engine_waiter");
	if (!expect(!IS_ERR(task))) {
		complete(&waiter->over);
		return;
	}
	while (rig_counter(shots->queue, KVERBS_REFUSED_FULL) == full)
		usleep_range(100, 1000);
	msleep(30);
}

static void start_caller(struct waiter *waiter, struct shots *shots, u32 nr_wrs)
{
	init_waiter(waiter, shots, nr_wrs);
	expect_is(kverbs_on_credit(shots->queue->sq, &waiter->wait), 0);
}

static void waited(struct waiter *waiter, int err)
{
	if (expect(wait_for_completion_timeout(&waiter->over, 20 * HZ)))
		expect_is(waiter->err, err);
	else
		wait_for_completion(&waiter->over);
}

/* One line for sleepers and callers; who needs little does not pass who needs much. */
static void c3_first_come(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 4 };
	struct shots *shots = shots_create(&attr);
	struct waiter much, call, little;
	u32 i;

	if (!shots)
		return;
	atomic_set(&places, 0);
	for (i = 0; i < 4; i++)
		expect_is(shot_post(shots, 1, 0), 0);
	start_sleeper(&much, shots, 3, 30 * HZ);
	start_caller(&call, shots, 1);
	start_sleeper(&little, shots, 1, 30 * HZ);
	hca_execute(shots->hca, 2);
	shots_wait(shots, 2);
	expect_is(rig_credits(shots->queue), 2);
	/* Nor does a newcomer. */
	expect_is(shot_post(shots, 1, 0), -EAGAIN);
	expect_is(atomic_read(&places), 0);
	hca_execute(shots->hca, 1);
	waited(&much, 0);
	expect_is(rig_credits(shots->queue), 0);
	hca_execute(shots->hca, 1);
	waited(&call, 0);
	hca_execute(shots->hca, 3);
	waited(&little, 0);
	expect(call.place < little.place);
	hca_execute(shots->hca, U32_MAX);
	shots_wait(shots, 7);
	expect_is(rig_credits(shots->queue), 4);
	shots_destroy(shots);
}

/* Who gives up does not leave the others standing there. */
static void c3_time_out(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 4 };
	struct shots *shots = shots_create(&attr);
	struct waiter much, little;

	if (!shots)
		return;
	atomic_set(&places, 0);
	expect_is(shot_post(shots, 2, 0), 0);
	start_sleeper(&much, shots, 3, HZ / 5);
	start_caller(&little, shots, 2);
	waited(&much, -EAGAIN);
	waited(&little, 0);
	hca_execute(shots->hca, U32_MAX);
	shots_wait(shots, 2);
	expect_is(much.shot->ended, 0);
	shots_destroy(shots);
}

/* A queue that fails or is drained lets all of them go. */
static void run_ended(enum rig_cq cq, bool drain)
{
	struct rig_attr attr = { .cq = cq, .depth = 2 };
	struct shots *shots = shots_create(&attr);
	struct waiter sleeper, caller, late;

	if (!shots)
		return;
	expect_is(shot_post(shots, 2, 0), 0);
	start_sleeper(&sleeper, shots, 2, 30 * HZ);
	start_caller(&caller, shots, 2);
	if (drain)
		expect_is(rig_drain(shots->queue), 0);
	else
		hca_error(shots->hca);
	waited(&sleeper, drain ? -ESHUTDOWN : -EIO);
	waited(&caller, drain ? -ESHUTDOWN : -EIO);
	start_caller(&late, shots, 1);
	if (drain)
		rig_queue_destroy(shots->queue);
	waited(&late, drain ? -ESHUTDOWN : -EIO);
	shots_wait(shots, 1);
	shots_destroy(shots);
}

/* Also where there is not enough room, since what is in flight does not end. */
static void c3_failed_without_room(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 3 };
	struct shots *shots = shots_create(&attr);
	struct waiter sleeper, caller;

	if (!shots)
		return;
	expect_is(shot_post(shots, 1, 0), 0);
	expect_is(shot_post(shots, 2, 0), 0);
	start_sleeper(&sleeper, shots, 3, 30 * HZ);
	start_caller(&caller, shots, 3);
	shots->hca->fail_at = 0;
	shots->hca->fail_status = IB_WC_REM_OP_ERR;
	hca_execute(shots->hca, 1);
	waited(&sleeper, -EIO);
	waited(&caller, -EIO);
	/* They are let go by the worker, which may be quicker than the CQE's dispatcher. */
	shots_wait(shots, 1);
	expect_is(rig_credits(shots->queue), 1);
	expect_is(rig_drain(shots->queue), 0);
	shots_destroy(shots);
}

static void c3_failed(enum rig_cq cq)
{
	run_ended(cq, false);
}

static void c3_drained(enum rig_cq cq)
{
	run_ended(cq, true);
}

/*
 * Between "there is no room" and the place in line all completions come: nobody will
 * come again to wake who then goes to sleep.
 */
static void all_complete(void *data, u32 dev, u32 qp, u32 reason, s32 code, u32 vendor)
{
	struct shots *shots = data;

	if (reason != KVERBS_REFUSED_FULL)
		return;
	/* The softirq that the event raises runs here. */
	local_bh_disable();
	hca_execute(shots->hca, U32_MAX);
	local_bh_enable();
	expect_is(rig_credits(shots->queue), shots->rig->attr.depth);
}

static void c3_race_to_sleep(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 2 };
	struct shots *shots = shots_create(&attr);
	struct shot *shot;
	u32 i;

	if (!shots)
		return;
	if (!expect_is(probe_attach("kverbs_error", all_complete, shots), 0))
		goto destroy;
	for (i = 0; i < 10 && !engine_failed(); i++) {
		expect_is(shot_post(shots, 2, 0), 0);
		shot = shot_new(shots, 2);
		expect_is(kverbs_post_wait(shots->queue->sq, &shot->req, 0, 10 * HZ), 0);
		hca_execute(shots->hca, U32_MAX);
		shots_wait(shots, 2 * (i + 1));
	}
	probe_detach();
destroy:
	shots_destroy(shots);
}

/* Many wait for few places, all the time. */
static void c3_crowd(enum rig_cq cq)
{
	struct traffic_attr attr = {
		.producers = 4,
		.count = engine_count / 100,
		.kinds = BIT(GROUP_WRITE),
		.max_group = 3,
		.wait = true,
	};
	struct rig_attr rig_attr = { .cq = cq, .scripted = true, .depth = 3 };
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
		rig_queue_destroy(&rig->queue[0]);
		traffic_destroy(traffic);
	}
	rig_destroy(rig);
}

const struct engine_case credit_cases[] = {
	{ "c3_all_kinds_count", ON_ALL, c3_all_kinds_count },
	{ "c3_back_before_done", ON_ALL, c3_back_before_done },
	{ "c3_never_fits", ON_ALL, c3_never_fits },
	{ "c3_first_come", ON_ALL, c3_first_come },
	{ "c3_time_out", ON_ALL, c3_time_out },
	{ "c3_failed", ON_ALL, c3_failed },
	{ "c3_failed_without_room", ON_ALL, c3_failed_without_room },
	{ "c3_drained", ON_ALL, c3_drained },
	/* Where completions come while the caller is busy. */
	{ "c3_race_to_sleep", BIT(RIG_SOFTIRQ) | BIT(RIG_INTERRUPT), c3_race_to_sleep },
	{ "c3_crowd", ON_ALL, c3_crowd },
	{}
};
