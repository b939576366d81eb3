// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Exactly once, by count: queue after queue of random shape and traffic, over a driver
 * that is made to fail meanwhile by whoever runs this (kmod/ledger.sh). What becomes of
 * each group is judged in group.c, what it carries in data.c; here the accounts are closed:
 * accepted is ended, each work request is retired, all credit is back, and what the
 * engine counts it has told, too.
 */
#include <linux/delay.h>
#include <linux/slab.h>

#include "engine.h"

#define ROUNDS_MAX	10
#define STUCK		(15 * HZ)	/* without any progress: then something was lost */
#define RECOVERIES_MAX	40

/**
 * struct terms - what the driver is made to do
 * @refuses: it refuses groups, and says which
 * @fails: requests end with an error, and so does the queue
 * @unsure: it refuses without a word of what it took, or where nothing can close what is
 *	silent: the queue fails, and what is out may end only with it
 * @loses: a CQE does not come, or the event that tells of it
 * @doubles: a CQE comes twice
 */
struct terms {
	bool refuses;
	bool fails;
	bool unsure;
	bool loses;
	bool doubles;
};

struct ledger {
	const struct terms *terms;
	enum rig_cq cq;
	struct rig *rig;
	struct rig_attr shape;
	struct traffic_attr work;
	struct traffic *traffic[RIG_QUEUES];
	atomic_t told[KVERBS_NR_COUNTERS];	/* events, by what they tell of */
	u64 groups;
	u64 wrs;
	u64 succeeded;
	u64 flushed;
	u64 refused;
	u64 failed;
	u64 missing;
	u64 stale;
	u32 rounds;
	u32 recovered;
};

static void on_error(void *data, u32 dev, u32 qp, u32 reason, s32 code, u32 vendor)
{
	struct ledger *ledger = data;

	if (reason < KVERBS_NR_COUNTERS)
		atomic_inc(&ledger->told[reason]);
}

static bool one_in(u32 nr)
{
	return engine_random() % nr == 0;
}

static bool on_kverbs(const struct ledger *ledger)
{
	return BIT(ledger->cq) & ON_KVERBS;
}

/*
 * Where a CQE comes twice the depth is no power of two: a place is then not posted again
 * before the second one was dispatched, by which it would end another group.
 */
static u32 choose_depth(const struct ledger *ledger)
{
	static const u32 depths[] = {
		100, 300, 33, 13, 1000, 600, 128, 1024, 64, 256, 16, 5, 3, 2, 1,
	};

	return depths[engine_random() % (ledger->terms->doubles ? 4 : ARRAY_SIZE(depths))];
}

static void choose_shape(struct ledger *ledger)
{
	static const enum ib_qp_type types[] = {
		IB_QPT_RC, IB_QPT_RC, IB_QPT_RC, IB_QPT_UD, IB_QPT_UC,
	};
	static const u32 inlines[] = { 0, 16, 64, 101, 256 };
	struct rig_attr *shape = &ledger->shape;

	*shape = (struct rig_attr){
		.cq = ledger->cq,
		.type = types[engine_random() % ARRAY_SIZE(types)],
		.depth = choose_depth(ledger),
		.queues = 1 + engine_random() % 3,
		.last_cpu = one_in(2),
		.max_inline = inlines[engine_random() % ARRAY_SIZE(inlines)],
		.copy_sge = 1,
		.hold_max_ns = one_in(8) ? 20 * NSEC_PER_USEC : 0,
		.timeout = 8,	/* a millisecond */
	};
	/* CQEs that are doubled are of writes, and nothing closes what is silent on UD. */
	if (ledger->terms->doubles || ledger->terms->loses || ledger->terms->refuses)
		shape->type = IB_QPT_RC;
	shape->iwarp = shape->type == IB_QPT_RC && one_in(4);
	shape->cqe_timeout_ms = ledger->terms->loses ? MSEC_PER_SEC : 0;
	shape->nr_cqe = shape->queues * shape->depth * (ledger->terms->doubles ? 2 : 1);
}

