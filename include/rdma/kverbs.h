/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * kverbs: a send queue and a completion poller for kernel users of RDMA.
 *
 * Two objects, each usable without the other:
 *
 *  struct kverbs_sq  a batching send queue over a QP that its owner created. It
 *                    counts credits, chains what is posted together into one
 *                    ib_post_send(), asks for few completions and retires from
 *                    the head, in order, each request exactly once.
 *  struct kverbs_cq  a completion queue with its poller. It dispatches
 *                    wc->wr_cqe->done(), as ib_alloc_cq() does.
 *
 * The unit is a group: a chain of work requests that its caller owns. They are
 * contiguous in the send queue and end with one call of done().
 *
 * Order of a life: kverbs_cq_create(), create the QP, kverbs_sq_create(), post,
 * kverbs_sq_drain(), destroy the QP, kverbs_sq_destroy(), kverbs_cq_destroy().
 */
#ifndef _RDMA_KVERBS_H
#define _RDMA_KVERBS_H

#include <rdma/ib_verbs.h>
#include <uapi/rdma/kverbs.h>
#include <kverbs/core/batch.h>

struct kverbs_cq;
struct kverbs_req;
struct kverbs_sq;

/**
 * typedef kverbs_done_fn - a group has ended
 * @req: the group; it belongs to the caller again
 * @status: IB_WC_SUCCESS, the first error that a work request of the group met,
 *	or IB_WC_WR_FLUSH_ERR, which means that the outcome is unknown
 *
 * Called once for every group that was accepted. Never called from inside
 * kverbs_post(), kverbs_flush() or a driver's post_send. Context: that of the
 * CQ that serves the queue (softirq for a &struct kverbs_cq in interrupt mode, a
 * thread in poll mode, either of them in hybrid and adaptive mode, the poll context of an
 * ib_core CQ otherwise), or process context for groups that a driver refused and for those that
 * kverbs_sq_destroy() gives back. Bottom halves are always off. Must not sleep.
 * May post.
 */
typedef void (*kverbs_done_fn)(struct kverbs_req *req, enum ib_wc_status status);

/* private: groups that one call published together, as the poster sees them; in the first. */
struct kverbs_run {
	u64 posted_at;
	struct ib_send_wr *last;
	u64 bytes;
	u32 nr_wrs;
	u32 nr_inline;
	u8 op;			/* what they count as, if they are of one kind */
	u8 mixed;		/* they are not */
};

/**
 * struct kverbs_req - a group of work requests
 * @wr: first of a chain of work requests, linked by their next pointers. The
 *	chain, its SGLs and address handles belong to the queue from kverbs_post()
 *	until @done; then they are as they were, but for wr_cqe and
 *	IB_SEND_SIGNALED, which the queue decides on
 * @done: called when the last of them has ended
 * @inline_sge: optional: the SGL of the last work request once more, with kernel
 *	virtual addresses instead of DMA addresses. With it, a payload of at most
 *	what the QP was granted may be sent inline; without it, it never is
 * @error: once @done runs with an error: 0, or the errno of the call that refused the group
 * @vendor_err: once @done runs with an error: the vendor's code for it
 * @byte_len: once @done runs: bytes of payload of the group
 *
 * The rest is private to the queue. A group needs no initialisation besides
 * the first three.
 */
struct kverbs_req {
	struct ib_send_wr *wr;
	kverbs_done_fn done;
	struct ib_sge *inline_sge;
	int error;
	u32 vendor_err;
	u32 byte_len;
	/* private: */
	u32 left;			/* work requests that have not retired, if more than one */
	u32 nr_wrs;			/* with what follows, the poster's one store */
	u8 status;
	bool inlined;
	bool leads;
	bool reserved;
	struct ib_send_wr *last;	/* of more than one */
	union {
		struct kverbs_sq *sq;
		struct kverbs_req *next;
	};
	struct kverbs_run run;
};

/* More requests follow at once: stage this one, the last of them flushes. */
#define KVERBS_MORE	BIT(0)

