/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR Linux-OpenIB */
/*
 * The user interface of kverbs: /dev/kverbs.
 *
 * Every command is an ioctl whose argument is a structure that starts with its
 * own size. A structure longer than the kernel knows is accepted when what the
 * kernel does not know is zero; a shorter one is accepted down to the size that
 * the command had when it was introduced, and the rest counts as zero.
 *
 * Errors that any command may give:
 *  -ENOTTY      the command is not known
 *  -EINVAL      the structure is shorter than the command's first version
 *  -E2BIG       the structure is longer than the kernel knows and its tail is not
 *               zero, or it is longer than a page
 *  -EOPNOTSUPP  a reserved field or an unknown flag is not zero, or a kind is unknown
 *  -EFAULT      a pointer does not lead to memory of the caller
 *  -EPERM       the caller has not the privilege the command asks for, or maps the
 *               rows outside the initial network namespace
 *  -EACCES      the rows were to be mapped for writing
 *  -ENODEV      the row that the command names is gone, or not of a kind that has what
 *               the command asks for
 *  -EMSGSIZE    the caller's buffer is too small; the needed size was written back
 *
 * Statistics live in rows of one size. A row belongs to a device, a completion
 * queue or a send queue. Rows can be copied by one KVERBS_SNAPSHOT, or mapped
 * read-only at offset 0 of the file by a caller of the initial network
 * namespace: then reading takes no system call.
 *
 * How to read mapped rows. A generation is odd while what it guards changes, and
 * another even number afterwards; never 0 for a row in use. Read it, with acquire
 * semantics, begin again while it is odd, read what it guards, let a read barrier
 * follow, read it once more: if it changed, begin again.
 *  - The generation of row 0 guards which rows are in use and whose counters a
 *    device's row has taken over: totals summed up under it neither miss an object
 *    that was leaving nor count it twice. kverbs_row.depth of row 0 is the number of
 *    rows; row N starts at N * kverbs_info.row_size.
 *  - The generation of any other row guards the identity of that row. Its counters,
 *    state, mode and what posts cost may change at any time.
 * The mapping may be made longer than the arena is. Pages that the arena has not
 * yet give SIGBUS; once there, a page stays.
 */
#ifndef _UAPI_RDMA_KVERBS_H
#define _UAPI_RDMA_KVERBS_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define KVERBS_DEVICE_PATH	"/dev/kverbs"
/* 2 has KVERBS_IOCTL_RECORD, 3 kverbs_row.post_fixed_ns and post_wr_ps. */
#define KVERBS_ABI_VERSION	3
#define KVERBS_IOCTL_TYPE	0xBE

enum {
	KVERBS_CMD_INFO = 0,
	KVERBS_CMD_SNAPSHOT,
	KVERBS_CMD_HISTOGRAM,
	KVERBS_CMD_RECORD,
};

#define KVERBS_IOCTL_INFO	_IO(KVERBS_IOCTL_TYPE, KVERBS_CMD_INFO)
#define KVERBS_IOCTL_SNAPSHOT	_IO(KVERBS_IOCTL_TYPE, KVERBS_CMD_SNAPSHOT)
#define KVERBS_IOCTL_HISTOGRAM	_IO(KVERBS_IOCTL_TYPE, KVERBS_CMD_HISTOGRAM)
#define KVERBS_IOCTL_RECORD	_IO(KVERBS_IOCTL_TYPE, KVERBS_CMD_RECORD)

#define KVERBS_NAME_MAX		64
#define KVERBS_DRIVER_MAX	24

/**
 * enum kverbs_row_type - what a row counts for
 * @KVERBS_ROW_FREE: nothing; the row may be used again
 * @KVERBS_ROW_DEVICE: an RDMA device; its counters hold what queues and CQs
 *	that are gone by now had counted, so that a device's total is its own row
 *	plus the rows that name it in kverbs_row.device
 * @KVERBS_ROW_CQ: a kverbs completion queue
 * @KVERBS_ROW_QUEUE: a kverbs send queue
 * @KVERBS_ROW_ARENA: row 0 of the mapped arena, in no snapshot: its kverbs_row.depth
 *	is the number of rows that the arena has now, free ones and itself included
 */
enum kverbs_row_type {
	KVERBS_ROW_FREE = 0,
	KVERBS_ROW_DEVICE,
	KVERBS_ROW_CQ,
	KVERBS_ROW_QUEUE,
	KVERBS_ROW_ARENA,
};