static u32 choose_kinds(const struct ledger *ledger)
{
	u32 may, kinds;

	switch (ledger->shape.type) {
	case IB_QPT_UD:
		return BIT(GROUP_SEND);
	case IB_QPT_UC:
		may = BIT(GROUP_WRITE) | BIT(GROUP_SEND);
		break;
	default:
		may = BIT(GROUP_NR_KINDS) - 1;
	}
	/* Where LOCAL_INV is refused the next REG_MR fails. */
	if (ledger->shape.depth < 3 || ledger->terms->refuses || ledger->terms->unsure)
		may &= ~BIT(GROUP_REG);
	/* A lost event must not be that of the receives. */
	if (ledger->terms->loses)
		return (may & engine_random() & ~BIT(GROUP_SEND)) | BIT(GROUP_WRITE);
	kinds = may & engine_random();
	return kinds ?: BIT(GROUP_WRITE);
}

static void choose_work(struct ledger *ledger)
{
	const struct terms *terms = ledger->terms;
	u32 depth = ledger->shape.depth;

	ledger->work = (struct traffic_attr){
		.producers = 1 + engine_random() % 4,
		.kinds = choose_kinds(ledger),
		.max_group = 1 + engine_random() % min_t(u32, depth, GROUP_MAX),
		.from_done = one_in(2) ? 4 : 0,
		.more = one_in(4) ? 0 : 1 + engine_random() % 4,
		.lists = !one_in(4),
		.wait = one_in(2),
		.copies = one_in(2),
		.inlines = one_in(2),
		.imm = ledger->shape.type != IB_QPT_UC && !terms->loses && one_in(2),
		.contexts = one_in(6),
		.may_refuse = terms->refuses || terms->unsure,
		.may_fail = terms->fails || terms->unsure || terms->loses,
		.may_lose = terms->loses,
		.may_drop = ledger->shape.type != IB_QPT_RC && terms->fails,
	};
	/* A shallow queue is slow. */
	ledger->work.count = min(engine_count / 2, depth * 256) / ledger->work.producers /
			     ledger->shape.queues + 16;
}

static void say(const struct ledger *ledger)
{
	const struct rig_attr *shape = &ledger->shape;
	const struct traffic_attr *work = &ledger->work;

	engine_note("round %u: type %d, %u queues of depth %u, inline %u, hold %llu ns%s%s",
		    ledger->rounds, shape->type, shape->queues, shape->depth, shape->max_inline,
		    shape->hold_max_ns, shape->iwarp ? ", iwarp" : "",
		    shape->last_cpu ? ", last CPU" : "");
	engine_note("round %u: %u producers of %u groups of %u, kinds %#x, more %u%s%s%s%s%s%s%s",
		    ledger->rounds, work->producers, work->count, work->max_group, work->kinds,
		    work->more, work->from_done ? ", from done()" : "",
		    work->lists ? ", lists" : "", work->wait ? ", wait" : "",
		    work->copies ? ", copies" : "", work->inlines ? ", inlines" : "",
		    work->imm ? ", imm" : "", work->contexts ? ", interrupts" : "");
}

static bool build(struct ledger *ledger)
{
	struct rig *rig;
	u32 i;

	rig = rig_create(&ledger->shape);
	ledger->rig = rig;
	for (i = 0; rig && i < rig->attr.queues; i++) {
		ledger->traffic[i] = traffic_create(&rig->queue[i], &ledger->work);
		if (!ledger->traffic[i])
			return false;
	}
	return rig;
}

/* In the midst of it the CQ is served in other ways. */
static void change_modes(struct ledger *ledger)
{
	static const enum kverbs_cq_mode modes[] = {
		KVERBS_CQ_INTERRUPT, KVERBS_CQ_POLL, KVERBS_CQ_HYBRID, KVERBS_CQ_ADAPTIVE,
	};
	u32 i, nr = engine_random() % 4;

	if (!on_kverbs(ledger) || ledger->terms->loses)
		return;
	for (i = 0; i < nr; i++) {
		usleep_range(1000, 5000);
		expect_is(kverbs_cq_set_mode(ledger->rig->kcq, modes[engine_random() % 4]), 0);
	}
}

