// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Producers: threads, timers in hard and soft interrupts, and one that posts from
 * done(). Each has its own groups, which go round: free, built, posted, ended.
 */
#include <linux/kthread.h>
#include <linux/slab.h>

#include "../../../kmod/compat.h"
#include "engine.h"

#define GROUPS_MAX	64		/* of a producer */
#define STUCK		(15 * HZ)	/* without any progress: then something was lost */
#define TIMER_BURST	8
#define TIMER_NS	(50 * NSEC_PER_USEC)

struct group *producer_take(struct producer *producer)
{
	struct group *group;
	unsigned long irq;

	spin_lock_irqsave(&producer->lock, irq);
	group = list_first_entry_or_null(&producer->free, struct group, free);
	if (group)
		list_del_init(&group->free);
	spin_unlock_irqrestore(&producer->lock, irq);
	return group;
}

void producer_give(struct producer *producer, struct group *group)
{
	unsigned long irq;

	spin_lock_irqsave(&producer->lock, irq);
	list_add_tail(&group->free, &producer->free);
	spin_unlock_irqrestore(&producer->lock, irq);
}

static struct group *wait_for_group(struct producer *producer)
{
	struct traffic *traffic = producer->traffic;
	struct group *group;

	while (!(group = producer_take(producer))) {
		if (READ_ONCE(traffic->stop))
			return NULL;
		/* What is staged may be all there is. */
		if (!traffic->attr.no_flush)
			kverbs_flush(producer->queue->sq);
		wait_event_timeout(traffic->wait, !list_empty(&producer->free), HZ / 10);
	}
	return group;
}

struct credit {
	struct kverbs_credit_wait wait;
	struct completion ready;
};

static void credit_ready(struct kverbs_credit_wait *wait)
{
	complete(&container_of(wait, struct credit, wait)->ready);
}

/* It may be told early or late, but not never. */
static void wait_for_credit(struct producer *producer, const struct group *group)
{
	struct credit credit = {
		.wait.nr_wrs = group->nr,
		.wait.ready = credit_ready,
		.ready = COMPLETION_INITIALIZER_ONSTACK(credit.ready),
	};

	if (kverbs_on_credit(producer->queue->sq, &credit.wait))
		return;
	if (!wait_for_completion_timeout(&credit.ready, STUCK)) {
		engine_fail("nobody is told that there is credit: %u free",
			    rig_credits(producer->queue));
		wait_for_completion(&credit.ready);
	}
}

/* Until it is accepted, or refused for another reason than lack of credit. */
static int post_until(struct producer *producer, struct group *group)
{
	struct traffic *traffic = producer->traffic;
	u32 choice = prandom_u32_state(&producer->rnd);
	unsigned int flags = traffic->attr.more && choice % traffic->attr.more == 0 ?
			     KVERBS_MORE : 0;
	bool wait = traffic->attr.wait && choice & BIT(16);
	int err, before;

	for (;;) {
		before = atomic_read(&traffic->ended);
		err = wait ? group_post_wait(group, flags) : group_post(group, flags);
		if (err != -EAGAIN || READ_ONCE(traffic->stop))
			return err;
		if (traffic->attr.wait && choice & BIT(17))
			wait_for_credit(producer, group);
		else
			wait_event_timeout(traffic->wait,
					   atomic_read(&traffic->ended) != before, 1);
	}
}

/* One group, alone. */
static int produce_one(struct producer *producer)
{
	struct group *group = wait_for_group(producer);
	int err;

	if (!group)
		return -EINTR;
	err = group_build(group, 0) ?: post_until(producer, group);
	if (err)
		producer_give(producer, group);
	return err;
}

/* As many as are free, at once; of those that were not accepted the first one alone. */
static int produce_list(struct producer *producer)
{
	u32 nr = 0, i, want = 1 + prandom_u32_state(&producer->rnd) % LIST_MAX;
	struct group *groups[LIST_MAX];
	int done, err = 0;

	producer->plain = prandom_u32_state(&producer->rnd) & 1;
	want = min(want, producer->want - producer->posted);
	while (nr < want && !err) {
		groups[nr] = producer_take(producer);
		if (!groups[nr])
			break;
		do {
			err = group_build(groups[nr], nr);
		} while (!err && groups[nr]->copied);
		nr++;
	}
	producer->plain = false;
	if (!nr)
		return produce_one(producer);
	done = err ? 0 : group_post_list(groups, nr, want & 1 ? KVERBS_MORE : 0);
	if (done == -EAGAIN)
		done = 0;
	if (done < 0)
		err = done;
	for (i = max(done, 0); i < nr; i++) {
		if (!err)
			err = post_until(producer, groups[i]);
		if (err)
			producer_give(producer, groups[i]);
	}
	return err;
}