/**
 * struct kverbs_cq_attr - what a completion queue should be
 * @nr_cqe: completions it must hold: for each QP on it the send queue's depth and,
 *	if its receives complete here too, the receive queue's
 * @mode: how it is served: &enum kverbs_cq_mode, but not KVERBS_CQ_FOREIGN
 * @comp_vector: completion vector, or -1 for cpu % num_comp_vectors
 * @cpu: CPU whose thread polls, or -1 for one of the device's node
 * @spin_ns: of hybrid mode: nanoseconds to poll for the next completion after one came;
 *	1 to 1,000,000
 * @max_latency_ns: of adaptive mode: nanoseconds from an event to its dispatch that are
 *	soon enough, so that polling is worth no more CPU than the event; 0: none are
 * @max_cpu_percent: of adaptive mode: percent of one CPU that may be spent on polling in
 *	vain; 0: it is served as in interrupt mode, 100: polled until it is idle, that is
 *	for a millisecond after each completion
 * @moderate_cqes: completions that the device may gather before it raises an event, 1 or 0:
 *	an event for each. What is fewer waits for @moderate_us, also a single one: this saves
 *	interrupts at a high rate, and costs latency at any other. Where there are no events,
 *	as in poll mode, there is nothing to gather
 * @moderate_us: microseconds after the first of them until it raises the event at the latest;
 *	both are given, or neither
 * @name: name of the consumer, for people; KBUILD_MODNAME serves
 */
struct kverbs_cq_attr {
	unsigned int nr_cqe;
	enum kverbs_cq_mode mode;
	int comp_vector;
	int cpu;
	u32 spin_ns;
	u32 max_latency_ns;
	u32 max_cpu_percent;
	u32 moderate_cqes;
	u32 moderate_us;
	const char *name;
};

/**
 * kverbs_cq_create() - create a completion queue and its poller
 * @dev: the device
 * @attr: what it should be
 *
 * Context: process context, may sleep.
 * Return: the CQ, or ERR_PTR: -EINVAL for an attribute out of range (the log
 *	names it and the limit), -EOPNOTSUPP if it is to moderate events and the device
 *	cannot, -ENODEV if the device is leaving, -ENOMEM, what kverbs_cq_set_mode()
 *	says of a poller, or what the driver says.
 */
struct kverbs_cq *kverbs_cq_create(struct ib_device *dev,
				   const struct kverbs_cq_attr *attr);

/**
 * kverbs_cq_destroy() - destroy a completion queue
 * @cq: the CQ; every QP on it has been destroyed
 *
 * Context: process context, may sleep.
 */
void kverbs_cq_destroy(struct kverbs_cq *cq);

/**
 * kverbs_cq_ib() - the ib_cq to create QPs with
 * @cq: the CQ
 *
 * Receive work requests on it, and sends that do not go through a &struct
 * kverbs_sq, must carry a wr_cqe.
 */
struct ib_cq *kverbs_cq_ib(struct kverbs_cq *cq);

/**
 * kverbs_cq_set_mode() - serve a completion queue in another way
 * @cq: the CQ
 * @mode: &enum kverbs_cq_mode, but not KVERBS_CQ_FOREIGN
 *
 * The budgets of the CQ stay as it was created with; hybrid mode needs its spin_ns. A
 * thread that polls in hybrid or adaptive mode lets any other task of its CPU go first.
 * Loses and reorders nothing, also under load.
 *
 * Context: process context, may sleep.
 * Return: 0, -EINVAL, or why there is no thread to poll: -ENOMEM, -EINTR in a task that
 *	is being killed, -ESHUTDOWN once the machine is going down. Then the CQ is in
 *	interrupt mode.
 */
int kverbs_cq_set_mode(struct kverbs_cq *cq, enum kverbs_cq_mode mode);

