// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What failed first, and what a queue had done before; see recorder.h.
 *
 * The first failure of a queue ends its record. A refused request that the driver named
 * does no harm to the rest, so the failure that ends the queue's service is told of, too.
 *
 * The record of a queue that had a failure outlives it: a consumer destroys its queue and
 * connects anew long before anybody asks why. The last few of each device name are
 * kept, also when the device leaves.
 */
#include <linux/math64.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <net/net_namespace.h>

#include "clock.h"
#include "path.h"

#define KEPT_OF_DEVICE	16
#define KEPT		256	/* of all devices, those that left included */

/* Those of queues that are gone, the oldest first. */
static DEFINE_MUTEX(kept_lock);
static LIST_HEAD(kept);
static u32 nr_kept;
static u64 last_serial;

u32 kverbs_recorder_memory(void)
{
	return sizeof(struct kverbs_recorder) + sizeof(struct kverbs_rings);
}

int kverbs_recorder_create(struct kverbs_sq *sq, const char *name)
{
	int node = ibdev_to_node(sq->qp->device);
	struct kverbs_recorder *recorder;

	recorder = kzalloc_node(sizeof(*recorder), GFP_KERNEL, node);
	if (!recorder)
		return -ENOMEM;
	recorder->rings = kzalloc_node(sizeof(*recorder->rings), GFP_KERNEL, node);
	if (!recorder->rings) {
		kfree(recorder);
		return -ENOMEM;
	}
	recorder->flush_end = U64_MAX;
	recorder->cqe_end = U64_MAX;
	recorder->sq = sq;
	spin_lock_init(&recorder->lock);
	recorder->number = sq->qpn;
	recorder->depth = sq->stage.depth;
	strscpy(recorder->name, name, sizeof(recorder->name));
	sq->recorder = recorder;
	return 0;
}

void kverbs_recorder_free(struct kverbs_recorder *recorder)
{
	if (!recorder)
		return;
	kfree(recorder->rings);
	kfree(recorder);
}

/* Where this failure is to be told of, NULL if it adds nothing. */
static struct kverbs_cause *place_for(struct kverbs_recorder *recorder, enum kverbs_cause_kind kind)
{
	if (!recorder->cause.kind)
		return &recorder->cause;
	if (recorder->cause.kind == KVERBS_CAUSE_REFUSED && kind != KVERBS_CAUSE_REFUSED &&
	    !recorder->later.kind)
		return &recorder->later;
	return NULL;
}

/* One more of each: a post, or the CQE that tells of the failure, may be under way. */
static void end_rings(struct kverbs_sq *sq)
{
	struct kverbs_recorder *recorder = sq->recorder;

	if (recorder->cause.kind)
		return;
	WRITE_ONCE(recorder->flush_end, READ_ONCE(sq->nr_flushes) + 1);
	WRITE_ONCE(recorder->cqe_end, READ_ONCE(sq->nr_cqes) + 1);
}

static void record(struct kverbs_sq *sq, struct kverbs_cause *cause)
{
	struct kverbs_recorder *recorder = sq->recorder;
	struct kverbs_cause *place;
	unsigned long irq;

	cause->time_ns = ktime_get_ns();
	cause->receives = sq->recv_claim;
	cause->qp_state = KVERBS_UNKNOWN;
	spin_lock_irqsave(&recorder->lock, irq);
	place = place_for(recorder, cause->kind);
	if (place) {
		end_rings(sq);
		*place = *cause;
	}
	spin_unlock_irqrestore(&recorder->lock, irq);
}

/* The flush that posted what is at @pos, as far as the record reaches back. */
static bool flush_of(struct kverbs_sq *sq, u32 pos, struct kverbs_flush_note *note)
{
	const struct kverbs_flush_note *notes = sq->recorder->rings->flush;
	/* ORDER: pairs with the release in kverbs_note_flush() */
	u64 end = smp_load_acquire(&sq->nr_flushes), n;

	for (n = end; n && end - n < KVERBS_NOTES; n--) {
		/* One that is being overwritten at this moment is far too old, and mostly new. */
		*note = notes[(n - 1) % KVERBS_NOTES];
		if (pos - note->pos < note->nr)
			return true;
	}
	return false;
}

