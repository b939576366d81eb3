// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * One case in one round: queues are made, the producers let go, and watched; then the
 * queues are taken down, and last the ledger and the data are judged. Queues are new in
 * each round, so that no case works on what another left behind; the buffers stay.
 */
#include <linux/slab.h>

#include "perf.h"

#define WATCH_INTERVAL	(HZ / 10)

static void slot_init(struct perf_slot *slot, struct perf_lane *lane, u32 position)
{
	struct perf_queue *queue = lane->queue;
	const struct perf_run *run = lane->bench->run;
	struct ib_send_wr *wr = &slot->wr.send;

	slot->lane = lane;
	slot->index = lane->first_index + position;
	slot->sge.addr = perf_memory_dma(queue->client_memory, slot->index);
	slot->sge.length = run->attr.msg_size;
	slot->sge.lkey = lane->bench->pd->local_dma_lkey;
	wr->sg_list = &slot->sge;
	wr->num_sge = 1;
	switch (run->attr.op) {
	case KVERBS_PERF_WRITE:
		wr->opcode = IB_WR_RDMA_WRITE;
		break;
	case KVERBS_PERF_READ:
		wr->opcode = IB_WR_RDMA_READ;
		break;
	default:
		wr->opcode = IB_WR_SEND;
	}
	if (!perf_op_sends(&run->attr)) {
		perf_regions_remote(&queue->regions, queue->server_memory->stride, slot->index,
				    &slot->wr.rdma.remote_addr, &slot->wr.rdma.rkey);
	} else if (queue->ah) {
		slot->wr.ud.ah = queue->ah;
		slot->wr.ud.remote_qpn = queue->server->qp_num;
		slot->wr.ud.remote_qkey = queue->qkey;
	}
	lane->bench->engine->prepare(slot);
	perf_slot_fill(slot, position);
}

static int lane_init(struct perf_bench *bench, u32 number)
{
	const struct perf_run *run = bench->run;
	struct perf_lane *lane = &bench->lanes[number];
	u32 i;

	lane->bench = bench;
	lane->number = number;
	lane->queue = &bench->queues[number % run->attr.queues];
	lane->nr_slots = run->lane_depth;
	lane->first_index = number / run->attr.queues * run->lane_depth;
	lane->target = perf_share(bench->requests, run->attr.batch, bench->nr_lanes, number);
	lane->post.call_min_ticks = U64_MAX;
	spin_lock_init(&lane->lock);

	lane->slots = kvcalloc(lane->nr_slots, sizeof(*lane->slots), GFP_KERNEL);
	if (!lane->slots)
		return -ENOMEM;
	for (i = 0; i < lane->nr_slots; i++)
		slot_init(&lane->slots[i], lane, i);
	return 0;
}

static int queue_init(struct perf_bench *bench, u32 index)
{
	struct perf_queue *queue = &bench->queues[index];

	queue->bench = bench;
	queue->index = index;
	queue->client_memory = &bench->run->client_memory[index];
	queue->server_memory = &bench->run->server_memory[index];
	perf_memory_poison(queue->client_memory);
	perf_memory_poison(queue->server_memory);
	return perf_queue_create(queue);
}

/* If it fails, perf_bench_free() takes down what there is. */
int perf_bench_setup(struct perf_bench *bench)
{
	struct perf_run *run = bench->run;
	u32 i;
	int ret;

	bench->queues = kvcalloc(run->attr.queues, sizeof(*bench->queues), GFP_KERNEL);
	bench->lanes = kvcalloc(bench->nr_lanes, sizeof(*bench->lanes), GFP_KERNEL);
	if (!bench->queues || !bench->lanes)
		return -ENOMEM;
	bench->pd = ib_alloc_pd(run->ib, 0);
	if (IS_ERR(bench->pd))
		return PTR_ERR(bench->pd);
	for (i = 0; i < run->attr.queues; i++) {
		ret = queue_init(bench, i);
		if (ret)
			return ret;
		cond_resched();
	}
	for (i = 0; i < bench->nr_lanes; i++) {
		ret = lane_init(bench, i);
		if (ret)
			return ret;
	}
	return perf_producers_start(bench);
}

