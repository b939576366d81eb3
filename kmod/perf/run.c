// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A run: a thread of its own that gives each case its turn, round by round. It holds
 * the device until all it made there is gone; whoever wants it to end asks, with a
 * reason, and waits for perf_run.done.
 */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "perf.h"

#define LEAVING_MS	2000U

/* The first of the worst reasons is kept: those that follow are mostly its consequences. */
void perf_run_stop(struct perf_run *run, enum perf_stop stop, int error, const char *format, ...)
{
	unsigned long flags;
	va_list args;

	spin_lock_irqsave(&run->message_lock, flags);
	if (!run->error || stop > run->stop) {
		va_start(args, format);
		vscnprintf(run->message, sizeof(run->message), format, args);
		va_end(args);
		run->error = error;
	}
	WRITE_ONCE(run->stop, max(run->stop, stop));
	spin_unlock_irqrestore(&run->message_lock, flags);
}

/*
 * How long completions are waited for. A device that leaves gets the moment that one at
 * work needs; if it is dead, its removal does not wait for what a run would put up with.
 */
u64 perf_run_patience_ns(const struct perf_run *run)
{
	u32 ms = run->attr.timeout_ms;

	if (READ_ONCE(run->leaving))
		ms = min(ms, LEAVING_MS);
	return (u64)ms * NSEC_PER_MSEC;
}

/* Where ticks are nanoseconds, as on an emulated machine that counts instructions, this is 1. */
static void calibrate(struct perf_run *run)
{
	u64 ns = ktime_get_ns(), ticks = perf_ticks();

	msleep(20);
	ticks = perf_ticks() - ticks;
	ns = ktime_get_ns() - ns;
	run->ns_per_tick = div64_u64(ns << 32, max_t(u64, ticks, 1));
}

static int buffers_alloc(struct perf_run *run)
{
	const struct kverbs_perf_run *attr = &run->attr;
	u32 i;
	int ret;

	run->client_memory = kvcalloc(attr->queues, sizeof(*run->client_memory), GFP_KERNEL);
	run->server_memory = kvcalloc(attr->queues, sizeof(*run->server_memory), GFP_KERNEL);
	if (!run->client_memory || !run->server_memory)
		return -ENOMEM;
	for (i = 0; i < attr->queues; i++) {
		ret = perf_memory_alloc(&run->client_memory[i], run->ib, attr->msg_size,
					attr->depth);
		/* Endpoints have buffers of their own. */
		if (!ret && attr->op != KVERBS_PERF_RPC)
			ret = perf_memory_alloc(&run->server_memory[i], run->ib,
						attr->msg_size + perf_receive_offset(run),
						run->ring_size ?: attr->depth);
		if (ret)
			return ret;
	}
	return 0;
}

static void buffers_free(struct perf_run *run)
{
	u32 i;

	for (i = 0; run->client_memory && i < run->attr.queues; i++)
		perf_memory_free(&run->client_memory[i]);
	for (i = 0; run->server_memory && i < run->attr.queues; i++)
		perf_memory_free(&run->server_memory[i]);
	kvfree(run->client_memory);
	kvfree(run->server_memory);
}

static void bench_init(struct perf_bench *bench, struct perf_run *run, u32 round, u32 which)
{
	const struct kverbs_perf_run *attr = &run->attr;

	bench->run = run;
	bench->what = attr->cases[which];
	bench->engine = &perf_engines[bench->what.engine];
	bench->number = round * attr->nr_cases + which + 1;
	bench->verify = attr->flags & KVERBS_PERF_VERIFY;
	bench->counts_receives = perf_op_sends(attr);
	bench->burst = attr->batch;
	/* A completion makes room for one; a chain is posted when there is room for all of it. */
	if (bench->what.context == KVERBS_PERF_COMPLETION &&
	    bench->what.engine != KVERBS_PERF_CHAIN)
		bench->burst = 1;
	bench->requests = U64_MAX;
	if (attr->iterations)
		bench->requests = perf_share(attr->iterations, attr->batch, attr->rounds, round);
	bench->nr_lanes = max(attr->queues, attr->threads);
	bench->nr_producers = attr->threads;
	init_completion(&bench->start);
	init_completion(&bench->finished);
}

/* perf_run_status() looks at the bench from now on. */
static void bench_show(struct perf_bench *bench, const struct kverbs_perf_result *result)
{
	struct perf_run *run = bench->run;

	mutex_lock(&run->lock);
	run->bench = bench;
	run->round = result->round;
	run->case_index = result->case_index;
	mutex_unlock(&run->lock);
}

static void bench_hide(struct perf_bench *bench, const struct kverbs_perf_result *result)
{
	struct perf_run *run = bench->run;

	mutex_lock(&run->lock);
	run->bench = NULL;
	run->done_before += result->requests;
	run->results[run->nr_results++] = *result;
	mutex_unlock(&run->lock);
}