/**
 * struct kverbs_sq_attr - what a send queue should be
 * @init: the attributes with which the QP was created, as ib_create_qp() or
 *	rdma_create_qp() left them: what was granted, not what was asked
 * @cq: the &struct kverbs_cq that is the QP's send CQ, or NULL if that is one of
 *	ib_alloc_cq() or ib_cq_pool_get()
 * @cq_room: only without @cq: CQEs that the caller keeps free for this QP on that
 *	CQ; at least the send queue's depth
 * @copy_sge: 0, or the SGEs for which kverbs_post_wrs() must have room in each
 *	work request. Costs memory for each slot
 * @policy: &enum kverbs_batch_policy; 0, that is KVERBS_BATCH_DYNAMIC, is never slower than
 *	the others, which are there to be compared with
 * @hold_max_ns: 0: nothing ever waits for company. Otherwise a request may be
 *	staged for that many nanoseconds, though not with KVERBS_BATCH_EACH
 * @cqe_timeout_ms: milliseconds after which a signaled request without its CQE counts
 *	as missing and the queue fails, to a second; 0 for a minute. More than what
 *	the QP may spend in retries
 * @name: name of the consumer, for people; KBUILD_MODNAME serves
 */
struct kverbs_sq_attr {
	const struct ib_qp_init_attr *init;
	struct kverbs_cq *cq;
	unsigned int cq_room;
	unsigned int copy_sge;
	enum kverbs_batch_policy policy;
	u64 hold_max_ns;
	unsigned int cqe_timeout_ms;
	const char *name;
};

/**
 * kverbs_sq_create() - put a send queue over a QP
 * @qp: the QP; nothing has been posted to it
 * @attr: what the queue should be
 *
 * From now on only the queue posts sends to @qp.
 *
 * Context: process context, may sleep.
 * Return: the queue, or ERR_PTR: -EINVAL for an attribute out of range, a QP that
 *	signals every work request (IB_SIGNAL_ALL_WR) or a send CQ that does not
 *	dispatch wr_cqe->done(); -ENOSPC if the CQ could overflow; -ENODEV if the
 *	device is leaving; -ENOMEM. The log names the value, the limit and what to do.
 */
struct kverbs_sq *kverbs_sq_create(struct ib_qp *qp,
				   const struct kverbs_sq_attr *attr);

/**
 * kverbs_post() - post a group
 * @sq: the queue
 * @req: the group
 * @flags: 0 or KVERBS_MORE
 *
 * Context: any but NMI; from hard irq except on PREEMPT_RT. Never sleeps.
 * Return: 0 if the group was accepted; then @req->done is called once, whatever
 *	happens. Otherwise it is not called: -EAGAIN if there is no credit now,
 *	-EMSGSIZE if the group can never fit, -EINVAL if a work request is not
 *	legal (SGEs, length, inline length, opcode) or the group has 4 GiB of payload
 *	or more, -ESHUTDOWN if the queue was stopped,
 *	-EIO if it failed, -ENODEV if the device is gone.
 */
int kverbs_post(struct kverbs_sq *sq, struct kverbs_req *req, unsigned int flags);

/**
 * kverbs_post_list() - post several groups at once
 * @sq: the queue
 * @reqs: the groups, in the order in which they are to be posted
 * @nr: how many, at least one
 * @flags: 0 or KVERBS_MORE
 *
 * As kverbs_post() for one after the other with KVERBS_MORE, and cheaper: they are
 * staged together. Stops at the first that is not accepted.
 *
 * Context: as kverbs_post().
 * Return: how many were accepted, from the first on; if none was, the error of
 *	kverbs_post() for the first.
 */
int kverbs_post_list(struct kverbs_sq *sq, struct kverbs_req *const *reqs, unsigned int nr,
		     unsigned int flags);

/**
 * kverbs_post_wait() - post a group, wait for credit if there is none
 * @sq: the queue
 * @req: the group
 * @flags: 0 or KVERBS_MORE
 * @timeout: jiffies to wait at most
 *
 * Waiters are served first come, first served.
 *
 * Context: process context, may sleep.
 * Return: as kverbs_post(); -EAGAIN after @timeout.
 */
int kverbs_post_wait(struct kverbs_sq *sq, struct kverbs_req *req,
		     unsigned int flags, unsigned long timeout);

/**
 * kverbs_post_wrs() - post work requests that the caller does not keep
 * @sq: a queue created with copy_sge
 * @wr: first of a chain, as rdma_rw_ctx_wrs() gives it; copied with its SGLs. What
 *	the SGLs lead to is not, even with IB_SEND_INLINE: it stays until @cqe's done()
 * @cqe: its done() is called once with an ib_wc for the whole chain
 * @flags: 0 or KVERBS_MORE
 *
 * Context and return: as kverbs_post(); -EINVAL also for a queue without copy_sge
 *	or a work request with more SGEs than that.
 */