/**
 * enum kverbs_row_state - the state of what a row counts for
 * @KVERBS_STATE_LIVE: works
 * @KVERBS_STATE_FAILED: the QP is in an error state; everything is flushed
 * @KVERBS_STATE_STOPPED: the owner stopped it; nothing more is accepted
 */
enum kverbs_row_state {
	KVERBS_STATE_LIVE = 0,
	KVERBS_STATE_FAILED,
	KVERBS_STATE_STOPPED,
};

/**
 * enum kverbs_cq_mode - how a completion queue is served
 * @KVERBS_CQ_FOREIGN: by ib_core, not by kverbs (queue rows only)
 * @KVERBS_CQ_INTERRUPT: armed, polled upon a completion event
 * @KVERBS_CQ_POLL: polled by a thread, never armed
 * @KVERBS_CQ_HYBRID: after each completion polled for a fixed time, then armed
 * @KVERBS_CQ_ADAPTIVE: polled or armed, as two budgets allow: latency and CPU
 */
enum kverbs_cq_mode {
	KVERBS_CQ_FOREIGN = 0,
	KVERBS_CQ_INTERRUPT,
	KVERBS_CQ_POLL,
	KVERBS_CQ_HYBRID,
	KVERBS_CQ_ADAPTIVE,
};

/*
 * Counters of a row, indices into kverbs_row.counter[]. The first part is
 * counted by send queues, the second by completion queues; a device's row uses
 * both. Counters only grow.
 */
enum kverbs_counter {
	/* Post side: calls of ib_post_send() and what went through them. */
	KVERBS_POST_CALLS = 0,
	KVERBS_WORK_REQUESTS,
	KVERBS_SIGNALED,
	KVERBS_INLINE,
	KVERBS_BYTES,		/* payload of the SGEs of posted work requests */
	KVERBS_NOOPS,		/* zero-length writes that closed a silent tail */
	KVERBS_OP_SEND,		/* posted work requests by opcode */
	KVERBS_OP_WRITE,
	KVERBS_OP_READ,
	KVERBS_OP_ATOMIC,
	KVERBS_OP_REG_MR,
	KVERBS_OP_LOCAL_INV,
	/* Retire side. */
	KVERBS_QUEUE_CQES,	/* CQEs that belonged to the queue */
	KVERBS_COMPLETIONS,	/* work requests retired, however they ended */
	KVERBS_ERRORS,		/* retired with an error that is no flush */
	KVERBS_FLUSHED,		/* retired with IB_WC_WR_FLUSH_ERR: outcome unknown */
	KVERBS_CQE_STALE,	/* CQEs for a slot that had retired already */
	KVERBS_CQE_MISSING,	/* signaled requests whose CQE did not come in time */
	/* Requests not accepted, by reason; each was given back with an errno. */
	KVERBS_REFUSED_FULL,	/* no credit now: -EAGAIN */
	KVERBS_REFUSED_DEPTH,	/* more work requests than the queue can ever hold */
	KVERBS_REFUSED_SGE,	/* too many SGEs in a work request */
	KVERBS_REFUSED_INLINE,	/* IB_SEND_INLINE with more than was granted */
	KVERBS_REFUSED_LENGTH,	/* more payload than a message may have */
	KVERBS_REFUSED_OPCODE,	/* an opcode that a queue does not take */
	KVERBS_REFUSED_STATE,	/* the queue is stopped or failed */
	KVERBS_REFUSED_DEVICE,	/* the device is gone */
	KVERBS_REFUSED_DRIVER,	/* work requests that post_send did not take */
	/* Completion queues. */
	KVERBS_POLLS,		/* calls of ib_poll_cq() */
	KVERBS_EMPTY_POLLS,	/* those that returned nothing */
	KVERBS_CQES,		/* completions they returned */
	KVERBS_ARMS,		/* calls of ib_req_notify_cq() */
	KVERBS_ARM_MISSED,	/* those that reported a completion already there */
	KVERBS_WAKEUPS,		/* completion events */
	KVERBS_PASSES,		/* turns of the dispatcher */

	KVERBS_NR_COUNTERS,
	KVERBS_MAX_COUNTERS = 47
};