static u64 since(u64 then)
{
	return then == KVERBS_NOT_POSTED ? 0 : kverbs_clock_ns(then, kverbs_clock());
}

static void fill_in_flight(struct kverbs_sq *sq, struct kverbs_cause *cause)
{
	struct kverbs_flush_note note;
	u32 head = READ_ONCE(sq->head);

	cause->in_flight = READ_ONCE(sq->stage.taken) - head;
	if (cause->in_flight && flush_of(sq, head, &note))
		cause->oldest_ns = since(note.at);
}

/* Of all that was posted with it, since one does not know which it was. */
static void fill_flush(struct kverbs_sq *sq, struct kverbs_cause *cause)
{
	struct kverbs_flush_note note;

	cause->opcode = KVERBS_UNKNOWN;
	if (!flush_of(sq, cause->position, &note))
		return;
	cause->opcode = note.opcode;
	cause->bytes = note.bytes;
	cause->age_ns = since(note.at);
}

/* The queue's service ends, though no CQE and no driver said so. */
void kverbs_record_end(struct kverbs_sq *sq, enum kverbs_cause_kind kind)
{
	struct kverbs_cause cause = { .kind = kind, .position = READ_ONCE(sq->head) };

	fill_in_flight(sq, &cause);
	if (cause.in_flight)
		fill_flush(sq, &cause);
	else
		cause.opcode = KVERBS_UNKNOWN;
	record(sq, &cause);
}

/* By the owner: the driver refused @wr at @pos, or said nothing that makes sense. */
void kverbs_record_refusal(struct kverbs_sq *sq, u32 pos, const struct ib_send_wr *wr, int err)
{
	struct kverbs_cause cause = {
		.kind = wr ? KVERBS_CAUSE_REFUSED : KVERBS_CAUSE_IN_DOUBT,
		.position = pos,
		.error = err,
	};

	fill_flush(sq, &cause);
	fill_in_flight(sq, &cause);
	if (wr) {
		cause.opcode = wr->opcode;
		cause.bytes = kverbs_sgl_bytes(wr);
	}
	record(sq, &cause);
}

/*
 * By the dispatcher: the work request at @pos, between head and what was taken, and when
 * it and the one at head were posted.
 */
static const struct ib_send_wr *look_up(struct kverbs_sq *sq, u32 pos, u64 *posted, u64 *oldest)
{
	u32 at = sq->head, index, rest;
	const struct ib_send_wr *wr;
	struct kverbs_req *req;

	*posted = sq->run_posted_at;
	*oldest = KVERBS_NOT_POSTED;
	for (;;) {
		req = kverbs_ref_req(READ_ONCE(kverbs_slot_at(sq, at)->ref));
		if (req->leads)
			*posted = req->run.posted_at;
		if (at == sq->head)
			*oldest = *posted;
		/* Some of the group at head may have retired already. */
		index = req->nr_wrs > 1 && at == sq->head ? req->nr_wrs - req->left : 0;
		rest = req->nr_wrs - index;
		if (pos - at < rest)
			break;
		at += rest;
	}
	for (wr = req->wr, index += pos - at; index; index--)
		wr = wr->next;
	return wr;
}

