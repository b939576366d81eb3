/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The form that all commands of our devices share, as include/uapi/rdma/kverbs.h tells
 * it: each structure short, long with zeros, long with garbage, at bad addresses, with
 * flags. The caller opens the device and says how a valid argument is filled in.
 */
#ifndef _KVERBS_SELFTESTS_FORM_H
#define _KVERBS_SELFTESTS_FORM_H

#include <linux/types.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ktap.h"

static int fd;
static long page_size;

/* A command with a valid argument, and where its fields that must be zero are. */
struct command {
	const char *name;
	unsigned int ioctl;
	size_t size;
	size_t reserved; /* offset of a reserved field, or 0 */
	void (*fill)(void *arg);
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

/* All of it, for a command. The page is followed by nothing. */
static void test_form(const struct command *cmd, unsigned char *page)
{
	test_sizes(cmd, page);
	test_addresses(cmd, page);
	test_flags(cmd, page);
}

#endif /* _KVERBS_SELFTESTS_FORM_H */
