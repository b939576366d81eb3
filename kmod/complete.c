// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The dispatcher's side: a CQE comes, work requests retire from the head, in order.
 *
 * A signaled work request retires by its own CQE only. A silent one retires by the
 * next CQE after it in the queue: success if that is a success or the first error
 * (the HCA worked in order up to there), outcome unknown if it is a flush. A dead one
 * retires when all before it have.
 *
 * ORDER: the slots are freed and the groups taken off before head moves, once, at the
 * end; then credits are back and done() may post. After head has moved the dispatcher
 * looks at no slot any more. The worker acts only if nothing is in flight and that pass
 * is over, so that it meets no dispatcher, nor overtakes its done().
 */
#include <linux/bottom_half.h>
#include <linux/sched.h>

#include "clock.h"
#include "path.h"
#include "trace.h"

/* Groups that ended in one go, and what they add to the counters. */
struct ended {
	struct kverbs_req *first;
	struct kverbs_req **next;
	u32 errors;
	u32 flushed;
	u32 run;		/* groups since the last record, posted by one call */
};

/*
 * Groups of one run ended, or of a part of it: the time of its post stays with the queue,
 * since the rest may end later.
 */
static void record_run(struct kverbs_sq *sq, struct ended *ended, u64 now)
{
	if (ended->run && sq->run_posted_at != KVERBS_NOT_POSTED)
		kverbs_hist_record(sq->hists.bucket[KVERBS_HIST_COMPLETE],
				   kverbs_clock_ns(sq->run_posted_at, now), ended->run);
	ended->run = 0;
}

static noinline void count_bad(struct ended *ended, const struct kverbs_req *req)
{
	if (req->status == IB_WC_WR_FLUSH_ERR)
		ended->flushed += req->nr_wrs;
	else
		ended->errors++;
}

static __always_inline void end_group(struct kverbs_sq *sq, struct ended *ended,
				      struct kverbs_req *req, u64 now)
{
	struct ib_send_wr *last = kverbs_last_wr(req);

	/* The chain becomes its owner's again: as it was, so that it can be posted once more. */
	last->next = NULL;
	if (req->inlined) {
		swap(last->sg_list, req->inline_sge);
		last->send_flags &= ~IB_SEND_INLINE;
	}
	if (req->leads) {
		record_run(sq, ended, now);
		sq->run_posted_at = req->run.posted_at;
	}
	ended->run++;
	if (unlikely(req->status != IB_WC_SUCCESS))
		count_bad(ended, req);
	*ended->next = req;
	ended->next = &req->next;
}

/*
 * Retire the slots from @pos to @end; silent ones prove to be successful, or with
 * @flushed unknown. Stops at a signaled one whose CQE is out. Returns where it stopped.
 */
static u32 retire(struct kverbs_sq *sq, u32 pos, u32 end, bool flushed, struct ended *ended,
		  u64 now)
{
	unsigned long vacant = (unsigned long)sq | KVERBS_SLOT_FREE;
	enum kverbs_slot_state state;
	struct kverbs_slot *slot;
	struct kverbs_req *req;

	for (; pos != end; pos++) {
		slot = kverbs_slot_at(sq, pos);
		state = kverbs_ref_state(slot->ref);
		if (unlikely(state == KVERBS_SLOT_SIGNALED))
			break;
		req = kverbs_ref_req(slot->ref);
		if (unlikely(state != KVERBS_SLOT_SILENT)) {
			if (state == KVERBS_SLOT_DEAD)
				sq->dead_out++;
			else
				sq->seen--;
		} else if (unlikely(flushed) && req->status == IB_WC_SUCCESS) {
			req->status = IB_WC_WR_FLUSH_ERR;
			req->error = 0;
			req->vendor_err = 0;
		}
		WRITE_ONCE(slot->ref, vacant);
		if (likely(req->nr_wrs == 1) || !--req->left)
			end_group(sq, ended, req, now);
	}
	return pos;
}

/*
 * What else can retire from @pos on: all up to a slot whose CQE came, if nothing
 * signaled is before it, or dead slots with nothing before them. Returns the end of
 * it, @pos if there is nothing.
 */
static u32 retirable(struct kverbs_sq *sq, u32 pos, bool *flushed)
{
	/* ORDER: pairs with the owner's release before it posts: the slots' states are set */
	u32 taken = smp_load_acquire(&sq->stage.taken), end = pos;
	bool silent = false;

	for (; pos != taken; pos++) {
		switch (kverbs_ref_state(READ_ONCE(kverbs_slot_at(sq, pos)->ref))) {
		case KVERBS_SLOT_SILENT:
			silent = true;
			break;
		case KVERBS_SLOT_DEAD:
			if (!silent)
				end = pos + 1;
			break;
		case KVERBS_SLOT_DONE:
			*flushed = false;
			return pos + 1;
		case KVERBS_SLOT_FLUSHED:
			*flushed = true;
			return pos + 1;
		default:
			return end;
		}
	}
	return end;
}

static u32 retire_more(struct kverbs_sq *sq, u32 pos, struct ended *ended, u64 now)
{
	bool flushed = false;
	u32 end;

	while ((end = retirable(sq, pos, &flushed)) != pos)
		pos = retire(sq, pos, end, flushed, ended, now);
	return pos;
}

