// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Who may open /dev/kverbs, and what of it may be mapped, how, and from where.
 */
#include <fcntl.h>
#include <grp.h>
#include <rdma/kverbs.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ktap.h"

#define NOBODY	65534
#define READERS	54321 /* a group that nobody is in */

static long page_size;

/* Runs @body in a process of its own; its status, or 128 and the signal. */
static int in_child(int (*body)(void *), void *arg)
{
	pid_t pid;
	int status;

	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(body(arg));
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return 255;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* What a child tells: 0, or the errno of what it tried. */
static void expect_child(int (*body)(void *), void *arg, int want, const char *name)
{
	int got = in_child(body, arg);

	if (got != want)
		printf("# got %d (%s), want %d (%s)\n", got, strerror(got), want, strerror(want));
	ktap_check(got == want, "%s", name);
}

/* A read that the compiler may not leave out. */
static __u32 load(const __u32 *from)
{
	return __atomic_load_n(from, __ATOMIC_SEQ_CST);
}

static size_t arena_size(int fd)
{
	struct kverbs_info info = { .size = sizeof(info) };

	if (ioctl(fd, KVERBS_IOCTL_INFO, &info))
		return 0;
	return ((size_t)info.nr_rows * info.row_size + page_size - 1) / page_size * page_size;
}

static void test_read(int fd)
{
	struct kverbs_info info = { .size = sizeof(info) };
	const struct kverbs_row *rows;
	size_t size = arena_size(fd);

	ioctl(fd, KVERBS_IOCTL_INFO, &info);
	rows = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	if (!ktap_check(rows != MAP_FAILED, "rows can be mapped for reading"))
		return;
	ktap_check(rows[0].type == KVERBS_ROW_ARENA, "row 0 tells of the arena");
	ktap_check(rows[0].depth == info.nr_rows, "row 0 tells how many rows there are");
	ktap_check(!(rows[0].generation & 1) && rows[0].generation, "row 0 is at rest");
	ktap_check(info.row_size == sizeof(struct kverbs_row), "rows have the size of the header");
	ktap_check(rows[1].type == KVERBS_ROW_DEVICE && rows[1].id == 1,
		   "row 1 is that of the first device");
	munmap((void *)rows, size);
}

static void test_write(int fd, int fd_write)
{
	void *map;

	map = mmap(NULL, page_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ktap_errno(map == MAP_FAILED ? -1 : 0, EACCES, "mapping for writing, file opened to read");
	map = mmap(NULL, page_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd_write, 0);
	ktap_errno(map == MAP_FAILED ? -1 : 0, EACCES, "mapping for writing, file opened to write");
	map = mmap(NULL, page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd_write, 0);
	ktap_errno(map == MAP_FAILED ? -1 : 0, EACCES, "private mapping for writing");

	map = mmap(NULL, page_size, PROT_READ, MAP_SHARED, fd_write, 0);
	ktap_errno(mprotect(map, page_size, PROT_READ | PROT_WRITE), EACCES,
		   "making a shared mapping writable");
	munmap(map, page_size);
	map = mmap(NULL, page_size, PROT_READ, MAP_PRIVATE, fd_write, 0);
	ktap_errno(mprotect(map, page_size, PROT_READ | PROT_WRITE), EACCES,
		   "making a private mapping writable");
	munmap(map, page_size);
}

/* As a debugger writes: without asking for the protection. */
static void test_forced_write(int fd_write)
{
	__u32 *map = mmap(NULL, page_size, PROT_READ, MAP_SHARED, fd_write, 0);
	__u32 before = load(map), garbage = 0xdeadbeef;
	int mem = open("/proc/self/mem", O_RDWR);
	ssize_t written;

	written = pwrite(mem, &garbage, sizeof(garbage), (off_t)(uintptr_t)map);
	ktap_check(written < 0, "writing through /proc/self/mem is refused");
	ktap_check(load(map) == before, "and changes nothing");
	close(mem);
	munmap(map, page_size);
}

static int touch_past_the_end(void *arg)
{
	int fd = *(int *)arg;
	size_t size = arena_size(fd);
	char *map;

	map = mmap(NULL, size + page_size, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return errno;
	load((__u32 *)(map + size - sizeof(__u32)));
	load((__u32 *)(map + size));
	return 0;
}

static int map_far_out(void *arg)
{
	int fd = *(int *)arg;
	void *map = mmap(NULL, page_size, PROT_READ, MAP_SHARED, fd, (off_t)1 << 40);

	return map == MAP_FAILED ? errno : 0;
}

static int map_in_other_net(void *arg)
{
	int fd = *(int *)arg;

	if (unshare(CLONE_NEWNET))
		return 255;
	return mmap(NULL, page_size, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED ? errno : 0;
}

static int snapshot_in_other_net(void *arg)
{
	struct kverbs_snapshot snapshot = { .size = sizeof(snapshot) };
	int fd = *(int *)arg;

	if (unshare(CLONE_NEWNET))
		return 255;
	return ioctl(fd, KVERBS_IOCTL_SNAPSHOT, &snapshot) ? errno : 0;
}

static void test_lifetime(void)
{
	int fd = open(KVERBS_DEVICE_PATH, O_RDONLY | O_CLOEXEC);
	const struct kverbs_row *rows = mmap(NULL, page_size, PROT_READ, MAP_SHARED, fd, 0);

	close(fd);
	ktap_check(rows[0].type == KVERBS_ROW_ARENA, "a mapping outlives its file");
	munmap((void *)rows, page_size);
}

struct visitor {
	gid_t group;
	int flags;
};

static int open_as(void *arg)
{
	const struct visitor *who = arg;
	struct kverbs_info info = { .size = sizeof(info) };
	int fd;

	if (setgroups(0, NULL) || setgid(who->group) || setuid(NOBODY))
		return 255;
	fd = open(KVERBS_DEVICE_PATH, who->flags);
	if (fd < 0)
		return errno;
	if (ioctl(fd, KVERBS_IOCTL_INFO, &info))
		return errno;
	return mmap(NULL, page_size, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED ? errno : 0;
}

static void test_privilege(void)
{
	struct visitor stranger = { .group = NOBODY, .flags = O_RDONLY };
	struct visitor reader = { .group = READERS, .flags = O_RDONLY };
	struct visitor writer = { .group = READERS, .flags = O_RDWR };
	struct stat before;

	stat(KVERBS_DEVICE_PATH, &before);
	ktap_check((before.st_mode & 0777) == 0640, "it is its owner's, and its group reads");
	expect_child(open_as, &stranger, EACCES, "another user may not open it");
	/* What the udev rule does with the group rdma. */
	if (chown(KVERBS_DEVICE_PATH, -1, READERS))
		return;
	expect_child(open_as, &reader, 0, "the group may open, ask and map it");
	expect_child(open_as, &writer, EACCES, "the group may not open it to write");
	if (chown(KVERBS_DEVICE_PATH, -1, before.st_gid))
		printf("# the group of the device could not be set back\n");
}

int main(void)
{
	int fd, fd_write;

	page_size = sysconf(_SC_PAGESIZE);
	fd = open(KVERBS_DEVICE_PATH, O_RDONLY | O_CLOEXEC);
	fd_write = open(KVERBS_DEVICE_PATH, O_RDWR | O_CLOEXEC);
	if (fd < 0 || fd_write < 0)
		return ktap_skip_all("no " KVERBS_DEVICE_PATH);

	test_read(fd);
	test_write(fd, fd_write);
	test_forced_write(fd_write);
	test_lifetime();
	expect_child(touch_past_the_end, &fd, 128 + SIGBUS, "a page that is not there yet: SIGBUS");
	expect_child(map_far_out, &fd, EINVAL, "mapping beyond any arena");
	expect_child(map_in_other_net, &fd, EPERM, "mapping from another network namespace");
	expect_child(snapshot_in_other_net, &fd, EMSGSIZE,
		     "shared devices are seen from another network namespace");
	test_privilege();
	return ktap_finish();
}
