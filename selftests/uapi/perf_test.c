// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The commands of /dev/kverbs_perf: their form, what they refuse and with which errno,
 * and that one file has one run. What a run measures is the business of kmod/bench_*.
 */
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <rdma/kverbs_perf.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "form.h"

/* Until no run goes on in the file. */
static void settle(void)
{
	struct pollfd ended = { .fd = fd, .events = POLLIN };

	poll(&ended, 1, 60000);
}

static struct kverbs_perf_run valid_run(void)
{
	return (struct kverbs_perf_run){
		.size = sizeof(struct kverbs_perf_run),
		.op = KVERBS_PERF_WRITE,
		.msg_size = 64,
		.depth = 8,
		.queues = 1,
		.threads = 1,
		.batch = 4,
		.rounds = 1,
		.timeout_ms = 60000,
		.nr_cases = 1,
		.iterations = 8,
	};
}

static void fill_run(void *arg)
{
	struct kverbs_perf_run run = valid_run();

	settle();
	memcpy(arg, &run, sizeof(run));
}

static void fill_status(void *arg)
{
	struct kverbs_perf_status status = { .size = sizeof(status) };

	memcpy(arg, &status, sizeof(status));
}

static void fill_stop(void *arg)
{
	struct kverbs_perf_stop stop = { .size = sizeof(stop) };

	memcpy(arg, &stop, sizeof(stop));
}

/* RUN knows a flag of its own: the first that it does not know is tested apart. */
static const struct command commands[] = {
	{ "STATUS", KVERBS_PERF_IOCTL_STATUS, sizeof(struct kverbs_perf_status), 0, fill_status },
	{ "STOP", KVERBS_PERF_IOCTL_STOP, sizeof(struct kverbs_perf_stop), 0, fill_stop },
};

static const struct command run_command = {
	"RUN", KVERBS_PERF_IOCTL_RUN, sizeof(struct kverbs_perf_run), 0, fill_run
};

/* One field of a run set to a value that is refused: errno, attribute, limit. */
struct refusal {
	const char *what;
	size_t field;
	__u32 value;
	int error;
	__u32 attr;
	__u64 limit; /* 0: whatever it is */
};

#define FIELD(name)	offsetof(struct kverbs_perf_run, name)

static const struct refusal refusals[] = {
	{ "an unknown flag", FIELD(flags), 1U << 1, EOPNOTSUPP, KVERBS_PERF_ATTR_NONE, 0 },
	{ "an unknown operation", FIELD(op), KVERBS_PERF_NR_OPS, EOPNOTSUPP,
	  KVERBS_PERF_ATTR_OP, 0 },
	{ "an unknown transport", FIELD(transport), KVERBS_PERF_NR_TRANSPORTS, EOPNOTSUPP,
	  KVERBS_PERF_ATTR_TRANSPORT, 0 },
	{ "a write on UD", FIELD(transport), KVERBS_PERF_UD, EOPNOTSUPP,
	  KVERBS_PERF_ATTR_TRANSPORT, 0 },
	{ "an unknown engine", FIELD(cases[0]), KVERBS_PERF_NR_ENGINES, EOPNOTSUPP,
	  KVERBS_PERF_ATTR_CASES, 0 },
	{ "an unknown context", FIELD(cases[0]), KVERBS_PERF_NR_CONTEXTS << 8, EOPNOTSUPP,
	  KVERBS_PERF_ATTR_CASES, 0 },
	{ "an unknown CQ", FIELD(cases[0]), KVERBS_PERF_NR_CQS << 16, EOPNOTSUPP,
	  KVERBS_PERF_ATTR_CASES, 0 },
	{ "an unknown policy", FIELD(cases[0]), KVERBS_PERF_KVERBS | KVERBS_PERF_NR_POLICIES << 24,
	  EOPNOTSUPP, KVERBS_PERF_ATTR_CASES, 0 },
	{ "a policy of an engine that has none", FIELD(cases[0]),
	  KVERBS_PERF_CHAIN | KVERBS_PERF_EACH << 24, EOPNOTSUPP, KVERBS_PERF_ATTR_CASES, 0 },
	{ "no case", FIELD(nr_cases), 0, ERANGE, KVERBS_PERF_ATTR_CASES, 1 },
	{ "too many cases", FIELD(nr_cases), KVERBS_PERF_MAX_CASES + 1, ERANGE,
	  KVERBS_PERF_ATTR_CASES, KVERBS_PERF_MAX_CASES },
	{ "a depth of 0", FIELD(depth), 0, ERANGE, KVERBS_PERF_ATTR_DEPTH, 1 },
	{ "the greatest depth", FIELD(depth), UINT32_MAX, ERANGE, KVERBS_PERF_ATTR_DEPTH, 0 },
	{ "no queue", FIELD(queues), 0, ERANGE, KVERBS_PERF_ATTR_QUEUES, 1 },
	{ "the most queues", FIELD(queues), UINT32_MAX, ERANGE, KVERBS_PERF_ATTR_QUEUES, 0 },
	{ "no thread", FIELD(threads), 0, ERANGE, KVERBS_PERF_ATTR_THREADS, 1 },
	{ "more threads than places", FIELD(threads), 9, ERANGE, KVERBS_PERF_ATTR_THREADS, 8 },
	{ "a batch of 0", FIELD(batch), 0, ERANGE, KVERBS_PERF_ATTR_BATCH, 1 },
	{ "no round", FIELD(rounds), 0, ERANGE, KVERBS_PERF_ATTR_ROUNDS, 1 },
	{ "the most rounds", FIELD(rounds), UINT32_MAX, ERANGE, KVERBS_PERF_ATTR_ROUNDS, 0 },
	{ "a time-out of 0", FIELD(timeout_ms), 0, ERANGE, KVERBS_PERF_ATTR_TIMEOUT, 1 },
	{ "the longest time-out", FIELD(timeout_ms), UINT32_MAX, ERANGE,
	  KVERBS_PERF_ATTR_TIMEOUT, 0 },
	{ "nothing to do", FIELD(iterations), 0, ERANGE, KVERBS_PERF_ATTR_LENGTH, 1 },
	{ "a size of 0", FIELD(msg_size), 0, EMSGSIZE, KVERBS_PERF_ATTR_MSG_SIZE, 1 },
	{ "the greatest size", FIELD(msg_size), UINT32_MAX, EMSGSIZE,
	  KVERBS_PERF_ATTR_MSG_SIZE, 0 },
};

