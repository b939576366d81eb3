/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The flight recorder: what a queue did last, until something failed.
 *
 * Flushes are noted by the owner of the turn, CQEs by the CQ's one dispatcher, each in a
 * ring of its own. Of each ring the number of notes is kept beside its writer's other
 * fields, and the number at which it ends here: a failure, found by whomever, ends
 * both. What was under way then is still noted, since it is what failed.
 *
 * ORDER: a writer fills a place, then releases the count; a reader acquires the count,
 * copies, and looks at the count again, to leave out what may have been overwritten.
 */
#ifndef _KVERBS_RECORDER_H
#define _KVERBS_RECORDER_H

#include <linux/compiler.h>
#include <linux/limits.h>
#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/spinlock.h>
#include <uapi/rdma/kverbs.h>

#define KVERBS_NOTES	32U	/* in a ring; a power of two */

struct ib_send_wr;
struct ib_wc;
struct kverbs_device;
struct kverbs_sq;
struct net;

/* @at, @posted_at: by kverbs_clock() */
struct kverbs_flush_note {
	u64 at;
	u64 bytes;
	u32 pos;
	u32 ns;			/* U32_MAX stands for more, too */
	u16 nr;			/* so does U16_MAX */
	s16 result;
	u8 signaled;
	u8 opcode;
	u8 reason;
	u8 unused;
};

struct kverbs_cqe_note {
	u64 at;
	u64 posted_at;
	u32 pos;
	u32 retired;
	u32 vendor_err;
	u8 status;
	u8 opcode;
	u16 unused;
};

static_assert(sizeof(struct kverbs_flush_note) == 32);
static_assert(sizeof(struct kverbs_cqe_note) == 32);

struct kverbs_rings {
	struct kverbs_flush_note flush[KVERBS_NOTES];
	struct kverbs_cqe_note cqe[KVERBS_NOTES];
};

/**
 * struct kverbs_recorder - the record of a queue; it may outlive it
 * @rings: the notes
 * @flush_end: flushes from this number on are not noted
 * @cqe_end: nor are CQEs from this one on
 * @sq: the queue; NULL once that is gone
 * @lock: guards what follows, and the two ends, while the queue is there
 * @cause: the first failure
 * @later: if that did not end the queue's service: the one that did
 * @nr_flushes: notes of a queue that is gone
 * @nr_cqes: likewise
 * @gone_ns: when it went, on CLOCK_MONOTONIC
 * @gone_clock: the same moment by kverbs_clock()
 * @entry: among those that are kept
 * @serial: counts them
 * @dev: the device while it is there
 * @number: of the QP
 * @depth: of the queue
 * @state: of the queue
 * @device: the name
 * @name: of the consumer
 */
struct kverbs_recorder {
	struct kverbs_rings *rings;
	u64 flush_end;
	u64 cqe_end;
	struct kverbs_sq *sq;
	spinlock_t lock;	/* as told above */
	struct kverbs_cause cause;
	struct kverbs_cause later;
	u64 nr_flushes;
	u64 nr_cqes;
	u64 gone_ns;
	u64 gone_clock;
	struct list_head entry;
	u64 serial;
	struct kverbs_device *dev;
	u32 number;
	u32 depth;
	u32 state;
	char device[KVERBS_NAME_MAX];
	char name[KVERBS_NAME_MAX];
};

/* By the owner of the turn; @nr is its count. */
static __always_inline void kverbs_note_flush(struct kverbs_recorder *recorder, u64 *nr,
					      struct kverbs_flush_note note)
{
	u64 n = *nr;

	if (unlikely(n >= READ_ONCE(recorder->flush_end)))
		return;
	/* ORDER: the count of the note before, then this one; pairs with read_ring() */
	smp_wmb();
	recorder->rings->flush[n % KVERBS_NOTES] = note;
	/* ORDER: pairs with the acquire in read_ring() */
	smp_store_release(nr, n + 1);
}

/* By the dispatcher; @nr is its count. */
static __always_inline void kverbs_note_cqe(struct kverbs_recorder *recorder, u64 *nr,
					    struct kverbs_cqe_note note)
{
	u64 n = *nr;

	if (unlikely(n >= READ_ONCE(recorder->cqe_end)))
		return;
	/* ORDER: as above */
	smp_wmb();
	recorder->rings->cqe[n % KVERBS_NOTES] = note;
	/* ORDER: as above */
	smp_store_release(nr, n + 1);
}

/* What a reader works in: copies of the rings, and what becomes of them. */
struct kverbs_record_view {
	struct kverbs_rings rings;
	struct kverbs_record_event event[2 * KVERBS_NOTES];
};

/* recorder.c: a queue's recorder comes, and goes or is kept */
int kverbs_recorder_create(struct kverbs_sq *sq, const char *name);
void kverbs_recorder_free(struct kverbs_recorder *recorder);
void kverbs_recorder_keep(struct kverbs_sq *sq);
void kverbs_recorder_resume(struct kverbs_sq *sq);
u32 kverbs_recorder_memory(void);

/* what failed; any context */
void kverbs_record_cqe(struct kverbs_sq *sq, u32 pos, const struct ib_wc *wc);
void kverbs_record_refusal(struct kverbs_sq *sq, u32 pos, const struct ib_send_wr *wr, int err);
void kverbs_record_end(struct kverbs_sq *sq, enum kverbs_cause_kind kind);

/* Ask for the state of the QP, if something failed. May sleep; the QP is there. */
void kverbs_record_qp_state(struct kverbs_sq *sq);

/* for chardev.c and stats.c */
void kverbs_recorder_read(struct kverbs_recorder *recorder, struct kverbs_record *record,
			  struct kverbs_record_view *view);
void kverbs_kept_read(const struct net *net, struct kverbs_record *record,
		      struct kverbs_record_view *view);

/* the device has another name, or leaves; the module does */
void kverbs_kept_rename(const struct kverbs_device *dev, const char *name);
void kverbs_kept_orphan(const struct kverbs_device *dev);
void kverbs_kept_exit(void);

#endif /* _KVERBS_RECORDER_H */