/**
 * struct kverbs_row - identity and counters of one object
 * @generation: changes when the row is taken, given back or renamed; read it
 *	before and after the rest: if it changed, so did the rest
 * @type: &enum kverbs_row_type
 * @state: &enum kverbs_row_state
 * @mode: &enum kverbs_cq_mode, of the CQ, or of the CQ that serves the queue
 * @id: number of the row, unique among the rows that exist
 * @device: @id of the row of the device
 * @cq: @id of the row of the completion queue that serves the queue, or
 *	0xffffffff where ib_core serves it, and for a device or CQ
 * @number: QP number of a queue, completion vector of a CQ, 0 for a device
 * @depth: work requests that a queue holds, CQEs that a CQ holds, 0 for a device
 * @memory: bytes of kernel memory of a queue or CQ besides @slot_memory and the
 *	driver's own
 * @slot_memory: bytes of kernel memory that grow with @depth
 * @cpu: CPU that the last completion event of a CQ arrived on, 0xffffffff if none did
 * @name: name of the device, or of the consumer that created the queue or CQ
 * @driver: module of the driver of a device
 * @counter: indexed by &enum kverbs_counter; each may be read at any time, and
 *	is exact for work that had ended by then
 * @post_fixed_ns: of a queue or device: nanoseconds that a call of ib_post_send() takes
 *	besides its work requests, as a line through the latest calls says; 0 with
 *	@post_wr_ps 0: they do not tell, since they were too few or too much alike
 * @post_wr_ps: picoseconds that each work request adds
 */
struct kverbs_row {
	__u32 generation;
	__u8 type;
	__u8 state;
	__u8 mode;
	__u8 reserved;
	__u32 id;
	__u32 device;
	__u32 cq;
	__u32 number;
	__u32 depth;
	__u32 memory;
	__u32 slot_memory;
	__u32 cpu;
	char name[KVERBS_NAME_MAX];
	char driver[KVERBS_DRIVER_MAX];
	__aligned_u64 counter[KVERBS_MAX_COUNTERS];
	__u32 post_fixed_ns;
	__u32 post_wr_ps;
};

/**
 * struct kverbs_info - KVERBS_IOCTL_INFO: what this module is
 * @size: sizeof(struct kverbs_info)
 * @flags: in: 0
 * @abi_version: out: KVERBS_ABI_VERSION
 * @row_size: out: sizeof(struct kverbs_row) of the module, in bytes; rows of a
 *	snapshot and of the mapped arena are this far apart
 * @nr_counters: out: KVERBS_NR_COUNTERS of the module
 * @nr_rows: out: rows that the arena has now, free ones included; mapping
 *	@nr_rows * @row_size bytes rounded up to a page shows them all
 * @hist_buckets: out: buckets of a histogram
 * @reserved: 0
 * @version: out: version of the module, for people
 */
struct kverbs_info {
	__u32 size;
	__u32 flags;
	__u32 abi_version;
	__u32 row_size;
	__u32 nr_counters;
	__u32 nr_rows;
	__u32 hist_buckets;
	__u32 reserved;
	char version[32];
};

/**
 * struct kverbs_snapshot - KVERBS_IOCTL_SNAPSHOT: all rows in use, in one call
 * @size: sizeof(struct kverbs_snapshot)
 * @flags: in: 0
 * @buffer: in: address of the caller's buffer
 * @buffer_size: in: its size in bytes; out: bytes that all rows need, also with
 *	-EMSGSIZE
 * @nr_rows: out: rows written
 * @row_size: out: bytes from one row to the next
 * @time_ns: out: CLOCK_MONOTONIC when the rows were read, in nanoseconds
 *
 * Shows the rows of the devices that the caller's network namespace may see.
 */
struct kverbs_snapshot {
	__u32 size;
	__u32 flags;
	__aligned_u64 buffer;
	__aligned_u64 buffer_size;
	__u32 nr_rows;
	__u32 row_size;
	__aligned_u64 time_ns;
};

/**
 * enum kverbs_hist_kind - which histogram
 * @KVERBS_HIST_POST: nanoseconds that a call of ib_post_send() took, one sample a call
 * @KVERBS_HIST_COMPLETE: nanoseconds from the post of a work request's chain to
 *	its retirement, one sample a group
 */
enum kverbs_hist_kind {
	KVERBS_HIST_POST = 0,
	KVERBS_HIST_COMPLETE,
	KVERBS_NR_HISTS,
};

