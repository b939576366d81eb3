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
struct chain_sum {
	struct ib_send_wr *last;
	u32 nr_wrs;
	u64 bytes;
	u64 last_bytes;
};

static u64 sgl_bytes(const struct ib_send_wr *wr)
{
	u64 bytes = 0;
	int i;

	for (i = 0; i < wr->num_sge; i++)
		bytes += wr->sg_list[i].length;
	return bytes;
}

/* Is the work request legal on this queue? 0, or the counter of the reason why not. */
static enum kverbs_counter check_wr(const struct kverbs_sq *sq, const struct ib_send_wr *wr,
				    u64 *bytes)
{
	unsigned int opcode = wr->opcode, nr_sge = wr->num_sge;

	if (unlikely(opcode >= ARRAY_SIZE(ops) || !(ops[opcode].kinds & sq->kind)))
		return KVERBS_REFUSED_OPCODE;
	if (unlikely(nr_sge > sq->max_sge ||
		     (ops[opcode].counter == KVERBS_OP_READ && nr_sge > sq->max_read_sge)))
		return KVERBS_REFUSED_SGE;
	*bytes = sgl_bytes(wr);
	if (unlikely(*bytes > sq->max_bytes))
		return KVERBS_REFUSED_LENGTH;
	if (unlikely(wr->send_flags & IB_SEND_INLINE && *bytes > sq->max_inline))
		return KVERBS_REFUSED_INLINE;
	return 0;
}

static int check(struct kverbs_sq *sq, struct ib_send_wr *wr, struct chain_sum *sum)
{
	enum kverbs_counter why;

	sum->nr_wrs = 0;
	sum->bytes = 0;
	do {
		why = wr ? check_wr(sq, wr, &sum->last_bytes) : KVERBS_REFUSED_OPCODE;
		if (unlikely(why))
			return refuse(sq, why, -EINVAL);
		if (unlikely(++sum->nr_wrs > sq->stage.depth))
			return refuse(sq, KVERBS_REFUSED_DEPTH, -EMSGSIZE);
		sum->bytes += sum->last_bytes;
		sum->last = wr;
		wr = wr->next;
	} while (wr);
	return 0;
}

/*
 * Send the last payload inline if the caller gave its virtual addresses and the QP was
 * granted as much. Only what the opcode sends out: a READ's SGL is where data arrives.
 * The two SGLs change places until the group ends.
 */
static void choose_inline(struct kverbs_sq *sq, struct kverbs_req *req,
			  const struct chain_sum *sum)
{
	u8 counter = ops[sum->last->opcode].counter;

	if (sum->last_bytes && sum->last_bytes <= sq->max_inline &&
	    (counter == KVERBS_OP_SEND || counter == KVERBS_OP_WRITE) &&
	    !(sum->last->send_flags & IB_SEND_INLINE)) {
		swap(sum->last->sg_list, req->inline_sge);
		sum->last->send_flags |= IB_SEND_INLINE;
		req->inlined = true;
	}
}

/* The group is the queue's: fill its places. The first goes last, and shows them all. */
static void publish(struct kverbs_sq *sq, struct kverbs_req *req, u32 pos,
		    const struct chain_sum *sum)
{
	unsigned long ref = (unsigned long)req | KVERBS_SLOT_SILENT;
	struct kverbs_slot *first = kverbs_slot_at(sq, pos), *slot = first;
	struct ib_send_wr *wr = req->wr;

	req->sq = sq;
	req->last = sum->last;
	req->byte_len = sum->bytes;
	req->nr_wrs = sum->nr_wrs;
	req->left = sum->nr_wrs;
	req->status = IB_WC_SUCCESS;
	req->error = 0;
	req->vendor_err = 0;
	req->inlined = false;
	if (req->inline_sge)
		choose_inline(sq, req, sum);
	for (;;) {
		wr->wr_cqe = &slot->cqe;
		wr->send_flags &= ~IB_SEND_SIGNALED;
		if (wr == sum->last)
			break;
		wr = wr->next;
		slot = kverbs_slot_at(sq, ++pos);
		WRITE_ONCE(slot->ref, ref);
	}
	/* ORDER: pairs with the acquire in flush.c published() */
	smp_store_release(&first->ref, ref);
}

