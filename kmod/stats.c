// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The rows of counters and who has them.
 *
 * Rows live in an arena of single pages that user space may map. A page is zeroed
 * before it joins, holds rows and nothing else, and stays until the module leaves:
 * a mapping holds the file, and the file holds the module. So a reader may look at
 * any moment, and a row that is given back is only ever used as a row again.
 *
 * Row 0 describes the arena. Its generation is a sequence count over the set of
 * rows and over the folding of departing rows into their device's; each row has one
 * of its own over its identity. Both are written under objects_lock. How a reader
 * uses them is told in the user ABI header.
 *
 * Counters are written by their owners, without any lock. What leaves with a queue
 * or a CQ is added to the device's row, under objects_lock, after its last writer
 * has gone. Sums that are wanted where nobody may sleep are made under totals_lock,
 * which guards the list and what moves from one row to another, too.
 */
#include <linux/gfp.h>
#include <linux/idr.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/preempt.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <rdma/ib_verbs.h>

#include "recorder.h"
#include "stats.h"

#define ROWS_PER_PAGE	(PAGE_SIZE / sizeof(struct kverbs_row))
#define MAX_ROWS	65536U
#define MAX_PAGES	(MAX_ROWS / ROWS_PER_PAGE)

static_assert(sizeof(struct kverbs_row) == 512);
static_assert(PAGE_SIZE % sizeof(struct kverbs_row) == 0);
static_assert(KVERBS_NR_COUNTERS <= KVERBS_MAX_COUNTERS);
/* A counter is read by user space in one load. */
static_assert(sizeof(long) == sizeof(u64));

/* Serialises all changes of the list, of identities and of the arena's size. */
static DEFINE_MUTEX(objects_lock);
static LIST_HEAD(objects);
static u32 nr_objects;
static DEFINE_IDA(row_ids);

/* Inside objects_lock. */
static DEFINE_RAW_SPINLOCK(totals_lock);
static u64 departed[KVERBS_NR_COUNTERS];	/* counted by devices that are gone */

/*
 * Grows under objects_lock: the pointer is written first, nr_pages released
 * afterwards, so that whoever acquires nr_pages may use all that are below it.
 */
static struct kverbs_row *pages[MAX_PAGES];
static unsigned long nr_pages;

static struct kverbs_row *row_of(u32 id)
{
	return &pages[id / ROWS_PER_PAGE][id % ROWS_PER_PAGE];
}

static void change_begin(struct kverbs_row *row)
{
	WRITE_ONCE(row->generation, row->generation + 1);
	/* ORDER: odd before what it guards; pairs with the barrier of a mapped reader. */
	smp_wmb();
}

/* ORDER: what it guards before the even generation; pairs with the reader's acquire. */
static void change_end(struct kverbs_row *row)
{
	u32 generation = row->generation + 1;

	/* 0 would read as "any" in kverbs_histogram.generation. */
	smp_store_release(&row->generation, generation ?: 2);
}

/* Let the arena have the page of row @id. */
static int arena_reach(u32 id)
{
	struct kverbs_row *page;

	/* Pairs with the release below. */
	while (smp_load_acquire(&nr_pages) <= id / ROWS_PER_PAGE) {
		page = (struct kverbs_row *)get_zeroed_page(GFP_KERNEL);
		if (!page)
			return -ENOMEM;
		mutex_lock(&objects_lock);
		if (nr_pages <= id / ROWS_PER_PAGE) {
			pages[nr_pages] = page;
			/* Pairs with the acquire above and in kverbs_arena_page(). */
			smp_store_release(&nr_pages, nr_pages + 1);
			/* A reader that sees the rows may touch their page at once. */
			smp_store_release(&row_of(0)->depth, nr_pages * ROWS_PER_PAGE);
			page = NULL;
		}
		mutex_unlock(&objects_lock);
		free_page((unsigned long)page);
	}
	return 0;
}

/* A hidden object keeps its row for counting, but the row says that it is free. */
static bool hidden(const struct kverbs_object *obj)
{
	return obj->row->type == KVERBS_ROW_FREE;
}

static void row_set(struct kverbs_object *obj, u32 id, const struct kverbs_row *from)
{
	struct kverbs_row *row = obj->row;

	change_begin(row);
	if (!obj->parent || !hidden(obj->parent))
		row->type = from->type;
	row->state = from->state;
	row->mode = obj->cq ? obj->cq->row->mode : from->mode;
	row->id = id;
	row->device = obj->parent ? obj->parent->row->id : id;
	row->cq = obj->cq ? obj->cq->row->id : U32_MAX;
	row->number = from->number;
	row->depth = from->depth;
	row->memory = from->memory;
	row->slot_memory = from->slot_memory;
	row->cpu = U32_MAX;
	strscpy(row->name, from->name, sizeof(row->name));
	if (!obj->parent)
		strscpy(row->driver, module_name(obj->ibdev->ops.owner), sizeof(row->driver));
	change_end(row);
}