int kverbs_post_wrs(struct kverbs_sq *sq, const struct ib_send_wr *wr,
		    struct ib_cqe *cqe, unsigned int flags);

/**
 * kverbs_flush() - hand everything staged to the driver
 * @sq: the queue
 *
 * Context: as kverbs_post().
 */
void kverbs_flush(struct kverbs_sq *sq);

/**
 * struct kverbs_credit_wait - a caller that waits for credit without sleeping
 * @nr_wrs: credits it needs
 * @ready: called once when they are there, in the context of done(); may post.
 *	Also called when the queue stops: then a post says -ESHUTDOWN
 *
 * The rest is private.
 */
struct kverbs_credit_wait {
	unsigned int nr_wrs;
	void (*ready)(struct kverbs_credit_wait *wait);
	/* private: */
	struct list_head entry;
};

/**
 * kverbs_on_credit() - be called when there is credit
 * @sq: the queue
 * @wait: lives until its ready() was called
 *
 * Served in one line with the sleepers of kverbs_post_wait().
 *
 * Context: as kverbs_post().
 * Return: 0, or -EMSGSIZE if the queue can never have that many.
 */
int kverbs_on_credit(struct kverbs_sq *sq, struct kverbs_credit_wait *wait);

/**
 * kverbs_sq_drain() - stop a queue and wait until nothing is in flight
 * @sq: the queue
 * @timeout: jiffies to wait at most
 *
 * Refuses new posts, gives back what is staged with IB_WC_WR_FLUSH_ERR, moves
 * the QP to the error state and waits for its completions. Posts no work request
 * of its own, so that it serves UD QPs and QPs with an SRQ too.
 *
 * Context: process context, may sleep.
 * Return: 0 if every group has ended, -ETIMEDOUT if some have not: the HCA may
 *	still use their buffers. They end in kverbs_sq_destroy().
 */
int kverbs_sq_drain(struct kverbs_sq *sq, unsigned long timeout);

/**
 * kverbs_sq_recover() - let a failed UD or UC queue work again
 * @sq: the queue; nothing is in flight
 *
 * A send error moves such a QP to the SQE state, not to ERR: the queue then fails
 * and flushes what it has. This moves the QP to RTS and accepts posts again.
 *
 * Context: process context, may sleep.
 * Return: 0, -EBUSY if something is in flight, -EINVAL if the QP is not in SQE, the
 *	queue has been stopped or the device is gone, or what the driver says.
 */
int kverbs_sq_recover(struct kverbs_sq *sq);

/**
 * kverbs_sq_destroy() - destroy a queue
 * @sq: the queue
 *
 * The caller has destroyed the QP, so that nothing touches the buffers any more:
 * groups that have not ended get their done() now, with IB_WC_WR_FLUSH_ERR.
 *
 * Context: process context, may sleep.
 */
void kverbs_sq_destroy(struct kverbs_sq *sq);

/**
 * struct kverbs_sq_info - what a queue can take
 * @depth: work requests it holds
 * @credits: work requests it would take now
 * @max_sge: SGEs in a work request
 * @max_inline: bytes inline
 */
struct kverbs_sq_info {
	u32 depth;
	u32 credits;
	u32 max_sge;
	u32 max_inline;
};

/**
 * kverbs_sq_query() - ask what a queue can take
 * @sq: the queue
 * @info: filled in
 *
 * Context: any.
 */
void kverbs_sq_query(struct kverbs_sq *sq, struct kverbs_sq_info *info);

/**
 * kverbs_sq_counter() - a counter of a queue
 * @sq: the queue
 * @counter: one of the queue's
 *
 * Context: any.
 * Return: its value.
 */
u64 kverbs_sq_counter(struct kverbs_sq *sq, enum kverbs_counter counter);

/**
 * kverbs_cq_counter() - a counter of a completion queue
 * @cq: the CQ
 * @counter: one of the CQ's
 *
 * Context: any.
 * Return: its value.
 */
u64 kverbs_cq_counter(struct kverbs_cq *cq, enum kverbs_counter counter);

#endif /* _RDMA_KVERBS_H */
