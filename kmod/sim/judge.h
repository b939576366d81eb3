/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The judge of consumers: what they do that breaks on real hardware sooner or later is
 * counted, traced (kverbs_sim:judge) and, at a limited rate, said in the kernel log. Rules
 * that need time are looked at now and then (sweep.c), the others where they are broken.
 */
#ifndef _KVERBS_SIM_JUDGE_H
#define _KVERBS_SIM_JUDGE_H

#include <linux/atomic.h>
#include <linux/ratelimit.h>
#include <linux/types.h>
#include <linux/workqueue.h>

struct sim_cq;
struct sim_device;
struct sim_mr;
struct sim_qp;

/**
 * enum sim_judge_rule - the rules, and who breaks them
 * @SIM_JUDGE_SQ_OVERRUN: who posts more than the send queue holds
 * @SIM_JUDGE_SQ_SILENT: who fills it with silent requests, none of which gives a place back
 * @SIM_JUDGE_SILENT_TAIL: who leaves the last request of an idle queue silent
 * @SIM_JUDGE_CQ_UNDERSIZED: whose queue pairs can produce more than their CQ holds; since
 *	not every such CQ overflows that is only counted
 * @SIM_JUDGE_CQ_OVERFLOW: whose CQ does
 * @SIM_JUDGE_LOST_ARM: who leaves completions on a CQ, and is not to be woken
 * @SIM_JUDGE_MISSED_IGNORED: who arms again, and does not poll after a missed event
 * @SIM_JUDGE_POLL_IN_HANDLER: who polls or arms inside the handler; seen under EVENT_LOCKED
 * @SIM_JUDGE_INLINE_DMA: who gives a DMA address for inline data
 * @SIM_JUDGE_MR_IN_USE: who invalidates or deregisters what a request still names
 * @SIM_JUDGE_DMA_ADDRESS: who posts, or has registered, a DMA address that is not mapped, or
 *	has the device write to one that is mapped to be read
 * @SIM_JUDGE_DMA_UNMAP: who unmaps what is not mapped, or in another size or direction
 * @SIM_JUDGE_DMA_LEAKED: who has left a mapping when the device leaves, counters and all
 * @SIM_NR_JUDGE_RULES: how many there are
 */
enum sim_judge_rule {
	SIM_JUDGE_SQ_OVERRUN,
	SIM_JUDGE_SQ_SILENT,
	SIM_JUDGE_SILENT_TAIL,
	SIM_JUDGE_CQ_UNDERSIZED,
	SIM_JUDGE_CQ_OVERFLOW,
	SIM_JUDGE_LOST_ARM,
	SIM_JUDGE_MISSED_IGNORED,
	SIM_JUDGE_POLL_IN_HANDLER,
	SIM_JUDGE_INLINE_DMA,
	SIM_JUDGE_MR_IN_USE,
	SIM_JUDGE_DMA_ADDRESS,
	SIM_JUDGE_DMA_UNMAP,
	SIM_JUDGE_DMA_LEAKED,
	SIM_NR_JUDGE_RULES,
};

/**
 * struct sim_judge - of a device
 * @strict: a broken rule is a WARN
 * @silent_tail_ms: how long a send queue may be idle behind a silent request
 * @lost_arm_ms: how long a completion may wait without anybody being told
 * @broken: how often each rule was
 * @limits: of what is said of each rule
 * @sweep: looks at what needs time
 */
struct sim_judge {
	u32 strict;
	u32 silent_tail_ms;
	u32 lost_arm_ms;
	atomic64_t broken[SIM_NR_JUDGE_RULES];
	struct ratelimit_state limits[SIM_NR_JUDGE_RULES];
	struct delayed_work sweep;
};

/* Of a queue pair: what the last sweep saw. */
struct sim_qp_judge {
	u32 head;
	bool told;
	unsigned long since;
};

/**
 * struct sim_cq_judge - of a completion queue
 * @claims: CQEs that its queue pairs can have outstanding
 * @missed: the CPU, plus one, where an arm reported a missed event, if nobody has polled since
 * @raised: where the consumer was when it was last told, plus one
 * @tail: where it was at the last sweep
 * @since: when it was seen there first
 * @told: it was reported
 */
struct sim_cq_judge {
	atomic_t claims;
	int missed;
	s64 raised;
	s64 tail;
	unsigned long since;
	bool told;
};

/* judge.c */
void sim_judge_init(struct sim_device *sim);
void sim_judge_destroy(struct sim_device *sim);
void sim_judge_look(struct sim_judge *judge);
void sim_judge_qp(struct sim_qp *qp, u32 wqe, enum sim_judge_rule rule);
void sim_judge_cq(struct sim_cq *cq, enum sim_judge_rule rule);
void sim_judge_dma(struct sim_device *sim, enum sim_judge_rule rule);
int sim_judge_full(struct sim_qp *qp);
int sim_judge_inline(struct sim_qp *qp);
void sim_judge_claim(struct sim_qp *qp);
void sim_judge_unclaim(struct sim_qp *qp);
void sim_judge_invalidate(struct sim_qp *qp, struct sim_mr *mr);

/* sweep.c */
void sim_judge_sweep(struct work_struct *work);
void sim_judge_dereg(struct sim_mr *mr);

#endif /* _KVERBS_SIM_JUDGE_H */