/* Until QPs and CQs are gone a completion may look at a slot. */
static void bench_disconnect(struct perf_bench *bench)
{
	u32 i;

	for (i = 0; bench->queues && i < bench->run->attr.queues; i++)
		perf_queue_destroy(&bench->queues[i]);
	if (!IS_ERR_OR_NULL(bench->pd))
		ib_dealloc_pd(bench->pd);
	bench->pd = NULL;
}

void perf_bench_free(struct perf_bench *bench)
{
	u32 i;

	/* Producers that were never let go are, now that nothing may be posted. */
	if (!completion_done(&bench->start))
		perf_run_stop(bench->run, PERF_STOP_WAITING, -ECANCELED, "no bench was set up");
	complete_all(&bench->start);
	perf_producers_join(bench);
	bench_disconnect(bench);
	for (i = 0; bench->lanes && i < bench->nr_lanes; i++)
		kvfree(bench->lanes[i].slots);
	for (i = 0; bench->queues && i < bench->run->attr.queues; i++)
		perf_ring_destroy(&bench->queues[i].ring);
	kvfree(bench->lanes);
	kvfree(bench->queues);
}

/* Requests that have ended. */
u64 perf_bench_progress(const struct perf_bench *bench)
{
	u64 sum = 0;
	u32 i;

	for (i = 0; i < bench->nr_lanes; i++)
		sum += perf_lane_ended(&bench->lanes[i]);
	return sum;
}

/* Names the lane that is worst off: what it waits for tells whose fault it is. */
static void report_stall(struct perf_bench *bench, u64 idle_ns)
{
	const struct perf_lane *lane, *worst = &bench->lanes[0];
	u64 in_flight = 0;
	u32 i;

	for (i = 0; i < bench->nr_lanes; i++) {
		lane = &bench->lanes[i];
		in_flight += lane->posted - perf_lane_ended(lane);
		if (lane->posted - perf_lane_ended(lane) > worst->posted - perf_lane_ended(worst))
			worst = lane;
	}
	/* That its device has left is why, where both are so. */
	perf_run_stop(bench->run, PERF_STOP_WAITING,
		      READ_ONCE(bench->run->leaving) ? -ENODEV : -ETIMEDOUT,
		      "engine %s: no progress for %llu ms with %llu requests in flight; queue %u (QP %u) posted %llu, completed %llu, received %llu",
		      bench->engine->name, div_u64(idle_ns, NSEC_PER_MSEC), in_flight,
		      worst->queue->index, worst->queue->qpn, worst->posted,
		      worst->retired, worst->received);
}

static void bench_watch(struct perf_bench *bench, u64 started)
{
	u64 duration = div_u64(bench->run->attr.duration_ns, bench->run->attr.rounds);
	u64 now, progress, last_progress = 0, moved = started;
	unsigned long wait = WATCH_INTERVAL;

	if (duration)
		wait = min(wait, nsecs_to_jiffies(duration) + 1);
	while (!wait_for_completion_timeout(&bench->finished, wait)) {
		now = ktime_get_ns();
		progress = perf_bench_progress(bench);
		if (progress != last_progress)
			moved = now;
		last_progress = progress;
		if (duration && now - started >= duration)
			WRITE_ONCE(bench->time_is_up, true);
		if (now - moved >= perf_run_patience_ns(bench->run))
			report_stall(bench, now - moved);
	}
}

/* Raw and chain keep count themselves; a kverbs queue is asked. */
static void result_of_queue(struct perf_queue *queue, struct kverbs_perf_result *result)
{
	if (queue->sq) {
		result->post_calls += kverbs_sq_counter(queue->sq, KVERBS_POST_CALLS);
		result->signaled += kverbs_sq_counter(queue->sq, KVERBS_SIGNALED);
		result->cqes += kverbs_sq_counter(queue->sq, KVERBS_QUEUE_CQES);
	}
	if (queue->cq) {
		result->wakeups += kverbs_cq_counter(queue->cq, KVERBS_WAKEUPS);
		result->passes += kverbs_cq_counter(queue->cq, KVERBS_PASSES);
	}
}

