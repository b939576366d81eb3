/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Statistics: rows of counters in an arena of pages that user space may map, and
 * the histograms beside them.
 *
 * A counter of a queue or CQ has one writer at a time (the owner of the turn, or
 * of the pass), so it is added to without a lock; refusals may come from many
 * CPUs at once and use kverbs_count_shared().
 */
#ifndef _KVERBS_STATS_H
#define _KVERBS_STATS_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <uapi/rdma/kverbs.h>
#include <kverbs/core/hist.h>

#define KVERBS_VERSION	"0.1.0"

struct ib_device;
struct kverbs_object;
struct kverbs_recorder;
struct kverbs_record_view;
struct net;
struct page;

/* The histograms of a queue, or the sums that departed queues left behind. */
struct kverbs_hists {
	u64 bucket[KVERBS_NR_HISTS][KVERBS_HIST_BUCKETS];
};

/*
 * What has a row. Embedded in the device, the CQ and the send queue.
 * @row:    the row, in the arena; stays writable until kverbs_object_del()
 * @ibdev:  for netns checks; valid while the device's object is listed
 * @hists:  its own histograms (queues) or the sums of departed queues (device, CQ)
 * @parent: the device's object; NULL for a device
 * @cq:     for queues: the object of the kverbs CQ, or NULL
 * @recorder: of a queue; stays until kverbs_object_del()
 */
struct kverbs_object {
	struct kverbs_row *row;
	struct ib_device *ibdev;
	struct kverbs_hists *hists;
	struct kverbs_object *parent;
	struct kverbs_object *cq;
	struct kverbs_recorder *recorder;
	struct list_head entry;
};

/* stats.c */
int kverbs_stats_init(void);
void kverbs_stats_exit(void);

/*
 * Take a row and list the object. The caller has set ibdev, hists, parent and cq;
 * @id's fields type, state, mode, number, depth, memory, slot_memory, name are
 * copied into the row; the mode of a queue on a kverbs CQ is that CQ's. May sleep.
 * -ENOMEM, -ENOSPC.
 */
int kverbs_object_add(struct kverbs_object *obj, const struct kverbs_row *id);

/*
 * Unlist the object and give its row back; a queue's or CQ's counters and
 * histograms are added to its parent's (and the queue's histograms to its CQ's).
 */
void kverbs_object_del(struct kverbs_object *obj);

/*
 * The device is leaving while queues still hold on to it: no row of it is shown
 * from now on, though queues go on counting until kverbs_object_del().
 */
void kverbs_object_hide(struct kverbs_object *dev);

/* The device has another name from now on. */
void kverbs_object_rename(struct kverbs_object *dev, const char *name);

/* The CQ is served in another way, and so are its queues. The caller serialises. */
void kverbs_object_set_mode(struct kverbs_object *cq, enum kverbs_cq_mode mode);

/* A plain addition, so that it can be one instruction: a reader sees it done or not. */
static inline void kverbs_count(struct kverbs_object *obj, enum kverbs_counter c, u64 n)
{
	obj->row->counter[c] += n;
}

static inline void kverbs_count_shared(struct kverbs_object *obj, enum kverbs_counter c)
{
	atomic64_inc((atomic64_t *)&obj->row->counter[c]);
}

static inline void kverbs_set_state(struct kverbs_object *obj, enum kverbs_row_state state)
{
	WRITE_ONCE(obj->row->state, state);
}

/*
 * What has been counted on a device, departed queues included, or on all of the host since
 * the module came, departed devices included, with NULL. Any context; false if in an NMI
 * it cannot be told now. Never less than before. Takes as long as there are objects.
 */
bool kverbs_stats_total(const struct kverbs_object *dev, enum kverbs_counter c, u64 *total);

/*
 * For chardev.c: what @net may see. kverbs_stats_snapshot() fills @to up to
 * @room rows and returns how many there are, kverbs_stats_objects() at most;
 * kverbs_stats_histogram() fills KVERBS_HIST_BUCKETS of @bucket, or says -ENODEV;
 * kverbs_stats_record() reads the record of the queue that @record names, or says so.
 */
u32 kverbs_stats_objects(void);
u32 kverbs_stats_snapshot(const struct net *net, struct kverbs_row *to, u32 room, u64 *time_ns);
int kverbs_stats_histogram(const struct net *net, const struct kverbs_histogram *which,
			   u64 *bucket);
int kverbs_stats_record(const struct net *net, struct kverbs_record *record,
			struct kverbs_record_view *view);
u32 kverbs_arena_rows(void);
struct page *kverbs_arena_page(unsigned long index);
unsigned long kverbs_arena_max_pages(void);

/* chardev.c */
int kverbs_chardev_init(void);
void kverbs_chardev_exit(void);

/* pmu.c: how a device is named to perf, where 0 stands for all of them */
static inline u32 kverbs_pmu_device(u32 rdma_index)
{
	return rdma_index + 1;
}

#ifdef CONFIG_PERF_EVENTS
int kverbs_pmu_init(void);
void kverbs_pmu_exit(void);
#else
static inline int kverbs_pmu_init(void) { return 0; }
static inline void kverbs_pmu_exit(void) { }
#endif

#endif /* _KVERBS_STATS_H */
