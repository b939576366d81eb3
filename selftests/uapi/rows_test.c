// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What the commands of /dev/kverbs answer and the mapped rows show, against objects
 * that kverbs_rows.ko makes up: sums, histograms, generations, devices that leave.
 */
#include <fcntl.h>
#include <kverbs/core/hist.h>
#include <rdma/kverbs.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ktap.h"

#define PARAMETERS	"/sys/module/kverbs_rows/parameters/"
#define MAX_ROWS	1024
#define CHURN_SECONDS	3

static int fd;
static struct kverbs_row rows[MAX_ROWS + 1];
static __u32 nr_rows;

static int command(const char *text)
{
	int file = open(PARAMETERS "command", O_WRONLY);
	ssize_t written = write(file, text, strlen(text));
	int error = errno;

	close(file);
	errno = error;
	return written < 0 ? -1 : 0;
}

static void must(const char *text)
{
	if (command(text))
		ktap_check(false, "command '%s': %s", text, strerror(errno));
}

static int take_snapshot(void *buffer, __u64 size, struct kverbs_snapshot *snapshot)
{
	*snapshot = (struct kverbs_snapshot) {
		.size = sizeof(*snapshot),
		.buffer = (uintptr_t)buffer,
		.buffer_size = size,
	};
	return ioctl(fd, KVERBS_IOCTL_SNAPSHOT, snapshot);
}

/* All rows into rows[]. */
static void snapshot(void)
{
	struct kverbs_snapshot snap;

	nr_rows = 0;
	if (!take_snapshot(rows, sizeof(rows[0]) * MAX_ROWS, &snap))
		nr_rows = snap.nr_rows;
}

/* The row of @type called @name, the last of them; a row of zeros if there is none. */
static const struct kverbs_row *find(__u8 type, const char *name)
{
	static const struct kverbs_row none;
	__u32 i;

	for (i = nr_rows; i-- > 0;)
		if (rows[i].type == type && !strcmp(rows[i].name, name))
			return &rows[i];
	return &none;
}

static __u64 total(const struct kverbs_row *device, enum kverbs_counter c)
{
	__u64 sum = 0;
	__u32 i;

	for (i = 0; i < nr_rows; i++)
		if (rows[i].device == device->id)
			sum += rows[i].counter[c];
	return sum;
}

static int histogram(const struct kverbs_row *of, __u32 generation, __u32 kind, __u64 *bucket)
{
	struct kverbs_histogram arg = {
		.size = sizeof(arg),
		.row = of->id,
		.generation = generation,
		.kind = kind,
		.nr_buckets = KVERBS_HIST_BUCKETS,
		.buffer = (uintptr_t)bucket,
	};

	return ioctl(fd, KVERBS_IOCTL_HISTOGRAM, &arg);
}

/* Samples of a row's histogram, all of which should be in the bucket of @value. */
static __u64 samples(const struct kverbs_row *of, __u32 kind, __u64 value)
{
	__u64 bucket[KVERBS_HIST_BUCKETS];

	if (histogram(of, of->generation, kind, bucket))
		return -1;
	if (kverbs_hist_total(bucket) != bucket[kverbs_hist_index(value)])
		return -1;
	return kverbs_hist_total(bucket);
}

static void test_buffer_sizes(void)
{
	struct kverbs_snapshot snap;
	size_t size = 3 * sizeof(rows[0]);

	must("device one");
	must("cq one");
	must("queue one");
	ktap_errno(take_snapshot(NULL, 0, &snap), EMSGSIZE, "a snapshot into nothing");
	ktap_check(snap.buffer_size == size, "tells the size that is needed");
	ktap_check(snap.row_size == sizeof(rows[0]), "tells the size of a row");

	memset(rows, 0xaa, sizeof(rows));
	ktap_errno(take_snapshot(rows, size - 1, &snap), EMSGSIZE, "a buffer short by one byte");
	ktap_check(snap.buffer_size == size && snap.nr_rows == 0, "has the needed size, no rows");
	ktap_check(((unsigned char *)rows)[0] == 0xaa, "and nothing was written");

	ktap_errno(take_snapshot(rows, size, &snap), 0, "a buffer that just holds the rows");
	ktap_check(snap.nr_rows == 3 && snap.buffer_size == size, "gets them");
	ktap_check(((unsigned char *)rows)[size] == 0xaa, "and not a byte more");

	ktap_errno(take_snapshot((void *)16, size, &snap), EFAULT, "a buffer that is not there");
	ktap_errno(take_snapshot(NULL, UINT64_MAX, &snap), EFAULT, "none, of the greatest size");
}

