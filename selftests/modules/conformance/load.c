// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The threads of a load. Each keeps as many chains in flight as it has slots; it polls the
 * CQs of its queue pairs, or, where all threads share them, whatever is next on them. At
 * the end nothing may be left on a CQ, and what was counted is said, a line "NAME NUMBER"
 * for each counter and each opcode.
 */
#include <linux/cpumask.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "load.h"

#define POLL_BATCH	8
#define ARM_RATIO	16	/* of polls that find nothing */
#define STUCK		(60 * HZ)
#define INLINE_BYTES	64

static const char * const count_names[LOAD_NR_COUNTS] = {
	[LOAD_DOORBELLS] = "doorbells",
	[LOAD_SEND_WQES] = "send_wqes",
	[LOAD_RECV_WQES] = "recv_wqes",
	[LOAD_SENDS] = "sends",
	[LOAD_WRITES] = "writes",
	[LOAD_READS] = "reads",
	[LOAD_ATOMICS] = "atomics",
	[LOAD_REGISTRATIONS] = "registrations",
	[LOAD_INVALIDATIONS] = "invalidations",
	[LOAD_INLINE] = "inline_wqes",
	[LOAD_BYTES] = "bytes",
	[LOAD_PAYLOAD_READS] = "payload_reads",
	[LOAD_WQE_FETCHES] = "wqe_fetches",
	[LOAD_CQES] = "cqes",
	[LOAD_EVENTS] = "events",
};

static const char * const op_names[LOAD_OPS] = {
	[IB_WR_SEND] = "op_send",
	[IB_WR_SEND_WITH_IMM] = "op_send_with_imm",
	[IB_WR_SEND_WITH_INV] = "op_send_with_inv",
	[IB_WR_RDMA_WRITE] = "op_write",
	[IB_WR_RDMA_WRITE_WITH_IMM] = "op_write_with_imm",
	[IB_WR_RDMA_READ] = "op_read",
	[IB_WR_ATOMIC_CMP_AND_SWP] = "op_cmp_and_swp",
	[IB_WR_ATOMIC_FETCH_AND_ADD] = "op_fetch_and_add",
	[IB_WR_LOCAL_INV] = "op_local_inv",
	[IB_WR_REG_MR] = "op_reg_mr",
};

static const enum ib_qp_type types[LOAD_KINDS] = {
	[LOAD_RC] = IB_QPT_RC,
	[LOAD_UC] = IB_QPT_UC,
	[LOAD_UD] = IB_QPT_UD,
};

static struct conf_cq *cq_of(const struct load_queue *queue)
{
	return queue->bed->side[0].scq;
}

/* Returns how many came. An empty CQ is armed now and then, for an event that is counted. */
static int poll(struct load_thread *thread, struct load_queue *queue)
{
	struct ib_cq *cq = cq_of(queue)->ib;
	struct ib_wc wc[POLL_BATCH];
	int i, nr;

	nr = ib_poll_cq(cq, POLL_BATCH, wc);
	if (nr < 0) {
		conf_fail("ib_poll_cq() returns %d", nr);
		return 0;
	}
	for (i = 0; i < nr; i++)
		load_polled(thread, queue, &wc[i]);
	if (!nr && !load_random(thread, ARM_RATIO))
		ib_req_notify_cq(cq, load_random(thread, 2) ? IB_CQ_NEXT_COMP : IB_CQ_SOLICITED);
	return nr;
}

/* One slot: what is done is checked, and makes room for more. True: it is in use. */
static bool slot_turn(struct load_thread *thread, struct load_shot *shot)
{
	/* ORDER: pairs with one_less() */
	if (atomic_read_acquire(&shot->pending))
		return true;
	load_check(shot);
	shot->nr = 0;
	if (!thread->left || conf_failed())
		return false;
	thread->left -= min_t(u64, load_shoot(shot), thread->left);
	return true;
}

/* True: there is more to do. */
static bool turn(struct load_thread *thread, bool *progress)
{
	bool busy = false;
	u32 kind, i;

	for (kind = 0; kind < LOAD_KINDS; kind++) {
		struct load_lane *lane = &thread->lane[kind];

		*progress |= poll(thread, lane->queue) > 0;
		for (i = 0; i < LOAD_SLOTS; i++)
			busy |= slot_turn(thread, &lane->shot[i]);
	}
	return busy;
}

static int load_run_thread(void *data)
{
	struct load_thread *thread = data;
	unsigned long end = jiffies + STUCK;
	bool progress;

	do {
		progress = false;
		if (!turn(thread, &progress))
			break;
		if (progress)
			end = jiffies + STUCK;
		else if (time_after(jiffies, end))
			conf_fail("a completion does not come");
		cond_resched();
	} while (!conf_failed());
	complete(&thread->ended);
	return 0;
}

