// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The owner's turn: take what is staged, chain it, decide who asks for a CQE, post.
 *
 * One owner at a time (core/stage.h). A turn is bounded: it leaves work behind only
 * after it has queued the worker, and never a silent tail without a reason: the last
 * group that empties the stage is signaled. A queue that takes no more gives back what is
 * staged, but for one group where a silent one would be the last in flight.
 *
 * Refusals: what the driver took stays in flight, the group of the work request that
 * it named is dead, later groups are posted again in order. Where it did not say what
 * it took, nothing of the chain is touched: the QP goes to ERR and each request ends
 * by its CQE or in kverbs_sq_destroy().
 */
#include <linux/interrupt.h>
#include <linux/uaccess.h>

#include "clock.h"
#include "compat.h"
#include "path.h"
#include "trace.h"

/* Looks at a place whose producer is between its two steps: a few instructions. */
#define PUBLISH_SPINS	64

#define BH_WATCHED	(BIT(TASKLET_SOFTIRQ) | BIT(HI_SOFTIRQ) | BIT(NET_TX_SOFTIRQ) | \
			 BIT(NET_RX_SOFTIRQ) | BIT(IRQ_POLL_SOFTIRQ))

/*
 * A chain on its way to the driver. Of its work requests only the first and the last are
 * kept: when a driver refuses, those that it took may have completed and be gone.
 */
struct chain {
	u32 from;
	u32 nr;
	u64 run_before;		/* silent work requests in flight before it */
	u64 signaled;		/* bit n: work request n asks for a CQE */
	u64 bytes;
	struct kverbs_req *leader;	/* of its first run */
	struct ib_send_wr *first;
	struct ib_send_wr *last;
};

/* What is at a place whose producer was still at it, NULL if it still is. */
static noinline struct kverbs_req *published_late(struct kverbs_slot *slot)
{
	unsigned int spins;
	unsigned long ref;

	for (spins = 0; spins < PUBLISH_SPINS; spins++) {
		cpu_relax();
		/* ORDER: pairs with the release in post.c show() */
		ref = smp_load_acquire(&slot->ref);
		if (kverbs_ref_state(ref) == KVERBS_SLOT_SILENT)
			return kverbs_ref_req(ref);
	}
	return NULL;
}

/* The run at @pos, that is its first group; NULL while its producer is still at it. */
static __always_inline struct kverbs_req *published(struct kverbs_sq *sq, u32 pos)
{
	struct kverbs_slot *slot = kverbs_slot_at(sq, pos);
	/* ORDER: pairs with the release in post.c show() */
	unsigned long ref = smp_load_acquire(&slot->ref);

	if (likely(kverbs_ref_state(ref) == KVERBS_SLOT_SILENT))
		return kverbs_ref_req(ref);
	return published_late(slot);
}

static struct kverbs_req *req_at(struct kverbs_sq *sq, u32 pos)
{
	return kverbs_ref_req(READ_ONCE(kverbs_slot_at(sq, pos)->ref));
}

static void set_state(struct kverbs_sq *sq, u32 pos, struct kverbs_req *req,
		      enum kverbs_slot_state state)
{
	WRITE_ONCE(kverbs_slot_at(sq, pos)->ref, kverbs_ref(req, state));
}

static __always_inline void signal_wr(struct kverbs_sq *sq, struct ib_send_wr *wr, u32 pos)
{
	wr->send_flags |= IB_SEND_SIGNALED;
	set_state(sq, pos, req_at(sq, pos), KVERBS_SLOT_SIGNALED);
	kverbs_count(&sq->obj, KVERBS_SIGNALED, 1);
}

/* chain.signaled: the bit of the work request at @pos of the chain from @from on. */
static __always_inline u64 signaled_bit(u32 from, u32 pos)
{
	return pos - from < KVERBS_BATCH_MAX ? BIT_ULL(pos - from) : 0;
}

/*
 * On iWARP a READ may complete after what follows it: only its own CQE tells. Those of
 * the run at @pos but its last, for chain.signaled.
 */
static noinline u64 signal_reads(struct kverbs_sq *sq, const struct kverbs_req *req, u32 from,
				 u32 pos)
{
	struct ib_send_wr *wr;
	u64 signaled = 0;

	for (wr = req->wr; wr != req->run.last; wr = wr->next, pos++) {
		if (kverbs_op_counter(wr->opcode) != KVERBS_OP_READ)
			continue;
		signal_wr(sq, wr, pos);
		signaled |= signaled_bit(from, pos);
	}
	return signaled;
}