/**
 * struct kverbs_histogram - KVERBS_IOCTL_HISTOGRAM: one histogram of one row
 * @size: sizeof(struct kverbs_histogram)
 * @flags: in: 0
 * @row: in: @id of a row of a device, CQ or queue; a device's or CQ's histogram
 *	is the sum over its queues, those that are gone by now included
 * @generation: in: kverbs_row.generation, or 0 for whatever is in the row now;
 *	-ENODEV if the row was used again since
 * @kind: in: &enum kverbs_hist_kind
 * @nr_buckets: in: __u64 that the buffer holds; out: buckets that there are, also
 *	with -EMSGSIZE
 * @buffer: in: address of the caller's array of __u64
 *
 * How values map to buckets is in include/kverbs/core/hist.h.
 */
struct kverbs_histogram {
	__u32 size;
	__u32 flags;
	__u32 row;
	__u32 generation;
	__u32 kind;
	__u32 nr_buckets;
	__aligned_u64 buffer;
};

/**
 * enum kverbs_cause_kind - why a queue's record ended
 * @KVERBS_CAUSE_NONE: it did not: nothing has failed
 * @KVERBS_CAUSE_CQE: a CQE told of an error that is no flush
 * @KVERBS_CAUSE_FLUSHED: a CQE was a flush though nothing had failed before: somebody
 *	else moved the QP to the error state
 * @KVERBS_CAUSE_REFUSED: the driver did not take a work request, and named it; the queue
 *	goes on
 * @KVERBS_CAUSE_IN_DOUBT: the driver refused, and left in doubt what it took
 * @KVERBS_CAUSE_TAIL: after a refusal the last in flight was silent, and what was to be
 *	posted behind it was refused, too
 * @KVERBS_CAUSE_CQE_MISSING: no completion came for the time-out of the queue
 * @KVERBS_CAUSE_DRAIN: the owner's wait for the last completions timed out
 * @KVERBS_CAUSE_DEVICE_GONE: the device left
 */
enum kverbs_cause_kind {
	KVERBS_CAUSE_NONE = 0,
	KVERBS_CAUSE_CQE,
	KVERBS_CAUSE_FLUSHED,
	KVERBS_CAUSE_REFUSED,
	KVERBS_CAUSE_IN_DOUBT,
	KVERBS_CAUSE_TAIL,
	KVERBS_CAUSE_CQE_MISSING,
	KVERBS_CAUSE_DRAIN,
	KVERBS_CAUSE_DEVICE_GONE,
};

/* What is not known of a kverbs_cause: an opcode, the state of a QP. */
#define KVERBS_UNKNOWN		0xff

/**
 * struct kverbs_cause - what failed, and how it was then
 * @time_ns: when, on CLOCK_MONOTONIC
 * @age_ns: since the post of the work request that failed, 0 if that is not known
 * @oldest_ns: since the post of the oldest in flight, 0 if nothing was, or if that is
 *	not known
 * @bytes: payload of the work request; where the driver left in doubt which it was, and
 *	where no CQE came, that of the whole post
 * @position: of the work request in the send queue, counted from 0 and modulo 2^32; where
 *	no CQE came, or the device left, of the oldest in flight
 * @in_flight: work requests that were
 * @receives: CQEs that the queue's CQ has room for on behalf of its receives
 * @vendor_err: ib_wc.vendor_err
 * @error: errno of a refusal, or 0
 * @kind: &enum kverbs_cause_kind
 * @status: ib_wc.status
 * @opcode: of the work request, as in &struct ib_send_wr, or KVERBS_UNKNOWN; of the first
 *	of the post where @bytes are those of the whole
 * @qp_state: enum ib_qp_state, asked for soon afterwards, before the queue itself moved
 *	the QP; or KVERBS_UNKNOWN
 * @reserved: 0
 */
struct kverbs_cause {
	__aligned_u64 time_ns;
	__aligned_u64 age_ns;
	__aligned_u64 oldest_ns;
	__aligned_u64 bytes;
	__u32 position;
	__u32 in_flight;
	__u32 receives;
	__u32 vendor_err;
	__s32 error;
	__u8 kind;
	__u8 status;
	__u8 opcode;
	__u8 qp_state;
	__aligned_u64 reserved;
};

/**
 * enum kverbs_record_type - what a record tells of
 * @KVERBS_RECORD_FLUSH: a call of ib_post_send()
 * @KVERBS_RECORD_CQE: a CQE of the queue
 */
