// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The producer's side: check a group, reserve its places, publish it.
 *
 * All that can be known to be wrong is refused here, before anything is staged, with
 * an errno and a counter for each reason; so what a driver refuses later is news.
 *
 * Ownership: from a return of 0 until done() the group, its work requests and their
 * SGLs are the queue's. Any other return leaves them with the caller, untouched.
 */
#include <linux/preempt.h>
#include <linux/sched.h>

#include "compat.h"
#include "path.h"
#include "trace.h"

/* What a QP of this type may send. */
#define RC	BIT(0)
#define UC	BIT(1)
#define UD	BIT(2)

static const struct {
	u8 kinds;
	u8 counter;
} ops[] = {
	[IB_WR_RDMA_WRITE]		= { RC | UC,	  KVERBS_OP_WRITE },
	[IB_WR_RDMA_WRITE_WITH_IMM]	= { RC | UC,	  KVERBS_OP_WRITE },
	[IB_WR_SEND]			= { RC | UC | UD, KVERBS_OP_SEND },
	[IB_WR_SEND_WITH_IMM]		= { RC | UC | UD, KVERBS_OP_SEND },
	[IB_WR_SEND_WITH_INV]		= { RC | UC,	  KVERBS_OP_SEND },
	[IB_WR_RDMA_READ]		= { RC,		  KVERBS_OP_READ },
	[IB_WR_RDMA_READ_WITH_INV]	= { RC,		  KVERBS_OP_READ },
	[IB_WR_ATOMIC_CMP_AND_SWP]	= { RC,		  KVERBS_OP_ATOMIC },
	[IB_WR_ATOMIC_FETCH_AND_ADD]	= { RC,		  KVERBS_OP_ATOMIC },
	[IB_WR_REG_MR]			= { RC | UC | UD, KVERBS_OP_REG_MR },
	[IB_WR_LOCAL_INV]		= { RC | UC | UD, KVERBS_OP_LOCAL_INV },
};

u8 kverbs_qp_kind(enum ib_qp_type type)
{
	switch (type) {
	case IB_QPT_RC:
		return RC;
	case IB_QPT_UC:
		return UC;
	case IB_QPT_UD:
		return UD;
	default:
		return 0;
	}
}

enum kverbs_counter kverbs_op_counter(enum ib_wr_opcode opcode)
{
	return ops[opcode].counter;
}

static __always_inline bool op_is_legal(const struct kverbs_sq *sq, unsigned int opcode)
{
	return opcode < ARRAY_SIZE(ops) && ops[opcode].kinds & sq->kind;
}

static noinline int refuse(struct kverbs_sq *sq, enum kverbs_counter why, int err)
{
	kverbs_count_shared(&sq->obj, why);
	trace_kverbs_error(sq->dev_index, sq->qpn, why, err, 0);
	return err;
}

static int refuse_closed(struct kverbs_sq *sq)
{
	int err = READ_ONCE(sq->closed);

	return refuse(sq, err == -ENODEV ? KVERBS_REFUSED_DEVICE : KVERBS_REFUSED_STATE, err);
}

/* What the check of a chain found out. */
struct group_sum {
	struct ib_send_wr *last;
	u32 nr_wrs;
	u64 bytes;
};

/*
 * Is the chain of a group legal on this queue? Adds it to the run's account; 0, or the
 * counter of the reason why not.
 */
static __always_inline enum kverbs_counter check(const struct kverbs_sq *sq,
						 struct ib_send_wr *wr, struct kverbs_run *run,
						 struct group_sum *sum)
{
	unsigned int opcode, nr_sge;
	u64 bytes;

