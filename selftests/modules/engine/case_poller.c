// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The poller's contracts: no completion is lost, one dispatcher at a time, modes change
 * under load, threads serve many CQs and keep to their CPU.
 */
#include <linux/cpu.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/sched.h>
#include <linux/sched/task.h>

#include "engine.h"

/*
 * Each completion comes between the last poll and the arm, so that no event tells of it;
 * each posts the next. The first one lost ends the chain.
 */
static void post_next(struct shot *shot)
{
	struct shots *shots = shot->shots;

	if (atomic_read(&shots->ended) + 2 > engine_count)
		return;
	shot->ended = 0;
	if (kverbs_post(shots->queue->sq, &shot->req, 0))
		engine_fail("a post in the pass is refused");
}

static void p1_arm_race(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 4 };
	struct shots *shots = shots_create(&attr);
	struct shot *shot;
	int before = -1;

	if (!shots)
		return;
	shot = shot_new(shots, 1);
	shot->on_done = post_next;
	shots->rig->hca_cq.race = true;
	expect_is(kverbs_post(shots->queue->sq, &shot->req, 0), 0);
	hca_execute(shots->hca, 1);
	while (atomic_read(&shots->ended) != before) {
		before = atomic_read(&shots->ended);
		wait_event_timeout(shots->wait, atomic_read(&shots->ended) == engine_count, 5 * HZ);
	}
	expect_is(atomic_read(&shots->ended), engine_count);
	/* The first one came by an event. */
	expect_is(shots->rig->hca_cq.races, engine_count - 1);
	shot->ended = 1;
	shots_destroy(shots);
}

/* As many completions at once as polls and passes take, one less and one more. */
static void p1_bursts(enum rig_cq cq)
{
	static const u32 bursts[] = { 1, 31, 32, 33, 64, 255, 256, 257, 512, 513 };
	struct rig_attr attr = { .cq = cq, .depth = 513 };
	struct shots *shots = shots_create(&attr);
	u32 i, n;

	for (i = 0; shots && i < ARRAY_SIZE(bursts); i++) {
		shots->nr = 0;
		memset(shots->shot, 0, sizeof(shots->shot));
		atomic_set(&shots->ended, 0);
		for (n = 0; n < bursts[i]; n++)
			expect_is(shot_post(shots, 1, 0), 0);
		hca_execute(shots->hca, U32_MAX);
		shots_wait(shots, bursts[i]);
	}
	if (shots)
		shots_destroy(shots);
}

/* Eight queues on one CQ, more completions than a poll or a pass takes. */
struct crowd {
	struct rig *rig;
	struct traffic *traffic[RIG_QUEUES];
};

static bool crowd_create(struct crowd *crowd, enum rig_cq cq, bool scripted, u32 count)
{
	struct rig_attr rig_attr = {
		.cq = cq, .scripted = scripted, .queues = RIG_QUEUES, .depth = 70,
	};
	struct traffic_attr attr = {
		.producers = 1,
		.count = count,
		.kinds = BIT(GROUP_WRITE) | BIT(GROUP_READ),
		.max_group = 3,
		.from_done = 3,
		.more = 2,
		.lists = true,
		.wait = true,
	};
	u32 i;

	memset(crowd, 0, sizeof(*crowd));
	crowd->rig = rig_create(&rig_attr);
	for (i = 0; crowd->rig && i < RIG_QUEUES; i++) {
		crowd->traffic[i] = traffic_create(&crowd->rig->queue[i], &attr);
		if (!crowd->traffic[i])
			return false;
	}
	return crowd->rig;
}

static void crowd_start(struct crowd *crowd)
{
	u32 i;

	for (i = 0; i < RIG_QUEUES; i++)
		traffic_start(crowd->traffic[i]);
}

static void crowd_finish(struct crowd *crowd)
{
	u32 i;

	for (i = 0; i < RIG_QUEUES; i++) {
		traffic_wait(crowd->traffic[i]);
		traffic_stop(crowd->traffic[i]);
	}
}