static void case_failed(struct perf_run *run, u32 which, int error)
{
	perf_run_stop(run, PERF_STOP_WAITING, error,
		      "the queues of engine %s cannot be made: error %d",
		      perf_engines[run->attr.cases[which].engine].name, error);
}

static void run_case(struct perf_run *run, u32 round, u32 which)
{
	struct kverbs_perf_result *result = kzalloc(sizeof(*result), GFP_KERNEL);
	struct perf_bench *bench = kzalloc(sizeof(*bench), GFP_KERNEL);
	int ret;

	if (!result || !bench) {
		case_failed(run, which, -ENOMEM);
		goto free;
	}
	result->case_index = which;
	result->round = round;
	bench_init(bench, run, round, which);
	ret = perf_bench_setup(bench);
	if (!ret) {
		bench_show(bench, result);
		perf_bench_measure(bench, result);
		bench_hide(bench, result);
	} else {
		/* Taking down what there is stops the run, too: the first reason counts. */
		case_failed(run, which, ret);
	}
	perf_bench_free(bench);
free:
	kfree(bench);
	kfree(result);
}

static void run_cases(struct perf_run *run)
{
	u32 round, which;

	for (round = 0; round < run->attr.rounds; round++)
		for (which = 0; which < run->attr.nr_cases; which++) {
			if (perf_stopped(run) != PERF_GO)
				return;
			run_case(run, round, which);
		}
}

static int run_thread(void *data)
{
	struct perf_run *run = data;
	int ret;

	calibrate(run);
	ret = buffers_alloc(run);
	if (ret)
		perf_run_stop(run, PERF_STOP_WAITING, ret,
			      "the buffers cannot be made: error %d", ret);
	else
		run_cases(run);
	buffers_free(run);
	perf_device_put(run);

	mutex_lock(&run->lock);
	run->ended_ns = ktime_get_ns();
	mutex_unlock(&run->lock);
	complete_all(&run->done);
	wake_up(run->poll_wait);
	return 0;
}

bool perf_run_ended(struct perf_run *run)
{
	return completion_done(&run->done);
}

static void run_destroy(struct perf_run *run)
{
	vfree(run->results);
	kfree(run);
}

/*
 * The file calls this with none of its runs left, and perf_run_free() before it goes.
 * @attr: what was asked for; what was found goes back in it, with an error, too
 */
struct perf_run *perf_run_start(struct kverbs_perf_run *attr, wait_queue_head_t *poll_wait)
{
	struct perf_run *run = kzalloc(sizeof(*run), GFP_KERNEL);
	int ret;

	if (!run)
		return ERR_PTR(-ENOMEM);
	run->attr = *attr;
	run->poll_wait = poll_wait;
	spin_lock_init(&run->message_lock);
	mutex_init(&run->lock);
	init_completion(&run->done);
	run->started_ns = ktime_get_ns();

	ret = perf_device_get(run);
	if (ret) {
		*attr = run->attr;
		goto free_run;
	}
	ret = perf_attr_check(run);
	*attr = run->attr;
	if (ret)
		goto put_device;
	run->results = vzalloc(array3_size(attr->rounds, attr->nr_cases, sizeof(*run->results)));
	if (!run->results) {
		ret = -ENOMEM;
		goto put_device;
	}
	run->task = kthread_create(run_thread, run, "kverbs_perf");
	if (IS_ERR(run->task)) {
		ret = PTR_ERR(run->task);
		goto put_device;
	}
	get_task_struct(run->task);
	wake_up_process(run->task);
	return run;

put_device:
	perf_device_put(run);
free_run:
	run_destroy(run);
	return ERR_PTR(ret);
}

/* Stops it if it still goes on, and waits. */
void perf_run_free(struct perf_run *run)
{
	perf_run_stop(run, PERF_STOP_POSTING, -ECANCELED, "the run was stopped");
	wait_for_completion(&run->done);
	kthread_stop(run->task);
	put_task_struct(run->task);
	run_destroy(run);
}

/* Copies what there is; the results that are counted never change again. */
void perf_run_status(struct perf_run *run, struct kverbs_perf_status *status)
{
	unsigned long flags;

	mutex_lock(&run->lock);
	status->state = KVERBS_PERF_RUNNING;
	if (run->ended_ns)
		status->state = run->error ? KVERBS_PERF_FAILED : KVERBS_PERF_DONE;
	status->case_index = run->case_index;
	status->round = run->round;
	status->nr_results = run->nr_results;
	status->done = run->done_before + (run->bench ? perf_bench_progress(run->bench) : 0);
	status->total = run->attr.iterations * run->attr.nr_cases;
	status->elapsed_ns = (run->ended_ns ?: ktime_get_ns()) - run->started_ns;
	mutex_unlock(&run->lock);

	spin_lock_irqsave(&run->message_lock, flags);
	status->error = run->error;
	memcpy(status->message, run->message, sizeof(status->message));
	spin_unlock_irqrestore(&run->message_lock, flags);
}