static int producer_main(void *data)
{
	struct producer *producer = data;
	int err = 0;

	while (producer->posted != producer->want && !err) {
		if (producer->traffic->attr.lists && prandom_u32_state(&producer->rnd) & 1)
			err = produce_list(producer);
		else
			err = produce_one(producer);
		cond_resched();
	}
	if (err == -EINTR)
		err = 0;
	if (err)
		WRITE_ONCE(producer->traffic->error, err);
	if (err && !producer->traffic->attr.may_fail)
		engine_fail("producer %u: a post is refused: error %d", producer->index, err);
	if (!producer->traffic->attr.no_flush)
		kverbs_flush(producer->queue->sq);
	kthread_complete_and_exit(&producer->finished, 0);
}

/* From an interrupt: what is not accepted stays for the next time. */
static enum hrtimer_restart timer_main(struct hrtimer *timer)
{
	struct producer *producer = container_of(timer, struct producer, timer);
	struct traffic *traffic = producer->traffic;
	int i, err = 0;

	for (i = 0; i < TIMER_BURST && producer->posted != producer->want && !err; i++) {
		if (!producer->pending) {
			producer->pending = producer_take(producer);
			if (producer->pending && group_build(producer->pending, 0))
				break;
		}
		if (!producer->pending)
			break;
		err = group_post(producer->pending, i + 1 < TIMER_BURST ? KVERBS_MORE : 0);
		if (!err)
			producer->pending = NULL;
	}
	kverbs_flush(producer->queue->sq);
	if (READ_ONCE(traffic->stop) || producer->posted == producer->want ||
	    (err && err != -EAGAIN)) {
		if (producer->pending)
			producer_give(producer, producer->pending);
		producer->pending = NULL;
		complete(&producer->finished);
		return HRTIMER_NORESTART;
	}
	hrtimer_forward_now(timer, ns_to_ktime(TIMER_NS));
	return HRTIMER_RESTART;
}

static bool by_timer(const struct producer *producer)
{
	return producer->traffic->attr.contexts && producer->index < 2;
}

static void start_timer(struct producer *producer)
{
	enum hrtimer_mode mode = producer->index ? HRTIMER_MODE_REL_SOFT : HRTIMER_MODE_REL_HARD;

	hrtimer_setup(&producer->timer, timer_main, CLOCK_MONOTONIC, mode);
	hrtimer_start(&producer->timer, ns_to_ktime(TIMER_NS), mode);
}

void traffic_start(struct traffic *traffic)
{
	struct producer *producer;
	struct task_struct *task;
	u32 i;

	for (i = 0; i < traffic->attr.producers; i++) {
		producer = &traffic->producer[i];
		if (by_timer(producer)) {
			start_timer(producer);
			continue;
		}
		task = kthread_run(producer_main, producer, "engine_%u", i);
		if (IS_ERR(task)) {
			engine_fail("no thread for producer %u", i);
			complete(&producer->finished);
		}
	}
}

/* The queue works again, and nothing is out: the producers go on where they were. */
void traffic_resume(struct traffic *traffic)
{
	u32 i;

	traffic->stop = false;
	traffic->flush_seen = false;
	traffic->error = 0;
	for (i = 0; i < traffic->attr.producers; i++)
		reinit_completion(&traffic->producer[i].finished);
	traffic_start(traffic);
}

/* Are all producers through? */
bool traffic_finished(struct traffic *traffic)
{
	u32 i;

	for (i = 0; i < traffic->attr.producers; i++)
		if (!completion_done(&traffic->producer[i].finished))
			return false;
	return true;
}

/* That were accepted. */
u64 traffic_work_requests(const struct traffic *traffic)
{
	u64 nr = 0;
	u32 i;

	for (i = 0; i < PRODUCERS; i++)
		nr += traffic->producer[i].posted_wrs;
	return nr;
}

static u32 accepted(const struct traffic *traffic)
{
	u32 i, nr = 0;

	for (i = 0; i < PRODUCERS; i++)
		nr += READ_ONCE(traffic->producer[i].posted);
	return nr;
}