	sum->nr_wrs = 0;
	sum->bytes = 0;
	if (unlikely(!wr))
		return KVERBS_REFUSED_OPCODE;
	do {
		opcode = wr->opcode;
		nr_sge = wr->num_sge;
		if (unlikely(!op_is_legal(sq, opcode)))
			return KVERBS_REFUSED_OPCODE;
		if (unlikely(nr_sge > sq->max_sge))
			return KVERBS_REFUSED_SGE;
		if (ops[opcode].counter == KVERBS_OP_READ && unlikely(nr_sge > sq->max_read_sge))
			return KVERBS_REFUSED_SGE;
		bytes = kverbs_sgl_bytes(wr);
		if (unlikely(bytes > sq->max_bytes))
			return KVERBS_REFUSED_LENGTH;
		if (wr->send_flags & IB_SEND_INLINE) {
			if (unlikely(bytes > sq->max_inline))
				return KVERBS_REFUSED_INLINE;
			run->nr_inline++;
		}
		if (unlikely(++sum->nr_wrs > sq->stage.depth))
			return KVERBS_REFUSED_DEPTH;
		if (!run->op)
			run->op = ops[opcode].counter;
		run->mixed |= run->op ^ ops[opcode].counter;
		sum->bytes += bytes;
		sum->last = wr;
		wr = wr->next;
	} while (unlikely(wr));
	/* What the group's owner and traces are told has 32 bits. */
	if (unlikely(sum->bytes > U32_MAX))
		return KVERBS_REFUSED_LENGTH;
	run->nr_wrs += sum->nr_wrs;
	run->bytes += sum->bytes;
	return 0;
}

/* What the check found out, kept in the group; what its owner sees of it is untouched. */
static __always_inline void prepare(struct kverbs_req *req, u32 nr_wrs, u32 bytes)
{
	req->byte_len = bytes;
	req->nr_wrs = nr_wrs;
	req->status = IB_WC_SUCCESS;
	req->inlined = false;
	req->leads = false;
	req->reserved = false;
}

/*
 * Send the last payload inline if the caller gave its virtual addresses and the QP was
 * granted as much. Only what the opcode sends out: a READ's SGL is where data arrives.
 * The two SGLs change places until the group ends.
 */
static bool choose_inline(struct kverbs_sq *sq, struct kverbs_req *req)
{
	struct ib_send_wr *wr = kverbs_last_wr(req);
	u8 counter = ops[wr->opcode].counter;
	u64 bytes;

	if (!req->inline_sge || wr->send_flags & IB_SEND_INLINE ||
	    (counter != KVERBS_OP_SEND && counter != KVERBS_OP_WRITE))
		return false;
	bytes = kverbs_sgl_bytes(wr);
	if (!bytes || bytes > sq->max_inline)
		return false;
	swap(wr->sg_list, req->inline_sge);
	wr->send_flags |= IB_SEND_INLINE;
	req->inlined = true;
	return true;
}

/* How many of the groups have been made inline. */
static noinline u32 choose_inlines(struct kverbs_sq *sq, struct kverbs_req *const *reqs,
				   unsigned int nr)
{
	u32 nr_inline = 0;

	while (nr--)
		nr_inline += choose_inline(sq, reqs[nr]);
	return nr_inline;
}

static __always_inline struct kverbs_slot *next_slot(const struct kverbs_sq *sq,
						     struct kverbs_slot *slot)
{
	return slot == sq->last_slot ? sq->slots : slot + 1;
}

/* The group is the queue's: its work request gets its place. */
static __always_inline void fill_wr(struct ib_send_wr *wr, struct kverbs_slot *slot)
{
	wr->wr_cqe = &slot->cqe;
	wr->send_flags &= ~IB_SEND_SIGNALED;
}

/* The rest of a group of more than one work request. */
static noinline void fill_rest(struct kverbs_sq *sq, struct kverbs_req *req,
			       struct kverbs_slot *slot)
{
	struct ib_send_wr *wr = req->wr;

	do {
		wr = wr->next;
		slot = next_slot(sq, slot);
		fill_wr(wr, slot);
		/* ORDER: as in fill_list() */
		smp_store_release(&slot->ref, kverbs_ref(req, KVERBS_SLOT_SILENT));
	} while (wr != req->last);
}

