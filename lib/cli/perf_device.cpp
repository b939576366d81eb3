// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// The only file of the command that knows the ABI of the bench.

#include "perf_device.hpp"
#include "errors.hpp"
#include "perf_refusal.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <sys/ioctl.h>
#include <system_error>
#include <unistd.h>

namespace kverbs::cli
{
namespace
{

static_assert(KVERBS_PERF_BUCKETS == histogram::bucket_count);

constexpr std::array op_names = {"write", "read", "send", "rpc"};
constexpr std::array transport_names = {"rc", "ud"};
constexpr std::array engine_names = {"raw", "chain", "kverbs"};
constexpr std::array context_names = {"process", "bh", "completion"};
constexpr std::array cq_names = {"ib", "interrupt", "poll", "hybrid", "adaptive"};
constexpr std::array policy_names = {"dynamic", "each", "four"};

static_assert(op_names.size() == KVERBS_PERF_NR_OPS);
static_assert(transport_names.size() == KVERBS_PERF_NR_TRANSPORTS);
static_assert(engine_names.size() == KVERBS_PERF_NR_ENGINES);
static_assert(context_names.size() == KVERBS_PERF_NR_CONTEXTS);
static_assert(cq_names.size() == KVERBS_PERF_NR_CQS);
static_assert(policy_names.size() == KVERBS_PERF_NR_POLICIES);

template <typename T, std::size_t N>
std::string_view name_of(T value, const std::array<const char *, N> &names)
{
	return names.at(static_cast<std::size_t>(value));
}

// Structures start with their size.
template <typename T> T sized()
{
	T value{};

	value.size = sizeof(value);
	return value;
}

kverbs_perf_run to_uapi(const perf_plan &plan)
{
	auto run = sized<kverbs_perf_run>();

	plan.device.copy(run.device, sizeof(run.device) - 1);
	run.flags = plan.verify ? KVERBS_PERF_VERIFY : 0;
	run.op = static_cast<__u32>(plan.op);
	run.transport = static_cast<__u32>(plan.transport);
	run.msg_size = plan.size;
	run.depth = plan.depth;
	run.queues = plan.queues;
	run.threads = plan.threads;
	run.batch = plan.batch;
	run.rounds = plan.rounds;
	run.timeout_ms = static_cast<__u32>(plan.timeout.count());
	run.iterations = plan.iterations;
	run.duration_ns = static_cast<__u64>(plan.duration.count());
	run.nr_cases = static_cast<__u32>(plan.cases.size());
	for (std::size_t i = 0; i < plan.cases.size() && i < KVERBS_PERF_MAX_CASES; i++) {
		run.cases[i].engine = static_cast<__u8>(plan.cases[i].engine);
		run.cases[i].context = static_cast<__u8>(plan.cases[i].context);
		run.cases[i].cq = static_cast<__u8>(plan.cases[i].cq);
		run.cases[i].policy = static_cast<__u8>(plan.cases[i].policy);
	}
	return run;
}

std::optional<std::uint64_t> known(__u64 value)
{
	if (value == KVERBS_PERF_UNKNOWN)
		return std::nullopt;
	return value;
}

perf_figures from_uapi(const kverbs_perf_result &from)
{
	perf_figures to;

	to.requests = from.requests;
	to.elapsed = std::chrono::nanoseconds(from.elapsed_ns);
	to.call = std::chrono::nanoseconds(from.call_ns);
	to.post = std::chrono::nanoseconds(from.post_ns);
	to.batch_call = std::chrono::nanoseconds(from.call_min_ns);
	to.post_calls = from.post_calls;
	to.signaled = from.signaled;
	to.cqes = from.cqes;
	to.wakeups = known(from.wakeups);
	to.passes = known(from.passes);
	to.received = from.received;
	to.lost = from.lost;
	to.doubled = from.doubled;
	to.reordered = from.reordered;
	to.failed = from.failed;
	to.flushed = from.flushed;
	to.corrupt = from.corrupt;
	to.least = from.least;
	to.most = from.most;
	std::copy(std::begin(from.latency), std::end(from.latency), to.latency.buckets().begin());
	return to;
}

std::optional<std::uint64_t> sum(std::optional<std::uint64_t> a, std::optional<std::uint64_t> b)
{
	return a && b ? std::optional(*a + *b) : std::nullopt;
}

// Those that the host's CPUs do the work of, a simulated one included.
bool is_software(__u32 driver)
{
	return driver == RDMA_DRIVER_RXE || driver == RDMA_DRIVER_SIW ||
	       driver == RDMA_DRIVER_UNKNOWN;
}

} // namespace

std::string_view name(perf_op op)
{
	return name_of(op, op_names);
}

std::string_view name(perf_transport transport)
{
	return name_of(transport, transport_names);
}

std::string_view name(perf_engine engine)
{
	return name_of(engine, engine_names);
}

std::string_view name(perf_context context)
{
	return name_of(context, context_names);
}

std::string_view name(perf_cq cq)
{
	return name_of(cq, cq_names);
}

std::string_view name(perf_policy policy)
{
	return name_of(policy, policy_names);
}

perf_figures &perf_figures::operator+=(const perf_figures &other)
{
	batch_call = requests ? std::min(batch_call, other.batch_call) : other.batch_call;
	wakeups = requests ? sum(wakeups, other.wakeups) : other.wakeups;
	passes = requests ? sum(passes, other.passes) : other.passes;
	requests += other.requests;
	elapsed += other.elapsed;
	call += other.call;
	post += other.post;
	post_calls += other.post_calls;
	signaled += other.signaled;
	cqes += other.cqes;
	received += other.received;
	lost += other.lost;
	doubled += other.doubled;
	reordered += other.reordered;
	failed += other.failed;
	flushed += other.flushed;
	corrupt += other.corrupt;
	least += other.least;
	most += other.most;
	latency += other.latency;
	return *this;
}

perf_device::perf_device() : fd_(::open(KVERBS_PERF_DEVICE_PATH, O_RDWR | O_CLOEXEC))
{
	if (fd_ < 0)
		throw open_refusal(errno);
}

perf_device::~perf_device()
{
	::close(fd_);
}

void perf_device::start(perf_plan &plan)
{
	kverbs_perf_run run = to_uapi(plan);

	if (::ioctl(fd_, KVERBS_PERF_IOCTL_RUN, &run))
		throw run_refusal(errno, plan, run);
	plan.device = run.device;
	plan.batch = run.batch;
	software_ = is_software(run.driver);
}

perf_progress perf_device::progress() const
{
	auto status = sized<kverbs_perf_status>();
	perf_progress progress;

	if (::ioctl(fd_, KVERBS_PERF_IOCTL_STATUS, &status))
		throw std::system_error(errno, std::generic_category(), KVERBS_PERF_DEVICE_PATH);
	progress.running = status.state == KVERBS_PERF_RUNNING;
	progress.error = -status.error;
	progress.message = status.message;
	progress.which = status.case_index;
	progress.round = status.round;
	progress.done = status.done;
	progress.total = status.total;
	progress.elapsed = std::chrono::nanoseconds(status.elapsed_ns);
	return progress;
}

std::vector<perf_result> perf_device::results() const
{
	std::vector<kverbs_perf_result> rows;
	std::vector<perf_result> results;
	kverbs_perf_status status;
	int ret;

	do {
		status = sized<kverbs_perf_status>();
		status.buffer = reinterpret_cast<std::uintptr_t>(rows.data());
		status.buffer_size = rows.size() * sizeof(rows[0]);
		ret = ::ioctl(fd_, KVERBS_PERF_IOCTL_STATUS, &status);
		if (ret && errno != EMSGSIZE)
			throw std::system_error(errno, std::generic_category(),
						KVERBS_PERF_DEVICE_PATH);
		if (rows.size() >= status.nr_results)
			break;
		rows.resize(status.nr_results);
	} while (true);
	for (std::size_t i = 0; i < status.nr_results; i++)
		results.push_back({rows[i].case_index, rows[i].round, from_uapi(rows[i])});
	return results;
}

void perf_device::stop()
{
	auto stop = sized<kverbs_perf_stop>();

	if (::ioctl(fd_, KVERBS_PERF_IOCTL_STOP, &stop))
		throw std::system_error(errno, std::generic_category(), KVERBS_PERF_DEVICE_PATH);
}

} // namespace kverbs::cli