static int start(struct load_thread *thread)
{
	u32 i, cpu = cpumask_first(cpu_online_mask);
	struct task_struct *task;

	for (i = 0; i < thread->index % num_online_cpus(); i++)
		cpu = cpumask_next(cpu, cpu_online_mask);
	task = kthread_create(load_run_thread, thread, "kverbs_load/%u", thread->index);
	if (IS_ERR(task))
		return PTR_ERR(task);
	kthread_bind(task, cpu);
	thread->task = get_task_struct(task);
	return 0;
}

static void run_threads(struct load *load)
{
	u32 i;

	for (i = 0; i < load->nr_threads; i++) {
		if (!expect_is(start(&load->thread[i]), 0))
			break;
		wake_up_process(load->thread[i].task);
	}
	while (i--) {
		/* A load may last longer than the kernel lets a task sleep unseen. */
		while (!wait_for_completion_timeout(&load->thread[i].ended, HZ))
			;
		kthread_stop(load->thread[i].task);
		put_task_struct(load->thread[i].task);
	}
}

static int queue_post_recvs(struct load_queue *queue)
{
	struct load_recv *recv = queue->recvs;
	u32 i, depth = queue->load->depth;
	int err = 0;

	for (i = 0; !err && i < 2 * depth; i++, recv++) {
		struct side *side = &queue->bed->side[i / depth];
		u32 offset = (i % depth) * LOAD_RECV_SIZE;

		recv->side = side;
		recv->va = side->area.va + offset;
		recv->dma = side->area.dma + offset;
		err = load_recv_post(recv);
	}
	return err;
}

static bool queue_init(struct load *load, struct load_queue *queue, u32 kind)
{
	struct bed_attr attr = {
		.type = types[kind],
		.depth = load->depth,
		.sges = LOAD_MAX_SGES,
		.inline_data = INLINE_BYTES,
		.nr_cqe = 4 * load->depth,
		.one_cq = true,
	};

	queue->load = load;
	queue->kind = kind;
	queue->bed = bed_create(load->ib, &attr);
	if (!queue->bed)
		return false;
	queue->recvs = kvcalloc(2 * load->depth, sizeof(*queue->recvs), GFP_KERNEL);
	if (!expect(queue->recvs))
		return false;
	if (kind == LOAD_UD) {
		queue->ah = rdma_create_ah(queue->bed->pd, &queue->bed->ah,
					   RDMA_CREATE_AH_SLEEPABLE);
		if (!expect(!IS_ERR(queue->ah)))
			return false;
	}
	return expect_is(queue_post_recvs(queue), 0);
}

/* First of what all use: no queue pair reads or writes the threads' memory any more. */
static void queue_stop(struct load_queue *queue)
{
	if (!queue->bed)
		return;
	side_destroy_qp(&queue->bed->side[0]);
	side_destroy_qp(&queue->bed->side[1]);
}

static void queue_destroy(struct load_queue *queue)
{
	if (!IS_ERR_OR_NULL(queue->ah))
		rdma_destroy_ah(queue->ah, RDMA_DESTROY_AH_SLEEPABLE);
	if (queue->bed)
		bed_destroy(queue->bed);
	kvfree(queue->recvs);
}

/* The first thread's words are those that all threads add to. */
static bool lane_init(struct load_lane *lane, u32 kind)
{
	struct load_thread *thread = lane->thread;
	struct load *load = thread->load;
	struct load_queue *queue = lane->queue;
	u32 i;

	if (!expect_is(area_create(&lane->area, load->ib), 0))
		return false;
	for (i = 0; i < LOAD_SLOTS; i++) {
		lane->shot[i].lane = lane;
		lane->shot[i].mr = lane->area;
	}
	if (kind == LOAD_UD)
		return true;
	if (!area_register(&queue->bed->side[0], &lane->area, ALL_RIGHTS))
		return false;
	load_add(thread, LOAD_DOORBELLS, 1);
	load_add(thread, LOAD_SEND_WQES, 1);
	load_add(thread, LOAD_WQE_FETCHES, 1);
	load_add(thread, LOAD_REGISTRATIONS, 1);
	load_add(thread, LOAD_CQES, 1);
	thread->tally.ops[IB_WR_REG_MR]++;
	if (!queue->word) {
		queue->word = (u64 *)(lane->area.va + LOAD_WORD);
		queue->word_iova = area_remote(&lane->area, LOAD_WORD);
		queue->word_rkey = area_rkey(&lane->area);
	}
	return true;
}

static void lane_destroy(struct load_lane *lane)
{
	u32 i;

	for (i = 0; i < LOAD_SLOTS; i++) {
		if (lane->shot[i].mr.mr)
			ib_dereg_mr(lane->shot[i].mr.mr);
	}
	if (lane->area.va)
		area_destroy(&lane->area);
}

