/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR Linux-OpenIB */
/*
 * The user interface of the kernel-mode bench: /dev/kverbs_perf.
 *
 * The rules for structures and the errors that any command may give are those of
 * <rdma/kverbs.h>. An open file has at most one run at a time; closing the file
 * stops it. poll() says that the file is readable when no run is going on.
 *
 * A run posts the same requests in several cases (an engine, in a context, on a
 * kind of completion queue), which take turns, round by round, over the same
 * buffers.
 */
#ifndef _UAPI_RDMA_KVERBS_PERF_H
#define _UAPI_RDMA_KVERBS_PERF_H

#include <linux/types.h>
#include "kverbs.h"

#define KVERBS_PERF_DEVICE_PATH	"/dev/kverbs_perf"

enum {
	KVERBS_PERF_CMD_RUN = 0x40,
	KVERBS_PERF_CMD_STATUS,
	KVERBS_PERF_CMD_STOP,
};

#define KVERBS_PERF_IOCTL_RUN		_IO(KVERBS_IOCTL_TYPE, KVERBS_PERF_CMD_RUN)
#define KVERBS_PERF_IOCTL_STATUS	_IO(KVERBS_IOCTL_TYPE, KVERBS_PERF_CMD_STATUS)
#define KVERBS_PERF_IOCTL_STOP		_IO(KVERBS_IOCTL_TYPE, KVERBS_PERF_CMD_STOP)

#define KVERBS_PERF_MAX_CASES	32
#define KVERBS_PERF_MESSAGE_MAX	256
#define KVERBS_PERF_BUCKETS	178	/* as in include/kverbs/core/hist.h */

/* What a figure says that cannot be had: ib_core's CQs do not count their events. */
#define KVERBS_PERF_UNKNOWN	(~0ULL)

/**
 * enum kverbs_perf_op - what a request does
 * @KVERBS_PERF_WRITE: RDMA write
 * @KVERBS_PERF_READ: RDMA read
 * @KVERBS_PERF_SEND: send, into a ring of receives
 * @KVERBS_PERF_RPC: a request by send and its reply by send, between two endpoints that
 *	connect by the connection manager. Only with KVERBS_PERF_KVERBS, and completion
 *	queues of kverbs. Each reply is compared with its request
 */
enum kverbs_perf_op {
	KVERBS_PERF_WRITE = 0,
	KVERBS_PERF_READ,
	KVERBS_PERF_SEND,
	KVERBS_PERF_RPC,
	KVERBS_PERF_NR_OPS,
};

/**
 * enum kverbs_perf_transport - the type of the QPs
 * @KVERBS_PERF_RC: reliable connection
 * @KVERBS_PERF_UD: unreliable datagram, for sends only
 */
enum kverbs_perf_transport {
	KVERBS_PERF_RC = 0,
	KVERBS_PERF_UD,
	KVERBS_PERF_NR_TRANSPORTS,
};

/**
 * enum kverbs_perf_engine - who posts
 * @KVERBS_PERF_RAW: one ib_post_send() for each request, each signaled
 * @KVERBS_PERF_CHAIN: a chain written by hand, its last work request signaled
 * @KVERBS_PERF_KVERBS: kverbs_post()
 */
enum kverbs_perf_engine {
	KVERBS_PERF_RAW = 0,
	KVERBS_PERF_CHAIN,
	KVERBS_PERF_KVERBS,
	KVERBS_PERF_NR_ENGINES,
};

/**
 * enum kverbs_perf_context - where it posts
 * @KVERBS_PERF_PROCESS: in a thread, a batch at a time
 * @KVERBS_PERF_BH_OFF: the same, with bottom halves off around each post
 * @KVERBS_PERF_COMPLETION: a thread posts the first @depth requests, after that
 *	each completion posts the next
 */
enum kverbs_perf_context {
	KVERBS_PERF_PROCESS = 0,
	KVERBS_PERF_BH_OFF,
	KVERBS_PERF_COMPLETION,
	KVERBS_PERF_NR_CONTEXTS,
};