static void crowd_destroy(struct crowd *crowd)
{
	u32 i;

	for (i = 0; crowd->rig && i < RIG_QUEUES; i++) {
		if (!crowd->traffic[i])
			continue;
		expect_is(rig_drain(&crowd->rig->queue[i]), 0);
		expect_is(rig_counter(&crowd->rig->queue[i], KVERBS_CQE_STALE), 0);
		rig_queue_destroy(&crowd->rig->queue[i]);
		traffic_destroy(crowd->traffic[i]);
	}
	if (crowd->rig)
		rig_destroy(crowd->rig);
}

static void p1_eight_queues(enum rig_cq cq)
{
	struct crowd crowd;

	if (crowd_create(&crowd, cq, true, engine_count / 80)) {
		crowd_start(&crowd);
		crowd_finish(&crowd);
	}
	crowd_destroy(&crowd);
}

/* Events for nothing, in any mode, armed or not. */
static void p1_idle_events(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 8 };
	struct shots *shots = shots_create(&attr);
	u32 i;

	if (!shots)
		return;
	for (i = 0; i < 50; i++) {
		hca_event(shots->rig);
		if (!(i % 10))
			expect_is(shot_post(shots, 1, 0), 0);
		hca_execute(shots->hca, 1);
		hca_event(shots->rig);
	}
	shots_wait(shots, 5);
	shots_destroy(shots);
}

/* A driver that arms nothing and yet raises events: an event in any mode starts a pass. */
static void p1_unarmed_event(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 8 };
	struct shots *shots = shots_create(&attr);

	if (!shots)
		return;
	expect_is(shot_post(shots, 1, 0), 0);
	shots->rig->hca_cq.armed = false;
	hca_execute(shots->hca, 1);
	hca_event(shots->rig);
	shots_wait(shots, 1);
	shots_destroy(shots);
}

/* A thread that polls arms nothing: who takes over from it must. */
static void p2_arm_after_poll(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 8 };
	struct shots *shots = shots_create(&attr);
	u32 i;

	for (i = 0; shots && i < 5; i++) {
		expect_is(kverbs_cq_set_mode(shots->rig->kcq, KVERBS_CQ_POLL), 0);
		WRITE_ONCE(shots->rig->hca_cq.armed, false);
		expect_is(shot_post(shots, 1, 0), 0);
		hca_execute(shots->hca, 1);
		shots_wait(shots, 2 * i + 1);
		expect_is(kverbs_cq_set_mode(shots->rig->kcq, KVERBS_CQ_INTERRUPT), 0);
		expect_is(shot_post(shots, 1, 0), 0);
		hca_execute(shots->hca, 1);
		shots_wait(shots, 2 * i + 2);
	}
	if (shots)
		shots_destroy(shots);
}

static int toggle_main(void *data)
{
	struct rig *rig = data;
	static const enum kverbs_cq_mode modes[] = {
		KVERBS_CQ_POLL, KVERBS_CQ_INTERRUPT, KVERBS_CQ_HYBRID, KVERBS_CQ_POLL,
		KVERBS_CQ_ADAPTIVE, KVERBS_CQ_HYBRID, KVERBS_CQ_INTERRUPT, KVERBS_CQ_ADAPTIVE,
	};
	u32 i;

	for (i = 0; !kthread_should_stop(); i++) {
		expect_is(kverbs_cq_set_mode(rig->kcq, modes[i % ARRAY_SIZE(modes)]), 0);
		cond_resched();
	}
	return 0;
}