static void test_identity(void)
{
	const struct kverbs_row *device, *cq, *queue;

	snapshot();
	device = find(KVERBS_ROW_DEVICE, "one");
	cq = find(KVERBS_ROW_CQ, "a cq");
	queue = find(KVERBS_ROW_QUEUE, "a queue");
	ktap_check(device->id && device->device == device->id, "a device is its own device");
	ktap_check(!strcmp(device->driver, "kverbs_rows"), "a device names the driver's module");
	ktap_check(cq->device == device->id && queue->device == device->id, "others name theirs");
	ktap_check(queue->cq == cq->id, "a queue names its CQ");
	ktap_check(cq->cq == UINT32_MAX && device->cq == UINT32_MAX, "others have none");
	ktap_check(queue->number == 1 && cq->number == 3, "QP number and completion vector");
	ktap_check(queue->depth == 256 && queue->memory == 900 && queue->slot_memory == 4096,
		   "depth and memory of a queue");
	ktap_check(queue->post_fixed_ns == 120 && queue->post_wr_ps == 45500,
		   "what a queue's posts cost");
	ktap_check(!device->post_fixed_ns && !device->post_wr_ps, "its device's are not known");
	ktap_check(queue->mode == KVERBS_CQ_INTERRUPT && queue->state == KVERBS_STATE_LIVE,
		   "mode and state of a queue");
	ktap_check(device->generation && !(device->generation & 1), "a generation at rest is even");
}

static void test_sums(void)
{
	const struct kverbs_row *device, *cq, *queue;

	must("post one 1000");
	snapshot();
	device = find(KVERBS_ROW_DEVICE, "one");
	cq = find(KVERBS_ROW_CQ, "a cq");
	queue = find(KVERBS_ROW_QUEUE, "a queue");
	ktap_check(queue->counter[KVERBS_POST_CALLS] == 1000 &&
		   queue->counter[KVERBS_WORK_REQUESTS] == 16000 &&
		   queue->counter[KVERBS_BYTES] == 16000 * 64 &&
		   queue->counter[KVERBS_REFUSED_FULL] == 1000, "a queue's counters are exact");
	ktap_check(!device->counter[KVERBS_POST_CALLS], "its device's own are of the departed");
	ktap_check(total(device, KVERBS_POST_CALLS) == 1000, "its total is that of its queue");
	ktap_check(samples(queue, KVERBS_HIST_POST, 1000) == 1000 &&
		   samples(queue, KVERBS_HIST_COMPLETE, 10000) == 16000, "a queue's histograms");
	ktap_check(samples(cq, KVERBS_HIST_POST, 1000) == 1000 &&
		   samples(cq, KVERBS_HIST_COMPLETE, 10000) == 16000, "its CQ's");
	ktap_check(samples(device, KVERBS_HIST_POST, 1000) == 1000 &&
		   samples(device, KVERBS_HIST_COMPLETE, 10000) == 16000, "its device's");
}

static void test_departure(void)
{
	const struct kverbs_row *device, *cq;

	must("pop one");
	snapshot();
	device = find(KVERBS_ROW_DEVICE, "one");
	cq = find(KVERBS_ROW_CQ, "a cq");
	ktap_check(nr_rows == 2, "a queue that left has no row");
	ktap_check(device->counter[KVERBS_POST_CALLS] == 1000 &&
		   device->counter[KVERBS_REFUSED_FULL] == 1000, "its device took its counters");
	ktap_check(!cq->counter[KVERBS_POST_CALLS], "its CQ did not");
	ktap_check(samples(device, KVERBS_HIST_COMPLETE, 10000) == 16000 &&
		   samples(cq, KVERBS_HIST_COMPLETE, 10000) == 16000, "both have its histograms");

	must("pop one");
	snapshot();
	device = find(KVERBS_ROW_DEVICE, "one");
	ktap_check(nr_rows == 1 && device->counter[KVERBS_POST_CALLS] == 1000 &&
		   samples(device, KVERBS_HIST_COMPLETE, 10000) == 16000,
		   "a CQ that leaves adds nothing twice");

	must("queue one");
	must("post one 500");
	snapshot();
	device = find(KVERBS_ROW_DEVICE, "one");
	ktap_check(find(KVERBS_ROW_QUEUE, "a queue")->mode == KVERBS_CQ_FOREIGN &&
		   find(KVERBS_ROW_QUEUE, "a queue")->cq == UINT32_MAX, "a queue without our CQ");
	ktap_check(total(device, KVERBS_POST_CALLS) == 1500 &&
		   samples(device, KVERBS_HIST_POST, 1000) == 1500,
		   "the device has the departed and the living");
}

