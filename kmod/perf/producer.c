// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The threads that post. A producer goes round its lanes and posts a burst on each that
 * has room for one; if none has, it sleeps until the last request of a burst has ended.
 * So all engines are given the same work in the same portions.
 *
 * Where completions post, the producer only posts the first requests, and then waits
 * for the end. Posting is under the lane's lock there.
 */
#include <linux/kthread.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "perf.h"

/* No wake-up comes when a run is stopped: it is looked for this often. */
#define STOP_LATENCY	(HZ / 20)

static bool may_post(const struct perf_bench *bench)
{
	return perf_stopped(bench->run) == PERF_GO && !READ_ONCE(bench->time_is_up);
}

/* How many requests to post now: a whole burst or the rest, or none. */
static u32 lane_burst(const struct perf_lane *lane)
{
	u64 n = min_t(u64, lane->target - lane->posted, lane->bench->burst);

	if (READ_ONCE(lane->waits_for_credit) || !may_post(lane->bench))
		return 0;
	return lane->nr_slots - (lane->posted - perf_lane_ended(lane)) >= n ? n : 0;
}

static bool lane_finished(const struct perf_lane *lane)
{
	enum perf_stop stop = perf_stopped(lane->bench->run);

	if (stop == PERF_STOP_WAITING)
		return true;
	if (READ_ONCE(lane->posted) != lane->target && may_post(lane->bench))
		return false;
	return perf_lane_ended(lane) == READ_ONCE(lane->posted);
}

/* The queue has its credits back. */
static void credit_ready(struct kverbs_credit_wait *credit)
{
	struct perf_lane *lane = container_of(credit, struct perf_lane, credit);

	WRITE_ONCE(lane->waits_for_credit, false);
	perf_lane_moved(lane);
}

static void wait_for_credit(struct perf_lane *lane)
{
	int ret;

	WRITE_ONCE(lane->waits_for_credit, true);
	lane->credit.nr_wrs = 1;
	lane->credit.ready = credit_ready;
	ret = kverbs_on_credit(lane->queue->sq, &lane->credit);
	if (ret)
		perf_run_stop(lane->bench->run, PERF_STOP_WAITING, ret,
			      "kverbs_on_credit: error %d", ret);
}

/* True if something was posted. */
static bool lane_post(struct perf_lane *lane)
{
	u32 n = lane_burst(lane);
	int ret;

	if (!n)
		return false;
	ret = lane->bench->engine->post(lane, n);
	if (ret < 0)
		perf_run_stop(lane->bench->run, PERF_STOP_WAITING, ret,
			      "engine %s: request %llu of queue %u was refused with error %d",
			      lane->bench->engine->name, lane->posted, lane->queue->index, ret);
	else if (ret < n)
		wait_for_credit(lane);
	return ret > 0;
}

static void lane_refill(struct perf_lane *lane)
{
	spin_lock_bh(&lane->lock);
	while (lane_post(lane))
		;
	spin_unlock_bh(&lane->lock);
}

void perf_lane_moved(struct perf_lane *lane)
{
	if (lane->bench->what.context == KVERBS_PERF_COMPLETION) {
		lane_refill(lane);
		if (!lane_finished(lane))
			return;
	}
	/* ORDER: room was made before the look at who waits; pairs with set_current_state() */
	smp_mb();
	/* Who is not waiting yet looks for room once more before it sleeps: see above. */
	if (waitqueue_active(&lane->producer->wait))
		wake_up(&lane->producer->wait);
}

static bool producer_finished(const struct perf_producer *producer)
{
	u32 i;

	for (i = 0; i < producer->nr_lanes; i++)
		if (!lane_finished(producer->lanes[i]))
			return false;
	return true;
}

static bool producer_has_work(const struct perf_producer *producer)
{
	u32 i;

	if (producer->bench->what.context != KVERBS_PERF_COMPLETION)
		for (i = 0; i < producer->nr_lanes; i++)
			if (lane_burst(producer->lanes[i]))
				return true;
	return producer_finished(producer);
}

/* True if something was posted. */
static bool producer_round(struct perf_producer *producer)
{
	bool posted = false;
	u32 i;

	for (i = 0; i < producer->nr_lanes; i++)
		posted |= lane_post(producer->lanes[i]);
	return posted;
}

static void producer_kick(struct perf_producer *producer)
{
	u32 i;

	for (i = 0; i < producer->nr_lanes; i++)
		lane_refill(producer->lanes[i]);
}

static int producer_thread(void *data)
{
	struct perf_producer *producer = data;
	struct perf_bench *bench = producer->bench;
	bool completions_post = bench->what.context == KVERBS_PERF_COMPLETION;

	wait_for_completion(&bench->start);
	if (completions_post)
		producer_kick(producer);
	while (!producer_finished(producer)) {
		if (completions_post || !producer_round(producer))
			wait_event_timeout(producer->wait, producer_has_work(producer),
					   STOP_LATENCY);
		cond_resched();
	}
	if (atomic_dec_and_test(&bench->nr_posting)) {
		bench->ended_ns = ktime_get_ns();
		complete(&bench->finished);
	}
	return 0;
}

static int producer_start(struct perf_bench *bench, struct perf_producer *producer, u32 number)
{
	u32 lane;

	producer->bench = bench;
	init_waitqueue_head(&producer->wait);
	producer->lanes = kcalloc(DIV_ROUND_UP(bench->nr_lanes, bench->nr_producers),
				  sizeof(*producer->lanes), GFP_KERNEL);
	if (!producer->lanes)
		return -ENOMEM;
	for (lane = number; lane < bench->nr_lanes; lane += bench->nr_producers) {
		bench->lanes[lane].producer = producer;
		producer->lanes[producer->nr_lanes++] = &bench->lanes[lane];
	}
	producer->task = kthread_create(producer_thread, producer, "kverbs_perf/%u", number);
	if (IS_ERR(producer->task))
		return PTR_ERR(producer->task);
	get_task_struct(producer->task);
	atomic_inc(&bench->nr_posting);
	wake_up_process(producer->task);
	return 0;
}

/* They wait for bench->start. If this fails, perf_producers_join() takes them down. */
int perf_producers_start(struct perf_bench *bench)
{
	u32 i;
	int ret;

	bench->producers = kcalloc(bench->nr_producers, sizeof(*bench->producers), GFP_KERNEL);
	if (!bench->producers)
		return -ENOMEM;
	for (i = 0; i < bench->nr_producers; i++) {
		ret = producer_start(bench, &bench->producers[i], i);
		if (ret)
			return ret;
	}
	return 0;
}

void perf_producers_join(struct perf_bench *bench)
{
	struct perf_producer *producer;
	u32 i;

	for (i = 0; bench->producers && i < bench->nr_producers; i++) {
		producer = &bench->producers[i];
		if (!IS_ERR_OR_NULL(producer->task)) {
			kthread_stop(producer->task);
			put_task_struct(producer->task);
		}
		kfree(producer->lanes);
	}
	kfree(bench->producers);
	bench->producers = NULL;
}
