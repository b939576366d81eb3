// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The device leaves under load; objects come and go, also where memory runs out.
 */
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/in.h>
#include <linux/reboot.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <net/ipv6.h>
#include <rdma/ib_cache.h>
#include <rdma/rdma_cm.h>

#include "engine.h"

#define FAULTS_MAX	200

/* An owner of queues as most are: the connection manager tells it that the device leaves. */
struct unplug {
	void (*tear_down)(struct unplug *unplug);
	struct rig *rig;
	struct traffic *traffic;
	struct shots *shots;
	struct completion over;
};

/* kverbs was told before: it takes no more, and all that it has ends. */
static void tear_down(struct unplug *unplug)
{
	struct rig_queue *queue = &unplug->rig->queue[0];
	struct kverbs_cq_attr attr = { .nr_cqe = 1, .mode = KVERBS_CQ_INTERRUPT, .comp_vector = -1,
				       .cpu = -1 };
	struct kverbs_cq *made = kverbs_cq_create(unplug->rig->ib, &attr);

	if (!IS_ERR(made))
		kverbs_cq_destroy(made);
	expect_is(PTR_ERR_OR_ZERO(made), -ENODEV);
	traffic_wait(unplug->traffic);
	traffic_stop(unplug->traffic);
	expect_is(unplug->traffic->error, -ENODEV);
	expect(rig_counter(queue, KVERBS_REFUSED_DEVICE) > 0);
	expect_is(rig_credits(queue), unplug->rig->attr.depth);
	expect_is(rig_drain(queue), 0);
	expect(traffic_settled(unplug->traffic));
	rig_queue_destroy(queue);
	traffic_destroy(unplug->traffic);
	rig_destroy(unplug->rig);
}

static int on_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct unplug *unplug = id->context;

	if (event->event != RDMA_CM_EVENT_DEVICE_REMOVAL)
		return 0;
	unplug->tear_down(unplug);
	complete(&unplug->over);
	/* The id goes with the device. */
	return 1;
}

static struct rdma_cm_id *bind_to(struct rig *rig, struct unplug *unplug)
{
	const union ib_gid *gid = &rig->ah.grh.dgid;
	struct sockaddr_in address = { .sin_family = AF_INET };
	struct rdma_cm_id *id;
	int err;

	memcpy(&address.sin_addr, &gid->raw[12], sizeof(address.sin_addr));
	id = rdma_create_id(&init_net, on_event, unplug, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return id;
	err = rdma_bind_addr(id, (struct sockaddr *)&address);
	if (!err && id->device == rig->ib)
		return id;
	rdma_destroy_id(id);
	return ERR_PTR(err ?: -ENODEV);
}

/* Until the device has been deleted. */
static void wait_unplug(struct unplug *unplug, const char *name)
{
	struct rdma_cm_id *id;

	init_completion(&unplug->over);
	id = bind_to(unplug->rig, unplug);
	if (IS_ERR(id)) {
		engine_fail("no id on the device: error %ld", PTR_ERR(id));
		return;
	}
	engine_device_put();
	if (unplug->traffic)
		traffic_start(unplug->traffic);
	engine_note("unplug the device now: %s/%s", name, rig_cq_name(unplug->rig->attr.cq));
	if (!wait_for_completion_timeout(&unplug->over, 60 * HZ)) {
		engine_fail("nobody unplugged the device");
		rdma_destroy_id(id);
		unplug->tear_down(unplug);
	}
}

static void run_unplug(enum rig_cq cq, bool scripted)
{
	struct rig_attr rig_attr = { .cq = cq, .scripted = scripted, .depth = 64 };
	struct traffic_attr attr = {
		.producers = 2,
		.count = U32_MAX,
		.kinds = BIT(GROUP_WRITE) | BIT(GROUP_READ),
		.max_group = 3,
		.from_done = 4,
		.more = 2,
		.lists = true,
		.wait = true,
		.may_fail = true,
	};
	struct unplug unplug = { .rig = rig_create(&rig_attr), .tear_down = tear_down };

	if (!unplug.rig)
		return;
	unplug.traffic = traffic_create(&unplug.rig->queue[0], &attr);
	if (unplug.traffic)
		wait_unplug(&unplug, scripted ? "life_unplug" : "life_unplug_data");
}

static void life_unplug(enum rig_cq cq)
{
	run_unplug(cq, true);
}

static void life_unplug_data(enum rig_cq cq)
{
	run_unplug(cq, false);
}

/* The last queue goes with CQEs outstanding, and its device's object with it; then they come. */
static void late_tear_down(struct unplug *unplug)
{
	struct shots *shots = unplug->shots;

	shots->rig->hca_cq.lose = 5;
	expect_is(rig_drain_for(shots->queue, HZ / 10), -ETIMEDOUT);
	rig_queue_destroy(shots->queue);
	shots_wait(shots, 5);
	hca_cqe_add(shots->hca, 0, IB_WC_WR_FLUSH_ERR);
	hca_cqe_add(shots->hca, 4, IB_WC_WR_FLUSH_ERR);
	hca_event(shots->rig);
	msleep(50);
	expect_is(atomic_read(&shots->ended), 5);
	shots_destroy(shots);
}

static void life_unplug_late(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 8 };
	struct unplug unplug = { .shots = shots_create(&attr), .tear_down = late_tear_down };
	u32 i;

	if (!unplug.shots)
		return;
	unplug.rig = unplug.shots->rig;
	for (i = 0; i < 5; i++)
		expect_is(shot_post(unplug.shots, 1, 0), 0);
	wait_unplug(&unplug, "life_unplug_late");
}

