// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The form of the commands of /dev/kverbs: each structure short, long with zeros,
 * long with garbage, at bad addresses, with flags; unknown commands. What the commands
 * answer is the business of rows_test and mmap_test.
 */
#include <fcntl.h>
#include <rdma/kverbs.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ktap.h"

static int fd;
static long page_size;
static __u64 buckets[4096];
static unsigned char row_buffer[1 << 20];

/* A command with a valid argument, and where its fields that must be zero are. */
struct command {
	const char *name;
	unsigned int ioctl;
	size_t size;
	size_t reserved; /* offset of a reserved field, or 0 */
	void (*fill)(void *arg);
};

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

static const struct command commands[] = {
	{ "INFO", KVERBS_IOCTL_INFO, sizeof(struct kverbs_info),
	  offsetof(struct kverbs_info, reserved), fill_info },
	{ "SNAPSHOT", KVERBS_IOCTL_SNAPSHOT, sizeof(struct kverbs_snapshot), 0, fill_snapshot },
	{ "HISTOGRAM", KVERBS_IOCTL_HISTOGRAM, sizeof(struct kverbs_histogram), 0,
	  fill_histogram },
};

static void expect(const struct command *cmd, void *arg, int want, const char *what)
{
	char name[128];

	snprintf(name, sizeof(name), "%s %s", cmd->name, what);
	ktap_errno(ioctl(fd, cmd->ioctl, arg), want, name);
}

/* Two pages, of which the second cannot be reached. */
static unsigned char *page_before_nothing(void)
{
	unsigned char *page = mmap(NULL, 2 * page_size, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED || mprotect(page + page_size, page_size, PROT_NONE))
		exit(ktap_skip_all("no memory"));
	return page;
}

static void set_size(void *arg, __u32 size)
{
	memcpy(arg, &size, sizeof(size));
}

static void test_sizes(const struct command *cmd, unsigned char *arg)
{
	static const __u32 tails[] = { 1, 8, 64 };
	__u32 size, i;

	cmd->fill(arg);
	expect(cmd, arg, 0, "of its size");
	memcpy(&size, arg, sizeof(size));
	ktap_check(size == cmd->size, "%s leaves the size as it was", cmd->name);

	cmd->fill(arg);
	set_size(arg, cmd->size - 1);
	expect(cmd, arg, EINVAL, "short by one byte");
	set_size(arg, sizeof(__u32));
	expect(cmd, arg, EINVAL, "with nothing but its size");
	set_size(arg, 0);
	expect(cmd, arg, EINVAL, "of size 0");

	for (i = 0; i < ARRAY_SIZE(tails); i++) {
		memset(arg, 0, page_size);
		cmd->fill(arg);
		set_size(arg, cmd->size + tails[i]);
		expect(cmd, arg, 0, "long with zeros");
		cmd->fill(arg);
		set_size(arg, cmd->size + tails[i]);
		arg[cmd->size + tails[i] - 1] = 1;
		expect(cmd, arg, E2BIG, "long with garbage at its end");
	}
	memset(arg, 0, page_size);
	cmd->fill(arg);
	set_size(arg, cmd->size + 64);
	arg[cmd->size] = 0x80;
	expect(cmd, arg, E2BIG, "long with garbage where the tail begins");
	arg[cmd->size] = 0;
	set_size(arg, page_size + 1);
	expect(cmd, arg, E2BIG, "longer than a page");
	set_size(arg, UINT32_MAX);
	expect(cmd, arg, E2BIG, "of the greatest size");
}

static void test_addresses(const struct command *cmd, unsigned char *page)
{
	unsigned char *arg = page + page_size - cmd->size;

	expect(cmd, NULL, EFAULT, "at NULL");
	expect(cmd, (void *)(uintptr_t)-16, EFAULT, "at an address of the kernel");

	memset(page, 0, page_size);
	cmd->fill(arg);
	expect(cmd, arg, 0, "that ends where memory ends");
	set_size(arg, cmd->size + 8);
	expect(cmd, arg, EFAULT, "whose tail cannot be read");

	arg = page + page_size - sizeof(__u32);
	set_size(arg, cmd->size);
	expect(cmd, arg, EFAULT, "of which only the size can be read");

	memset(page, 0, page_size);
	cmd->fill(page);
	mprotect(page, page_size, PROT_READ);
	expect(cmd, page, EFAULT, "that cannot be written");
	mprotect(page, page_size, PROT_READ | PROT_WRITE);
}

static void test_flags(const struct command *cmd, unsigned char *arg)
{
	/* The flags come after the size, in each of them. */
	cmd->fill(arg);
	set_size(arg + sizeof(__u32), 1);
	expect(cmd, arg, EOPNOTSUPP, "with the first flag");
	cmd->fill(arg);
	set_size(arg + sizeof(__u32), 1U << 31);
	expect(cmd, arg, EOPNOTSUPP, "with the last flag");
	if (!cmd->reserved)
		return;
	cmd->fill(arg);
	set_size(arg + cmd->reserved, 1);
	expect(cmd, arg, EOPNOTSUPP, "with a reserved field set");
}

static void test_unknown(void *arg)
{
	fill_info(arg);
	ktap_errno(ioctl(fd, _IO(KVERBS_IOCTL_TYPE, KVERBS_CMD_HISTOGRAM + 1), arg), ENOTTY,
		   "the command after the last");
	ktap_errno(ioctl(fd, _IO(KVERBS_IOCTL_TYPE, 255), arg), ENOTTY, "command 255");
	ktap_errno(ioctl(fd, _IO(KVERBS_IOCTL_TYPE - 1, KVERBS_CMD_INFO), arg), ENOTTY,
		   "a command of another type");
	ktap_errno(ioctl(fd, _IOWR(KVERBS_IOCTL_TYPE, KVERBS_CMD_INFO, struct kverbs_info), arg),
		   ENOTTY, "a known command with a size in its number");
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

	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		test_sizes(&commands[i], page);
		test_addresses(&commands[i], page);
		test_flags(&commands[i], page);
	}
	test_unknown(page);
	return ktap_finish();
}