int kverbs_object_add(struct kverbs_object *obj, const struct kverbs_row *id)
{
	int ret, nr;

	nr = ida_alloc_range(&row_ids, 1, MAX_ROWS - 1, GFP_KERNEL);
	if (nr < 0)
		return nr;
	ret = arena_reach(nr);
	if (ret) {
		ida_free(&row_ids, nr);
		return ret;
	}

	obj->row = row_of(nr);
	mutex_lock(&objects_lock);
	change_begin(row_of(0));
	row_set(obj, nr, id);
	raw_spin_lock_irq(&totals_lock);
	list_add_tail(&obj->entry, &objects);
	raw_spin_unlock_irq(&totals_lock);
	WRITE_ONCE(nr_objects, nr_objects + 1);
	change_end(row_of(0));
	mutex_unlock(&objects_lock);
	return 0;
}

/* Give the parent, or the host, what a departing row has counted, and clear the row. */
static void row_fold(struct kverbs_row *row, struct kverbs_object *parent)
{
	u32 i;

	for (i = 0; i < KVERBS_NR_COUNTERS; i++) {
		/* Atomic, since refusals that name the device are counted there meanwhile. */
		if (parent)
			atomic64_add(row->counter[i], (atomic64_t *)&parent->row->counter[i]);
		else
			departed[i] += row->counter[i];
	}
	change_begin(row);
	memset_after(row, 0, generation);
	change_end(row);
}

static void hists_merge(struct kverbs_object *to, const struct kverbs_hists *from)
{
	u32 kind;

	if (!to || !to->hists)
		return;
	for (kind = 0; kind < KVERBS_NR_HISTS; kind++)
		kverbs_hist_merge(to->hists->bucket[kind], from->bucket[kind]);
}

void kverbs_object_del(struct kverbs_object *obj)
{
	struct kverbs_row *row = obj->row;
	u32 nr = row->id;

	mutex_lock(&objects_lock);
	change_begin(row_of(0));
	/* A CQ has only what its queues left, and those left it with the device too. */
	if (obj->hists && row->type != KVERBS_ROW_CQ) {
		hists_merge(obj->parent, obj->hists);
		hists_merge(obj->cq, obj->hists);
	}
	raw_spin_lock_irq(&totals_lock);
	row_fold(row, obj->parent);
	list_del(&obj->entry);
	raw_spin_unlock_irq(&totals_lock);
	WRITE_ONCE(nr_objects, nr_objects - 1);
	change_end(row_of(0));
	mutex_unlock(&objects_lock);

	obj->row = NULL;
	ida_free(&row_ids, nr);
}

void kverbs_object_hide(struct kverbs_object *dev)
{
	struct kverbs_object *obj;

	mutex_lock(&objects_lock);
	change_begin(row_of(0));
	list_for_each_entry(obj, &objects, entry) {
		if (obj != dev && obj->parent != dev)
			continue;
		change_begin(obj->row);
		obj->row->type = KVERBS_ROW_FREE;
		change_end(obj->row);
	}
	change_end(row_of(0));
	mutex_unlock(&objects_lock);
}

void kverbs_object_rename(struct kverbs_object *dev, const char *name)
{
	mutex_lock(&objects_lock);
	change_begin(dev->row);
	memset(dev->row->name, 0, sizeof(dev->row->name));
	strscpy(dev->row->name, name, sizeof(dev->row->name));
	change_end(dev->row);
	mutex_unlock(&objects_lock);
}

void kverbs_object_set_mode(struct kverbs_object *cq, enum kverbs_cq_mode mode)
{
	struct kverbs_object *obj;

	if (cq->row->mode == mode)
		return;
	mutex_lock(&objects_lock);
	list_for_each_entry(obj, &objects, entry)
		if (obj == cq || obj->cq == cq)
			WRITE_ONCE(obj->row->mode, mode);
	mutex_unlock(&objects_lock);
}

/* A device that is hidden may be gone: its ibdev is not looked at. */
static bool visible(const struct kverbs_object *obj, const struct net *net)
{
	return !hidden(obj) && rdma_dev_access_netns(obj->ibdev, net);
}

/* Identity as it stands under objects_lock; counters one load each. */
static void row_copy(struct kverbs_row *to, const struct kverbs_row *from)
{
	u32 i;

	memcpy(to, from, offsetof(struct kverbs_row, counter));
	for (i = 0; i < KVERBS_NR_COUNTERS; i++)
		to->counter[i] = READ_ONCE(from->counter[i]);
	memset(&to->counter[i], 0, (KVERBS_MAX_COUNTERS - i) * sizeof(to->counter[0]));
	to->post_fixed_ns = READ_ONCE(from->post_fixed_ns);
	to->post_wr_ps = READ_ONCE(from->post_wr_ps);
}