static bool a_thread_polls(void)
{
	struct task_struct *task;
	bool found = false;

	rcu_read_lock();
	for_each_process(task)
		/* One that has been stopped may still be about to leave the list. */
		found |= !strncmp(task->comm, "kverbs/", 7) && !(task->flags & PF_EXITING);
	rcu_read_unlock();
	return found;
}

static struct traffic *in_reboot;

/* After kverbs was told. What it says is read from the log of the machine that went down. */
static int at_reboot(struct notifier_block *nb, unsigned long event, void *data)
{
	u32 before = atomic_read(&in_reboot->ended);
	bool polls = a_thread_polls();
	u32 i;

	for (i = 0; i < 150 && atomic_read(&in_reboot->ended) == before; i++)
		msleep(100);
	pr_info("kverbs_engine: reboot: %s\n", polls ? "a thread still polls" :
		atomic_read(&in_reboot->ended) == before ? "no request ends any more" :
		"requests go on ending, and no thread polls");
	return NOTIFY_DONE;
}

static struct notifier_block reboot_nb = {
	.notifier_call = at_reboot,
	.priority = -1,
};

/* The machine is rebooted under load: file systems still post then, but nobody polls. */
static void life_reboot(enum rig_cq cq)
{
	struct rig_attr rig_attr = { .cq = cq, .depth = 64 };
	struct traffic_attr attr = {
		.producers = 2,
		.count = U32_MAX,
		.kinds = BIT(GROUP_WRITE) | BIT(GROUP_READ),
		.max_group = 3,
		.from_done = 4,
		.wait = true,
	};
	struct rig *rig = rig_create(&rig_attr);
	u32 i;

	if (!rig)
		return;
	in_reboot = traffic_create(&rig->queue[0], &attr);
	if (!in_reboot) {
		rig_destroy(rig);
		return;
	}
	expect(a_thread_polls() || cq == RIG_INTERRUPT);
	traffic_start(in_reboot);
	register_reboot_notifier(&reboot_nb);
	pr_info("kverbs_engine: reboot the machine now\n");
	for (i = 0; i < 600; i++)
		msleep(100);
	engine_fail("nobody rebooted the machine");
	unregister_reboot_notifier(&reboot_nb);
	traffic_stop(in_reboot);
	expect_is(rig_drain(&rig->queue[0]), 0);
	rig_queue_destroy(&rig->queue[0]);
	traffic_destroy(in_reboot);
	rig_destroy(rig);
}

#ifdef CONFIG_FAILSLAB
static void sweep_cq(enum rig_cq kind)
{
	struct kverbs_cq_attr attr = {
		.nr_cqe = 16, .comp_vector = -1, .cpu = -1,
		.mode = kind == RIG_POLL ? KVERBS_CQ_POLL : KVERBS_CQ_INTERRUPT,
	};
	struct kverbs_cq *cq;
	u32 n;

	for (n = 1; n < FAULTS_MAX; n++) {
		fail_at(n);
		cq = kverbs_cq_create(engine_device(), &attr);
		if (!fault_struck()) {
			if (expect(!IS_ERR(cq)))
				kverbs_cq_destroy(cq);
			break;
		}
		/* Not every allocation is needed: a failed one may do no harm. */
		if (!IS_ERR(cq))
			kverbs_cq_destroy(cq);
		else
			expect(PTR_ERR(cq) == -ENOMEM || PTR_ERR(cq) == -EINTR);
	}
	engine_note("%u allocations of a CQ", n - 1);
	expect(n > 3 && n < FAULTS_MAX);
}

static void sweep_sq(struct rig_queue *queue)
{
	struct kverbs_sq_attr attr = { .copy_sge = 1 };
	u32 n, refused = 0;
	int err;

	for (n = 1; n < FAULTS_MAX; n++) {
		fail_at(n);
		err = rig_sq_create(queue, &attr);
		if (!fault_struck()) {
			expect_is(err, 0);
			break;
		}
		if (!err) {
			kverbs_sq_drain(queue->sq, HZ);
			kverbs_sq_destroy(queue->sq);
		} else {
			expect_is(err, -ENOMEM);
			refused++;
		}
		queue->sq = NULL;
	}
	engine_note("%u allocations of a queue, %u that it cannot do without", n - 1, refused);
	expect(n > 3 && n < FAULTS_MAX);
	expect(refused >= 2);
}

/* Each allocation fails in turn: all is undone, and the next attempt works. */
static void life_no_memory(enum rig_cq cq)
{
	/* Shallow: what is larger than a page has pages to fall back to. */
	struct rig_attr attr = { .cq = cq, .depth = 4, .no_sq = true };
	struct rig *rig = rig_create(&attr);

	if (!rig)
		return;
	if (BIT(cq) & ON_KVERBS)
		sweep_cq(cq);
	sweep_sq(&rig->queue[0]);
	if (rig->queue[0].sq)
		expect_is(rig_drain(&rig->queue[0]), 0);
	rig_destroy(rig);
}
#else
static void life_no_memory(enum rig_cq cq)
{
	engine_skip("this kernel has no fault injection");
}
#endif

const struct engine_case life_cases[] = {
	{ "life_unplug", ON_ALL, life_unplug },
	{ "life_unplug_data", ON_ALL, life_unplug_data },
	/* A kverbs CQ was polled empty: none comes late. */
	{ "life_unplug_late", ON_ALL & ~ON_KVERBS, life_unplug_late },
	{ "life_reboot", ON_KVERBS, life_reboot },
	{ "life_no_memory", BIT(RIG_INTERRUPT) | BIT(RIG_POLL) | BIT(RIG_SOFTIRQ), life_no_memory },
	{}
};