/* A queue that has failed gives all back; in SQE it works again. */
static void recover(struct ledger *ledger, struct traffic *traffic)
{
	struct rig_queue *queue = traffic->queue;
	u32 i;

	for (i = 0; i < RECOVERIES_MAX && traffic->error == -EIO; i++) {
		if (!expect_is(rig_credits(queue), ledger->shape.depth) ||
		    kverbs_sq_recover(queue->sq))
			return;
		ledger->recovered++;
		traffic_resume(traffic);
		if (!traffic_wait(traffic))
			return;
	}
}

static bool over(struct ledger *ledger, struct traffic *traffic, unsigned long quiet)
{
	if (traffic_finished(traffic) && traffic_settled(traffic))
		return true;
	if (ledger->terms->unsure && quiet > HZ / 5)
		return atomic_read(&ledger->told[KVERBS_REFUSED_DRIVER]);
	return rig_counter(traffic->queue, KVERBS_CQE_MISSING);
}

/* Until all has ended; or it is known that some of it will not before the queue does. */
static void wait_over(struct ledger *ledger, struct traffic *traffic)
{
	unsigned long since = jiffies;
	int ended, before = 0;

	while (!over(ledger, traffic, jiffies - since)) {
		usleep_range(100, 1000);
		ended = atomic_read(&traffic->ended);
		if (ended != before)
			since = jiffies;
		before = ended;
		if (!expect(jiffies - since < STUCK))
			return;
	}
}

static void wait_for(struct ledger *ledger, struct traffic *traffic)
{
	if (ledger->terms->loses || ledger->terms->unsure)
		wait_over(ledger, traffic);
	else if (traffic_wait(traffic) && ledger->terms->fails)
		recover(ledger, traffic);
	traffic_stop(traffic);
}

static void end(struct ledger *ledger, struct traffic *traffic)
{
	struct rig_queue *queue = traffic->queue;
	bool open = rig_counter(queue, KVERBS_CQE_MISSING) || ledger->terms->unsure;
	int err;

	err = rig_drain_for(queue, open ? HZ / 5 : 10 * HZ);
	if (!open || !err) {
		expect_is(err, 0);
		expect(traffic_settled(traffic));
		expect_is(rig_credits(queue), ledger->shape.depth);
		expect_is(rig_counter(queue, KVERBS_COMPLETIONS), traffic_work_requests(traffic));
	}
}

static u64 counted(const struct ledger *ledger, enum kverbs_counter counter)
{
	u64 sum = 0;
	u32 i;

	for (i = 0; i < ledger->rig->attr.queues; i++)
		sum += rig_counter(&ledger->rig->queue[i], counter);
	return sum;
}

/* What is counted was told, too; and each CQE was somebody's, or stale. */
static bool told(void *data)
{
	struct ledger *ledger = data;

	if (atomic_read(&ledger->told[KVERBS_CQE_STALE]) != counted(ledger, KVERBS_CQE_STALE) ||
	    atomic_read(&ledger->told[KVERBS_CQE_MISSING]) != counted(ledger, KVERBS_CQE_MISSING))
		return false;
	return !on_kverbs(ledger) ||
	       kverbs_cq_counter(ledger->rig->kcq, KVERBS_CQES) ==
	       counted(ledger, KVERBS_QUEUE_CQES) + counted(ledger, KVERBS_CQE_STALE);
}

static void close_accounts(struct ledger *ledger)
{
	if (!expect(eventually(told, ledger)))
		engine_note("%llu CQEs are the queues', %llu stale; told of %d, %d of %llu missing",
			    counted(ledger, KVERBS_QUEUE_CQES), counted(ledger, KVERBS_CQE_STALE),
			    atomic_read(&ledger->told[KVERBS_CQE_STALE]),
			    atomic_read(&ledger->told[KVERBS_CQE_MISSING]),
			    counted(ledger, KVERBS_CQE_MISSING));
	if (!ledger->terms->doubles)
		expect_is(counted(ledger, KVERBS_CQE_STALE), 0);
	if (!ledger->terms->loses)
		expect_is(counted(ledger, KVERBS_CQE_MISSING), 0);
	ledger->stale += counted(ledger, KVERBS_CQE_STALE);
	ledger->missing += counted(ledger, KVERBS_CQE_MISSING);
	atomic_set(&ledger->told[KVERBS_CQE_STALE], 0);
	atomic_set(&ledger->told[KVERBS_CQE_MISSING], 0);
}

