/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * libkverbs for C: the statistics of kverbs.ko.
 *
 * Functions that may fail return 0 or a negative errno, as the user ABI tells them:
 * -ENOENT where the module is not loaded, -EACCES without privilege, -ENODEV for a
 * row that is gone, -EMSGSIZE for a buffer that is too small.
 */
#ifndef _KVERBS_KVERBS_H
#define _KVERBS_KVERBS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KVERBS_STATS_NAME_SIZE		64
#define KVERBS_STATS_COUNTER_ROOM	64
#define KVERBS_STATS_NONE		UINT32_MAX

enum kverbs_stats_type {
	KVERBS_STATS_DEVICE = 1,
	KVERBS_STATS_CQ,
	KVERBS_STATS_QUEUE,
};

enum kverbs_stats_state {
	KVERBS_STATS_LIVE = 0,
	KVERBS_STATS_FAILED,
	KVERBS_STATS_STOPPED,
};

enum kverbs_stats_mode {
	KVERBS_STATS_FOREIGN = 0,
	KVERBS_STATS_INTERRUPT,
	KVERBS_STATS_POLL,
	KVERBS_STATS_HYBRID,
	KVERBS_STATS_ADAPTIVE,
};

enum kverbs_stats_kind {
	KVERBS_STATS_POST_NS = 0,
	KVERBS_STATS_COMPLETE_NS,
};

/* An open /dev/kverbs. */
struct kverbs_stats;

/*
 * struct kverbs_stats_row - identity and counters of one object
 * @device is the id of its device's row, @cq that of the kverbs CQ which serves a
 * queue, @cpu the CPU that the last event of a CQ arrived on; both may be
 * KVERBS_STATS_NONE. @counter is indexed by what
 * kverbs_stats_counter() finds; counters that the library does not know are 0.
 */
struct kverbs_stats_row {
	uint32_t id;
	uint32_t generation;
	uint32_t type;
	uint32_t state;
	uint32_t mode;
	uint32_t device;
	uint32_t cq;
	uint32_t number;
	uint32_t depth;
	uint32_t cpu;
	uint64_t memory;
	uint64_t slot_memory;
	char name[KVERBS_STATS_NAME_SIZE];
	char driver[KVERBS_STATS_NAME_SIZE];
	uint64_t counter[KVERBS_STATS_COUNTER_ROOM];
};

/* Open @path, or /dev/kverbs if it is NULL. */
int kverbs_stats_open(const char *path, struct kverbs_stats **stats);
void kverbs_stats_close(struct kverbs_stats *stats);

/*
 * Fill @rows with all rows at one moment, which @time_ns (CLOCK_MONOTONIC; may be
 * NULL) tells. @nr holds what there is room for, and afterwards how many there are,
 * also with -EMSGSIZE.
 */
int kverbs_stats_snapshot(struct kverbs_stats *stats, struct kverbs_stats_row *rows, size_t *nr,
			  uint64_t *time_ns);

/* The index of a counter by its name ("post_calls"), or -ENOENT. */
int kverbs_stats_counter(const char *name);

/* The name of a counter, or NULL past the last. */
const char *kverbs_stats_counter_name(size_t index);

/*
 * Fill @bucket with the histogram of @row, which has room for @room buckets;
 * kverbs_stats_buckets() is what is needed.
 */
int kverbs_stats_histogram(struct kverbs_stats *stats, const struct kverbs_stats_row *row,
			   enum kverbs_stats_kind kind, uint64_t *bucket, size_t room);
size_t kverbs_stats_buckets(void);

/* The least nanoseconds of a bucket. */
uint64_t kverbs_stats_bucket_low(size_t index);

/* Nanoseconds that @per_10000 of 10,000 samples do not exceed (9990 for p99.9). */
uint64_t kverbs_stats_percentile(const uint64_t *bucket, unsigned int per_10000);

#ifdef __cplusplus
}
#endif

#endif /* _KVERBS_KVERBS_H */