/**
 * enum kverbs_perf_cq - which completion queue the sends use
 * @KVERBS_PERF_CQ_IB: ib_alloc_cq() with IB_POLL_SOFTIRQ
 * @KVERBS_PERF_CQ_INTERRUPT: kverbs_cq_create() with KVERBS_CQ_INTERRUPT
 * @KVERBS_PERF_CQ_POLL: kverbs_cq_create() with KVERBS_CQ_POLL
 * @KVERBS_PERF_CQ_HYBRID: kverbs_cq_create() with KVERBS_CQ_HYBRID, for 50 us
 * @KVERBS_PERF_CQ_ADAPTIVE: kverbs_cq_create() with KVERBS_CQ_ADAPTIVE, the least latency
 *	for any share of the CPU
 */
enum kverbs_perf_cq {
	KVERBS_PERF_CQ_IB = 0,
	KVERBS_PERF_CQ_INTERRUPT,
	KVERBS_PERF_CQ_POLL,
	KVERBS_PERF_CQ_HYBRID,
	KVERBS_PERF_CQ_ADAPTIVE,
	KVERBS_PERF_NR_CQS,
};

/**
 * enum kverbs_perf_policy - what KVERBS_PERF_KVERBS posts together
 * @KVERBS_PERF_DYNAMIC: whatever is there
 * @KVERBS_PERF_EACH: nothing
 * @KVERBS_PERF_FOUR: four at a time
 */
enum kverbs_perf_policy {
	KVERBS_PERF_DYNAMIC = 0,
	KVERBS_PERF_EACH,
	KVERBS_PERF_FOUR,
	KVERBS_PERF_NR_POLICIES,
};

/**
 * struct kverbs_perf_case - who posts, where, with which completion queue
 * @engine: &enum kverbs_perf_engine
 * @context: &enum kverbs_perf_context
 * @cq: &enum kverbs_perf_cq
 * @policy: &enum kverbs_perf_policy; 0 of the other engines
 */
struct kverbs_perf_case {
	__u8 engine;
	__u8 context;
	__u8 cq;
	__u8 policy;
};

/**
 * enum kverbs_perf_attr - names an attribute of a run that was refused
 * @KVERBS_PERF_ATTR_NONE: none was
 * @KVERBS_PERF_ATTR_DEVICE: @device
 * @KVERBS_PERF_ATTR_OP: @op
 * @KVERBS_PERF_ATTR_TRANSPORT: @transport
 * @KVERBS_PERF_ATTR_MSG_SIZE: @msg_size
 * @KVERBS_PERF_ATTR_DEPTH: @depth
 * @KVERBS_PERF_ATTR_QUEUES: @queues
 * @KVERBS_PERF_ATTR_THREADS: @threads
 * @KVERBS_PERF_ATTR_BATCH: @batch
 * @KVERBS_PERF_ATTR_ROUNDS: @rounds
 * @KVERBS_PERF_ATTR_CASES: @nr_cases or one of @cases
 * @KVERBS_PERF_ATTR_LENGTH: @iterations and @duration_ns
 * @KVERBS_PERF_ATTR_TIMEOUT: @timeout_ms
 * @KVERBS_PERF_ATTR_MEMORY: queues, depth and size, which together need too much
 */
enum kverbs_perf_attr {
	KVERBS_PERF_ATTR_NONE = 0,
	KVERBS_PERF_ATTR_DEVICE,
	KVERBS_PERF_ATTR_OP,
	KVERBS_PERF_ATTR_TRANSPORT,
	KVERBS_PERF_ATTR_MSG_SIZE,
	KVERBS_PERF_ATTR_DEPTH,
	KVERBS_PERF_ATTR_QUEUES,
	KVERBS_PERF_ATTR_THREADS,
	KVERBS_PERF_ATTR_BATCH,
	KVERBS_PERF_ATTR_ROUNDS,
	KVERBS_PERF_ATTR_CASES,
	KVERBS_PERF_ATTR_LENGTH,
	KVERBS_PERF_ATTR_TIMEOUT,
	KVERBS_PERF_ATTR_MEMORY,
};

