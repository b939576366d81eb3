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

const struct engine_case ends_cases[] = {
	{ "regress_too_large_in_line", ON_ALL, too_large_in_line },
	{}
};