static noinline void count_mixed(struct kverbs_sq *sq, const struct kverbs_run *run,
				 const struct ib_send_wr *wr)
{
	for (; wr != run->last; wr = wr->next)
		kverbs_count(&sq->obj, kverbs_op_counter(wr->opcode), 1);
	kverbs_count(&sq->obj, kverbs_op_counter(wr->opcode), 1);
}

static __always_inline void count_run(struct kverbs_sq *sq, const struct kverbs_req *req)
{
	const struct kverbs_run *run = &req->run;

	if (unlikely(run->mixed))
		count_mixed(sq, run, req->wr);
	else
		kverbs_count(&sq->obj, run->op, run->nr_wrs);
	if (unlikely(run->nr_inline))
		kverbs_count(&sq->obj, KVERBS_INLINE, run->nr_inline);
}

/* The run of @req, the last that is posted for now: signaled. */
static __always_inline struct chain chain_one(struct kverbs_sq *sq, struct kverbs_req *req,
					      u32 pos)
{
	struct chain chain = {
		.from = pos,
		.nr = req->run.nr_wrs,
		.run_before = sq->signal.run,
		.signaled = signaled_bit(0, req->run.nr_wrs - 1),
		.bytes = req->run.bytes,
		.leader = req,
		.first = req->wr,
		.last = req->run.last,
	};

	count_run(sq, req);
	sq->signal.run = 0;
	signal_wr(sq, chain.last, pos + chain.nr - 1);
	return chain;
}

/* The run of @req, and what is published after it, at most a batch. */
static noinline struct chain chain_several(struct kverbs_sq *sq, struct kverbs_req *req, u32 pos,
					   bool closing)
{
	struct chain chain = {
		.from = pos,
		.run_before = sq->signal.run,
		.leader = req,
		.first = req->wr,
	};
	u32 tail = kverbs_stage_tail(&sq->stage), nr;
	u32 spread = kverbs_batch_spread(&sq->batch, kverbs_in_pass(sq->pass),
					 tail - READ_ONCE(sq->head));
	bool must;

	do {
		nr = req->run.nr_wrs;
		if (!kverbs_batch_takes(&sq->batch, chain.nr, nr))
			break;
		must = closing || pos + nr == tail || sq->signal.run + nr >= spread;
		if (unlikely(sq->reads_overtake)) {
			chain.signaled |= signal_reads(sq, req, chain.from, pos);
			must |= kverbs_op_counter(req->run.last->opcode) == KVERBS_OP_READ;
		}
		pos += nr;
		if (chain.last)
			chain.last->next = req->wr;
		chain.last = req->run.last;
		chain.nr += nr;
		chain.bytes += req->run.bytes;
		count_run(sq, req);
		if (kverbs_signal_next(&sq->signal, nr, must)) {
			signal_wr(sq, chain.last, pos - 1);
			chain.signaled |= signaled_bit(chain.from, pos - 1);
		}
		if (closing || pos == tail || chain.nr >= sq->batch.limit)
			break;
		req = published(sq, pos);
	} while (req);
	return chain;
}

/*
 * Take runs from the stage, from that of @req on, at most a batch. @closing: one run to
 * close a silent tail with, the last that is posted.
 */
static __always_inline struct chain collect(struct kverbs_sq *sq, struct kverbs_req *req, u32 pos,
					    bool closing)
{
	if (likely((closing || pos + req->run.nr_wrs == kverbs_stage_tail(&sq->stage)) &&
		   !sq->reads_overtake))
		return chain_one(sq, req, pos);
	return chain_several(sq, req, pos, closing);
}

/* A group that will not be done whole. It may be half in flight, and have met an error there. */
static void give_up(struct kverbs_req *req, enum ib_wc_status status, int error)
{
	if (req->status == IB_WC_SUCCESS) {
		req->status = status;
		req->error = error;
		req->vendor_err = 0;
	}
}

/*
 * Work requests of a group given up that never reached the HCA: they end in order, when
 * their turn comes. The group may be gone once the last is marked.
 */
static void bury(struct kverbs_sq *sq, struct kverbs_req *req, u32 from, u32 to)
{
	u32 pos;

	for (pos = from; pos != to; pos++)
		/* ORDER: pairs with the dispatcher's look at the slot: it sees the status */
		smp_store_release(&kverbs_slot_at(sq, pos)->ref,
				  kverbs_ref(req, KVERBS_SLOT_DEAD));
	WRITE_ONCE(sq->dead_in, sq->dead_in + (to - from));
	kverbs_kick(sq, 0);
}