bool traffic_settled(struct traffic *traffic)
{
	/* Pairs with the release at the end of ended(). */
	u32 ended = atomic_read_acquire(&traffic->ended);

	return ended == accepted(traffic);
}

/* Wait while groups end now and then. */
static bool wait_finished(struct traffic *traffic, struct producer *producer)
{
	int before;

	do {
		before = atomic_read(&traffic->ended);
		if (wait_for_completion_timeout(&producer->finished, STUCK))
			return true;
	} while (atomic_read(&traffic->ended) != before);
	return false;
}

/*
 * Until all producers are through and all that was accepted has ended. False if that
 * never comes: then the case has failed.
 */
bool traffic_wait(struct traffic *traffic)
{
	bool all = true;
	u32 i;

	for (i = 0; all && i < traffic->attr.producers; i++)
		all = wait_finished(traffic, &traffic->producer[i]);
	if (all) {
		for (i = 0; i < traffic->attr.producers; i++)
			complete(&traffic->producer[i].finished);
		WRITE_ONCE(traffic->stop, true);
		kverbs_flush(traffic->queue->sq);
		all = wait_event_timeout(traffic->wait, traffic_settled(traffic), STUCK);
	}
	if (!all)
		engine_fail("stuck: %u groups accepted, %u ended; %u credits of %u",
			    accepted(traffic), atomic_read(&traffic->ended),
			    rig_credits(traffic->queue), traffic->queue->rig->attr.depth);
	return all;
}

/* The producers post no more; what is out may still be. May be called again. */
void traffic_stop(struct traffic *traffic)
{
	u32 i;

	WRITE_ONCE(traffic->stop, true);
	for (i = 0; i < traffic->attr.producers; i++) {
		wait_for_completion(&traffic->producer[i].finished);
		complete(&traffic->producer[i].finished);
		if (by_timer(&traffic->producer[i]))
			hrtimer_cancel(&traffic->producer[i].timer);
	}
}

static void init_producer(struct traffic *traffic, u32 index)
{
	struct producer *producer = &traffic->producer[index];
	u32 i, first = index * traffic->nr_each;

	producer->traffic = traffic;
	producer->queue = traffic->queue;
	producer->index = index;
	producer->want = index < traffic->attr.producers ? traffic->attr.count : 0;
	prandom_seed_state(&producer->rnd, engine_random());
	spin_lock_init(&producer->lock);
	INIT_LIST_HEAD(&producer->free);
	init_completion(&producer->finished);
	for (i = first; i < first + traffic->nr_each; i++) {
		group_init(&traffic->groups[i], producer, i + 1);
		list_add_tail(&traffic->groups[i].free, &producer->free);
	}
}

/* NULL, and the case has failed. */
struct traffic *traffic_create(struct rig_queue *queue, const struct traffic_attr *attr)
{
	struct traffic *traffic = kzalloc(sizeof(*traffic), GFP_KERNEL);
	int err = -ENOMEM;
	u32 i, nr = attr->producers + !!attr->from_done;

	if (!traffic)
		goto fail;
	traffic->attr = *attr;
	traffic->queue = queue;
	traffic->nr_each = min_t(u32, GROUPS_MAX, queue->rig->attr.depth + 4);
	traffic->nr_groups = nr * traffic->nr_each;
	init_waitqueue_head(&traffic->wait);
	traffic->groups = kvcalloc(traffic->nr_groups, sizeof(*traffic->groups), GFP_KERNEL);
	if (!traffic->groups)
		goto free_traffic;
	for (i = 0; i < nr; i++)
		init_producer(traffic, i);
	if (!queue->rig->attr.scripted) {
		err = data_create(traffic);
		if (err)
			goto free_groups;
	}
	queue->traffic = traffic;
	return traffic;

free_groups:
	kvfree(traffic->groups);
free_traffic:
	kfree(traffic);
fail:
	engine_fail("no traffic: error %d", err);
	return NULL;
}

/* All that was accepted has ended, or the queue is gone. */
void traffic_destroy(struct traffic *traffic)
{
	/* done() of the last one has woken us from inside. */
	synchronize_rcu();
	traffic->queue->traffic = NULL;
	if (!traffic->queue->rig->attr.scripted)
		data_destroy(traffic);
	kvfree(traffic->groups);
	kfree(traffic);
}
