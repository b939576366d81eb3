// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The form of the commands of /dev/kverbs: each structure short, long with zeros,
 * long with garbage, at bad addresses, with flags; unknown commands. What the commands
 * answer is the business of rows_test and mmap_test.
 */
#include <fcntl.h>
#include <rdma/kverbs.h>

#include "form.h"

static __u64 buckets[4096];
static unsigned char row_buffer[1 << 20];

static void fill_info(void *arg)
{
	struct kverbs_info info = { .size = sizeof(info) };

	memcpy(arg, &info, sizeof(info));
}

static void fill_snapshot(void *arg)
{
	struct kverbs_snapshot snapshot = {
		.size = sizeof(snapshot),
		.buffer = (uintptr_t)row_buffer,
		.buffer_size = sizeof(row_buffer),
	};

	memcpy(arg, &snapshot, sizeof(snapshot));
}

/* The row of the first device that there is. */
static __u32 device_row(void)
{
	struct kverbs_snapshot snapshot;

	fill_snapshot(&snapshot);
	if (ioctl(fd, KVERBS_IOCTL_SNAPSHOT, &snapshot) || !snapshot.nr_rows)
		return 0;
	return ((struct kverbs_row *)row_buffer)->id;
}

static void fill_histogram(void *arg)
{
	struct kverbs_histogram histogram = {
		.size = sizeof(histogram),
		.row = device_row(),
		.nr_buckets = ARRAY_SIZE(buckets),
		.buffer = (uintptr_t)buckets,
	};

	memcpy(arg, &histogram, sizeof(histogram));
}

/* The first that is kept: there is none, which is no error. */
static void fill_record(void *arg)
{
	struct kverbs_record record = { .size = sizeof(record) };

	memcpy(arg, &record, sizeof(record));
}

static const struct command commands[] = {
	{ "INFO", KVERBS_IOCTL_INFO, sizeof(struct kverbs_info),
	  offsetof(struct kverbs_info, reserved), fill_info },
	{ "SNAPSHOT", KVERBS_IOCTL_SNAPSHOT, sizeof(struct kverbs_snapshot), 0, fill_snapshot },
	{ "HISTOGRAM", KVERBS_IOCTL_HISTOGRAM, sizeof(struct kverbs_histogram), 0,
	  fill_histogram },
	{ "RECORD", KVERBS_IOCTL_RECORD, sizeof(struct kverbs_record),
	  offsetof(struct kverbs_record, reserved), fill_record },
};

static void test_unknown(void *arg)
{
	fill_info(arg);
	ktap_errno(ioctl(fd, _IO(KVERBS_IOCTL_TYPE, KVERBS_CMD_RECORD + 1), arg), ENOTTY,
		   "the command after the last");
	ktap_errno(ioctl(fd, _IO(KVERBS_IOCTL_TYPE, 255), arg), ENOTTY, "command 255");
	ktap_errno(ioctl(fd, _IO(KVERBS_IOCTL_TYPE - 1, KVERBS_CMD_INFO), arg), ENOTTY,
		   "a command of another type");
	ktap_errno(ioctl(fd, _IOWR(KVERBS_IOCTL_TYPE, KVERBS_CMD_INFO, struct kverbs_info), arg),
		   ENOTTY, "a known command with a size in its number");
}

/* A row that is none of a queue, or that never was, has no record. */
static void test_record_rows(void)
{
	struct kverbs_record record;

	fill_record(&record);
	record.serial = UINT64_MAX;
	ktap_errno(ioctl(fd, KVERBS_IOCTL_RECORD, &record), 0, "RECORD after the last");
	ktap_check(!record.serial && !record.nr_events, "is none");
	fill_record(&record);
	record.row = device_row();
	ktap_errno(ioctl(fd, KVERBS_IOCTL_RECORD, &record), ENODEV, "RECORD of a device's row");
	record.row = UINT32_MAX;
	ktap_errno(ioctl(fd, KVERBS_IOCTL_RECORD, &record), ENODEV, "RECORD of no row");
}

int main(void)
{
	unsigned char *page;
	size_t i;

	page_size = sysconf(_SC_PAGESIZE);
	fd = open(KVERBS_DEVICE_PATH, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return ktap_skip_all("no " KVERBS_DEVICE_PATH);
	if (!ktap_check(device_row() != 0, "there is the row of a device"))
		return ktap_finish();
	page = page_before_nothing();

	for (i = 0; i < ARRAY_SIZE(commands); i++)
		test_form(&commands[i], page);
	test_unknown(page);
	test_record_rows();
	return ktap_finish();
}