/* Silent work requests in flight once the first @taken of the chain were taken. */
static u32 silent_run(const struct chain *chain, u32 taken)
{
	u64 mask = taken < KVERBS_BATCH_MAX ? BIT_ULL(taken) - 1 : ~0ULL;
	u64 signaled = chain->signaled & mask;

	return signaled ? taken - fls64(signaled) : chain->run_before + taken;
}

/*
 * Nothing follows what is silent: signal it with a write of nothing, in the place @pos of
 * a work request of @req that the driver refused.
 */
static void close_tail(struct kverbs_sq *sq, struct kverbs_req *req, u32 pos)
{
	struct kverbs_slot *slot = kverbs_slot_at(sq, pos);
	const struct ib_send_wr *bad = NULL;
	struct ib_rdma_wr noop = {
		.wr = {
			.wr_cqe = &slot->cqe,
			.opcode = IB_WR_RDMA_WRITE,
			.send_flags = IB_SEND_SIGNALED,
		},
	};

	if (sq->may_noop) {
		set_state(sq, pos, req, KVERBS_SLOT_SIGNALED);
		kverbs_count(&sq->obj, KVERBS_POST_CALLS, 1);
		kverbs_count(&sq->obj, KVERBS_NOOPS, 1);
		if (!ib_post_send(sq->qp, &noop.wr, &bad))
			return;
	}
	bury(sq, req, pos, pos + 1);
	kverbs_record_end(sq, KVERBS_CAUSE_TAIL);
	kverbs_sq_fail(sq, true);
}

/*
 * Which work request of the chain did the driver refuse? Its index, the chain's length if
 * unknown. What a driver names may be no work request of ours at all, so it is read with
 * care: its wr_cqe must lead to a place of the chain that is still in use, and the group
 * there must have it at that place.
 */
static u32 refused_index(struct kverbs_sq *sq, const struct chain *chain,
			 const struct ib_send_wr *bad, u32 first, int err, struct kverbs_req **req,
			 u32 *group)
{
	struct ib_send_wr *wr;
	unsigned long offset;
	struct ib_cqe *cqe;
	u32 at, i;

	/* Some drivers name the head when they ran out of memory half-way. */
	if (chain->nr > KVERBS_BATCH_MAX || !bad || (bad == chain->first && err == -ENOMEM) ||
	    copy_from_kernel_nofault(&cqe, &bad->wr_cqe, sizeof(cqe)))
		return chain->nr;
	offset = (unsigned long)cqe - (unsigned long)sq->slots;
	if (offset > sq->mask * sizeof(*sq->slots) || offset % sizeof(*sq->slots))
		return chain->nr;
	at = (u32)(offset / sizeof(*sq->slots) - chain->from) & sq->mask;
	if (at < first || at >= chain->nr ||
	    kverbs_ref_state(READ_ONCE(kverbs_slot_at(sq, chain->from + at)->ref)) >
	    KVERBS_SLOT_SIGNALED)
		return chain->nr;
	*req = req_at(sq, chain->from + at);
	for (wr = (*req)->wr, i = 0; wr != bad && i < (*req)->nr_wrs; wr = wr->next)
		i++;
	*group = at - i;
	return wr == bad ? at : chain->nr;
}

/*
 * The driver refused. Settles what can be settled; returns the index in the chain from
 * which to post again, its length if there is nothing to post.
 */