static void test_refusal(const struct refusal *refusal)
{
	struct kverbs_perf_run run = valid_run();

	settle();
	memcpy((char *)&run + refusal->field, &refusal->value, sizeof(refusal->value));
	ktap_errno(ioctl(fd, KVERBS_PERF_IOCTL_RUN, &run), refusal->error, refusal->what);
	ktap_check(run.bad_attr == refusal->attr, "%s: the attribute is named", refusal->what);
	if (refusal->error == ERANGE || refusal->error == EMSGSIZE)
		ktap_check(refusal->limit ? run.limit == refusal->limit : run.limit > 0,
			   "%s: the limit is told", refusal->what);
}

static void test_refusals(void)
{
	struct kverbs_perf_run run = valid_run();
	size_t i;

	for (i = 0; i < ARRAY_SIZE(refusals); i++)
		test_refusal(&refusals[i]);

	memcpy(run.device, "nosuch0", sizeof("nosuch0"));
	ktap_errno(ioctl(fd, KVERBS_PERF_IOCTL_RUN, &run), ENODEV, "a device that there is not");
	ktap_check(run.bad_attr == KVERBS_PERF_ATTR_DEVICE, "it is named");
	memset(run.device, 'x', sizeof(run.device));
	ktap_errno(ioctl(fd, KVERBS_PERF_IOCTL_RUN, &run), ENODEV, "a name without an end");

	run = valid_run();
	run.queues = 256;
	run.depth = 4096;
	run.msg_size = 1024;
	ktap_errno(ioctl(fd, KVERBS_PERF_IOCTL_RUN, &run), EFBIG, "too much memory");
	ktap_check(run.bad_attr == KVERBS_PERF_ATTR_MEMORY && run.limit,
		   "it says how much there is");

	run = valid_run();
	run.op = KVERBS_PERF_SEND;
	run.transport = KVERBS_PERF_UD;
	run.msg_size = 8192;
	ktap_errno(ioctl(fd, KVERBS_PERF_IOCTL_RUN, &run), EMSGSIZE, "more than the MTU on UD");
	ktap_check(run.bad_attr == KVERBS_PERF_ATTR_MSG_SIZE && run.limit && run.limit <= 4096,
		   "the MTU is told");
}

/* The state of the file's run, or -1. */
static int state(void)
{
	struct kverbs_perf_status status;

	fill_status(&status);
	return ioctl(fd, KVERBS_PERF_IOCTL_STATUS, &status) ? -1 : (int)status.state;
}