/* By the dispatcher: a CQE that is no success, of a work request that is there. */
void kverbs_record_cqe(struct kverbs_sq *sq, u32 pos, const struct ib_wc *wc)
{
	struct kverbs_cause cause = {
		.kind = wc->status == IB_WC_WR_FLUSH_ERR ? KVERBS_CAUSE_FLUSHED : KVERBS_CAUSE_CQE,
		.position = pos,
		.status = wc->status,
		.vendor_err = wc->vendor_err,
		.in_flight = kverbs_in_flight(sq),
	};
	const struct ib_send_wr *wr;
	u64 posted, oldest;

	/* What follows the first error, or an end that was wished for, is only its echo. */
	if (cause.kind == KVERBS_CAUSE_FLUSHED && READ_ONCE(sq->state) != KVERBS_SQ_LIVE)
		return;
	wr = look_up(sq, pos, &posted, &oldest);
	cause.opcode = wr->opcode;
	cause.bytes = kverbs_sgl_bytes(wr);
	cause.age_ns = since(posted);
	cause.oldest_ns = since(oldest);
	record(sq, &cause);
}

static bool wants_qp_state(const struct kverbs_cause *cause)
{
	return cause->kind && cause->qp_state == KVERBS_UNKNOWN;
}

void kverbs_record_qp_state(struct kverbs_sq *sq)
{
	struct kverbs_recorder *recorder = sq->recorder;
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr = {};
	unsigned long irq;

	if (!wants_qp_state(&recorder->cause) && !wants_qp_state(&recorder->later))
		return;
	if (ib_query_qp(sq->qp, &attr, IB_QP_STATE, &init))
		return;
	spin_lock_irqsave(&recorder->lock, irq);
	if (wants_qp_state(&recorder->cause))
		recorder->cause.qp_state = attr.qp_state;
	if (wants_qp_state(&recorder->later))
		recorder->later.qp_state = attr.qp_state;
	spin_unlock_irqrestore(&recorder->lock, irq);
}

/* A moment by kverbs_clock() on CLOCK_MONOTONIC, of which @clock is @ns. */
static u64 monotonic(u64 at, u64 clock, u64 ns)
{
	u64 mult = READ_ONCE(kverbs_clock_mult), diff;

	if ((s64)(at - clock) > 0)
		return ns + mul_u64_u64_shr(at - clock, mult, KVERBS_CLOCK_SHIFT);
	diff = mul_u64_u64_shr(clock - at, mult, KVERBS_CLOCK_SHIFT);
	return ns - min(diff, ns);
}

static struct kverbs_record_event flush_event(const struct kverbs_flush_note *note)
{
	return (struct kverbs_record_event){
		.time_ns = note->at,
		.ns = note->ns,
		.bytes = note->bytes,
		.position = note->pos,
		.nr_wrs = note->nr,
		.signaled = note->signaled,
		.result = note->result,
		.type = KVERBS_RECORD_FLUSH,
		.opcode = note->opcode,
		.reason = note->reason,
	};
}

static struct kverbs_record_event cqe_event(const struct kverbs_cqe_note *note)
{
	return (struct kverbs_record_event){
		.time_ns = note->at,
		.ns = note->posted_at == KVERBS_NOT_POSTED ? 0 :
		      kverbs_clock_ns(note->posted_at, note->at),
		.position = note->pos,
		.nr_wrs = note->retired,
		.vendor_err = note->vendor_err,
		.type = KVERBS_RECORD_CQE,
		.status = note->status,
		.opcode = note->opcode,
	};
}

/*
 * Copy a ring while its writer goes on. *@nr is the writer's count, @ring_end where it
 * ends. Returns the number after the last that is good, and the first in *@first.
 */
static u64 read_ring(void *to, const void *ring, size_t size, const u64 *nr, const u64 *ring_end,
		     u64 *first)
{
	/* ORDER: pairs with the release of who notes */
	u64 end = smp_load_acquire(nr), now;

	memcpy(to, ring, size);
	/* ORDER: pairs with the barrier of who notes: what was begun before is counted below */
	smp_rmb();
	now = READ_ONCE(*nr);
	/* The next one may be half written. */
	if (now < READ_ONCE(*ring_end))
		now++;
	*first = now > KVERBS_NOTES ? now - KVERBS_NOTES : 0;
	return end;
}