u32 kverbs_stats_snapshot(const struct net *net, struct kverbs_row *to, u32 room, u64 *time_ns)
{
	struct kverbs_object *obj;
	u32 nr = 0;

	mutex_lock(&objects_lock);
	*time_ns = ktime_get_ns();
	list_for_each_entry(obj, &objects, entry) {
		if (!visible(obj, net))
			continue;
		if (nr < room)
			row_copy(&to[nr], obj->row);
		nr++;
	}
	mutex_unlock(&objects_lock);
	return nr;
}

bool kverbs_stats_total(const struct kverbs_object *dev, enum kverbs_counter c, u64 *total)
{
	const struct kverbs_object *obj;
	unsigned long flags;

	if (!raw_spin_trylock_irqsave(&totals_lock, flags)) {
		/* It may have interrupted whoever holds the lock. */
		if (in_nmi())
			return false;
		raw_spin_lock_irqsave(&totals_lock, flags);
	}
	*total = dev ? 0 : departed[c];
	list_for_each_entry(obj, &objects, entry)
		if (!dev || obj == dev || obj->parent == dev)
			*total += READ_ONCE(obj->row->counter[c]);
	raw_spin_unlock_irqrestore(&totals_lock, flags);
	return true;
}

/* The object of that row, if @net may see it; @generation 0: whatever it is. */
static struct kverbs_object *object_find(const struct net *net, u32 row, u32 generation)
{
	struct kverbs_object *obj;

	list_for_each_entry(obj, &objects, entry) {
		if (obj->row->id != row)
			continue;
		if (!visible(obj, net))
			return NULL;
		if (generation && generation != obj->row->generation)
			return NULL;
		return obj;
	}
	return NULL;
}

int kverbs_stats_histogram(const struct net *net, const struct kverbs_histogram *which,
			   u64 *bucket)
{
	struct kverbs_object *of, *obj;
	int ret = -ENODEV;

	memset(bucket, 0, KVERBS_HIST_BUCKETS * sizeof(*bucket));
	mutex_lock(&objects_lock);
	of = object_find(net, which->row, which->generation);
	if (!of)
		goto unlock;
	list_for_each_entry(obj, &objects, entry) {
		if (!obj->hists)
			continue;
		/* Its own, or those of the queues that it has. */
		if (obj == of ||
		    (obj->row->type == KVERBS_ROW_QUEUE && (obj->parent == of || obj->cq == of)))
			kverbs_hist_merge(bucket, obj->hists->bucket[which->kind]);
	}
	ret = 0;
unlock:
	mutex_unlock(&objects_lock);
	return ret;
}

int kverbs_stats_record(const struct net *net, struct kverbs_record *record,
			struct kverbs_record_view *view)
{
	struct kverbs_object *obj;
	int ret = -ENODEV;

	mutex_lock(&objects_lock);
	obj = object_find(net, record->row, record->generation);
	if (obj && obj->recorder) {
		kverbs_recorder_read(obj->recorder, record, view);
		record->state = READ_ONCE(obj->row->state);
		strscpy_pad(record->device, obj->parent->row->name, sizeof(record->device));
		ret = 0;
	}
	mutex_unlock(&objects_lock);
	return ret;
}

u32 kverbs_stats_objects(void)
{
	return READ_ONCE(nr_objects);
}

u32 kverbs_arena_rows(void)
{
	/* Pairs with the release in arena_reach(). */
	return smp_load_acquire(&nr_pages) * ROWS_PER_PAGE;
}

struct page *kverbs_arena_page(unsigned long index)
{
	/* Pairs with the release in arena_reach(). */
	if (index >= smp_load_acquire(&nr_pages))
		return NULL;
	return virt_to_page(pages[index]);
}

unsigned long kverbs_arena_max_pages(void)
{
	return MAX_PAGES;
}

int kverbs_stats_init(void)
{
	struct kverbs_row *row;

	/* Row 0 is never in row_ids: its page is made here, and it is its own lock's. */
	pages[0] = (struct kverbs_row *)get_zeroed_page(GFP_KERNEL);
	if (!pages[0])
		return -ENOMEM;
	nr_pages = 1;
	row = row_of(0);
	row->type = KVERBS_ROW_ARENA;
	row->cq = U32_MAX;
	row->cpu = U32_MAX;
	row->depth = ROWS_PER_PAGE;
	strscpy(row->name, "arena", sizeof(row->name));
	row->generation = 2;
	return 0;
}

void kverbs_stats_exit(void)
{
	WARN_ON(!list_empty(&objects));
	while (nr_pages)
		free_page((unsigned long)pages[--nr_pages]);
	ida_destroy(&row_ids);
}