static void result_of_lane(const struct perf_lane *lane, struct kverbs_perf_result *result)
{
	const struct perf_run *run = lane->bench->run;

	result->least = min(result->least, lane->done.succeeded);
	result->most = max(result->most, lane->done.succeeded);
	result->requests += lane->done.succeeded;
	result->post_calls += lane->post.post_calls;
	result->signaled += lane->post.signaled;
	result->cqes += lane->done.cqes;
	result->call_ns += perf_ticks_to_ns(run, lane->post.call_ticks);
	result->post_ns += perf_ticks_to_ns(run, lane->post.post_ticks);
	if (lane->post.call_min_ticks != U64_MAX)
		result->call_min_ns = min(result->call_min_ns ?: U64_MAX,
					  perf_ticks_to_ns(run, lane->post.call_min_ticks));
	result->received += lane->received;
	result->lost += lane->posted - lane->retired;
	result->doubled += lane->done.doubled;
	result->reordered += lane->done.reordered;
	result->failed += lane->done.failed;
	result->flushed += lane->done.flushed;
	result->corrupt += lane->done.corrupt + lane->received_corrupt;
	kverbs_hist_merge(result->latency, lane->done.latency);
}

/* The last message of each slot, whole, where it was to arrive. */
static u64 check_data(const struct perf_bench *bench)
{
	const struct perf_lane *lane;
	u64 corrupt = 0;
	u32 i, k;

	if (bench->run->attr.op == KVERBS_PERF_SEND) {
		for (i = 0; i < bench->run->attr.queues; i++)
			corrupt += perf_ring_check(&bench->queues[i]);
		return corrupt;
	}
	/* Of RPC each reply was looked at when it came. */
	for (i = 0; i < bench->nr_lanes && bench->run->attr.op != KVERBS_PERF_RPC; i++) {
		lane = &bench->lanes[i];
		for (k = 0; k < lane->nr_slots; k++) {
			if (lane->slots[k].used && !perf_slot_arrived(&lane->slots[k]))
				corrupt++;
			cond_resched();
		}
	}
	return corrupt;
}

static void judge(struct perf_bench *bench, struct kverbs_perf_result *result)
{
	struct perf_run *run = bench->run;
	u32 i;

	result->least = U64_MAX;
	for (i = 0; i < bench->nr_lanes; i++)
		result_of_lane(&bench->lanes[i], result);
	/* After a run was given up, what was in flight may or may not have arrived. */
	if (perf_stopped(run) != PERF_STOP_WAITING)
		result->corrupt += check_data(bench);
	if (result->lost || result->doubled || result->reordered)
		perf_run_stop(run, PERF_STOP_WAITING, -EIO,
			      "engine %s, round %u: %llu requests lost, %llu completed twice, %llu out of order",
			      bench->engine->name, result->round, result->lost, result->doubled,
			      result->reordered);
	if (result->corrupt)
		perf_run_stop(run, PERF_STOP_WAITING, -EBADMSG,
			      "engine %s, round %u: the data of %llu requests arrived wrong",
			      bench->engine->name, result->round, result->corrupt);
}

static void ib_core_counts_none(struct kverbs_perf_result *result)
{
	result->wakeups = KVERBS_PERF_UNKNOWN;
	result->passes = KVERBS_PERF_UNKNOWN;
}

void perf_bench_measure(struct perf_bench *bench, struct kverbs_perf_result *result)
{
	struct perf_queue *queue;
	u64 started, ended;

	started = ktime_get_ns();
	complete_all(&bench->start);
	bench_watch(bench, started);
	result->elapsed_ns = bench->ended_ns - started;

	if (bench->what.cq == KVERBS_PERF_CQ_IB)
		ib_core_counts_none(result);
	ended = ktime_get_ns();
	for (queue = bench->queues; queue < bench->queues + bench->run->attr.queues; queue++) {
		perf_queue_stop(queue, ended);
		result_of_queue(queue, result);
	}
	bench_disconnect(bench);
	judge(bench, result);
}