/* Both kinds in the order of time; their number. */
static u32 merge(struct kverbs_record_view *view, u64 flush, u64 flush_end, u64 cqe, u64 cqe_end)
{
	const struct kverbs_flush_note *flushes = view->rings.flush, *f;
	const struct kverbs_cqe_note *cqes = view->rings.cqe, *c;
	u32 nr = 0;

	while (flush < flush_end || cqe < cqe_end) {
		f = &flushes[flush % KVERBS_NOTES];
		c = &cqes[cqe % KVERBS_NOTES];
		if (cqe >= cqe_end || (flush < flush_end && (s64)(f->at - c->at) <= 0)) {
			view->event[nr++] = flush_event(f);
			flush++;
		} else {
			view->event[nr++] = cqe_event(c);
			cqe++;
		}
	}
	return nr;
}

/* The caller sees to it that the recorder stays. */
void kverbs_recorder_read(struct kverbs_recorder *recorder, struct kverbs_record *record,
			  struct kverbs_record_view *view)
{
	const struct kverbs_sq *sq = recorder->sq;
	u64 clock = sq ? kverbs_clock() : recorder->gone_clock;
	u64 ns = sq ? ktime_get_ns() : recorder->gone_ns;
	u64 flush, flush_end, cqe, cqe_end;
	unsigned long irq;
	u32 i;

	spin_lock_irqsave(&recorder->lock, irq);
	record->cause = recorder->cause;
	record->later = recorder->later;
	spin_unlock_irqrestore(&recorder->lock, irq);
	flush_end = read_ring(view->rings.flush, recorder->rings->flush, sizeof(view->rings.flush),
			      sq ? &sq->nr_flushes : &recorder->nr_flushes, &recorder->flush_end,
			      &flush);
	cqe_end = read_ring(view->rings.cqe, recorder->rings->cqe, sizeof(view->rings.cqe),
			    sq ? &sq->nr_cqes : &recorder->nr_cqes, &recorder->cqe_end, &cqe);
	record->nr_events = merge(view, flush, flush_end, cqe, cqe_end);
	for (i = 0; i < record->nr_events; i++)
		view->event[i].time_ns = monotonic(view->event[i].time_ns, clock, ns);
	record->time_ns = ktime_get_ns();
	record->gone_ns = recorder->gone_ns;
	record->serial = recorder->serial;
	record->number = recorder->number;
	record->depth = recorder->depth;
	record->state = recorder->state;
	strscpy_pad(record->device, recorder->device, sizeof(record->device));
	strscpy_pad(record->name, recorder->name, sizeof(record->name));
}

static void drop(struct kverbs_recorder *recorder)
{
	list_del(&recorder->entry);
	nr_kept--;
	kverbs_recorder_free(recorder);
}

/* Room for one more of that device, at the cost of the oldest. */
static void make_room(const char *device)
{
	struct kverbs_recorder *recorder, *oldest = NULL;
	u32 nr = 0;

	list_for_each_entry(recorder, &kept, entry) {
		if (strcmp(recorder->device, device))
			continue;
		if (!nr++)
			oldest = recorder;
	}
	if (nr == KEPT_OF_DEVICE)
		drop(oldest);
	else if (nr_kept == KEPT)
		drop(list_first_entry(&kept, struct kverbs_recorder, entry));
}

static void add(struct kverbs_recorder *recorder)
{
	list_add_tail(&recorder->entry, &kept);
	recorder->serial = ++last_serial;
	nr_kept++;
}

/* The recorder is nobody's any more, and all of it but its place in the list is final. */
static void leave_queue(struct kverbs_recorder *recorder, struct kverbs_sq *sq)
{
	recorder->sq = NULL;
	recorder->nr_flushes = sq->nr_flushes;
	recorder->nr_cqes = sq->nr_cqes;
	recorder->flush_end = 0;
	recorder->cqe_end = 0;
	recorder->gone_ns = ktime_get_ns();
	recorder->gone_clock = kverbs_clock();
	recorder->state = sq->state;
}

