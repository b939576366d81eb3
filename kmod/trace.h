/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Trace events of the data path. Their prototypes hold scalars only, so that raw
 * tracepoint programs read them without type information of this module. A device
 * is named by its RDMA index ("rdma dev" prints it first), a queue by its QP number;
 * seq joins a post with its completion: it is the group's first place in the send
 * queue, counted from 0 and modulo 2^32.
 *
 * ib_post_send, ib_post_send_done and ib_poll_cq are of all consumers and drivers: enabling
 * them hooks the drivers' functions (hooks.c). They name the device, and the consumer.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM kverbs

#if !defined(_KVERBS_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _KVERBS_TRACE_H

#include <linux/tracepoint.h>
#include <rdma/ib_verbs.h>
#include <uapi/rdma/kverbs.h>

#include "compat.h"
#include "hooks.h"

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

#ifdef CONFIG_KRETPROBES
/* A user's call, whose work requests the kernel does not see. */
#define KVERBS_NO_OPCODE	U32_MAX

/* The numbers are those of enum ib_uverbs_wr_opcode; the last two are the kernel's. */
#define show_kverbs_opcode(opcode)					\
	__print_symbolic(opcode,					\
		{ 0, "write" }, { 1, "write_imm" }, { 2, "send" },	\
		{ 3, "send_imm" }, { 4, "read" }, { 5, "cmp_swp" },	\
		{ 6, "fetch_add" }, { 7, "local_inv" },			\
		{ 8, "bind_mw" }, { 9, "send_inv" }, { 10, "tso" },	\
		{ 11, "read_inv" }, { 12, "masked_cmp_swp" },		\
		{ 13, "masked_fetch_add" }, { 14, "flush" },		\
		{ 15, "atomic_write" }, { 0x20, "reg_mr" },		\
		{ 0x21, "reg_mr_integrity" }, { 0xffffffff, "none" })

/*
 * A driver's post_send is called. The opcode is that of the first work request; truncated says
 * that there were more work requests, or SGEs of one, than were looked at.
 */
TRACE_EVENT_FN(ib_post_send,
	TP_PROTO(const char *device, const char *consumer, u32 qp, u32 opcode, u32 wrs,
		 u32 signaled, u32 inlined, u64 bytes, u32 truncated),
	TP_ARGS(device, consumer, qp, opcode, wrs, signaled, inlined, bytes, truncated),
	TP_STRUCT__entry(
		__string(device, device)
		__string(consumer, consumer)
		__field(u64, bytes)
		__field(u32, qp)
		__field(u32, opcode)
		__field(u32, wrs)
		__field(u32, signaled)
		__field(u32, inlined)
		__field(u32, truncated)
	),
	TP_fast_assign(
		kverbs_assign_str(device);
		kverbs_assign_str(consumer);
		__entry->bytes = bytes;
		__entry->qp = qp;
		__entry->opcode = opcode;
		__entry->wrs = wrs;
		__entry->signaled = signaled;
		__entry->inlined = inlined;
		__entry->truncated = truncated;
	),
	TP_printk("device=%s qp=%u consumer=%s opcode=%s wrs=%u signaled=%u inline=%u bytes=%llu truncated=%u",
		  __get_str(device), __entry->qp, __get_str(consumer),
		  show_kverbs_opcode(__entry->opcode), __entry->wrs, __entry->signaled,
		  __entry->inlined, __entry->bytes, __entry->truncated),
	kverbs_hook_posts, kverbs_unhook_posts
);

/* It returned ret, after so many nanoseconds. */
TRACE_EVENT_FN(ib_post_send_done,
	TP_PROTO(const char *device, const char *consumer, u32 qp, u32 opcode, u32 wrs,
		 u64 bytes, u32 truncated, s32 ret, u64 ns),
	TP_ARGS(device, consumer, qp, opcode, wrs, bytes, truncated, ret, ns),
	TP_STRUCT__entry(
		__string(device, device)
		__string(consumer, consumer)
		__field(u64, bytes)
		__field(u64, ns)
		__field(u32, qp)
		__field(u32, opcode)
		__field(u32, wrs)
		__field(u32, truncated)
		__field(s32, ret)
	),
	TP_fast_assign(
		kverbs_assign_str(device);
		kverbs_assign_str(consumer);
		__entry->bytes = bytes;
		__entry->ns = ns;
		__entry->qp = qp;
		__entry->opcode = opcode;
		__entry->wrs = wrs;
		__entry->truncated = truncated;
		__entry->ret = ret;
	),
	TP_printk("device=%s qp=%u consumer=%s opcode=%s wrs=%u bytes=%llu truncated=%u ret=%d ns=%llu",
		  __get_str(device), __entry->qp, __get_str(consumer),
		  show_kverbs_opcode(__entry->opcode), __entry->wrs, __entry->bytes,
		  __entry->truncated, __entry->ret, __entry->ns),
	kverbs_hook_posts, kverbs_unhook_posts
);

/* A driver's poll_cq, asked for up to budget CQEs, gave n. cq is the number that rdma shows. */
TRACE_EVENT_FN(ib_poll_cq,
	TP_PROTO(const char *device, const char *consumer, u32 cq, u32 budget, s32 n),
	TP_ARGS(device, consumer, cq, budget, n),
	TP_STRUCT__entry(
		__string(device, device)
		__string(consumer, consumer)
		__field(u32, cq)
		__field(u32, budget)
		__field(s32, n)
	),
	TP_fast_assign(
		kverbs_assign_str(device);
		kverbs_assign_str(consumer);
		__entry->cq = cq;
		__entry->budget = budget;
		__entry->n = n;
	),
	TP_printk("device=%s cq=%u consumer=%s budget=%u n=%d", __get_str(device), __entry->cq,
		  __get_str(consumer), __entry->budget, __entry->n),
	kverbs_hook_polls, kverbs_unhook_polls
);
#endif /* CONFIG_KRETPROBES */

#endif /* _KVERBS_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