static void test_generation(void)
{
	struct kverbs_row before, after, device, *map;
	__u64 bucket[KVERBS_HIST_BUCKETS];

	snapshot();
	before = *find(KVERBS_ROW_QUEUE, "a queue");
	map = mmap(NULL, sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, fd, 0);
	must("pop one");
	ktap_check(map[before.id].generation != before.generation &&
		   map[before.id].type == KVERBS_ROW_FREE, "a mapped row tells that it is free");
	munmap(map, sysconf(_SC_PAGESIZE));
	ktap_errno(histogram(&before, before.generation, 0, bucket), ENODEV,
		   "the histogram of a row that is free");
	ktap_errno(histogram(&before, 0, 0, bucket), ENODEV, "also without its generation");
	must("queue one");
	snapshot();
	after = *find(KVERBS_ROW_QUEUE, "a queue");
	ktap_check(after.id == before.id, "a row is used again");
	ktap_check(after.generation != before.generation, "and has another generation");
	ktap_check(!after.counter[KVERBS_POST_CALLS], "and counts from zero");
	ktap_errno(histogram(&before, before.generation, 0, bucket), ENODEV,
		   "the histogram of what was there before");
	ktap_errno(histogram(&after, after.generation, 0, bucket), 0, "of what is there now");
	ktap_errno(histogram(&after, 0, 0, bucket), 0, "of whatever is there");
	ktap_errno(histogram(&after, after.generation, KVERBS_NR_HISTS, bucket), EOPNOTSUPP,
		   "of a kind that there is not");
	ktap_errno(histogram(&after, 0, 0, NULL), EFAULT, "into nothing");
	after.id = 0;
	ktap_errno(histogram(&after, 0, 0, bucket), ENODEV, "of row 0");
	after.id = UINT32_MAX;
	ktap_errno(histogram(&after, 0, 0, bucket), ENODEV, "of a row that never was");

	device = *find(KVERBS_ROW_DEVICE, "one");
	must("rename one");
	snapshot();
	ktap_check(find(KVERBS_ROW_DEVICE, "renamed")->id == device.id, "a device is renamed");
	ktap_check(find(KVERBS_ROW_DEVICE, "renamed")->generation != device.generation,
		   "and its row has another generation");
}

static void test_short_histogram(void)
{
	__u64 bucket[KVERBS_HIST_BUCKETS] = { 77 };
	struct kverbs_histogram arg = {
		.size = sizeof(arg),
		.row = rows[0].id,
		.nr_buckets = KVERBS_HIST_BUCKETS - 1,
		.buffer = (uintptr_t)bucket,
	};

	ktap_errno(ioctl(fd, KVERBS_IOCTL_HISTOGRAM, &arg), EMSGSIZE, "one bucket too few");
	ktap_check(arg.nr_buckets == KVERBS_HIST_BUCKETS, "tells how many are needed");
	ktap_check(bucket[0] == 77, "and nothing was written");
}

#define EVENTS_MAX	64

static struct kverbs_record_event events[EVENTS_MAX + 1];

static int take_record(const struct kverbs_row *of, __u32 generation, void *buffer, __u64 size,
		       struct kverbs_record *record)
{
	*record = (struct kverbs_record) {
		.size = sizeof(*record),
		.row = of->id,
		.generation = generation,
		.buffer = (uintptr_t)buffer,
		.buffer_size = size,
	};
	return ioctl(fd, KVERBS_IOCTL_RECORD, record);
}

/*
 * The last post's. One clock ticks coarser than posts follow each other, so that CQEs of
 * posts before it may stand between its flush and its own.
 */