static void keep(struct kverbs_recorder *recorder, struct kverbs_device *dev)
{
	mutex_lock(&kept_lock);
	/* Who marks it gone comes for its records afterwards. */
	recorder->dev = READ_ONCE(dev->gone) ? NULL : dev;
	strscpy(recorder->device, dev->obj.row->name, sizeof(recorder->device));
	make_room(recorder->device);
	add(recorder);
	mutex_unlock(&kept_lock);
}

/* The queue goes, and nobody finds it any more. */
void kverbs_recorder_keep(struct kverbs_sq *sq)
{
	struct kverbs_recorder *recorder = sq->recorder;

	sq->recorder = NULL;
	if (!recorder->cause.kind) {
		kverbs_recorder_free(recorder);
		return;
	}
	leave_queue(recorder, sq);
	keep(recorder, sq->dev);
}

/*
 * The queue works again, and nothing is in flight. What is recorded until now is kept
 * if there is memory for it, and the recorder goes on.
 */
void kverbs_recorder_resume(struct kverbs_sq *sq)
{
	struct kverbs_recorder *recorder = sq->recorder, *copy;
	unsigned long irq;

	copy = kmemdup(recorder, sizeof(*recorder), GFP_KERNEL);
	if (copy) {
		copy->rings = kmemdup(recorder->rings, sizeof(*recorder->rings), GFP_KERNEL);
		if (copy->rings) {
			spin_lock_init(&copy->lock);
			leave_queue(copy, sq);
			keep(copy, sq->dev);
		} else {
			kfree(copy);
		}
	}
	spin_lock_irqsave(&recorder->lock, irq);
	memset(&recorder->cause, 0, sizeof(recorder->cause));
	memset(&recorder->later, 0, sizeof(recorder->later));
	WRITE_ONCE(recorder->flush_end, U64_MAX);
	WRITE_ONCE(recorder->cqe_end, U64_MAX);
	spin_unlock_irqrestore(&recorder->lock, irq);
}

/* A device that has left may be gone: it is not looked at. */
static bool may_see(const struct kverbs_recorder *recorder, const struct net *net)
{
	if (recorder->dev)
		return rdma_dev_access_netns(recorder->dev->ib, net);
	return net_eq(net, &init_net);
}

/* The one that follows record->serial; its serial number becomes 0 if there is none. */
void kverbs_kept_read(const struct net *net, struct kverbs_record *record,
		      struct kverbs_record_view *view)
{
	struct kverbs_recorder *recorder;
	u64 after = record->serial;

	record->serial = 0;
	record->nr_events = 0;
	mutex_lock(&kept_lock);
	list_for_each_entry(recorder, &kept, entry) {
		if (recorder->serial > after && may_see(recorder, net)) {
			kverbs_recorder_read(recorder, record, view);
			break;
		}
	}
	mutex_unlock(&kept_lock);
}

void kverbs_kept_rename(const struct kverbs_device *dev, const char *name)
{
	struct kverbs_recorder *recorder;

	mutex_lock(&kept_lock);
	list_for_each_entry(recorder, &kept, entry)
		if (recorder->dev == dev)
			strscpy(recorder->device, name, sizeof(recorder->device));
	mutex_unlock(&kept_lock);
}

void kverbs_kept_orphan(const struct kverbs_device *dev)
{
	struct kverbs_recorder *recorder;

	mutex_lock(&kept_lock);
	list_for_each_entry(recorder, &kept, entry)
		if (recorder->dev == dev)
			recorder->dev = NULL;
	mutex_unlock(&kept_lock);
}

void kverbs_kept_exit(void)
{
	struct kverbs_recorder *recorder, *next;

	list_for_each_entry_safe(recorder, next, &kept, entry)
		drop(recorder);
}
