// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What broke once where something begins or ends: a line of waiters, a burst, a queue on
 * a CQ. Each case is named after it.
 */
#include <linux/completion.h>

#include "engine.h"

static void credit_there(struct kverbs_credit_wait *wait)
{
}

/*
 * Behind a waiter a group that can never fit was not looked at: it joined the line, and
 * once it was first in it nobody behind it was served any more.
 */
static void too_large_in_line(enum rig_cq cq)
{
	struct kverbs_credit_wait first = { .nr_wrs = 3, .ready = credit_there };
	struct rig_attr attr = { .cq = cq, .depth = 3 };
	struct shots *shots = shots_create(&attr);
	struct shot *shot;

	if (!shots)
		return;
	expect_is(shot_post(shots, 3, 0), 0);
	expect_is(kverbs_on_credit(shots->queue->sq, &first), 0);
	shot = shot_new(shots, 4);
	expect_is(kverbs_post_wait(shots->queue->sq, &shot->req, 0, HZ / 2), -EMSGSIZE);
	hca_execute(shots->hca, U32_MAX);
	shots_wait(shots, 1);
	shots_destroy(shots);
}

/* The first of a list is refused: what was staged before the list is not left there. */
static void list_left_staged(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 16 };
	struct shots *shots = shots_create(&attr);
	struct kverbs_req *reqs[2];

	if (!shots)
		return;
	expect_is(shot_post(shots, 1, KVERBS_MORE), 0);
	expect_is(shots->hca->posted, 0);
	reqs[0] = &shot_new(shots, 1)->req;
	reqs[1] = &shot_new(shots, 1)->req;
	shots->shot[1].wr[0].wr.opcode = IB_WR_REG_MR_INTEGRITY;
	expect_is(kverbs_post_list(shots->queue->sq, reqs, 2, 0), -EINVAL);
	expect_is(shots->hca->posted, 1);
	hca_execute(shots->hca, U32_MAX);
	shots_wait(shots, 1);
	shots_expect(shots, 0, IB_WC_SUCCESS);
	shots_destroy(shots);
}

const struct engine_case ends_cases[] = {
	{ "regress_too_large_in_line", ON_ALL, too_large_in_line },
	{ "regress_list_left_staged", ON_ALL, list_left_staged },
	{}
};