static bool thread_init(struct load *load, u32 index)
{
	struct load_thread *thread = &load->thread[index];
	u32 kind;

	thread->load = load;
	thread->index = index;
	thread->left = conf_load_requests / load->nr_threads +
		       (index < conf_load_requests % load->nr_threads);
	init_completion(&thread->ended);
	prandom_seed_state(&thread->rnd, (u64)conf_load_seed << 8 | index);
	for (kind = 0; kind < LOAD_KINDS; kind++) {
		struct load_lane *lane = &thread->lane[kind];

		lane->thread = thread;
		lane->queue = &load->queue[kind * load->nr_queues + index % load->nr_queues];
		if (!lane_init(lane, kind))
			return false;
	}
	return true;
}

static bool build(struct load *load)
{
	struct rnd_state rnd;
	u32 i;

	load->pool = kvmalloc(LOAD_POOL, GFP_KERNEL);
	load->queue = kvcalloc(LOAD_KINDS * load->nr_queues, sizeof(*load->queue), GFP_KERNEL);
	load->thread = kvcalloc(load->nr_threads, sizeof(*load->thread), GFP_KERNEL);
	if (!expect(load->pool && load->queue && load->thread))
		return false;
	prandom_seed_state(&rnd, conf_load_seed);
	prandom_bytes_state(&rnd, load->pool, LOAD_POOL);
	for (i = 0; i < LOAD_KINDS * load->nr_queues; i++) {
		if (!queue_init(load, &load->queue[i], i / load->nr_queues))
			return false;
	}
	for (i = 0; i < load->nr_threads; i++) {
		if (!thread_init(load, i))
			return false;
	}
	return true;
}

static void stop(struct load *load)
{
	u32 i, nr = LOAD_KINDS * load->nr_queues;

	for (i = 0; load->queue && i < nr; i++)
		queue_stop(&load->queue[i]);
}

static void destroy(struct load *load)
{
	u32 i, nr = LOAD_KINDS * load->nr_queues;

	stop(load);
	for (i = 0; load->thread && i < load->nr_threads * LOAD_KINDS; i++)
		lane_destroy(&load->thread[i / LOAD_KINDS].lane[i % LOAD_KINDS]);
	for (i = 0; load->queue && i < nr; i++)
		queue_destroy(&load->queue[i]);
	kvfree(load->thread);
	kvfree(load->queue);
	kvfree(load->pool);
}

/* Nothing comes any more, and no addition to a word of all was lost. */
static void check_end(struct load *load)
{
	u64 added = 0, sum = 0;
	u32 i;

	for (i = 0; i < LOAD_KINDS * load->nr_queues; i++) {
		cq_empty(cq_of(&load->queue[i]));
		if (load->queue[i].kind == LOAD_RC)
			sum += *load->queue[i].word;
	}
	for (i = 0; i < load->nr_threads; i++)
		added += load->thread[i].added;
	expect_is(sum, added);
}

static void say_counts(struct load *load)
{
	struct load_tally sum = {};
	u32 i, j;

	for (i = 0; i < LOAD_KINDS * load->nr_queues; i++)
		sum.count[LOAD_EVENTS] += atomic_read(&cq_of(&load->queue[i])->wakeups);
	for (i = 0; i < load->nr_threads; i++) {
		for (j = 0; j < LOAD_NR_COUNTS; j++)
			sum.count[j] += load->thread[i].tally.count[j];
		for (j = 0; j < LOAD_OPS; j++)
			sum.ops[j] += load->thread[i].tally.ops[j];
	}
	for (j = 0; j < LOAD_NR_COUNTS; j++)
		conf_say("%s %llu\n", count_names[j], sum.count[j]);
	for (j = 0; j < LOAD_OPS; j++) {
		if (op_names[j])
			conf_say("%s %llu\n", op_names[j], sum.ops[j]);
	}
}

static void run_load(struct bed *bed, u32 shared)
{
	struct load load = {
		.ib = bed->ib,
		.nr_threads = conf_load_threads,
		.nr_queues = shared ? 1 : conf_load_threads,
	};

	load.depth = LOAD_SLOTS * LOAD_PARTS * (shared ? load.nr_threads : 1);
	if (!load.nr_threads || load.nr_threads > LOAD_THREADS ||
	    load.depth * LOAD_RECV_SIZE > AREA_SIZE) {
		conf_fail("%u threads: from 1 to %lu of them can load these queue pairs",
			  load.nr_threads, shared ? AREA_SIZE / LOAD_RECV_SIZE /
			  (LOAD_SLOTS * LOAD_PARTS) : LOAD_THREADS);
		return;
	}
	if (build(&load)) {
		run_threads(&load);
		check_end(&load);
		/* Events may come later than completions, but not than the queue pair. */
		stop(&load);
		say_counts(&load);
	}
	destroy(&load);
}

const struct conf_case load_cases[] = {
	{ "load/own", run_load, false, NEED_IB | NEED_REG | NEED_ATOMIC },
	{ "load/shared", run_load, true, NEED_IB | NEED_REG | NEED_ATOMIC },
	{}
};
