// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Counters. Each has one writer, the owner of a queue pair, or is the position of a ring, or
 * is kept for each CPU; what was destroyed is added to the device's totals. A sum is exact
 * when nothing runs.
 *
 * What crosses PCIe is among them: doorbells (of which as many as there are blueflames had
 * a WQE with them), wqe_fetches, payload_reads, cqes, and for each of the events an
 * interrupt.
 *
 * Those of the judge come last.
 */
#include "sim.h"

#define OF_JUDGE(_rule)	(SIM_NR_COUNTERS + SIM_JUDGE_##_rule)
#define NR_ALL		(SIM_NR_COUNTERS + SIM_NR_JUDGE_RULES)

static const struct rdma_stat_desc descs[NR_ALL] = {
	[SIM_CNT_DOORBELLS].name = "doorbells",
	[SIM_CNT_SEND_WQES].name = "send_wqes",
	[SIM_CNT_RECV_WQES].name = "recv_wqes",
	[SIM_CNT_SENDS].name = "sends",
	[SIM_CNT_WRITES].name = "writes",
	[SIM_CNT_READS].name = "reads",
	[SIM_CNT_ATOMICS].name = "atomics",
	[SIM_CNT_REGISTRATIONS].name = "registrations",
	[SIM_CNT_INVALIDATIONS].name = "invalidations",
	[SIM_CNT_INLINE].name = "inline_wqes",
	[SIM_CNT_BYTES].name = "bytes",
	[SIM_CNT_PAYLOAD_READS].name = "payload_reads",
	[SIM_CNT_ERRORS].name = "send_errors",
	[SIM_CNT_FLUSHED].name = "send_flushed",
	[SIM_CNT_RNR].name = "rnr_naks",
	[SIM_CNT_RETRIES].name = "retries",
	[SIM_CNT_DROPPED].name = "dropped",
	[SIM_CNT_CQES].name = "cqes",
	[SIM_CNT_EVENTS].name = "events",
	[SIM_CNT_CQ_OVERFLOWS].name = "cq_overflows",
	[SIM_CNT_WQE_FETCHES].name = "wqe_fetches",
	[SIM_CNT_BLUEFLAMES].name = "blueflames",
	[OF_JUDGE(SQ_OVERRUN)].name = "judge_sq_overrun",
	[OF_JUDGE(SQ_SILENT)].name = "judge_sq_silent",
	[OF_JUDGE(SILENT_TAIL)].name = "judge_silent_tail",
	[OF_JUDGE(CQ_UNDERSIZED)].name = "judge_cq_undersized",
	[OF_JUDGE(CQ_OVERFLOW)].name = "judge_cq_overflow",
	[OF_JUDGE(LOST_ARM)].name = "judge_lost_arm",
	[OF_JUDGE(MISSED_IGNORED)].name = "judge_missed_ignored",
	[OF_JUDGE(POLL_IN_HANDLER)].name = "judge_poll_in_handler",
	[OF_JUDGE(INLINE_DMA)].name = "judge_inline_dma",
	[OF_JUDGE(MR_IN_USE)].name = "judge_mr_in_use",
	[OF_JUDGE(DMA_ADDRESS)].name = "judge_dma_address",
	[OF_JUDGE(DMA_UNMAP)].name = "judge_dma_unmap",
	[OF_JUDGE(DMA_LEAKED)].name = "judge_dma_leaked",
};

struct rdma_hw_stats *sim_alloc_hw_port_stats(struct ib_device *ib, u32 port)
{
	return rdma_alloc_hw_stats_struct(descs, ARRAY_SIZE(descs), 0);
}

static void add_qp(u64 *sums, const struct sim_qp *qp)
{
	u32 i;

	for (i = 0; i < SIM_NR_QP_COUNTERS; i++)
		sums[i] += local64_read(&qp->count[i]);
	sums[SIM_CNT_DOORBELLS] += atomic_read(&qp->kicks) & (SIM_KICK_STATE - 1);
	/* Accepted, and not executed yet. */
	sums[SIM_CNT_SEND_WQES] += (u32)atomic_read(&qp->sq->head) - READ_ONCE(qp->sq->next);
	sums[SIM_CNT_RECV_WQES] += READ_ONCE(qp->received);
}

static void add_cq(u64 *sums, const struct sim_cq *cq)
{
	sums[SIM_CNT_CQES] += atomic64_read(&cq->head);
	sums[SIM_CNT_EVENTS] += atomic64_read(&cq->events);
	sums[SIM_CNT_CQ_OVERFLOWS] += atomic64_read(&cq->overflows);
}

/* Each doorbell reads WQEs once, but for what is counted. */
static void add_pcie(u64 *sums, const struct sim_device *sim)
{
	struct sim_pcie pcie = sim_cost_pcie(sim);

	sums[SIM_CNT_WQE_FETCHES] = max_t(s64, 0, sums[SIM_CNT_DOORBELLS] + pcie.fetches);
	sums[SIM_CNT_BLUEFLAMES] = pcie.blueflames;
}

int sim_get_hw_stats(struct ib_device *ib, struct rdma_hw_stats *stats, u32 port, int index)
{
	struct sim_device *sim = to_sim(ib);
	struct sim_qp *qp;
	struct sim_cq *cq;
	u32 i;

	if (!port)
		return -EINVAL;
	mutex_lock(&sim->lock);
	memcpy(stats->value, sim->totals, sizeof(sim->totals));
	list_for_each_entry(qp, &sim->qps, entry)
		add_qp(stats->value, qp);
	list_for_each_entry(cq, &sim->cqs, entry)
		add_cq(stats->value, cq);
	mutex_unlock(&sim->lock);
	add_pcie(stats->value, sim);
	for (i = 0; i < SIM_NR_JUDGE_RULES; i++)
		stats->value[SIM_NR_COUNTERS + i] = atomic64_read(&sim->judge.broken[i]);
	return NR_ALL;
}

/* It leaves the list, and what it counted stays. */
void sim_stats_fold_qp(struct sim_device *sim, struct sim_qp *qp)
{
	mutex_lock(&sim->lock);
	list_del(&qp->entry);
	add_qp(sim->totals, qp);
	mutex_unlock(&sim->lock);
}

void sim_stats_fold_cq(struct sim_device *sim, struct sim_cq *cq)
{
	mutex_lock(&sim->lock);
	list_del(&cq->entry);
	add_cq(sim->totals, cq);
	mutex_unlock(&sim->lock);
}