static noinline u32 refused(struct kverbs_sq *sq, struct chain *chain, u32 first,
			    const struct ib_send_wr *bad, int err)
{
	u32 at, group, end, i;
	struct kverbs_req *req;

	if (err > 0)
		err = -err;
	trace_kverbs_error(sq->dev_index, sq->qpn, KVERBS_REFUSED_DRIVER, err, 0);
	at = refused_index(sq, chain, bad, first, err, &req, &group);
	if (at == chain->nr) {
		/* Post nothing more: what was taken, the CQEs of a QP in ERR will tell. */
		kverbs_record_refusal(sq, chain->from + first, NULL, err);
		sq->signal.run = 0;
		kverbs_sq_fail(sq, true);
		return at;
	}
	kverbs_record_refusal(sq, chain->from + at, bad, err);
	end = group + req->nr_wrs;
	kverbs_count(&sq->obj, KVERBS_REFUSED_DRIVER, end - at);
	give_up(req, IB_WC_LOC_QP_OP_ERR, err);
	/* Their CQEs will tell of nothing that is before them. */
	for (i = at; i < end; i++)
		chain->signaled &= ~signaled_bit(0, i);
	if (end == chain->nr) {
		sq->signal.run = 0;
		if (silent_run(chain, at)) {
			bury(sq, req, chain->from + at, chain->from + end - 1);
			close_tail(sq, req, chain->from + end - 1);
		} else {
			bury(sq, req, chain->from + at, chain->from + end);
		}
		return end;
	}
	bury(sq, req, chain->from + at, chain->from + end);
	/* The rest closes what is silent by its own last one. */
	if (!(chain->last->send_flags & IB_SEND_SIGNALED)) {
		signal_wr(sq, chain->last, chain->from + chain->nr - 1);
		chain->signaled |= signaled_bit(0, chain->nr - 1);
		sq->signal.run = 0;
	}
	chain->first = req_at(sq, chain->from + end)->wr;
	return end;
}

/* How many of the chain ask for a CQE, from the one with index @first on. */
static __always_inline u8 signaled_in(const struct kverbs_sq *sq, const struct chain *chain,
				      u32 first)
{
	u8 nr = hweight64(chain->signaled >> (first & 63));

	/* Beyond what has a bit only the last can be. */
	if (unlikely(chain->nr > KVERBS_BATCH_MAX))
		nr += !sq->signal.run;
	return nr;
}

static noinline void trace_flush(struct kverbs_sq *sq, struct chain chain, u32 first,
				 enum kverbs_flush_reason reason, u64 ns)
{
	trace_kverbs_flush(sq->dev_index, sq->qpn, chain.from + first, reason, chain.nr - first,
			   hweight64(chain.signaled >> (first & 63)), chain.bytes, ns);
}

/* One call of the driver, and its account. */
static __always_inline int post(struct kverbs_sq *sq, struct chain chain, u32 first,
				const struct ib_send_wr **bad, enum kverbs_flush_reason reason,
				u64 start)
{
	/* The chain may be gone when the driver returns. */
	u8 opcode = chain.first->opcode;
	u64 ns;
	int err;

	*bad = NULL;
	err = ib_post_send(sq->qp, chain.first, bad);
	ns = kverbs_clock_ns(start, kverbs_clock());
	kverbs_count(&sq->obj, KVERBS_POST_CALLS, 1);
	kverbs_hist_record(sq->hists.bucket[KVERBS_HIST_POST], ns, 1);
	kverbs_note_flush(sq->recorder, &sq->nr_flushes, (struct kverbs_flush_note){
		.at = start,
		.bytes = chain.bytes,
		.pos = chain.from + first,
		.ns = min_t(u64, ns, U32_MAX),
		.nr = min_t(u32, chain.nr - first, U16_MAX),
		.result = err,
		.signaled = signaled_in(sq, &chain, first),
		.opcode = opcode,
		.reason = reason,
	});
	if (trace_kverbs_flush_enabled())
		trace_flush(sq, chain, first, reason, ns);
	return err;
}

/* The driver refused: settle what can be, post again what follows it. */
static noinline void post_again(struct kverbs_sq *sq, struct chain chain,
				const struct ib_send_wr *bad, enum kverbs_flush_reason reason,
				int err)
{
	u32 first = 0;

	do {
		first = refused(sq, &chain, first, bad, err);
		if (first == chain.nr)
			return;
		err = post(sq, chain, first, &bad, reason, kverbs_clock());
	} while (err);
}

/* The moment from which the chain's groups count their time to completion. */
static __always_inline void stamp(struct kverbs_sq *sq, struct chain chain, u64 now)
{
	struct kverbs_req *req = chain.leader;
	u32 pos = chain.from;

	req->run.posted_at = now;
	while (unlikely(req->run.last != chain.last)) {
		pos += req->run.nr_wrs;
		req = req_at(sq, pos);
		req->run.posted_at = now;
	}
}

/* Post the run of @req, the next of the stage, and what can go with it. */
static __always_inline void post_runs(struct kverbs_sq *sq, struct kverbs_req *req, u32 pos,
				      enum kverbs_flush_reason reason, bool closing)
{
	struct chain chain = collect(sq, req, pos, closing);
	const struct ib_send_wr *bad;
	u64 now;
	int err;

