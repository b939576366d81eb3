// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Posting in hard interrupts: a timer's handler posts one request at a time, and before it
 * its receive, while the process posts the others on the same queues.
 */
#include <linux/jiffies.h>
#include <linux/preempt.h>

#include "../../../kmod/compat.h"
#include "simfault.h"

#define TICK_NS		20000

static void post_one(struct rig *rig)
{
	u32 signal = rig->attr.signal, index = rig->attr.count - rig->irq_left;
	struct rig_wr wr;
	int ret;

	if (rig->attr.recvs)
		rig_receive(rig, 1);
	rig_wr(rig, &wr, index, signal && (index + 1) % signal == 0);
	ret = ib_post_send(rig->qp[0], &wr.wr, NULL);
	if (ret)
		say("irq=%d\n", ret);
}

static enum hrtimer_restart tick(struct hrtimer *timer)
{
	struct rig *rig = container_of(timer, struct rig, timer);

	if (WARN_ON_ONCE(!in_hardirq()))
		return HRTIMER_NORESTART;
	post_one(rig);
	WRITE_ONCE(rig->irq_left, rig->irq_left - 1);
	if (!rig->irq_left) {
		wake_up(&rig->wait);
		return HRTIMER_NORESTART;
	}
	hrtimer_forward_now(timer, ns_to_ktime(TICK_NS));
	return HRTIMER_RESTART;
}

void rig_irq_start(struct rig *rig)
{
	rig->irq_left = rig->attr.irq;
	hrtimer_setup(&rig->timer, tick, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
	if (rig->irq_left)
		hrtimer_start(&rig->timer, ns_to_ktime(TICK_NS), HRTIMER_MODE_REL_HARD);
}

void rig_irq_wait(struct rig *rig)
{
	wait_event_timeout(rig->wait, !READ_ONCE(rig->irq_left),
			   msecs_to_jiffies(rig->attr.wait_ms));
	hrtimer_cancel(&rig->timer);
}