/*
 * The copy for the place at @pos. There are twice as many as places: a place is free
 * again before done() runs for what was in it, and done() needs the copy.
 */
static struct kverbs_copy *copy_at(struct kverbs_sq *sq, u32 pos)
{
	return sq->copies + (size_t)(pos & (2 * sq->mask + 1)) * sq->copy_size;
}

static void copied_done(struct kverbs_req *req, enum ib_wc_status status)
{
	struct kverbs_copy *copy = container_of(req, struct kverbs_copy, req);
	struct ib_wc wc = {
		.wr_cqe = copy->cqe,
		.status = status,
		.vendor_err = req->vendor_err,
		.qp = copy->qp,
	};

	copy->cqe->done(copy->ibcq, &wc);
}

static size_t wr_size(enum ib_wr_opcode opcode, u8 kind)
{
	switch (ops[opcode].counter) {
	case KVERBS_OP_WRITE:
	case KVERBS_OP_READ:
		return sizeof(struct ib_rdma_wr);
	case KVERBS_OP_ATOMIC:
		return sizeof(struct ib_atomic_wr);
	case KVERBS_OP_REG_MR:
		return sizeof(struct ib_reg_wr);
	default:
		return kind == UD ? sizeof(struct ib_ud_wr) : sizeof(struct ib_send_wr);
	}
}

/* Copy the chain into the copies of its places; the first of them carries the group. */
static struct kverbs_req *copy_group(struct kverbs_sq *sq, const struct ib_send_wr *wr,
				     struct ib_cqe *cqe, u32 pos, struct chain_sum *sum)
{
	struct kverbs_copy *first = copy_at(sq, pos), *copy = first;

	for (;;) {
		memcpy(&copy->any, wr, wr_size(wr->opcode, sq->kind));
		memcpy(copy->sge, wr->sg_list, wr->num_sge * sizeof(*copy->sge));
		copy->any.wr.sg_list = copy->sge;
		wr = wr->next;
		if (!wr)
			break;
		copy->any.wr.next = &copy_at(sq, ++pos)->any.wr;
		copy = copy_at(sq, pos);
	}
	sum->last = &copy->any.wr;
	first->cqe = cqe;
	first->qp = sq->qp;
	first->ibcq = sq->ibcq;
	first->req.wr = &first->any.wr;
	first->req.done = copied_done;
	return &first->req;
}

