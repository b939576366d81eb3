// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Single groups on a scripted HCA that executes only what the case tells it to.
 */
#include <linux/delay.h>
#include <linux/slab.h>

#include "engine.h"

#define PATIENCE	(15 * HZ)

static void shot_done(struct kverbs_req *req, enum ib_wc_status status)
{
	struct shot *shot = container_of(req, struct shot, req);
	struct shots *shots = shot->shots;

	if (hook_in_post())
		engine_fail("done() inside a post");
	shot->status = status;
	shot->place = atomic_read(&shots->ended);
	shot->ended++;
	if (shot->on_done)
		shot->on_done(shot);
	atomic_inc_return_release(&shots->ended);
	wake_up_all(&shots->wait);
}

/* A write chain of @nr_wrs; NULL, and the case has failed, if there are too many. */
struct shot *shot_new(struct shots *shots, u32 nr_wrs)
{
	struct shot *shot;
	u32 i;

	if (shots->nr == SHOTS || nr_wrs > SHOT_WRS) {
		engine_fail("too many shots, or work requests in one");
		return NULL;
	}
	shot = &shots->shot[shots->nr++];
	shot->shots = shots;
	shot->nr = nr_wrs;
	shot->req.wr = &shot->wr[0].wr;
	shot->req.done = shot_done;
	for (i = 0; i < nr_wrs; i++) {
		shot->sge[i].length = 8;
		shot->wr[i].wr.opcode = IB_WR_RDMA_WRITE;
		shot->wr[i].wr.sg_list = &shot->sge[i];
		shot->wr[i].wr.num_sge = 1;
		if (i)
			shot->wr[i - 1].wr.next = &shot->wr[i].wr;
	}
	return shot;
}

int shot_post(struct shots *shots, u32 nr_wrs, unsigned int flags)
{
	struct shot *shot = shot_new(shots, nr_wrs);
	int err;

	if (!shot)
		return -ENOMEM;
	hook_post_begin();
	err = kverbs_post(shots->queue->sq, &shot->req, flags);
	hook_post_end();
	return err;
}

/* @nr groups of one, at once; those that are not accepted are none. */
int shot_post_list(struct shots *shots, u32 nr, unsigned int flags)
{
	struct kverbs_req *reqs[64];
	struct shot *shot;
	int done;
	u32 i;

	for (i = 0; i < nr; i++) {
		shot = shot_new(shots, 1);
		if (!shot || i == ARRAY_SIZE(reqs))
			return -ENOMEM;
		reqs[i] = &shot->req;
	}
	hook_post_begin();
	done = kverbs_post_list(shots->queue->sq, reqs, nr, flags);
	hook_post_end();
	shots->nr -= nr - max(done, 0);
	return done;
}

/* Until so many have ended, and no more than that. */
bool shots_wait(struct shots *shots, u32 ended)
{
	wait_event_timeout(shots->wait, atomic_read_acquire(&shots->ended) >= ended, PATIENCE);
	return expect_is(atomic_read(&shots->ended), ended);
}

/* The shot ended once, in its place, with @status. */
void shots_expect(struct shots *shots, u32 index, enum ib_wc_status status)
{
	struct shot *shot = &shots->shot[index];

	if (shot->ended != 1 || shot->place != index || shot->status != status)
		engine_fail("shot %u ended %u times, as number %u, with %s; it should with %s",
			    index, shot->ended, shot->place, ib_wc_status_msg(shot->status),
			    ib_wc_status_msg(status));
}

bool eventually(bool (*condition)(void *data), void *data)
{
	unsigned long end = jiffies + PATIENCE;

	while (!condition(data)) {
		if (time_after(jiffies, end))
			return false;
		usleep_range(100, 1000);
	}
	return true;
}

/* NULL, and the case has failed. */
struct shots *shots_create(const struct rig_attr *attr)
{
	struct rig_attr scripted = *attr;
	struct shots *shots;

	scripted.scripted = true;
	shots = kvcalloc(1, sizeof(*shots), GFP_KERNEL);
	if (!shots) {
		engine_fail("no memory for shots");
		return NULL;
	}
	init_waitqueue_head(&shots->wait);
	shots->rig = rig_create(&scripted);
	if (!shots->rig) {
		kvfree(shots);
		return NULL;
	}
	shots->queue = &shots->rig->queue[0];
	shots->hca = shots->queue->hca;
	WRITE_ONCE(shots->hca->by_hand, true);
	return shots;
}

/* What is still out ends with the queue. */
void shots_destroy(struct shots *shots)
{
	u32 i;

	if (shots->queue->sq && rig_credits(shots->queue) != shots->rig->attr.depth)
		rig_drain_for(shots->queue, 0);
	rig_destroy(shots->rig);
	for (i = 0; i < shots->nr; i++)
		if (shots->shot[i].ended > 1)
			engine_fail("shot %u ended %u times", i, shots->shot[i].ended);
	kvfree(shots);
}