	chain.last->next = NULL;
	kverbs_count(&sq->obj, KVERBS_WORK_REQUESTS, chain.nr);
	kverbs_count(&sq->obj, KVERBS_BYTES, chain.bytes);
	now = kverbs_clock();
	stamp(sq, chain, now);
	/* ORDER: a CQE may come before the driver returns; its handler looks at taken. */
	kverbs_stage_take(&sq->stage, pos + chain.nr);
	err = post(sq, chain, 0, &bad, reason, now);
	if (unlikely(err))
		post_again(sq, chain, bad, reason, err);
}

/*
 * Post one chain of what is staged, with @closing one run. False if its first group has
 * not been published.
 */
static __always_inline bool post_chain(struct kverbs_sq *sq, enum kverbs_flush_reason reason,
				       bool closing)
{
	u32 pos = sq->stage.taken;
	struct kverbs_req *req = published(sq, pos);

	if (unlikely(!req))
		return false;
	post_runs(sq, req, pos, reason, closing);
	return true;
}

/*
 * The queue takes no more: what is staged is given back. The caller owns the turn. False
 * if a place has not been published: its producer may be what this CPU was doing before.
 */
bool kverbs_kill_staged(struct kverbs_sq *sq, enum kverbs_flush_reason reason)
{
	struct kverbs_req *req;
	u32 pos, end;

	while (kverbs_stage_waiting(&sq->stage)) {
		if (unlikely(sq->signal.run)) {
			if (!post_chain(sq, reason, true))
				return false;
			continue;
		}
		pos = sq->stage.taken;
		req = published(sq, pos);
		if (!req)
			return false;
		end = pos + req->nr_wrs;
		if (req->leads)
			req->run.posted_at = KVERBS_NOT_POSTED;
		give_up(req, IB_WC_WR_FLUSH_ERR, READ_ONCE(sq->closed));
		kverbs_stage_take(&sq->stage, end);
		bury(sq, req, pos, end);
	}
	return true;
}

/*
 * A driver that raises a softirq in post_send makes the kernel wake ksoftirqd, unless
 * bottom halves are off: then it runs when they go on. Watch some posts, then know.
 */
static __always_inline bool bh_off(struct kverbs_sq *sq)
{
	if (!sq->bh_watch)
		return false;
	if (preempt_count() & (HARDIRQ_MASK | SOFTIRQ_MASK) || softirq_count() || irqs_disabled())
		return false;
	local_bh_disable();
	return true;
}

static void bh_sample(struct kverbs_sq *sq, u32 before)
{
	if (sq->bh_watch == KVERBS_BH_RAISED)
		return;
	if (kverbs_softirq_pending() & ~before & BH_WATCHED)
		sq->bh_watch = KVERBS_BH_RAISED;
	else
		sq->bh_watch--;
}

static void hold_cancel(struct kverbs_sq *sq)
{
	if (!READ_ONCE(sq->hold_armed))
		return;
	hrtimer_try_to_cancel(&sq->hold);
	WRITE_ONCE(sq->hold_armed, 0);
}

/* Post what is staged until nothing is left; false if something had to be. */
static __always_inline bool drain_stage(struct kverbs_sq *sq, enum kverbs_flush_reason reason)
{
	unsigned int posts = 0;

	while (!kverbs_stage_release(&sq->stage)) {
		if (unlikely(READ_ONCE(sq->state) != KVERBS_SQ_LIVE)) {
			if (!kverbs_kill_staged(sq, reason))
				return false;
		} else if (kverbs_batch_hands_over(posts++) || !post_chain(sq, reason, false)) {
			return false;
		}
		/* Who arms it from now on has staged something, and the turn goes on. */
		if (unlikely(sq->batch.hold_ns))
			hold_cancel(sq);
	}
	return true;
}

void kverbs_turn(struct kverbs_sq *sq, enum kverbs_flush_reason reason)
{
	bool off = bh_off(sq);
	u32 before = off ? kverbs_softirq_pending() : 0;

	if (unlikely(!drain_stage(sq, reason))) {
		kverbs_stage_leave(&sq->stage);
		kverbs_kick(sq, 0);
	}
	if (off) {
		bh_sample(sq, before);
		local_bh_enable();
	}
}

void kverbs_try_turn(struct kverbs_sq *sq, enum kverbs_flush_reason reason)
{
	if (kverbs_stage_waiting(&sq->stage) && kverbs_stage_own(&sq->stage))
		kverbs_turn(sq, reason);
}
