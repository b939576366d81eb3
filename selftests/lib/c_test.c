// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The C face of libkverbs against an object that kverbs_rows.ko makes up.
 */
#include <fcntl.h>
#include <kverbs/kverbs.h>
#include <stdlib.h>
#include <unistd.h>

#include "ktap.h"

#define COMMAND	"/sys/module/kverbs_rows/parameters/command"
#define ROOM	8

static struct kverbs_stats *stats;
static struct kverbs_stats_row rows[ROOM];

static void command(const char *text)
{
	int fd = open(COMMAND, O_WRONLY);

	if (write(fd, text, strlen(text)) < 0)
		ktap_check(false, "command '%s': %s", text, strerror(errno));
	close(fd);
}

static void test_snapshot(void)
{
	uint64_t time = 0;
	size_t nr = 0;

	ktap_check(kverbs_stats_snapshot(stats, NULL, &nr, NULL) == -EMSGSIZE && nr == 3,
		   "a snapshot without room tells how much it needs");
	nr = ROOM;
	ktap_check(kverbs_stats_snapshot(stats, rows, &nr, &time) == 0 && nr == 3 && time,
		   "a snapshot with room");
	ktap_check(rows[0].type == KVERBS_STATS_DEVICE && !strcmp(rows[0].name, "dev") &&
		   !strcmp(rows[0].driver, "kverbs_rows"), "the row of a device");
	ktap_check(rows[1].type == KVERBS_STATS_CQ && rows[1].cq == KVERBS_STATS_NONE &&
		   rows[1].cpu == KVERBS_STATS_NONE, "the row of a CQ");
	ktap_check(rows[2].type == KVERBS_STATS_QUEUE && rows[2].device == rows[0].id &&
		   rows[2].cq == rows[1].id && rows[2].mode == KVERBS_STATS_INTERRUPT &&
		   rows[2].depth == 256, "the row of a queue");
	ktap_check(rows[2].counter[kverbs_stats_counter("post_calls")] == 10 &&
		   rows[2].counter[kverbs_stats_counter("work_requests")] == 160,
		   "counters by their names");
}

static void test_histogram(void)
{
	size_t room = kverbs_stats_buckets(), i;
	uint64_t *bucket = calloc(room, sizeof(*bucket));
	uint64_t p50, sum = 0;

	ktap_check(kverbs_stats_histogram(stats, &rows[2], KVERBS_STATS_POST_NS, bucket,
					  room - 1) == -EMSGSIZE, "a histogram without room");
	ktap_check(kverbs_stats_histogram(stats, &rows[2], KVERBS_STATS_POST_NS, bucket,
					  room) == 0, "a histogram with room");
	for (i = 0; i < room; i++)
		sum += bucket[i];
	ktap_check(sum == 10, "has the samples");
	p50 = kverbs_stats_percentile(bucket, 5000);
	ktap_check(p50 > 900 && p50 < 1100, "and their median");
	ktap_check(kverbs_stats_bucket_low(0) == 0 && kverbs_stats_bucket_low(1) > 0,
		   "buckets have a least value");
	command("pop dev");
	ktap_check(kverbs_stats_histogram(stats, &rows[2], KVERBS_STATS_POST_NS, bucket,
					  room) == -ENODEV, "a histogram of what has left");
	free(bucket);
}

int main(void)
{
	if (access(COMMAND, W_OK))
		return ktap_skip_all("kverbs_rows.ko is not loaded");
	command("device dev");
	command("cq dev");
	command("queue dev");
	command("post dev 10");

	ktap_check(kverbs_stats_open("/nonexistent", &stats) == -ENOENT, "no such device");
	if (!ktap_check(kverbs_stats_open(NULL, &stats) == 0, "the device by default"))
		return ktap_finish();
	test_snapshot();
	test_histogram();
	kverbs_stats_close(stats);
	kverbs_stats_close(NULL);
	command("remove dev");
	return ktap_finish();
}