/* From one mode to another under load: nothing is lost or out of order. */
static void run_toggle(enum rig_cq cq, bool scripted, u32 count)
{
	struct task_struct *toggler;
	struct crowd crowd;

	if (crowd_create(&crowd, cq, scripted, count)) {
		toggler = kthread_run(toggle_main, crowd.rig, "engine_toggle");
		crowd_start(&crowd);
		crowd_finish(&crowd);
		if (expect(!IS_ERR(toggler)))
			kthread_stop(toggler);
		expect_is(kverbs_cq_set_mode(crowd.rig->kcq, KVERBS_CQ_FOREIGN), -EINVAL);
		expect_is(kverbs_cq_set_mode(crowd.rig->kcq, 77), -EINVAL);
	}
	crowd_destroy(&crowd);
}

static void p2_toggle(enum rig_cq cq)
{
	run_toggle(cq, true, engine_count / 80);
}

static void p2_toggle_data(enum rig_cq cq)
{
	run_toggle(cq, false, engine_count / 400);
}

static u64 polls(const struct shots *shots)
{
	return kverbs_cq_counter(shots->rig->kcq, KVERBS_POLLS);
}

/* Who waits for nothing polls no more, after a while, and is told of what comes then. */
static void p3_idle(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 8 };
	struct shots *shots = shots_create(&attr);
	u64 before;
	u32 i;

	for (i = 0; shots && i < 20; i++) {
		expect_is(shot_post(shots, 1, 0), 0);
		hca_execute(shots->hca, 1);
		shots_wait(shots, i + 1);
		msleep(20);
		before = polls(shots);
		msleep(20);
		expect_is(polls(shots), before);
	}
	if (shots)
		shots_destroy(shots);
}

/* The thread: its name, its CPU, one for all CQs of both. */
struct where {
	struct task_struct *task;
	int cpu;
};

static struct where where;

static void look_where(struct shot *shot)
{
	where.task = current;
	where.cpu = smp_processor_id();
}

static void fire(struct shots *shots)
{
	struct shot *shot = &shots->shot[0];

	atomic_set(&shots->ended, 0);
	if (!shots->nr)
		shot = shot_new(shots, 1);
	shot->ended = 0;
	shot->on_done = look_where;
	expect_is(kverbs_post(shots->queue->sq, &shot->req, 0), 0);
	hca_execute(shots->hca, 1);
	shots_wait(shots, 1);
}

static struct kverbs_cq *cq_on(struct ib_device *ib, int cpu)
{
	struct kverbs_cq_attr attr = {
		.nr_cqe = 16, .mode = KVERBS_CQ_POLL, .comp_vector = -1, .cpu = cpu,
		.name = KBUILD_MODNAME,
	};

	return kverbs_cq_create(ib, &attr);
}

static void p4_thread(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 8, .last_cpu = true };
	struct shots *shots = shots_create(&attr);
	char name[TASK_COMM_LEN], comm[TASK_COMM_LEN];
	struct kverbs_cq *other;
	struct where first;
	u32 i;

	if (!shots)
		return;
	fire(shots);
	first = where;
	expect_is(first.cpu, num_online_cpus() - 1);
	/* Not only by chance. */
	expect(cpumask_equal(first.task->cpus_ptr, cpumask_of(first.cpu)));
	get_task_comm(comm, first.task);
	snprintf(name, sizeof(name), "kverbs/%s-%d", dev_name(&shots->rig->ib->dev), first.cpu);
	if (strcmp(comm, name))
		engine_fail("the poller is called %s, not %s", comm, name);
	/* Another CQ of that CPU comes and goes: the same thread. */
	other = cq_on(shots->rig->ib, first.cpu);
	if (expect(!IS_ERR(other))) {
		fire(shots);
		expect(where.task == first.task);
		kverbs_cq_destroy(other);
	}
	for (i = 0; i < 50; i++) {
		fire(shots);
		expect(where.task == first.task && where.cpu == first.cpu);
	}
	shots_destroy(shots);
}