enum kverbs_record_type {
	KVERBS_RECORD_FLUSH = 1,
	KVERBS_RECORD_CQE,
};

/**
 * enum kverbs_flush_reason - why the queue called ib_post_send()
 * @KVERBS_FLUSH_POST: a post that found nobody in the driver
 * @KVERBS_FLUSH_FULL: a chain's worth was staged
 * @KVERBS_FLUSH_PASS: the end of a CQ pass
 * @KVERBS_FLUSH_HOLD: what was held for company was held long enough
 * @KVERBS_FLUSH_CALL: kverbs_flush()
 * @KVERBS_FLUSH_WORKER: the queue's worker found it
 */
enum kverbs_flush_reason {
	KVERBS_FLUSH_POST = 0,
	KVERBS_FLUSH_FULL,
	KVERBS_FLUSH_PASS,
	KVERBS_FLUSH_HOLD,
	KVERBS_FLUSH_CALL,
	KVERBS_FLUSH_WORKER,
};

/**
 * struct kverbs_record_event - a flush or a CQE
 * @time_ns: when the post began, or when the pass that found the CQE did
 * @ns: time in the driver; or since the post of what the CQE retired last
 * @bytes: payload that was posted
 * @position: of the first work request posted, or of the one that the CQE is for
 * @nr_wrs: work requests posted (65535 stands for more, too), or retired
 * @signaled: how many of those posted asked for a CQE
 * @vendor_err: ib_wc.vendor_err
 * @result: what the driver's post_send returned
 * @type: &enum kverbs_record_type
 * @status: ib_wc.status
 * @opcode: of the first work request posted; or of the last of the group that the CQE is for
 * @reason: &enum kverbs_flush_reason
 *
 * What the other type has is 0.
 */
struct kverbs_record_event {
	__aligned_u64 time_ns;
	__aligned_u64 ns;
	__aligned_u64 bytes;
	__u32 position;
	__u32 nr_wrs;
	__u32 signaled;
	__u32 vendor_err;
	__s32 result;
	__u8 type;
	__u8 status;
	__u8 opcode;
	__u8 reason;
};

/**
 * struct kverbs_record - KVERBS_IOCTL_RECORD: what a send queue did last
 * @size: sizeof(struct kverbs_record)
 * @flags: in: 0
 * @row: in: @id of the row of a queue; or 0: one of the records that are kept of queues that
 *	failed and are gone by now
 * @generation: in: kverbs_row.generation, or 0 for whatever is in the row now; -ENODEV
 *	if the row was used again since
 * @serial: in: with @row 0: the oldest record is wanted whose serial number is greater than
 *	this one; out: its serial number, 0 if there is none, and of a queue that is there
 * @buffer: in: address of the caller's array of &struct kverbs_record_event
 * @buffer_size: in: its size in bytes; out: bytes that all events need, also with -EMSGSIZE
 * @nr_events: out: events written, in the order of time, at most 32 of each type; after
 *	the first failure there are none but for what was under way
 * @event_size: out: bytes from one event to the next
 * @time_ns: out: CLOCK_MONOTONIC when it was read
 * @gone_ns: out: when the queue was destroyed, or was made to work again after that
 *	failure; 0 if it is there
 * @number: out: QP number
 * @depth: out: work requests that the queue holds
 * @state: out: &enum kverbs_row_state
 * @reserved: 0
 * @cause: out: the first failure
 * @later: out: if that did not end the queue's service: the one that did
 * @device: out: name of the device
 * @name: out: name of the consumer
 *
 * Shows what the caller's network namespace may see of the devices that are there; what
 * is kept of those that left, in the initial network namespace.
 */
struct kverbs_record {
	__u32 size;
	__u32 flags;
	__u32 row;
	__u32 generation;
	__aligned_u64 serial;
	__aligned_u64 buffer;
	__aligned_u64 buffer_size;
	__u32 nr_events;
	__u32 event_size;
	__aligned_u64 time_ns;
	__aligned_u64 gone_ns;
	__u32 number;
	__u32 depth;
	__u32 state;
	__u32 reserved;
	struct kverbs_cause cause;
	struct kverbs_cause later;
	char device[KVERBS_NAME_MAX];
	char name[KVERBS_NAME_MAX];
};

#endif /* _UAPI_RDMA_KVERBS_H */
