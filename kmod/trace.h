/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Trace events of the data path. Their prototypes hold scalars only, so that raw
 * tracepoint programs read them without type information of this module. A device
 * is named by its RDMA index ("rdma dev" prints it first), a queue by its QP number;
 * seq joins a post with its completion: it is the group's first place in the send
 * queue, counted from 0 and modulo 2^32.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM kverbs

#if !defined(_KVERBS_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _KVERBS_TRACE_H

#include <linux/tracepoint.h>
#include <rdma/ib_verbs.h>
#include <uapi/rdma/kverbs.h>

TRACE_DEFINE_ENUM(KVERBS_ERRORS);
TRACE_DEFINE_ENUM(KVERBS_FLUSHED);
TRACE_DEFINE_ENUM(KVERBS_CQE_STALE);
TRACE_DEFINE_ENUM(KVERBS_CQE_MISSING);
TRACE_DEFINE_ENUM(KVERBS_REFUSED_FULL);
TRACE_DEFINE_ENUM(KVERBS_REFUSED_DEPTH);
TRACE_DEFINE_ENUM(KVERBS_REFUSED_SGE);
TRACE_DEFINE_ENUM(KVERBS_REFUSED_INLINE);
TRACE_DEFINE_ENUM(KVERBS_REFUSED_LENGTH);
TRACE_DEFINE_ENUM(KVERBS_REFUSED_OPCODE);
TRACE_DEFINE_ENUM(KVERBS_REFUSED_STATE);
TRACE_DEFINE_ENUM(KVERBS_REFUSED_DEVICE);
TRACE_DEFINE_ENUM(KVERBS_REFUSED_DRIVER);

TRACE_DEFINE_ENUM(IB_WC_SUCCESS);
TRACE_DEFINE_ENUM(IB_WC_LOC_LEN_ERR);
TRACE_DEFINE_ENUM(IB_WC_LOC_QP_OP_ERR);
TRACE_DEFINE_ENUM(IB_WC_LOC_PROT_ERR);
TRACE_DEFINE_ENUM(IB_WC_WR_FLUSH_ERR);
TRACE_DEFINE_ENUM(IB_WC_MW_BIND_ERR);
TRACE_DEFINE_ENUM(IB_WC_BAD_RESP_ERR);
TRACE_DEFINE_ENUM(IB_WC_LOC_ACCESS_ERR);
TRACE_DEFINE_ENUM(IB_WC_REM_INV_REQ_ERR);
TRACE_DEFINE_ENUM(IB_WC_REM_ACCESS_ERR);
TRACE_DEFINE_ENUM(IB_WC_REM_OP_ERR);
TRACE_DEFINE_ENUM(IB_WC_RETRY_EXC_ERR);
TRACE_DEFINE_ENUM(IB_WC_RNR_RETRY_EXC_ERR);
TRACE_DEFINE_ENUM(IB_WC_REM_ABORT_ERR);
TRACE_DEFINE_ENUM(IB_WC_FATAL_ERR);
TRACE_DEFINE_ENUM(IB_WC_RESP_TIMEOUT_ERR);
TRACE_DEFINE_ENUM(IB_WC_GENERAL_ERR);

#define show_kverbs_reason(reason)					\
	__print_symbolic(reason,					\
		{ KVERBS_ERRORS,		"error" },		\
		{ KVERBS_FLUSHED,		"flushed" },		\
		{ KVERBS_CQE_STALE,		"cqe_stale" },		\
		{ KVERBS_CQE_MISSING,		"cqe_missing" },	\
		{ KVERBS_REFUSED_FULL,		"full" },		\
		{ KVERBS_REFUSED_DEPTH,		"depth" },		\
		{ KVERBS_REFUSED_SGE,		"sge" },		\
		{ KVERBS_REFUSED_INLINE,	"inline" },		\
		{ KVERBS_REFUSED_LENGTH,	"length" },		\
		{ KVERBS_REFUSED_OPCODE,	"opcode" },		\
		{ KVERBS_REFUSED_STATE,		"state" },		\
		{ KVERBS_REFUSED_DEVICE,	"device" },		\
		{ KVERBS_REFUSED_DRIVER,	"driver" })

#define show_kverbs_flush(reason)					\
	__print_symbolic(reason,					\
		{ 0, "post" }, { 1, "full" }, { 2, "pass" },		\
		{ 3, "hold" }, { 4, "call" }, { 5, "worker" })

#define show_kverbs_status(status)					\
	__print_symbolic(status,					\
		{ IB_WC_SUCCESS,		"success" },		\
		{ IB_WC_LOC_LEN_ERR,		"loc_len_err" },	\
		{ IB_WC_LOC_QP_OP_ERR,		"loc_qp_op_err" },	\
		{ IB_WC_LOC_PROT_ERR,		"loc_prot_err" },	\
		{ IB_WC_WR_FLUSH_ERR,		"wr_flush_err" },	\
		{ IB_WC_MW_BIND_ERR,		"mw_bind_err" },	\
		{ IB_WC_BAD_RESP_ERR,		"bad_resp_err" },	\
		{ IB_WC_LOC_ACCESS_ERR,		"loc_access_err" },	\
		{ IB_WC_REM_INV_REQ_ERR,	"rem_inv_req_err" },	\
		{ IB_WC_REM_ACCESS_ERR,		"rem_access_err" },	\
		{ IB_WC_REM_OP_ERR,		"rem_op_err" },		\
		{ IB_WC_RETRY_EXC_ERR,		"retry_exc_err" },	\
		{ IB_WC_RNR_RETRY_EXC_ERR,	"rnr_retry_exc_err" },	\
		{ IB_WC_REM_ABORT_ERR,		"rem_abort_err" },	\
		{ IB_WC_FATAL_ERR,		"fatal_err" },		\
		{ IB_WC_RESP_TIMEOUT_ERR,	"resp_timeout_err" },	\
		{ IB_WC_GENERAL_ERR,		"general_err" })