static bool newest_last(const struct kverbs_record *record, __u32 post)
{
	__u32 i, flush = 0;

	for (i = 0; i < record->nr_events; i++) {
		if (i && events[i].time_ns < events[i - 1].time_ns)
			return false;
		if (events[i].type == KVERBS_RECORD_FLUSH)
			flush = i;
	}
	return events[flush].position == post * 16 &&
	       events[record->nr_events - 1].type == KVERBS_RECORD_CQE &&
	       events[record->nr_events - 1].position == post * 16 + 15;
}

/* Events of @type are those of posts that follow each other, and the time never falls. */
static bool in_order(const struct kverbs_record *record, __u8 type, __u32 *nr)
{
	const struct kverbs_record_event *event, *before = NULL;
	__u32 i, first = type == KVERBS_RECORD_CQE ? 15 : 0;

	for (*nr = 0, i = 0; i < record->nr_events; i++) {
		event = &events[i];
		if (event->type != type)
			continue;
		(*nr)++;
		if (event->nr_wrs != 16 || event->position % 16 != first ||
		    (before && (event->position != before->position + 16 ||
				event->time_ns < before->time_ns)))
			return false;
		if (type == KVERBS_RECORD_FLUSH &&
		    (event->bytes != 1024 || event->signaled != 1 || event->ns != 1000))
			return false;
		before = event;
	}
	return true;
}

static void test_record_sizes(const struct kverbs_row *queue)
{
	size_t size = EVENTS_MAX * sizeof(events[0]);
	struct kverbs_record record;
	__u32 flushes, cqes;

	memset(events, 0xaa, sizeof(events));
	ktap_errno(take_record(queue, 0, NULL, 0, &record), EMSGSIZE, "a record into nothing");
	ktap_check(record.buffer_size >= size - 2 * sizeof(events[0]) &&
		   record.buffer_size <= size && record.event_size == sizeof(events[0]),
		   "tells the size that is needed");
	size = record.buffer_size;
	ktap_errno(take_record(queue, 0, events, size - 1, &record), EMSGSIZE,
		   "a record into a buffer short by one byte");
	ktap_check(record.buffer_size == size && !record.nr_events &&
		   ((unsigned char *)events)[0] == 0xaa, "and nothing was written");
	ktap_errno(take_record(queue, queue->generation, events, size, &record), 0,
		   "into a buffer that just holds it");
	ktap_check(record.nr_events * sizeof(events[0]) == size &&
		   ((unsigned char *)events)[size] == 0xaa, "gets it, and not a byte more");
	ktap_check(in_order(&record, KVERBS_RECORD_FLUSH, &flushes) &&
		   in_order(&record, KVERBS_RECORD_CQE, &cqes), "its events are in order");
	ktap_check(flushes >= 31 && cqes >= 31, "as many as there is room for");
	ktap_check(newest_last(&record, 99), "the newest last");
	ktap_check(record.number == queue->number && record.depth == 256 && !record.gone_ns &&
		   !record.serial && !record.cause.kind && !strcmp(record.name, "a queue") &&
		   !strcmp(record.device, "two"), "its queue is told");
	ktap_errno(take_record(queue, 0, (void *)16, size, &record), EFAULT,
		   "a record into what is not there");
	ktap_errno(take_record(queue, queue->generation + 2, events, size, &record), ENODEV,
		   "the record of what was in the row before");
	ktap_errno(take_record(find(KVERBS_ROW_DEVICE, "two"), 0, events, size, &record), ENODEV,
		   "the record of a device");
}

/* Read while it is written: what is shown is whole, and in order. */
static void test_record_race(const struct kverbs_row *queue)
{
	unsigned long reads = 0, wrong = 0;
	struct kverbs_record record;
	__u32 nr;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(command("post two 3000000") ? 1 : 0);
	while (pid > 0 && !waitpid(pid, NULL, WNOHANG)) {
		reads++;
		wrong += take_record(queue, 0, events, sizeof(events), &record) ||
			 !in_order(&record, KVERBS_RECORD_FLUSH, &nr) ||
			 !in_order(&record, KVERBS_RECORD_CQE, &nr);
	}
	printf("# %lu records read meanwhile\n", reads);
	ktap_check(reads && !wrong, "a record that is read while it is written is whole");
}