#define KVERBS_PERF_VERIFY	(1U << 0)	/* check each request's data as it ends */

/**
 * struct kverbs_perf_run - KVERBS_PERF_IOCTL_RUN: start a run
 * @size: sizeof(struct kverbs_perf_run)
 * @flags: in: 0 or KVERBS_PERF_VERIFY
 * @device: in: name of an RDMA device, empty for the first; out: its name
 * @op: in: &enum kverbs_perf_op
 * @transport: in: &enum kverbs_perf_transport
 * @msg_size: in: bytes of payload of a request
 * @depth: in: requests in flight on each queue
 * @queues: in: pairs of QPs, both on @device
 * @threads: in: threads that post; where there are more of them than @queues, they
 *	share queues, and @depth is shared among those of a queue
 * @batch: in: requests that a thread has at hand when it posts; out: what became of
 *	it, since no thread has more in flight than its share of @depth
 * @rounds: in: turns that each case gets
 * @timeout_ms: in: milliseconds without progress after which the run fails
 * @nr_cases: in: cases in @cases
 * @cases: in: what to run in each round, in this order
 * @iterations: in: requests of each case, over all rounds and queues, or 0
 * @duration_ns: in: nanoseconds that each case runs, over all rounds, or 0; one of
 *	the two is not 0
 * @bad_attr: out: &enum kverbs_perf_attr, what the error is about
 * @driver: out: enum rdma_driver_id of @device
 * @limit: out: with -ERANGE, -EMSGSIZE and -EFBIG: what the attribute may be at most,
 *	or at least if it was below
 *
 * Needs CAP_NET_ADMIN. Besides the general errors, with @bad_attr saying what of:
 *  -EBUSY           a run is going on in this file
 *  -ENODEV          there is no such RDMA device, or none at all
 *  -ENETDOWN        no port of the device is active
 *  -EADDRNOTAVAIL   its network interface has no address
 *  -EPROTONOSUPPORT its connections need more than an exchange of QP numbers (iWARP),
 *                   or it cannot register memory by work request
 *  -ERANGE          a value beyond @limit
 *  -EMSGSIZE        a size beyond @limit, for the path's MTU or the device's memory
 *                   regions
 *  -EFBIG           the buffers would need more than @limit bytes
 *  -EOPNOTSUPP      an operation, transport or case that does not exist, or an
 *                   operation that the transport has not
 *  -ENOMEM          no memory
 */
struct kverbs_perf_run {
	__u32 size;
	__u32 flags;
	char device[KVERBS_NAME_MAX];
	__u32 op;
	__u32 transport;
	__u32 msg_size;
	__u32 depth;
	__u32 queues;
	__u32 threads;
	__u32 batch;
	__u32 rounds;
	__u32 timeout_ms;
	__u32 nr_cases;
	struct kverbs_perf_case cases[KVERBS_PERF_MAX_CASES];
	__aligned_u64 iterations;
	__aligned_u64 duration_ns;
	__u32 bad_attr;
	__u32 driver;
	__aligned_u64 limit;
};

/**
 * struct kverbs_perf_result - what one case did in one round
 * @case_index: which of the cases
 * @round: which round, from 0
 * @requests: requests that ended with success
 * @elapsed_ns: nanoseconds from the first post to the last completion
 * @call_ns: nanoseconds in ib_post_send() or kverbs_post()
 * @post_ns: the same until bottom halves were on again; more than @call_ns only
 *	where they were off
 * @call_min_ns: the least that posting one whole batch took
 * @post_calls: calls of ib_post_send()
 * @signaled: signaled work requests
 * @cqes: completion queue entries
 * @wakeups: completion events, or KVERBS_PERF_UNKNOWN
 * @passes: turns of the dispatcher, or KVERBS_PERF_UNKNOWN
 * @received: receives that ended with success
 * @lost: requests that were accepted and never completed
 * @doubled: completions of requests that were not outstanding
 * @reordered: requests that completed before one posted earlier by the same thread
 *	on the same queue
 * @failed: requests that ended with an error other than a flush
 * @flushed: requests that ended with IB_WC_WR_FLUSH_ERR
 * @corrupt: requests whose data arrived wrong
 * @least: requests that ended with success of the thread that had the fewest on a queue
 * @most: and of the one that had the most
 * @latency: histogram of the nanoseconds from post to completion, of KVERBS_PERF_RPC from
 *	the post of a request to its reply; how values map
 *	to buckets is in include/kverbs/core/hist.h
 */
