// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What the rows say of queues and CQs that really are there: a run of kverbs_perf makes
 * them. A queue's row said that its CQ is in interrupt mode whatever it was, and the row
 * of a CQ had no completion vector.
 */
#include <fcntl.h>
#include <poll.h>
#include <rdma/kverbs_perf.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "ktap.h"

#define QUEUES		2
#define MAX_ROWS	64

static struct kverbs_row rows[MAX_ROWS];

/* How many rows of @type there are and, of those, in @mode. */
struct found {
	int rows;
	int in_mode;
	int numbers; /* a bit for each number that is small */
};

static struct found find(int fd, __u8 type, __u8 mode)
{
	struct kverbs_snapshot snapshot = {
		.size = sizeof(snapshot),
		.buffer = (uintptr_t)rows,
		.buffer_size = sizeof(rows),
	};
	struct found found = { 0 };
	__u32 i;

	if (ioctl(fd, KVERBS_IOCTL_SNAPSHOT, &snapshot))
		return found;
	for (i = 0; i < snapshot.nr_rows; i++) {
		if (rows[i].type != type)
			continue;
		found.rows++;
		found.in_mode += rows[i].mode == mode;
		found.numbers |= rows[i].number < 31 ? 1 << rows[i].number : 0;
	}
	return found;
}

/* Starts to run on queues whose CQ is @cq, until the file is closed; -1 if it does not. */
static int start(__u8 cq)
{
	struct kverbs_perf_run run = {
		.size = sizeof(run),
		.op = KVERBS_PERF_WRITE,
		.msg_size = 64,
		.depth = 8,
		.queues = QUEUES,
		.threads = 1,
		.batch = 4,
		.rounds = 1,
		.timeout_ms = 60000,
		.nr_cases = 1,
		.cases = { { .engine = KVERBS_PERF_KVERBS, .cq = cq } },
		.duration_ns = 60000000000ULL,
	};
	int fd = open(KVERBS_PERF_DEVICE_PATH, O_RDWR | O_CLOEXEC);

	if (fd >= 0 && ioctl(fd, KVERBS_PERF_IOCTL_RUN, &run)) {
		close(fd);
		return -1;
	}
	return fd;
}

static void test_mode(int fd, __u8 cq, __u8 mode, const char *name)
{
	int run = start(cq), tries = 200;
	struct found queues = { 0 }, cqs;

	ktap_check(run >= 0, "%s: queues on such CQs", name);
	while (tries-- && queues.rows < QUEUES) {
		usleep(100000);
		queues = find(fd, KVERBS_ROW_QUEUE, mode);
	}
	ktap_check(queues.rows == QUEUES && queues.in_mode == QUEUES, "%s: the queues' mode",
		   name);
	if (cq != KVERBS_PERF_CQ_IB) {
		cqs = find(fd, KVERBS_ROW_CQ, mode);
		ktap_check(cqs.rows == QUEUES && cqs.in_mode == QUEUES, "%s: the CQs' mode", name);
		/* rxe has a vector for each CPU. */
		ktap_check(cqs.numbers == (sysconf(_SC_NPROCESSORS_CONF) > 1 ? 3 : 1),
			   "%s: the CQs' vectors", name);
	}
	close(run);
	ktap_check(!find(fd, KVERBS_ROW_QUEUE, mode).rows, "%s: they go", name);
}

int main(void)
{
	int fd = open(KVERBS_DEVICE_PATH, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return ktap_skip_all("no " KVERBS_DEVICE_PATH);
	test_mode(fd, KVERBS_PERF_CQ_IB, KVERBS_CQ_FOREIGN, "ib_core");
	test_mode(fd, KVERBS_PERF_CQ_INTERRUPT, KVERBS_CQ_INTERRUPT, "interrupt");
	test_mode(fd, KVERBS_PERF_CQ_POLL, KVERBS_CQ_POLL, "poll");
	test_mode(fd, KVERBS_PERF_CQ_HYBRID, KVERBS_CQ_HYBRID, "hybrid");
	test_mode(fd, KVERBS_PERF_CQ_ADAPTIVE, KVERBS_CQ_ADAPTIVE, "adaptive");
	return ktap_finish();
}