/* With the queue all has ended that was accepted. */
static void enter(struct ledger *ledger, struct traffic *traffic)
{
	u64 ended = atomic_read(&traffic->ended);

	expect(traffic_settled(traffic));
	expect_is(atomic_read(&traffic->succeeded) + atomic_read(&traffic->flushed) +
		  atomic_read(&traffic->refused) + atomic_read(&traffic->failed), ended);
	ledger->groups += ended;
	ledger->wrs += traffic_work_requests(traffic);
	ledger->succeeded += atomic_read(&traffic->succeeded);
	ledger->flushed += atomic_read(&traffic->flushed);
	ledger->refused += atomic_read(&traffic->refused);
	ledger->failed += atomic_read(&traffic->failed);
}

static void destroy(struct ledger *ledger)
{
	struct traffic *traffic;
	u32 i;

	if (!ledger->rig)
		return;
	for (i = 0; i < ledger->rig->attr.queues; i++) {
		traffic = ledger->traffic[i];
		if (!traffic)
			continue;
		rig_queue_destroy(&ledger->rig->queue[i]);
		enter(ledger, traffic);
		traffic_destroy(traffic);
		ledger->traffic[i] = NULL;
	}
	rig_destroy(ledger->rig);
}

static void play(struct ledger *ledger)
{
	u32 i, queues = ledger->rig->attr.queues;

	for (i = 0; i < queues; i++)
		traffic_start(ledger->traffic[i]);
	change_modes(ledger);
	for (i = 0; i < queues; i++)
		wait_for(ledger, ledger->traffic[i]);
	for (i = 0; i < queues; i++)
		end(ledger, ledger->traffic[i]);
	close_accounts(ledger);
}

static void run_rounds(struct ledger *ledger)
{
	do {
		ledger->rounds++;
		choose_shape(ledger);
		choose_work(ledger);
		if (build(ledger))
			play(ledger);
		destroy(ledger);
		if (engine_failed())
			say(ledger);
	} while (!engine_failed() && !ledger->terms->loses && ledger->rounds < ROUNDS_MAX &&
		 ledger->wrs < engine_count);
}

static void run(enum rig_cq cq, const struct terms *terms)
{
	struct ledger *ledger = kzalloc(sizeof(*ledger), GFP_KERNEL);

	if (!expect(ledger))
		return;
	ledger->terms = terms;
	ledger->cq = cq;
	if (expect_is(probe_attach("kverbs_error", on_error, ledger), 0)) {
		run_rounds(ledger);
		probe_detach();
	}
	engine_note("ledger: work_requests=%llu groups=%llu rounds=%u missing=%llu stale=%llu",
		    ledger->wrs, ledger->groups, ledger->rounds, ledger->missing, ledger->stale);
	engine_note("ledger: succeeded=%llu flushed=%llu refused=%llu failed=%llu recovered=%u",
		    ledger->succeeded, ledger->flushed, ledger->refused, ledger->failed,
		    ledger->recovered);
	kfree(ledger);
}

static void ledger_good(enum rig_cq cq)
{
	static const struct terms terms;

	run(cq, &terms);
}

static void ledger_refused(enum rig_cq cq)
{
	static const struct terms terms = { .refuses = true };

	run(cq, &terms);
}

static void ledger_failed(enum rig_cq cq)
{
	static const struct terms terms = { .fails = true };

	run(cq, &terms);
}

static void ledger_unsure(enum rig_cq cq)
{
	static const struct terms terms = { .unsure = true };

	run(cq, &terms);
}

static void ledger_lost(enum rig_cq cq)
{
	static const struct terms terms = { .loses = true };

	run(cq, &terms);
}

static void ledger_twice(enum rig_cq cq)
{
	static const struct terms terms = { .doubles = true };

	run(cq, &terms);
}

const struct engine_case ledger_cases[] = {
	{ "ledger_good", ON_ALL, ledger_good },
	{ "ledger_refused", ON_ALL, ledger_refused },
	{ "ledger_failed", ON_ALL, ledger_failed },
	{ "ledger_unsure", ON_ALL, ledger_unsure },
	{ "ledger_lost", ON_ALL, ledger_lost },
	{ "ledger_twice", ON_ALL, ledger_twice },
	{}
};