/* Its CPU leaves and comes back: it goes on, elsewhere meanwhile. */
static void p4_hotplug(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 8, .last_cpu = true };
	struct shots *shots;
	int cpu = num_online_cpus() - 1;

	if (!IS_ENABLED(CONFIG_HOTPLUG_CPU) || !cpu) {
		engine_skip(cpu ? "this kernel has no CPU hotplug" : "there is one CPU only");
		return;
	}
	shots = shots_create(&attr);
	if (!shots)
		return;
	fire(shots);
	expect_is(where.cpu, cpu);
	if (expect_is(remove_cpu(cpu), 0)) {
		fire(shots);
		expect(where.cpu != cpu);
		expect_is(add_cpu(cpu), 0);
		fire(shots);
		expect_is(where.cpu, cpu);
		expect(cpumask_equal(where.task->cpus_ptr, cpumask_of(cpu)));
	}
	shots_destroy(shots);
}

/*
 * A queue leaves a polled CQ: the thread stays. (It was ended and made anew, and where
 * that failed, as in a task that is being killed, the other queues were polled no more.)
 */
static void p4_queue_leaves(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 8, .queues = 2 };
	struct shots *shots = shots_create(&attr);
	struct where first;

	if (!shots)
		return;
	fire(shots);
	first = where;
	get_task_struct(first.task);
	expect_is(rig_drain(&shots->rig->queue[1]), 0);
	rig_queue_destroy(&shots->rig->queue[1]);
	fire(shots);
	expect(where.task == first.task);
	put_task_struct(first.task);
	shots_destroy(shots);
}

/* CQs that cannot be. */
static void p_bad_attributes(enum rig_cq cq)
{
	struct ib_device *ib = engine_device();
	struct kverbs_cq_attr good = {
		.nr_cqe = 16, .mode = KVERBS_CQ_INTERRUPT, .comp_vector = -1, .cpu = -1,
	};
	struct kverbs_cq_attr bad[9];
	struct kverbs_cq *made;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		bad[i] = good;
	bad[0].nr_cqe = 0;
	bad[1].nr_cqe = ib->attrs.max_cqe + 1;
	bad[2].comp_vector = ib->num_comp_vectors;
	bad[3].cpu = nr_cpu_ids;
	bad[4].mode = KVERBS_CQ_FOREIGN;
	bad[5].mode = KVERBS_CQ_ADAPTIVE + 1;
	bad[6].mode = KVERBS_CQ_HYBRID;
	bad[7].spin_ns = 1000001;
	bad[8].max_cpu_percent = 101;
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		made = kverbs_cq_create(ib, &bad[i]);
		if (!IS_ERR(made))
			kverbs_cq_destroy(made);
		expect_is(PTR_ERR_OR_ZERO(made), -EINVAL);
	}
	made = kverbs_cq_create(ib, &good);
	if (expect(!IS_ERR(made))) {
		expect_is(kverbs_cq_set_mode(made, KVERBS_CQ_HYBRID), -EINVAL);
		kverbs_cq_destroy(made);
	}
}

const struct engine_case poller_cases[] = {
	{ "p1_arm_race", BIT(RIG_INTERRUPT) | BIT(RIG_HYBRID), p1_arm_race },
	{ "p1_bursts", ON_ALL, p1_bursts },
	{ "p1_eight_queues", ON_ALL, p1_eight_queues },
	{ "p1_idle_events", ON_KVERBS, p1_idle_events },
	{ "p1_unarmed_event", ON_KVERBS, p1_unarmed_event },
	{ "p2_arm_after_poll", ON_KVERBS, p2_arm_after_poll },
	{ "p2_toggle", BIT(RIG_INTERRUPT), p2_toggle },
	{ "p2_toggle_data", BIT(RIG_INTERRUPT), p2_toggle_data },
	{ "p3_idle", ON_KVERBS & ~BIT(RIG_POLL), p3_idle },
	{ "p4_thread", BIT(RIG_POLL), p4_thread },
	{ "p4_hotplug", BIT(RIG_POLL), p4_hotplug },
	{ "p4_queue_leaves", BIT(RIG_POLL), p4_queue_leaves },
	{ "p_bad_attributes", BIT(RIG_INTERRUPT), p_bad_attributes },
	{}
};