static void test_record(void)
{
	struct kverbs_record record;
	struct kverbs_row queue;
	__u64 last;

	must("device two");
	must("queue two");
	must("post two 100");
	snapshot();
	queue = *find(KVERBS_ROW_QUEUE, "a queue");
	test_record_sizes(&queue);
	test_record_race(&queue);
	must("fail two");
	take_record(&queue, 0, events, sizeof(events), &record);
	last = events[record.nr_events - 1].position;
	ktap_check(record.cause.kind == KVERBS_CAUSE_CQE_MISSING && record.cause.in_flight == 16 &&
		   record.cause.position == (__u32)(last - 15) && record.cause.bytes == 1024 &&
		   record.cause.age_ns && record.cause.qp_state == KVERBS_UNKNOWN,
		   "what failed is told");
	must("post two 1000");
	take_record(&queue, 0, events, sizeof(events), &record);
	ktap_check(events[record.nr_events - 1].position <= last + 16,
		   "and what comes afterwards is not, but for what was under way");
	must("remove two");
	ktap_errno(take_record(&queue, 0, events, sizeof(events), &record), ENODEV,
		   "the record of a queue that is gone");
}

static void test_hide(void)
{
	struct kverbs_row queue, *map;

	must("device two");
	must("queue two");
	snapshot();
	queue = *find(KVERBS_ROW_QUEUE, "a queue");
	map = mmap(NULL, sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, fd, 0);
	ktap_check(map[queue.id].type == KVERBS_ROW_QUEUE, "a mapped row is in use");
	must("hide two");
	snapshot();
	ktap_check(!find(KVERBS_ROW_DEVICE, "two")->id, "a device that is leaving is not shown");
	ktap_check(map[queue.id].type == KVERBS_ROW_FREE, "its rows look free in the mapping");
	ktap_check(samples(&queue, KVERBS_HIST_POST, 1000) == (__u64)-1, "nor its histograms");
	must("post two 10");
	must("queue two");
	must("post two 10");
	snapshot();
	ktap_check(nr_rows == 2, "what is counted and added until it is gone is not shown");
	must("remove two");
	snapshot();
	ktap_check(nr_rows == 2, "nor when it is gone");
	munmap(map, sysconf(_SC_PAGESIZE));
}

static void test_growth(void)
{
	struct kverbs_info info = { .size = sizeof(info) };
	struct kverbs_row *map;
	__u32 before, i, j, twice = 0;

	ioctl(fd, KVERBS_IOCTL_INFO, &info);
	before = info.nr_rows;
	map = mmap(NULL, MAX_ROWS * sizeof(*map), PROT_READ, MAP_SHARED, fd, 0);
	must("device many");
	for (i = 0; i < 500; i++)
		must("queue many");
	ioctl(fd, KVERBS_IOCTL_INFO, &info);
	ktap_check(info.nr_rows > before && info.nr_rows >= 502, "the arena grows");
	ktap_check(map[0].depth == info.nr_rows, "a mapping sees that");
	snapshot();
	for (i = 0; i < nr_rows; i++) {
		for (j = 0; j < i; j++)
			twice += rows[i].id == rows[j].id;
		if (map[rows[i].id].id != rows[i].id)
			twice++;
	}
	ktap_check(nr_rows == 503 && !twice, "every row has a number of its own");
	must("remove many");
	snapshot();
	ktap_check(nr_rows == 2, "and is given back");
	munmap(map, MAX_ROWS * sizeof(*map));
}

static __u64 now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

/* Posts that had begun and that were counted. */
static void truth(__u64 *begun, __u64 *counted)
{
	char text[64] = "";
	int file = open(PARAMETERS "truth", O_RDONLY);

	if (read(file, text, sizeof(text) - 1) < 0 ||
	    sscanf(text, "%llu %llu", begun, counted) != 2)
		*begun = *counted = 0;
	close(file);
}

/* As the user ABI header tells to read mapped rows; false if they did not rest. */
static bool mapped_total(const struct kverbs_row *map, __u32 device, __u64 *sum)
{
	__u32 generation = __atomic_load_n(&map->generation, __ATOMIC_ACQUIRE);
	__u32 i, end;

	if (generation & 1)
		return false;
	*sum = 0;
	end = __atomic_load_n(&map->depth, __ATOMIC_RELAXED);
	for (i = 1; i < end; i++)
		if (__atomic_load_n(&map[i].type, __ATOMIC_RELAXED) != KVERBS_ROW_FREE &&
		    __atomic_load_n(&map[i].device, __ATOMIC_RELAXED) == device)
			*sum += __atomic_load_n(&map[i].counter[KVERBS_POST_CALLS],
						__ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&map->generation, __ATOMIC_RELAXED) == generation;
}