/* Groups have left the queue: account, give the credits back, tell the owners. */
static void finish(struct kverbs_sq *sq, struct ended *ended, u32 head, u64 now)
{
	struct kverbs_req *req, *next;

	record_run(sq, ended, now);
	*ended->next = NULL;
	kverbs_count(&sq->obj, KVERBS_COMPLETIONS, head - sq->head);
	if (unlikely(ended->flushed))
		kverbs_count(&sq->obj, KVERBS_FLUSHED, ended->flushed);
	if (unlikely(ended->errors))
		kverbs_count(&sq->obj, KVERBS_ERRORS, ended->errors);
	/* ORDER: pairs with the acquire in core/stage.h: the slots are free before */
	smp_store_release(&sq->head, head);
	for (req = ended->first; req; req = next) {
		next = req->next;
		req->done(req, req->status);
	}
}

/* An error takes the QP out of service; the rest of it only follows. */
static noinline void mark_error(struct kverbs_sq *sq, struct kverbs_req *req, u32 pos,
				const struct ib_wc *wc)
{
	kverbs_record_cqe(sq, pos, wc);
	if (req->status == IB_WC_SUCCESS) {
		req->status = wc->status;
		req->error = 0;
		req->vendor_err = wc->vendor_err;
	}
	trace_kverbs_error(sq->dev_index, sq->qpn,
			   wc->status == IB_WC_WR_FLUSH_ERR ? KVERBS_FLUSHED : KVERBS_ERRORS,
			   wc->status, wc->vendor_err);
	if (READ_ONCE(sq->state) == KVERBS_SQ_LIVE)
		kverbs_sq_fail(sq, false);
}

/* What is silent has a CQE only of an error. */
static bool failed_silently(unsigned long ref, const struct ib_wc *wc)
{
	return kverbs_ref_state(ref) == KVERBS_SLOT_SILENT && wc->status != IB_WC_SUCCESS;
}

/* A CQE for a slot that has retired or was never posted: a driver's fault, touch nothing. */
static noinline void stale(unsigned long ref)
{
	struct kverbs_sq *sq = kverbs_ref_state(ref) == KVERBS_SLOT_FREE ?
			       (void *)kverbs_ref_req(ref) : kverbs_ref_req(ref)->sq;

	kverbs_count(&sq->obj, KVERBS_CQE_STALE, 1);
	trace_kverbs_error(sq->dev_index, sq->qpn, KVERBS_CQE_STALE, 0, 0);
}

static void handle(struct kverbs_sq *sq, struct kverbs_slot *slot, struct kverbs_req *req,
		   const struct ib_wc *wc, u64 now)
{
	u32 head = sq->head, dist = (u32)(slot - sq->slots - head) & sq->mask;
	bool flushed = wc->status == IB_WC_WR_FLUSH_ERR;
	struct ended ended = { .next = &ended.first };
	u32 pos = head;
	u8 opcode;

	/* ORDER: pairs with the owner's release before it posts */
	if (unlikely(dist >= smp_load_acquire(&sq->stage.taken) - head)) {
		stale(slot->ref);
		return;
	}
	opcode = kverbs_last_wr(req)->opcode;
	kverbs_count(&sq->obj, KVERBS_QUEUE_CQES, 1);
	if (unlikely(wc->status != IB_WC_SUCCESS))
		mark_error(sq, req, head + dist, wc);
	WRITE_ONCE(slot->ref, (unsigned long)req |
			      (flushed ? KVERBS_SLOT_FLUSHED : KVERBS_SLOT_DONE));
	sq->seen++;
	/* In an ordered queue a success speaks for all that is before it. */
	if (likely(wc->status == IB_WC_SUCCESS && !sq->reads_overtake))
		pos = retire(sq, head, head + dist + 1, false, &ended, now);
	if (unlikely(sq->seen || READ_ONCE(sq->dead_in) != sq->dead_out))
		pos = retire_more(sq, pos, &ended, now);
	trace_kverbs_complete(sq->dev_index, sq->qpn, head, wc->status, pos - head,
			      sq->run_posted_at != KVERBS_NOT_POSTED ?
			      kverbs_clock_ns(sq->run_posted_at, now) : 0);
	kverbs_note_cqe(sq->recorder, &sq->nr_cqes, (struct kverbs_cqe_note){
		.at = now,
		.posted_at = sq->run_posted_at,
		.pos = head + dist,
		.retired = pos - head,
		.vendor_err = wc->vendor_err,
		.status = wc->status,
		.opcode = opcode,
	});
	finish(sq, &ended, pos, now);
	if (unlikely(READ_ONCE(sq->nr_waiters) || sq->batch.by_pass))
		kverbs_touch(sq->pass, sq);
	if (unlikely(READ_ONCE(sq->state) == KVERBS_SQ_STOPPED))
		wake_up_all(&sq->idle);
}

