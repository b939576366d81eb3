// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The judge: how a broken rule is reported, and the rules that are broken at one moment.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "sim.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

#define PATIENCE_MS	5000	/* a consumer may be slow */
#define LIMIT_INTERVAL	(5 * HZ)
#define LIMIT_BURST	3

/* What the consumer did. */
static const struct {
	const char *name;
	const char *text;
} rules[SIM_NR_JUDGE_RULES] = {
	[SIM_JUDGE_SQ_OVERRUN] = {
		"sq_overrun",
		"posted more than the send queue holds: polled CQEs give places back",
	},
	[SIM_JUDGE_SQ_SILENT] = {
		"sq_silent",
		"filled the send queue with silent requests: no CQE will give a place back",
	},
	[SIM_JUDGE_SILENT_TAIL] = {
		"silent_tail",
		"left the last request silent: nothing tells when it is done",
	},
	[SIM_JUDGE_CQ_UNDERSIZED] = {
		"cq_undersized",
		"created a queue pair that its CQ has no room for",
	},
	[SIM_JUDGE_CQ_OVERFLOW] = {
		"cq_overflow",
		"let a CQ overflow: completions are lost",
	},
	[SIM_JUDGE_LOST_ARM] = {
		"lost_arm",
		"left completions on a CQ that it neither polls nor is to be woken by",
	},
	[SIM_JUDGE_MISSED_IGNORED] = {
		"missed_ignored",
		"armed a CQ again, and did not poll it after a missed event",
	},
	[SIM_JUDGE_POLL_IN_HANDLER] = {
		"poll_in_handler",
		"polled or armed a CQ inside its event handler: some drivers deadlock",
	},
	[SIM_JUDGE_INLINE_DMA] = {
		"inline_dma",
		"posted inline data by a DMA address: it takes a virtual one",
	},
	[SIM_JUDGE_MR_IN_USE] = {
		"mr_in_use",
		"invalidated or deregistered a memory region that a request still uses",
	},
	[SIM_JUDGE_DMA_ADDRESS] = {
		"dma_address",
		"named a DMA address that is not mapped, or not to be written to",
	},
	[SIM_JUDGE_DMA_UNMAP] = {
		"dma_unmap",
		"unmapped what is not mapped, or not in that size or direction",
	},
	[SIM_JUDGE_DMA_LEAKED] = {
		"dma_leaked",
		"left a DMA mapping behind",
	},
};

/* @where: the object, in words. */
static void say(struct sim_device *sim, enum sim_judge_rule rule, const char *where)
{
	struct sim_judge *judge = &sim->judge;

	if (!__ratelimit(&judge->limits[rule]))
		return;
	if (READ_ONCE(judge->strict))
		WARN(1, "%s: %s: %s: consumer %s\n", dev_name(&sim->ib.dev), where,
		     rules[rule].name, rules[rule].text);
	else
		pr_warn("%s: %s: %s: consumer %s\n", dev_name(&sim->ib.dev), where,
			rules[rule].name, rules[rule].text);
}

/* A rule was broken on a send queue, by the work request with this place in it. */
void sim_judge_qp(struct sim_qp *qp, u32 wqe, enum sim_judge_rule rule)
{
	struct sim_device *sim = sim_of_qp(qp);
	char where[40];

	atomic64_inc(&sim->judge.broken[rule]);
	trace_judge(sim->ib.index, rule, qp->ib.qp_num, wqe, 0);
	snprintf(where, sizeof(where), "qp %u wqe %u", qp->ib.qp_num, wqe);
	say(sim, rule, where);
}

void sim_judge_cq(struct sim_cq *cq, enum sim_judge_rule rule)
{
	struct sim_device *sim = sim_of_cq(cq);
	char where[20];

	atomic64_inc(&sim->judge.broken[rule]);
	trace_judge(sim->ib.index, rule, 0, 0, cq->ib.res.id);
	snprintf(where, sizeof(where), "cq %u", cq->ib.res.id);
	if (rule != SIM_JUDGE_CQ_UNDERSIZED)
		say(sim, rule, where);
}

/* Which address it was is not said: with virtual DMA it is a pointer. */
void sim_judge_dma(struct sim_device *sim, enum sim_judge_rule rule)
{
	atomic64_inc(&sim->judge.broken[rule]);
	trace_judge(sim->ib.index, rule, 0, 0, 0);
	say(sim, rule, "DMA");
}

/* All of it was executed, and no CQE of it is to come or to be polled. */
static bool all_silent(const struct sim_sq *sq)
{
	u32 head = atomic_read(&sq->head);

	return READ_ONCE(sq->next) == head && READ_ONCE(sq->silent) == sq->depth &&
	       !(sim_sq_slot(sq, head - 1)->flags & IB_SEND_SIGNALED);
}

/* What a post to a full send queue returns. */
int sim_judge_full(struct sim_qp *qp)
{
	sim_judge_qp(qp, atomic_read(&qp->sq->head),
		     all_silent(qp->sq) ? SIM_JUDGE_SQ_SILENT : SIM_JUDGE_SQ_OVERRUN);
	return -ENOMEM;
}

/* What a post of inline data returns that is nowhere. */
int sim_judge_inline(struct sim_qp *qp)
{
	sim_judge_qp(qp, atomic_read(&qp->sq->head), SIM_JUDGE_INLINE_DMA);
	return -EFAULT;
}

static void claim(struct sim_cq *cq, u32 cqes)
{
	u32 claims = atomic_add_return(cqes, &cq->judge.claims);

	if (claims > cq->depth && claims - cqes <= cq->depth)
		sim_judge_cq(cq, SIM_JUDGE_CQ_UNDERSIZED);
}

/* Every send may end with a CQE; a shared receive queue is not ours alone. */
void sim_judge_claim(struct sim_qp *qp)
{
	claim(to_sim_cq(qp->ib.send_cq), qp->sq->depth);
	if (!qp->srq)
		claim(to_sim_cq(qp->ib.recv_cq), qp->rq.depth);
}

void sim_judge_unclaim(struct sim_qp *qp)
{
	atomic_sub(qp->sq->depth, &to_sim_cq(qp->ib.send_cq)->judge.claims);
	if (!qp->srq)
		atomic_sub(qp->rq.depth, &to_sim_cq(qp->ib.recv_cq)->judge.claims);
}

/* Somebody copies by it: said once for each key. */
void sim_judge_invalidate(struct sim_qp *qp, struct sim_mr *mr)
{
	if (xchg(&mr->judged, mr->key) != mr->key)
		sim_judge_qp(qp, READ_ONCE(qp->sq->next), SIM_JUDGE_MR_IN_USE);
}

void sim_judge_init(struct sim_device *sim)
{
	struct sim_judge *judge = &sim->judge;
	int i;

	judge->silent_tail_ms = PATIENCE_MS;
	judge->lost_arm_ms = PATIENCE_MS;
	for (i = 0; i < SIM_NR_JUDGE_RULES; i++)
		ratelimit_state_init(&judge->limits[i], LIMIT_INTERVAL, LIMIT_BURST);
	INIT_DELAYED_WORK(&judge->sweep, sim_judge_sweep);
	schedule_delayed_work(&judge->sweep, HZ);
}

/* The next sweep is due now, if none is under way. */
void sim_judge_look(struct sim_judge *judge)
{
	if (cancel_delayed_work(&judge->sweep))
		schedule_delayed_work(&judge->sweep, 0);
}

void sim_judge_destroy(struct sim_device *sim)
{
	cancel_delayed_work_sync(&sim->judge.sweep);
}