struct churn {
	struct kverbs_row device;
	struct kverbs_row *map;
	__u64 base;	/* posts before it began */
	unsigned long good;
	unsigned long wrong;
	unsigned long restless;
};

/* A total can neither miss what was counted before, nor exceed what has begun since. */
static void churn_snapshot(struct churn *c)
{
	__u64 before, after, unused, sum;

	truth(&unused, &before);
	snapshot();
	sum = total(&c->device, KVERBS_POST_CALLS);
	truth(&after, &unused);
	c->good++;
	c->wrong += sum < before - c->base || sum > after - c->base;
}

/* The same of mapped rows; and of many reads at once, none shows less than the last. */
static void churn_mapped(struct churn *c)
{
	__u64 before, after, unused, sum, least;
	int i;

	truth(&unused, &before);
	least = before - c->base;
	for (i = 0; i < 1000; i++) {
		if (!mapped_total(c->map, c->device.id, &sum)) {
			c->restless++;
			continue;
		}
		c->good++;
		c->wrong += sum < least;
		least = sum;
	}
	truth(&after, &unused);
	c->wrong += least > after - c->base;
}

static void test_churn(void)
{
	struct churn snapshots = {}, mapped = {};
	__u64 end = now_ns() + CHURN_SECONDS * 1000000000ULL;
	__u64 begun, counted;

	must("device busy");
	snapshot();
	mapped.device = *find(KVERBS_ROW_DEVICE, "busy");
	mapped.map = mmap(NULL, MAX_ROWS * sizeof(rows[0]), PROT_READ, MAP_SHARED, fd, 0);
	truth(&begun, &counted);
	mapped.base = begun;
	snapshots = mapped;

	must("churn busy");
	while (now_ns() < end) {
		churn_snapshot(&snapshots);
		churn_mapped(&mapped);
	}
	must("rest");

	printf("# %lu snapshots; %lu reads of mapped rows, %lu met a change\n", snapshots.good,
	       mapped.good, mapped.restless);
	ktap_check(snapshots.good && !snapshots.wrong,
		   "totals of snapshots stay exact while queues come and go");
	ktap_check(mapped.good && !mapped.wrong, "so do those of mapped rows");
	truth(&begun, &counted);
	snapshot();
	ktap_check(begun == counted &&
		   total(&mapped.device, KVERBS_POST_CALLS) == begun - mapped.base,
		   "and the last of them is all there was");
	must("remove busy");
	munmap(mapped.map, MAX_ROWS * sizeof(rows[0]));
}

/* The rows that a process in a network namespace of its own is shown; -1: none tried. */
static int rows_in_other_net(void)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		if (unshare(CLONE_NEWNET))
			_exit(255);
		snapshot();
		_exit(nr_rows);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

/* Refused as long as a namespace that has been left is being cleaned up. */
static bool set_netns_mode(const char *mode)
{
	char command[64];
	int tries;

	snprintf(command, sizeof(command), "rdma system set netns %s 2>/dev/null", mode);
	for (tries = 0; tries < 100; tries++) {
		if (!system(command))
			return true;
		usleep(50000);
	}
	return false;
}

static void test_namespaces(void)
{
	int shared = rows_in_other_net();

	ktap_check(shared == 2, "shared devices are seen in another network namespace");
	if (!set_netns_mode("exclusive")) {
		printf("ok %u - exclusive devices # SKIP no 'rdma system set netns'\n",
		       ++ktap_number);
		return;
	}
	ktap_check(rows_in_other_net() == 0, "exclusive devices are not");
	ktap_check(set_netns_mode("shared"), "back to shared");
}

int main(void)
{
	fd = open(KVERBS_DEVICE_PATH, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || access(PARAMETERS "command", W_OK))
		return ktap_skip_all("kverbs_rows.ko is not loaded");

	test_buffer_sizes();
	test_identity();
	test_sums();
	test_departure();
	test_generation();
	test_short_histogram();
	test_record();
	test_hide();
	test_growth();
	test_churn();
	test_namespaces();
	must("remove one");
	snapshot();
	ktap_check(nr_rows == 0, "in the end there is nothing");
	return ktap_finish();
}