void kverbs_slot_done(struct ib_cq *ibcq, struct ib_wc *wc)
{
	struct kverbs_slot *slot = container_of(wc->wr_cqe, struct kverbs_slot, cqe);
	unsigned long ref;
	struct kverbs_req *req;
	struct kverbs_sq *sq;

	local_bh_disable();
	ref = READ_ONCE(slot->ref);
	if (unlikely(kverbs_ref_state(ref) != KVERBS_SLOT_SIGNALED && !failed_silently(ref, wc))) {
		stale(ref);
		goto out;
	}
	req = kverbs_ref_req(ref);
	sq = req->sq;
	if (sq->cq) {
		handle(sq, slot, req, wc, sq->pass->now);
	} else {
		/* ib_core's CQs have no end of a pass to hook: one CQE is one */
		kverbs_pass_begin(sq->pass);
		handle(sq, slot, req, wc, sq->pass->now);
		kverbs_pass_end(sq->pass);
	}
out:
	local_bh_enable();
}

/* A CQE for a queue that is gone is none of anybody's business. */
void kverbs_slot_late(struct ib_cq *ibcq, struct ib_wc *wc)
{
}

/* One dispatcher at a time, with bottom halves off. */
void kverbs_pass_begin(struct kverbs_pass *pass)
{
	WARN_ON_ONCE(pass->task);
	pass->now = kverbs_clock();
	WRITE_ONCE(pass->task, current);
	WRITE_ONCE(pass->nr, pass->nr + 1);
}

void kverbs_touch(struct kverbs_pass *pass, struct kverbs_sq *sq)
{
	if (list_empty(&sq->pass_entry))
		list_add_tail(&sq->pass_entry, &pass->touched);
}

/* Hand over what the callbacks posted, and give waiters their turn first. */
void kverbs_pass_end(struct kverbs_pass *pass)
{
	struct kverbs_sq *sq;

	while (!list_empty(&pass->touched)) {
		sq = list_first_entry(&pass->touched, struct kverbs_sq, pass_entry);
		list_del_init(&sq->pass_entry);
		if (unlikely(READ_ONCE(sq->nr_waiters)))
			kverbs_serve_waiters(sq);
		if (unlikely(sq->batch.by_pass))
			/* ORDER: head, then the stage; who stages has it the other way round */
			smp_mb();
		kverbs_try_turn(sq, KVERBS_FLUSH_PASS);
	}
	WRITE_ONCE(pass->task, NULL);
	/* ORDER: pairs with the acquire in pass_is_over() */
	smp_store_release(&pass->nr, pass->nr + 1);
}

/*
 * Has done() run for all that retired when head moved to @head? It was acquired, and
 * nothing is in flight: so if another pass runs than when it was first seen there, or
 * none, the pass that moved it is over.
 */
static bool pass_is_over(struct kverbs_sq *sq, u32 head)
{
	/* ORDER: pairs with the release in kverbs_pass_end() */
	u32 nr = smp_load_acquire(&sq->pass->nr);

	if (!(nr & 1) || (sq->dead_head == head && sq->dead_pass && sq->dead_pass != nr))
		return true;
	sq->dead_head = head;
	sq->dead_pass = nr;
	return false;
}

static bool all_dead(struct kverbs_sq *sq, u32 head, u32 taken)
{
	for (; head != taken; head++)
		if (kverbs_ref_state(READ_ONCE(kverbs_slot_at(sq, head)->ref)) != KVERBS_SLOT_DEAD)
			return false;
	return true;
}

/*
 * Retire dead slots where nothing is in flight, so that no dispatcher will. The caller
 * owns the turn. Returns whether dead slots are left: then look again later.
 */
bool kverbs_retire_dead(struct kverbs_sq *sq)
{
	struct ended ended = { .next = &ended.first };
	/* ORDER: pairs with the release in finish(): the dispatcher is through with the slots */
	u32 head = smp_load_acquire(&sq->head), taken = sq->stage.taken;
	u64 now;

	if (head == taken)
		return false;
	if (!all_dead(sq, head, taken))
		return READ_ONCE(sq->dead_in) != READ_ONCE(sq->dead_out);
	if (!pass_is_over(sq, head))
		return true;
	local_bh_disable();
	now = kverbs_clock();
	head = retire(sq, head, taken, false, &ended, now);
	finish(sq, &ended, head, now);
	local_bh_enable();
	return false;
}

/*
 * The QP is gone and no CQE will come: end everything that has not, with an unknown
 * outcome. The caller owns the turn, and no dispatcher is about.
 */
void kverbs_retire_all(struct kverbs_sq *sq)
{
	struct ended ended = { .next = &ended.first };
	u32 pos, taken = sq->stage.taken;
	struct kverbs_slot *slot;
	u64 now = kverbs_clock();

	for (pos = sq->head; pos != taken; pos++) {
		slot = kverbs_slot_at(sq, pos);
		if (kverbs_ref_state(slot->ref) == KVERBS_SLOT_SIGNALED)
			slot->ref = (unsigned long)kverbs_ref_req(slot->ref) | KVERBS_SLOT_SILENT;
	}
	local_bh_disable();
	pos = retire(sq, sq->head, taken, true, &ended, now);
	finish(sq, &ended, pos, now);
	local_bh_enable();
}
