// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What a 64-byte write costs a consumer that posts and polls so many at a time, in
 * nanoseconds: the best round of many, each too short for a timer tick to fall into all of
 * them. On a machine in which an instruction takes a nanosecond these are instructions.
 */
#include <linux/ktime.h>
#include <linux/sched.h>

#include "load.h"

#define COST_ROUNDS	64
#define COST_REQUESTS	16	/* of a round */
#define COST_BYTES	64

struct cost {
	u64 post;
	u64 poll;
};

static int cost_post(struct side *side, struct work **works, u32 batch)
{
	const struct ib_send_wr *bad;
	int err = 0;
	u32 i;

	for (i = 0; i < COST_REQUESTS; i += batch)
		err |= ib_post_send(side->qp, &works[i]->send, &bad);
	return err;
}

/*
 * All is there once it was posted: the device executes inside post_send. The room for it is
 * not on the stack, which some kernels clear: that is no cost of the device. Cases run one by
 * one.
 */
static u32 cost_poll(struct side *side, u32 batch)
{
	static struct ib_wc wc[COST_REQUESTS];
	u32 i, done = 0;

	for (i = 0; i < COST_REQUESTS; i += batch)
		done += ib_poll_cq(side->scq->ib, batch, wc);
	return done;
}

static bool cost_round(struct side *side, struct work **works, u32 batch, struct cost *best)
{
	u64 start, posted, polled;
	u32 done;
	int err;

	start = ktime_get_ns();
	err = cost_post(side, works, batch);
	posted = ktime_get_ns();
	done = cost_poll(side, batch);
	polled = ktime_get_ns();
	best->post = min(best->post, posted - start);
	best->poll = min(best->poll, polled - posted);
	return expect_is(err, 0) && expect_is(done, COST_REQUESTS);
}

static struct work *cost_work(struct side *side, u32 i)
{
	struct area *target = &side->peer->area;
	struct work *work = work_rdma(side, IB_WR_RDMA_WRITE, i * COST_BYTES, COST_BYTES,
				      area_remote(target, i * COST_BYTES), area_rkey(target));

	if (side->init.cap.max_inline_data) {
		work->sge[0].addr = (uintptr_t)side->area.va + i * COST_BYTES;
		work->send.send_flags |= IB_SEND_INLINE;
	}
	return work;
}

static void run_cost(struct bed *bed, u32 batch)
{
	struct side *side = &bed->side[0];
	struct area *target = &side->peer->area;
	struct cost best = { U64_MAX, U64_MAX };
	struct work *works[COST_REQUESTS];
	u32 i;

	if (!area_register(side, target, ALL_RIGHTS))
		return;
	for (i = 0; i < COST_REQUESTS; i++)
		works[i] = cost_work(side, i);
	for (i = 0; i < COST_REQUESTS; i += batch)
		work_chain(&works[i], batch);
	area_fill(&side->area, 0, COST_REQUESTS * COST_BYTES, 1);
	for (i = 0; i < COST_ROUNDS; i++) {
		if (!cost_round(side, works, batch, &best))
			return;
		cond_resched();
	}
	if (area_holds(target, 0, COST_REQUESTS * COST_BYTES, 1))
		conf_say("post %llu poll %llu\n", best.post / COST_REQUESTS,
			 best.poll / COST_REQUESTS);
}

#define INLINE	{ .inline_data = COST_BYTES }

const struct conf_case cost_cases[] = {
	{ "cost/write", run_cost, 1, NEED_IB | NEED_REG },
	{ "cost/write_chain", run_cost, COST_REQUESTS, NEED_IB | NEED_REG },
	{ "cost/inline", run_cost, 1, NEED_IB | NEED_REG, INLINE },
	{ "cost/inline_chain", run_cost, COST_REQUESTS, NEED_IB | NEED_REG, INLINE },
	{}
};