struct kverbs_perf_result {
	__u32 case_index;
	__u32 round;
	__aligned_u64 requests;
	__aligned_u64 elapsed_ns;
	__aligned_u64 call_ns;
	__aligned_u64 post_ns;
	__aligned_u64 call_min_ns;
	__aligned_u64 post_calls;
	__aligned_u64 signaled;
	__aligned_u64 cqes;
	__aligned_u64 wakeups;
	__aligned_u64 passes;
	__aligned_u64 received;
	__aligned_u64 lost;
	__aligned_u64 doubled;
	__aligned_u64 reordered;
	__aligned_u64 failed;
	__aligned_u64 flushed;
	__aligned_u64 corrupt;
	__aligned_u64 least;
	__aligned_u64 most;
	__aligned_u64 latency[KVERBS_PERF_BUCKETS];
};

/**
 * enum kverbs_perf_state - how far a run is
 * @KVERBS_PERF_IDLE: there was none in this file
 * @KVERBS_PERF_RUNNING: it goes on
 * @KVERBS_PERF_DONE: it ended as it should
 * @KVERBS_PERF_FAILED: it ended early; kverbs_perf_status.error says why
 */
enum kverbs_perf_state {
	KVERBS_PERF_IDLE = 0,
	KVERBS_PERF_RUNNING,
	KVERBS_PERF_DONE,
	KVERBS_PERF_FAILED,
};

/**
 * struct kverbs_perf_status - KVERBS_PERF_IOCTL_STATUS: how the file's run stands
 * @size: sizeof(struct kverbs_perf_status)
 * @flags: in: 0
 * @state: out: &enum kverbs_perf_state
 * @error: out: 0; -ECANCELED if it was stopped; -ENODEV if the device left; -ETIMEDOUT
 *	if it made no progress; -EIO if a request was lost, doubled, reordered or failed;
 *	-EBADMSG if data arrived wrong; or what a call returned
 * @case_index: out: the case that is running
 * @round: out: the round that is running
 * @result_size: out: bytes from one result to the next
 * @nr_results: out: results there are, also with -EMSGSIZE
 * @done: out: requests that have ended, over all cases
 * @total: out: requests that will be, or 0 for a run by time
 * @elapsed_ns: out: nanoseconds since the run began
 * @buffer: in: address of an array of &struct kverbs_perf_result, or 0 for none
 * @buffer_size: in: its size in bytes
 * @message: out: one line on what went wrong
 */
struct kverbs_perf_status {
	__u32 size;
	__u32 flags;
	__u32 state;
	__s32 error;
	__u32 case_index;
	__u32 round;
	__u32 result_size;
	__u32 nr_results;
	__aligned_u64 done;
	__aligned_u64 total;
	__aligned_u64 elapsed_ns;
	__aligned_u64 buffer;
	__aligned_u64 buffer_size;
	char message[KVERBS_PERF_MESSAGE_MAX];
};

/**
 * struct kverbs_perf_stop - KVERBS_PERF_IOCTL_STOP: end the file's run early
 * @size: sizeof(struct kverbs_perf_stop)
 * @flags: in: 0
 *
 * Returns at once; what was in flight completes, and its results can be read.
 */
struct kverbs_perf_stop {
	__u32 size;
	__u32 flags;
};

#endif /* _UAPI_RDMA_KVERBS_PERF_H */