static void test_results(void)
{
	static struct kverbs_perf_result results[2];
	struct kverbs_perf_status status;

	fill_status(&status);
	status.buffer = (uintptr_t)results;
	status.buffer_size = sizeof(results[0]) - 1;
	ktap_errno(ioctl(fd, KVERBS_PERF_IOCTL_STATUS, &status), EMSGSIZE, "too small a buffer");
	ktap_check(status.nr_results == 1 && status.result_size == sizeof(results[0]),
		   "it says what it should hold");
	status.buffer_size = sizeof(results);
	ktap_errno(ioctl(fd, KVERBS_PERF_IOCTL_STATUS, &status), 0, "a buffer of the right size");
	ktap_check(results[0].requests == 8 && !results[0].lost, "it holds the result");
	status.buffer = 16;
	ktap_errno(ioctl(fd, KVERBS_PERF_IOCTL_STATUS, &status), EFAULT, "a bad address");
}

static void test_life(void)
{
	struct kverbs_perf_run run = valid_run();
	struct kverbs_perf_stop stop;
	int other;

	ktap_check(state() == KVERBS_PERF_IDLE, "a new file has no run");
	ktap_errno(ioctl(fd, KVERBS_PERF_IOCTL_RUN, &run), 0, "a run starts");
	ktap_check(run.device[0] && run.batch == 4, "it says on which device");
	settle();
	ktap_check(state() == KVERBS_PERF_DONE, "it ends");
	test_results();

	run = valid_run();
	run.iterations = 0;
	run.duration_ns = 60000000000ULL;
	ktap_errno(ioctl(fd, KVERBS_PERF_IOCTL_RUN, &run), 0, "a long run starts in its place");
	ktap_check(state() == KVERBS_PERF_RUNNING, "it goes on");
	run = valid_run();
	ktap_errno(ioctl(fd, KVERBS_PERF_IOCTL_RUN, &run), EBUSY, "another one in the same file");
	other = open(KVERBS_PERF_DEVICE_PATH, O_RDWR | O_CLOEXEC);
	ktap_errno(ioctl(other, KVERBS_PERF_IOCTL_RUN, &run), 0, "another one in another file");
	close(other);
	ktap_check(state() == KVERBS_PERF_RUNNING, "closing that one leaves this alone");
	fill_stop(&stop);
	ktap_errno(ioctl(fd, KVERBS_PERF_IOCTL_STOP, &stop), 0, "stop");
	settle();
	ktap_check(state() == KVERBS_PERF_FAILED, "the stopped run says that it was ended early");
}

/* Give up all capabilities. */
static void test_capability(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = {};
	struct kverbs_perf_run run = valid_run();

	if (syscall(SYS_capset, &header, none)) {
		ktap_check(false, "capset: %s", strerror(errno));
		return;
	}
	settle();
	ktap_errno(ioctl(fd, KVERBS_PERF_IOCTL_RUN, &run), EPERM, "RUN without CAP_NET_ADMIN");
	ktap_check(state() >= 0, "STATUS without it");
}

static void test_unknown(void *arg)
{
	fill_status(arg);
	ktap_errno(ioctl(fd, _IO(KVERBS_IOCTL_TYPE, KVERBS_PERF_CMD_STOP + 1), arg), ENOTTY,
		   "the command after the last");
	ktap_errno(ioctl(fd, _IO(KVERBS_IOCTL_TYPE, KVERBS_PERF_CMD_RUN - 1), arg), ENOTTY,
		   "the command before the first");
	ktap_errno(ioctl(fd, KVERBS_IOCTL_INFO, arg), ENOTTY, "a command of /dev/kverbs");
	ktap_errno(ioctl(fd, _IO(KVERBS_IOCTL_TYPE - 1, KVERBS_PERF_CMD_STATUS), arg), ENOTTY,
		   "a command of another type");
}

int main(void)
{
	unsigned char *page;
	size_t i;

	page_size = sysconf(_SC_PAGESIZE);
	fd = open(KVERBS_PERF_DEVICE_PATH, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return ktap_skip_all("no " KVERBS_PERF_DEVICE_PATH);
	page = page_before_nothing();

	test_life();
	test_sizes(&run_command, page);
	test_addresses(&run_command, page);
	for (i = 0; i < ARRAY_SIZE(commands); i++)
		test_form(&commands[i], page);
	test_refusals();
	test_unknown(page);
	test_capability();
	return ktap_finish();
}