static noinline void arm_hold(struct kverbs_sq *sq)
{
	if (!READ_ONCE(sq->hold_armed) && !xchg(&sq->hold_armed, 1))
		hrtimer_start(&sq->hold, ns_to_ktime(sq->hold_max_ns), HRTIMER_MODE_REL_SOFT);
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

/* Something was staged and left there: see that it does not stay too long. */
static void staged(struct kverbs_sq *sq)
{
	if (kverbs_batch_full(kverbs_stage_waiting(&sq->stage), sq->batch))
		kverbs_try_turn(sq, KVERBS_FLUSH_FULL);
	else if (sq->hold_max_ns)
		arm_hold(sq);
}

/* Is the caller inside the pass that flushes this queue at its end? */
static bool in_pass(struct kverbs_pass *pass)
{
	return READ_ONCE(pass->task) == current && !in_hardirq();
}

/* What is staged may be all that is in the way; a pass flushes at its end. */
static noinline int refuse_full(struct kverbs_sq *sq)
{
	if (!in_pass(sq->pass))
		kverbs_try_turn(sq, KVERBS_FLUSH_FULL);
	return refuse(sq, KVERBS_REFUSED_FULL, -EAGAIN);
}

/* A burst ends here, though its last was refused: what was staged of it does not stay. */
static noinline int refuse_last(struct kverbs_sq *sq, unsigned int flags, int err)
{
	if (!(flags & KVERBS_MORE) && !in_pass(sq->pass) && !sq->hold_max_ns)
		kverbs_try_turn(sq, KVERBS_FLUSH_POST);
	return err;
}


/* Stage @req, or a copy of the chain at @wr that ends with @cqe. */
static int stage_group(struct kverbs_sq *sq, struct kverbs_req *req, const struct ib_send_wr *wr,
		       struct ib_cqe *cqe, unsigned int flags, struct chain_sum *sum)
{
	struct kverbs_pass *pass = sq->pass;
	bool passing = in_pass(pass);
	bool later = passing || flags & KVERBS_MORE || sq->hold_max_ns;
	enum kverbs_reserve verdict;
	u32 pos;

	/* Until the place is published the owner may be waiting for it: do not be preempted. */
	preempt_disable();
	verdict = kverbs_stage_reserve(&sq->stage, &sq->head, sum->nr_wrs, !later, &pos);
	if (likely(verdict <= KVERBS_RESERVED_OWNER)) {
		trace_kverbs_post(sq->dev_index, sq->qpn, pos, sum->nr_wrs,
				  sum->bytes);
		if (!req)
			req = copy_group(sq, wr, cqe, pos, sum);
		publish(sq, req, pos, sum);
	}
	preempt_enable();

	if (verdict == KVERBS_RESERVED_OWNER)
		kverbs_turn(sq, KVERBS_FLUSH_POST);
	else if (unlikely(verdict == KVERBS_RESERVE_FULL))
		return refuse_full(sq);
	else if (unlikely(verdict == KVERBS_RESERVE_CLOSED))
		return refuse_closed(sq);
	else if (passing)
		kverbs_touch(pass, sq);
	else if (later)
		staged(sq);
	return 0;
}

int kverbs_post_checked(struct kverbs_sq *sq, struct kverbs_req *req, unsigned int flags,
			bool waited)
{
	struct chain_sum sum;
	int err;

	if (unlikely(READ_ONCE(sq->nr_waiters)) && !waited && kverbs_waiters_first(sq))
		return refuse_full(sq);
	err = check(sq, req->wr, &sum);
	if (unlikely(err))
		return refuse_last(sq, flags, err);
	return stage_group(sq, req, NULL, NULL, flags, &sum);
}

int kverbs_post(struct kverbs_sq *sq, struct kverbs_req *req, unsigned int flags)
{
	return kverbs_post_checked(sq, req, flags, false);
}
EXPORT_SYMBOL_GPL(kverbs_post);

/* As check(), besides: there must be room for the SGEs. */
static int check_copy(struct kverbs_sq *sq, const struct ib_send_wr *wr)
{
	if (!sq->copies)
		return refuse(sq, KVERBS_REFUSED_SGE, -EINVAL);
	for (; wr; wr = wr->next)
		if ((u32)wr->num_sge > sq->copy_sge)
			return refuse(sq, KVERBS_REFUSED_SGE, -EINVAL);
	return 0;
}

int kverbs_post_wrs(struct kverbs_sq *sq, const struct ib_send_wr *wr, struct ib_cqe *cqe,
		    unsigned int flags)
{
	struct chain_sum sum;
	int err;

	if (unlikely(READ_ONCE(sq->nr_waiters)) && kverbs_waiters_first(sq))
		return refuse_full(sq);
	/* The check only reads; sum.last, which it sets, becomes that of the copy. */
	err = check(sq, (struct ib_send_wr *)wr, &sum) ?: check_copy(sq, wr);
	if (unlikely(err))
		return refuse_last(sq, flags, err);
	return stage_group(sq, NULL, wr, cqe, flags, &sum);
}
EXPORT_SYMBOL_GPL(kverbs_post_wrs);

void kverbs_flush(struct kverbs_sq *sq)
{
	kverbs_try_turn(sq, KVERBS_FLUSH_CALL);
}
EXPORT_SYMBOL_GPL(kverbs_flush);
