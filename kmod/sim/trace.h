/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the judge finds. A device is named by its RDMA index ("rdma dev" prints it first), a
 * queue pair by its number, a work request by its place in the send queue, counted from 0
 * and modulo 2^32, a CQ by its restrack number ("rdma resource show cq"). What a finding is
 * not about is 0.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM kverbs_sim

#if !defined(_KVERBS_SIM_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _KVERBS_SIM_TRACE_H

#include <linux/tracepoint.h>

#include "judge.h"

TRACE_DEFINE_ENUM(SIM_JUDGE_SQ_OVERRUN);
TRACE_DEFINE_ENUM(SIM_JUDGE_SQ_SILENT);
TRACE_DEFINE_ENUM(SIM_JUDGE_SILENT_TAIL);
TRACE_DEFINE_ENUM(SIM_JUDGE_CQ_UNDERSIZED);
TRACE_DEFINE_ENUM(SIM_JUDGE_CQ_OVERFLOW);
TRACE_DEFINE_ENUM(SIM_JUDGE_LOST_ARM);
TRACE_DEFINE_ENUM(SIM_JUDGE_MISSED_IGNORED);
TRACE_DEFINE_ENUM(SIM_JUDGE_POLL_IN_HANDLER);
TRACE_DEFINE_ENUM(SIM_JUDGE_INLINE_DMA);
TRACE_DEFINE_ENUM(SIM_JUDGE_MR_IN_USE);
TRACE_DEFINE_ENUM(SIM_JUDGE_DMA_ADDRESS);
TRACE_DEFINE_ENUM(SIM_JUDGE_DMA_UNMAP);
TRACE_DEFINE_ENUM(SIM_JUDGE_DMA_LEAKED);

#define show_sim_judge_rule(rule)					\
	__print_symbolic(rule,						\
		{ SIM_JUDGE_SQ_OVERRUN, "sq_overrun" },	\
		{ SIM_JUDGE_SQ_SILENT, "sq_silent" },	\
		{ SIM_JUDGE_SILENT_TAIL, "silent_tail" },	\
		{ SIM_JUDGE_CQ_UNDERSIZED, "cq_undersized" },	\
		{ SIM_JUDGE_CQ_OVERFLOW, "cq_overflow" },	\
		{ SIM_JUDGE_LOST_ARM, "lost_arm" },	\
		{ SIM_JUDGE_MISSED_IGNORED, "missed_ignored" },	\
		{ SIM_JUDGE_POLL_IN_HANDLER, "poll_in_handler" },	\
		{ SIM_JUDGE_INLINE_DMA, "inline_dma" },	\
		{ SIM_JUDGE_MR_IN_USE, "mr_in_use" },	\
		{ SIM_JUDGE_DMA_ADDRESS, "dma_address" },	\
		{ SIM_JUDGE_DMA_UNMAP, "dma_unmap" },	\
		{ SIM_JUDGE_DMA_LEAKED, "dma_leaked" })

TRACE_EVENT(judge,
	TP_PROTO(u32 dev, u32 rule, u32 qp, u32 wqe, u32 cq),
	TP_ARGS(dev, rule, qp, wqe, cq),
	TP_STRUCT__entry(
		__field(u32, dev)
		__field(u32, rule)
		__field(u32, qp)
		__field(u32, wqe)
		__field(u32, cq)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->rule = rule;
		__entry->qp = qp;
		__entry->wqe = wqe;
		__entry->cq = cq;
	),
	TP_printk("dev=%u rule=%s qp=%u wqe=%u cq=%u", __entry->dev,
		  show_sim_judge_rule(__entry->rule), __entry->qp, __entry->wqe, __entry->cq)
);

#endif /* _KVERBS_SIM_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
