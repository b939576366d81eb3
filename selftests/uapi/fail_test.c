// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Every allocation of the statistics fails once: in each command of /dev/kverbs, and
 * where a device or a queue takes a row. The call must say so, and all must be as it
 * was before. Needs a kernel with fault injection.
 */
#include <fcntl.h>
#include <kverbs/core/hist.h>
#include <rdma/kverbs.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "ktap.h"

#define COMMAND		"/sys/module/kverbs_rows/parameters/command"
#define FAIL_NTH	"/proc/thread-self/fail-nth"
#define MAX_ROWS	4096
#define MAX_POINTS	200

static int fd;
static int rows_fd;
static struct kverbs_row rows[MAX_ROWS];
static __u64 bucket[KVERBS_HIST_BUCKETS];
static struct kverbs_record_event events[128];

static int take_snapshot(void)
{
	struct kverbs_snapshot snapshot = {
		.size = sizeof(snapshot),
		.buffer = (uintptr_t)rows,
		.buffer_size = sizeof(rows),
	};

	return ioctl(fd, KVERBS_IOCTL_SNAPSHOT, &snapshot) ? -1 : (int)snapshot.nr_rows;
}

static int take_histogram(void)
{
	struct kverbs_histogram histogram = {
		.size = sizeof(histogram),
		.row = rows[0].id,
		.nr_buckets = KVERBS_HIST_BUCKETS,
		.buffer = (uintptr_t)bucket,
	};

	return ioctl(fd, KVERBS_IOCTL_HISTOGRAM, &histogram);
}

static int take_record(void)
{
	struct kverbs_record record = {
		.size = sizeof(record),
		.row = rows[1].id,
		.buffer = (uintptr_t)events,
		.buffer_size = sizeof(events),
	};

	return ioctl(fd, KVERBS_IOCTL_RECORD, &record);
}

static int take_info(void)
{
	struct kverbs_info info = { .size = sizeof(info) };

	return ioctl(fd, KVERBS_IOCTL_INFO, &info);
}

static int say(const char *text)
{
	return write(rows_fd, text, strlen(text)) < 0 ? -1 : 0;
}

static int add_device(void)
{
	return say("device two");
}

/* As many as need a new page of rows, whatever was there before. */
static int add_queues(void)
{
	int i;

	for (i = 0; i < 16; i++)
		if (say("queue one"))
			return -1;
	return 0;
}

static int set_fail_nth(int nth)
{
	char text[16];
	int file = open(FAIL_NTH, O_WRONLY);
	int length = snprintf(text, sizeof(text), "%d", nth);
	int ret = write(file, text, length);

	close(file);
	return ret < 0 ? -1 : 0;
}

/* Whether the fault was met: what is left to count is then 0. */
static bool fault_was_met(void)
{
	char text[16] = "";
	int file = open(FAIL_NTH, O_RDONLY);
	bool met = read(file, text, sizeof(text) - 1) > 0 && atoi(text) == 0;

	close(file);
	set_fail_nth(0);
	return met;
}

struct sweep {
	const char *name;
	int (*call)(void);
	const char *undo; /* once, after a call that worked */
	int undo_times;
};

/* Fail the first allocation of the call, the second, and so on until it has no more. */
static void sweep(const struct sweep *s)
{
	int nth, i, failed = 0, wrong = 0, changed = 0, before, ret, error;

	for (nth = 1; nth < MAX_POINTS; nth++) {
		before = take_snapshot();
		set_fail_nth(nth);
		ret = s->call();
		error = errno;
		if (!fault_was_met())
			break;
		if (ret < 0) {
			failed++;
			wrong += error != ENOMEM;
		}
		/* What a call that failed half-way had added is taken back here. */
		for (i = take_snapshot(); i > before && s->undo; i--)
			say(s->undo);
		changed += take_snapshot() != before;
	}
	for (i = 0; s->undo && i < s->undo_times; i++)
		say(s->undo);
	printf("# %s: %d points, %d failed\n", s->name, nth - 1, failed);
	ktap_check(nth < MAX_POINTS && ret >= 0, "%s works once nothing fails", s->name);
	ktap_check(!wrong, "%s says ENOMEM", s->name);
	ktap_check(!changed, "%s leaves all as it was", s->name);
}

int main(void)
{
	static const struct sweep sweeps[] = {
		{ "INFO", take_info, NULL, 0 },
		{ "SNAPSHOT", take_snapshot, NULL, 0 },
		{ "HISTOGRAM", take_histogram, NULL, 0 },
		{ "RECORD", take_record, NULL, 0 },
		{ "adding a device", add_device, "remove two", 1 },
		{ "adding queues", add_queues, "pop one", 16 },
	};
	size_t i;

	fd = open(KVERBS_DEVICE_PATH, O_RDONLY | O_CLOEXEC);
	rows_fd = open(COMMAND, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || rows_fd < 0)
		return ktap_skip_all("kverbs_rows.ko is not loaded");
	if (set_fail_nth(0) ||
	    system("echo N >/sys/kernel/debug/failslab/ignore-gfp-wait") ||
	    system("echo N >/sys/kernel/debug/fail_page_alloc/ignore-gfp-wait") ||
	    system("echo 0 >/sys/kernel/debug/fail_page_alloc/min-order"))
		return ktap_skip_all("the kernel has no fault injection");

	say("device one");
	say("queue one");
	for (i = 0; i < ARRAY_SIZE(sweeps); i++)
		sweep(&sweeps[i]);
	ktap_check(take_snapshot() == 2, "in the end there is what there was");
	say("remove one");
	return ktap_finish();
}