/* Groups of one work request each, to follow @last in the places from @slot to before @end. */
static __always_inline struct ib_send_wr *
fill_list(struct kverbs_sq *sq, struct kverbs_req *const *reqs, struct ib_send_wr *last,
	  struct kverbs_slot *slot, struct kverbs_slot *end)
{
	struct kverbs_req *req;

	for (; slot != end; slot++) {
		req = *reqs++;
		req->sq = sq;
		/* ORDER: who has a late CQE of this slot follows what it reads here to the queue */
		smp_store_release(&slot->ref, kverbs_ref(req, KVERBS_SLOT_SILENT));
		last->next = req->wr;
		last = req->wr;
		fill_wr(last, slot);
	}
	return last;
}

/* The same where the ring ends before the list. */
static noinline struct ib_send_wr *fill_wrapped(struct kverbs_sq *sq,
						struct kverbs_req *const *reqs,
						struct ib_send_wr *last,
						struct kverbs_slot *slot, struct kverbs_slot *end)
{
	struct kverbs_slot *ring_end = sq->last_slot + 1;

	last = fill_list(sq, reqs, last, slot, ring_end);
	return fill_list(sq, reqs + (ring_end - slot), last, sq->slots,
			 sq->slots + (end - ring_end));
}

/* The first place of a run goes last, and shows them all. */
static __always_inline void show(struct kverbs_req *leader, struct ib_send_wr *last,
				 struct kverbs_slot *first)
{
	leader->run.last = last;
	leader->leads = true;
	/* ORDER: pairs with the acquire in flush.c published() */
	smp_store_release(&first->ref, kverbs_ref(leader, KVERBS_SLOT_SILENT));
}

/* Fill and link a list of groups of one work request each. */
static __always_inline void publish_list(struct kverbs_sq *sq, struct kverbs_req *const *reqs,
					 unsigned int nr, bool inlines, u32 pos)
{
	struct kverbs_slot *first = kverbs_slot_at(sq, pos), *end = first + nr;
	struct kverbs_req *leader = reqs[0];
	struct ib_send_wr *last = leader->wr;

	leader->sq = sq;
	fill_wr(last, first);
	if (likely(end - 1 <= sq->last_slot))
		last = fill_list(sq, reqs + 1, last, first + 1, end);
	else
		last = fill_wrapped(sq, reqs + 1, last, first + 1, end);
	if (unlikely(inlines))
		leader->run.nr_inline += choose_inlines(sq, reqs, nr);
	show(leader, last, first);
}

/* Fill a group of any number of work requests. */
static __always_inline void publish_group(struct kverbs_sq *sq, struct kverbs_req *req, u32 pos)
{
	struct kverbs_slot *first = kverbs_slot_at(sq, pos);

	req->sq = sq;
	fill_wr(req->wr, first);
	if (req->nr_wrs > 1)
		fill_rest(sq, req, first);
	req->run.nr_inline += choose_inline(sq, req);
	show(req, req->last, first);
}

static noinline void arm_hold(struct kverbs_sq *sq)
{
	if (!READ_ONCE(sq->hold_armed) && !xchg(&sq->hold_armed, 1))
		hrtimer_start(&sq->hold, ns_to_ktime(sq->batch.hold_ns), HRTIMER_MODE_REL_SOFT);
}

static enum hrtimer_restart hold_over(struct hrtimer *timer)
{
	struct kverbs_sq *sq = container_of(timer, struct kverbs_sq, hold);

	/* ORDER: a full barrier, as in arm_hold(): who sees it armed is seen staged below */
	xchg(&sq->hold_armed, 0);
	kverbs_try_turn(sq, KVERBS_FLUSH_HOLD);
	return HRTIMER_NORESTART;
}