#define show_kverbs_mode(mode)						\
	__print_symbolic(mode, { 1, "interrupt" }, { 2, "poll" },	\
			 { 3, "hybrid" }, { 4, "adaptive" })

/* A group was accepted. */
TRACE_EVENT(kverbs_post,
	TP_PROTO(u32 dev, u32 qp, u32 seq, u32 wrs, u32 bytes),
	TP_ARGS(dev, qp, seq, wrs, bytes),
	TP_STRUCT__entry(
		__field(u32, dev)
		__field(u32, qp)
		__field(u32, seq)
		__field(u32, wrs)
		__field(u32, bytes)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->qp = qp;
		__entry->seq = seq;
		__entry->wrs = wrs;
		__entry->bytes = bytes;
	),
	TP_printk("dev=%u qp=%u seq=%u wrs=%u bytes=%u", __entry->dev, __entry->qp,
		  __entry->seq, __entry->wrs, __entry->bytes)
);

/* A chain went to the driver; ns is the time its post_send took. */
TRACE_EVENT(kverbs_flush,
	TP_PROTO(u32 dev, u32 qp, u32 seq, u32 reason, u32 wrs, u32 signaled, u64 bytes, u64 ns),
	TP_ARGS(dev, qp, seq, reason, wrs, signaled, bytes, ns),
	TP_STRUCT__entry(
		__field(u32, dev)
		__field(u32, qp)
		__field(u32, seq)
		__field(u32, reason)
		__field(u32, wrs)
		__field(u32, signaled)
		__field(u64, bytes)
		__field(u64, ns)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->qp = qp;
		__entry->seq = seq;
		__entry->reason = reason;
		__entry->wrs = wrs;
		__entry->signaled = signaled;
		__entry->bytes = bytes;
		__entry->ns = ns;
	),
	TP_printk("dev=%u qp=%u seq=%u reason=%s wrs=%u signaled=%u bytes=%llu ns=%llu",
		  __entry->dev, __entry->qp, __entry->seq, show_kverbs_flush(__entry->reason),
		  __entry->wrs, __entry->signaled, __entry->bytes, __entry->ns)
);

/* A CQE retired work requests, the first of them at seq; ns since the oldest was posted. */
TRACE_EVENT(kverbs_complete,
	TP_PROTO(u32 dev, u32 qp, u32 seq, u32 status, u32 retired, u64 ns),
	TP_ARGS(dev, qp, seq, status, retired, ns),
	TP_STRUCT__entry(
		__field(u32, dev)
		__field(u32, qp)
		__field(u32, seq)
		__field(u32, status)
		__field(u32, retired)
		__field(u64, ns)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->qp = qp;
		__entry->seq = seq;
		__entry->status = status;
		__entry->retired = retired;
		__entry->ns = ns;
	),
	TP_printk("dev=%u qp=%u seq=%u status=%s retired=%u ns=%llu", __entry->dev,
		  __entry->qp, __entry->seq, show_kverbs_status(__entry->status),
		  __entry->retired, __entry->ns)
);

/* A pass over a kverbs CQ found n completions. */
TRACE_EVENT(kverbs_poll,
	TP_PROTO(u32 dev, u32 cq, u32 n, u32 budget, u32 mode),
	TP_ARGS(dev, cq, n, budget, mode),
	TP_STRUCT__entry(
		__field(u32, dev)
		__field(u32, cq)
		__field(u32, n)
		__field(u32, budget)
		__field(u32, mode)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->cq = cq;
		__entry->n = n;
		__entry->budget = budget;
		__entry->mode = mode;
	),
	TP_printk("dev=%u cq=%u n=%u budget=%u mode=%s", __entry->dev, __entry->cq,
		  __entry->n, __entry->budget, show_kverbs_mode(__entry->mode))
);

/*
 * A CQ in hybrid or adaptive mode: a thread polls it from now on, for window_ns after each
 * completion, or with 0 it is armed and its events are waited for.
 */
TRACE_EVENT(kverbs_spin,
	TP_PROTO(u32 dev, u32 cq, u32 window_ns),
	TP_ARGS(dev, cq, window_ns),
	TP_STRUCT__entry(
		__field(u32, dev)
		__field(u32, cq)
		__field(u32, window_ns)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->cq = cq;
		__entry->window_ns = window_ns;
	),
	TP_printk("dev=%u cq=%u window_ns=%u", __entry->dev, __entry->cq, __entry->window_ns)
);

/* Something went wrong: code is an errno of a refusal, or an ib_wc_status. */
TRACE_EVENT(kverbs_error,
	TP_PROTO(u32 dev, u32 qp, u32 reason, s32 code, u32 vendor),
	TP_ARGS(dev, qp, reason, code, vendor),
	TP_STRUCT__entry(
		__field(u32, dev)
		__field(u32, qp)
		__field(u32, reason)
		__field(s32, code)
		__field(u32, vendor)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->qp = qp;
		__entry->reason = reason;
		__entry->code = code;
		__entry->vendor = vendor;
	),
	TP_printk("dev=%u qp=%u reason=%s code=%d vendor=%#x", __entry->dev, __entry->qp,
		  show_kverbs_reason(__entry->reason), __entry->code, __entry->vendor)
);

#endif /* _KVERBS_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