void kverbs_hold_init(struct kverbs_sq *sq)
{
	hrtimer_setup(&sq->hold, hold_over, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
}

/*
 * Something was staged and left there: see that it does not stay too long.
 *
 * ORDER: the reservation, a full barrier, comes before the look at what is in flight. Who
 * retires that looks at the stage after another: kverbs_pass_end().
 */
static noinline void staged(struct kverbs_sq *sq, bool passing, bool more)
{
	u32 waiting = kverbs_stage_waiting(&sq->stage);

	switch (kverbs_batch_next(&sq->batch, waiting, passing, more, !kverbs_in_flight(sq))) {
	case KVERBS_BATCH_GO:
		kverbs_try_turn(sq, waiting >= sq->batch.limit ? KVERBS_FLUSH_FULL :
								 KVERBS_FLUSH_POST);
		break;
	case KVERBS_BATCH_PASS:
		kverbs_touch(sq->pass, sq);
		break;
	case KVERBS_BATCH_HOLD:
		arm_hold(sq);
		break;
	case KVERBS_BATCH_STAY:
		break;
	}
}

/* What is staged may be all that is in the way; a pass flushes at its end. */
static noinline int refuse_full(struct kverbs_sq *sq)
{
	if (!kverbs_in_pass(sq->pass))
		kverbs_try_turn(sq, KVERBS_FLUSH_FULL);
	return refuse(sq, KVERBS_REFUSED_FULL, -EAGAIN);
}

/* A burst ends here, though its last was refused: what was staged of it does not stay. */
static noinline int refuse_last(struct kverbs_sq *sq, unsigned int flags, int err)
{
	if (!(flags & KVERBS_MORE) && !kverbs_in_pass(sq->pass) && !sq->batch.hold_ns)
		kverbs_try_turn(sq, KVERBS_FLUSH_POST);
	return err;
}

/*
 * What is to be staged as a run: a list of plain groups, one group of any kind, or a
 * chain of work requests that is to be copied. It was checked.
 */
struct load {
	struct kverbs_req *const *list;
	unsigned int nr;
	bool inlines;			/* some of the list may go inline */
	struct kverbs_req *group;
	const struct ib_send_wr *chain;
	struct ib_cqe *cqe;		/* of the chain */
	const struct kverbs_run *run;
};

/* An event for each group: in a list, of one work request each. */
static noinline void trace_posts(struct kverbs_sq *sq, struct load load, u32 pos)
{
	unsigned int i, nr = load.list ? load.nr : 1;

	for (i = 0; i < nr; i++)
		trace_kverbs_post(sq->dev_index, sq->qpn, pos + i, load.list ? 1 : load.nr,
				  load.list ? load.list[i]->byte_len : load.run->bytes);
}

static __always_inline void publish(struct kverbs_sq *sq, struct load load, u32 pos)
{
	if (load.chain)
		load.group = kverbs_copy(sq, load.chain, load.cqe, pos, load.run);
	if (!load.list)
		publish_group(sq, load.group, pos);
	else
		publish_list(sq, load.list, load.nr, load.inlines, pos);
}

/* 0, or the errno of the refusal of all of it. -ENOSPC: there is no room for all of a list. */
static __always_inline int stage(struct kverbs_sq *sq, struct load load, unsigned int flags)
{
	bool passing = kverbs_in_pass(sq->pass), more = flags & KVERBS_MORE;
	bool later = kverbs_batch_leaves(&sq->batch, passing, more);
	enum kverbs_reserve verdict;
	u32 pos;

	/* Until the place is published the owner may be waiting for it: do not be preempted. */
	preempt_disable();
	verdict = kverbs_stage_reserve(&sq->stage, &sq->head, load.nr, !later, &pos);
	if (likely(verdict <= KVERBS_RESERVED_OWNER)) {
		if (trace_kverbs_post_enabled())
			trace_posts(sq, load, pos);
		publish(sq, load, pos);
	}
	preempt_enable();

	if (verdict == KVERBS_RESERVED_OWNER)
		kverbs_turn(sq, KVERBS_FLUSH_POST);
	else if (unlikely(verdict == KVERBS_RESERVE_FULL))
		return load.list && load.nr > 1 ? -ENOSPC : refuse_full(sq);
	else if (unlikely(verdict == KVERBS_RESERVE_CLOSED))
		return refuse_closed(sq);
	else if (later)
		staged(sq, passing, more);
	return 0;
}

/* An illegal group: count why, and leave nothing of its burst behind. */
static noinline int refuse_illegal(struct kverbs_sq *sq, unsigned int flags,
				   enum kverbs_counter why)
{
	int err = why == KVERBS_REFUSED_DEPTH ? -EMSGSIZE : -EINVAL;

	return refuse_last(sq, flags, refuse(sq, why, err));
}

static bool must_wait(struct kverbs_sq *sq)
{
	return unlikely(READ_ONCE(sq->nr_waiters)) && kverbs_waiters_first(sq);
}

/* Post one group, whether or not somebody waits in line. */
static noinline int post_one(struct kverbs_sq *sq, struct kverbs_req *req, unsigned int flags)
{
	enum kverbs_counter why;
	struct group_sum sum;

	req->run = (struct kverbs_run){};
	why = check(sq, req->wr, &req->run, &sum);
	if (unlikely(why))
		return refuse_illegal(sq, flags, why);
	prepare(req, sum.nr_wrs, sum.bytes);
	req->left = sum.nr_wrs;
	req->last = sum.last;
	return stage(sq, (struct load){ .group = req, .nr = sum.nr_wrs, .run = &req->run }, flags);
}

/* For a waiter whose turn it is. */
int kverbs_post_served(struct kverbs_sq *sq, struct kverbs_req *req, unsigned int flags)
{
	return post_one(sq, req, flags);
}

/* Number of SGEs and opcode lie side by side, so that one comparison serves. */
static __always_inline u64 shape_of(const struct ib_send_wr *wr)
{
	static_assert(offsetof(struct ib_send_wr, opcode) ==
		      offsetofend(struct ib_send_wr, num_sge) &&
		      IS_ALIGNED(offsetof(struct ib_send_wr, num_sge), sizeof(u64)));
	return *(const u64 *)&wr->num_sge;
}

/*
 * Of @nr plain groups some are too long, or ask to be inline: how many from the front are
 * legal?
 */
static noinline unsigned int check_lengths(const struct kverbs_sq *sq,
					   struct kverbs_req *const *reqs, unsigned int nr,
					   struct kverbs_run *run)
{
	unsigned int i;
	u32 bytes;

	run->bytes = 0;
	for (i = 0; i < nr; i++) {
		bytes = reqs[i]->byte_len;
		if (bytes > sq->max_bytes)
			break;
		if (reqs[i]->wr->send_flags & IB_SEND_INLINE) {
			if (bytes > sq->max_inline)
				break;
			run->nr_inline++;
		}
		run->bytes += bytes;
	}
	return i;
}

/*
 * How many groups from the front of @reqs, at most @limit, are plain: one work request of
 * one SGE, all of one opcode? Checks and prepares those, as check() and prepare() would.
 * What may be wrong with one of them is looked for in the sum of them all.
 */
static __always_inline unsigned int check_plain(const struct kverbs_sq *sq,
						struct kverbs_req *const *reqs,
						unsigned int limit, bool *inlines)
{
	struct kverbs_run *run = &reqs[0]->run;
	const struct ib_send_wr *wr = reqs[0]->wr;
	struct kverbs_req *const *at, *const *end = reqs + limit, *req;
	unsigned long inline_sges = 0;
	unsigned int n, flags = 0;
	u64 shape, sum = 0;
	u32 bytes;

	if (unlikely(!wr || wr->num_sge != 1 || !op_is_legal(sq, wr->opcode)))
		return 0;
	run->op = ops[wr->opcode].counter;
	run->mixed = false;
	run->nr_inline = 0;
	shape = shape_of(wr);
	for (at = reqs; at != end; at++) {
		req = *at;
		wr = req->wr;
		if (unlikely(!wr || wr->next || shape_of(wr) != shape))
			break;
		flags |= wr->send_flags;
		inline_sges |= (unsigned long)req->inline_sge;
		bytes = wr->sg_list->length;
		sum += bytes;
		prepare(req, 1, bytes);
	}
	n = at - reqs;
	run->bytes = sum;
	if (unlikely(sum > sq->max_bytes || flags & IB_SEND_INLINE))
		n = check_lengths(sq, reqs, n, run);
	run->nr_wrs = n;
	*inlines = inline_sges;
	return n;
}

/*
 * Post some groups from the front of @reqs, of plain ones at most @limit; how many were
 * accepted, or an errno: -ENOSPC if there is no room for so many.
 */
static __always_inline int post_some(struct kverbs_sq *sq, struct kverbs_req *const *reqs,
				     unsigned int nr, unsigned int limit, unsigned int flags)
{
	struct load load = { .list = reqs, .run = &reqs[0]->run };

	if (must_wait(sq))
		return refuse_full(sq);
	load.nr = check_plain(sq, reqs, min(nr, limit), &load.inlines);
	if (unlikely(!load.nr))
		return post_one(sq, reqs[0], nr > 1 ? flags | KVERBS_MORE : flags) ?: 1;
	return stage(sq, load, load.nr < nr ? flags | KVERBS_MORE : flags) ?: load.nr;
}

/* The rest of a list, after post_some() said @n of its beginning. */
static noinline int post_rest(struct kverbs_sq *sq, struct kverbs_req *const *reqs,
			      unsigned int nr, unsigned int flags, int n)
{
	unsigned int done = 0, limit;

	for (;;) {
		if (n > 0)
			done += n;
		else if (n != -ENOSPC)
			break;
		if (done == nr)
			return nr;
		limit = clamp(kverbs_stage_room(&sq->stage, &sq->head), 1U, sq->run_limit);
		n = post_some(sq, reqs + done, nr - done, limit, flags);
	}
	/* The burst ends here: what was staged of it with more to come does not stay. */
	return refuse_last(sq, flags, done ?: n);
}

int kverbs_post_list(struct kverbs_sq *sq, struct kverbs_req *const *reqs, unsigned int nr,
		     unsigned int flags)
{
	int n = post_some(sq, reqs, nr, sq->run_limit, flags);

	return likely(n == nr) ? n : post_rest(sq, reqs, nr, flags, n);
}
EXPORT_SYMBOL_GPL(kverbs_post_list);

int kverbs_post(struct kverbs_sq *sq, struct kverbs_req *req, unsigned int flags)
{
	int ret = kverbs_post_list(sq, &req, 1, flags);

	return ret < 0 ? ret : 0;
}
EXPORT_SYMBOL_GPL(kverbs_post);

int kverbs_post_wrs(struct kverbs_sq *sq, const struct ib_send_wr *wr, struct ib_cqe *cqe,
		    unsigned int flags)
{
	struct kverbs_run run = {};
	enum kverbs_counter why;
	struct group_sum sum;

	if (must_wait(sq))
		return refuse_full(sq);
	/* The check only reads. */
	why = check(sq, (struct ib_send_wr *)wr, &run, &sum) ?: kverbs_copy_check(sq, wr);
	if (unlikely(why))
		return refuse_illegal(sq, flags, why);
	return stage(sq, (struct load){ .chain = wr, .cqe = cqe, .nr = sum.nr_wrs, .run = &run },
		     flags);
}
EXPORT_SYMBOL_GPL(kverbs_post_wrs);

void kverbs_flush(struct kverbs_sq *sq)
{
	kverbs_try_turn(sq, KVERBS_FLUSH_CALL);
}
EXPORT_SYMBOL_GPL(kverbs_flush);
