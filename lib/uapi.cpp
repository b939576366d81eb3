// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Calls the ioctls and turns what they give into the library's types. A module of
// another version may have longer rows with more counters, or fewer counters: what
// both sides know is used.

#include "uapi.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <sys/ioctl.h>
#include <system_error>

#include <uapi/rdma/kverbs.h>

namespace kverbs::uapi
{
namespace
{

static_assert(static_cast<int>(row_type::device) == KVERBS_ROW_DEVICE);
static_assert(static_cast<int>(row_type::queue) == KVERBS_ROW_QUEUE);
static_assert(static_cast<int>(row_state::stopped) == KVERBS_STATE_STOPPED);
static_assert(static_cast<int>(cq_mode::adaptive) == KVERBS_CQ_ADAPTIVE);
static_assert(static_cast<int>(histogram_kind::complete) == KVERBS_HIST_COMPLETE);
static_assert(static_cast<int>(cause_kind::device_gone) == KVERBS_CAUSE_DEVICE_GONE);
static_assert(static_cast<int>(cause_kind::in_doubt) == KVERBS_CAUSE_IN_DOUBT);
static_assert(static_cast<int>(event_type::cqe) == KVERBS_RECORD_CQE);
static_assert(static_cast<int>(flush_reason::worker) == KVERBS_FLUSH_WORKER);
static_assert(static_cast<int>(counter::noops) == KVERBS_NOOPS);
static_assert(static_cast<int>(counter::cqe_missing) == KVERBS_CQE_MISSING);
static_assert(static_cast<int>(counter::refused_driver) == KVERBS_REFUSED_DRIVER);
static_assert(counter_count == KVERBS_NR_COUNTERS, "counter and its names lack one");

[[noreturn]] void fail(const char *what)
{
	throw std::system_error(errno, std::generic_category(), what);
}

const kverbs_row *as_row(const std::byte *at)
{
	return reinterpret_cast<const kverbs_row *>(at);
}

template <typename T> T load(const T &from)
{
	return __atomic_load_n(&from, __ATOMIC_RELAXED);
}

// One attempt; false if @buffer is too small, then @arg tells the needed size.
bool try_snapshot(int fd, kverbs_snapshot &arg, std::byte *buffer, std::size_t size)
{
	arg = {};
	arg.size = sizeof(arg);
	arg.buffer = reinterpret_cast<std::uintptr_t>(buffer);
	arg.buffer_size = size;
	if (ioctl(fd, KVERBS_IOCTL_SNAPSHOT, &arg) == 0)
		return true;
	if (errno != EMSGSIZE)
		fail("KVERBS_IOCTL_SNAPSHOT");
	return false;
}

std::chrono::steady_clock::time_point moment(__u64 ns)
{
	return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(ns));
}

std::optional<std::chrono::nanoseconds> known_time(__u64 ns)
{
	return ns ? std::optional(std::chrono::nanoseconds(ns)) : std::nullopt;
}

std::optional<std::uint8_t> known(__u8 value)
{
	return value == KVERBS_UNKNOWN ? std::nullopt : std::optional(value);
}

cause cause_from(const kverbs_cause &from)
{
	cause to;

	to.kind = static_cast<cause_kind>(from.kind);
	to.time = moment(from.time_ns);
	to.age = known_time(from.age_ns);
	to.oldest = known_time(from.oldest_ns);
	to.bytes = from.bytes;
	to.position = from.position;
	to.in_flight = from.in_flight;
	to.receives = from.receives;
	to.vendor_err = from.vendor_err;
	to.error = from.error;
	to.status = from.status;
	to.opcode = known(from.opcode);
	to.qp_state = known(from.qp_state);
	return to;
}

record_event event_from(const kverbs_record_event &from)
{
	record_event to;

	to.type = static_cast<event_type>(from.type);
	to.time = moment(from.time_ns);
	to.duration = std::chrono::nanoseconds(from.ns);
	to.bytes = from.bytes;
	to.position = from.position;
	to.count = from.nr_wrs;
	to.signaled = from.signaled;
	to.vendor_err = from.vendor_err;
	to.result = from.result;
	to.status = from.status;
	to.opcode = from.opcode;
	to.reason = static_cast<flush_reason>(from.reason);
	return to;
}

record record_from(const kverbs_record &from)
{
	record to;

	to.serial = from.serial;
	to.time = moment(from.time_ns);
	if (from.gone_ns)
		to.gone = moment(from.gone_ns);
	to.number = from.number;
	to.depth = from.depth;
	to.state = static_cast<row_state>(from.state);
	to.first = cause_from(from.cause);
	to.later = cause_from(from.later);
	to.device.assign(from.device, strnlen(from.device, sizeof(from.device)));
	to.name.assign(from.name, strnlen(from.name, sizeof(from.name)));
	return to;
}

// Modules before ABI version 3 have no such fields, or zeros.
std::optional<post_cost> post_cost_of(const kverbs_row &row, std::size_t size)
{
	if (size < sizeof(row))
		return std::nullopt;
	post_cost cost = {std::chrono::nanoseconds(load(row.post_fixed_ns)),
			  std::chrono::duration<std::uint32_t, std::pico>(load(row.post_wr_ps))};

	if (!cost.fixed.count() && !cost.request.count())
		return std::nullopt;
	return cost;
}

// @arg names the record. Events are of the size that the module says.
record read_record(int fd, kverbs_record &arg)
{
	const kverbs_record wanted = arg;
	std::vector<std::byte> buffer(128 * sizeof(kverbs_record_event));
	kverbs_record_event event;
	record result;

	for (;;) {
		arg.buffer = reinterpret_cast<std::uintptr_t>(buffer.data());
		arg.buffer_size = buffer.size();
		if (ioctl(fd, KVERBS_IOCTL_RECORD, &arg) == 0)
			break;
		if (errno != EMSGSIZE)
			fail("KVERBS_IOCTL_RECORD");
		buffer.resize(arg.buffer_size + std::size_t{8} * arg.event_size);
		arg = wanted;
	}
	result = record_from(arg);
	for (std::size_t i = 0; i < arg.nr_events; i++) {
		event = {};
		std::memcpy(&event, buffer.data() + i * arg.event_size,
			    std::min<std::size_t>(sizeof(event), arg.event_size));
		result.events.push_back(event_from(event));
	}
	return result;
}

} // namespace

const char *device_path() noexcept
{
	return KVERBS_DEVICE_PATH;
}

module_info info(int fd)
{
	kverbs_info arg = {};
	module_info info;

	arg.size = sizeof(arg);
	if (ioctl(fd, KVERBS_IOCTL_INFO, &arg))
		fail("KVERBS_IOCTL_INFO");
	info.abi_version = arg.abi_version;
	info.row_size = arg.row_size;
	info.row_count = arg.nr_rows;
	info.version.assign(arg.version, strnlen(arg.version, sizeof(arg.version)));
	return info;
}

sample snapshot(int fd)
{
	// Enough for most hosts; more is asked for when it is needed, with some to spare
	// since rows may have come meanwhile.
	std::size_t size = 64 * sizeof(kverbs_row);
	std::unique_ptr<std::byte[]> buffer;
	kverbs_snapshot arg;
	sample result;

	for (;;) {
		buffer = std::make_unique_for_overwrite<std::byte[]>(size);
		if (try_snapshot(fd, arg, buffer.get(), size))
			break;
		size = arg.buffer_size + arg.buffer_size / 8 + std::size_t{8} * arg.row_size;
	}

	result.time = std::chrono::steady_clock::time_point(std::chrono::nanoseconds(arg.time_ns));
	result.rows.reserve(arg.nr_rows);
	for (std::size_t i = 0; i < arg.nr_rows; i++)
		if (auto row = read_row(buffer.get() + i * arg.row_size, arg.row_size))
			result.rows.push_back(std::move(*row));
	return result;
}

histogram latency(int fd, const row &of, histogram_kind kind)
{
	kverbs_histogram arg = {};
	histogram result;

	arg.size = sizeof(arg);
	arg.row = of.id;
	arg.generation = of.generation;
	arg.kind = static_cast<__u32>(kind);
	arg.nr_buckets = result.buckets().size();
	arg.buffer = reinterpret_cast<std::uintptr_t>(result.buckets().data());
	if (ioctl(fd, KVERBS_IOCTL_HISTOGRAM, &arg))
		fail("KVERBS_IOCTL_HISTOGRAM");
	return result;
}

record recorded(int fd, const row &of)
{
	kverbs_record arg = {};

	arg.size = sizeof(arg);
	arg.row = of.id;
	arg.generation = of.generation;
	return read_record(fd, arg);
}

std::optional<record> kept(int fd, std::uint64_t serial)
{
	kverbs_record arg = {};

	arg.size = sizeof(arg);
	arg.serial = serial;
	record result = read_record(fd, arg);
	return result.serial ? std::optional(std::move(result)) : std::nullopt;
}

std::optional<row> read_row(const std::byte *at, std::size_t size)
{
	const kverbs_row *live = as_row(at);
	std::size_t present;
	kverbs_row from;
	row to;

	// Identity is read once: in a mapped row it may change at any moment.
	std::memcpy(&from, at, offsetof(kverbs_row, counter));
	if (from.type < KVERBS_ROW_DEVICE || from.type > KVERBS_ROW_QUEUE)
		return std::nullopt;
	to.type = static_cast<row_type>(from.type);
	to.state = static_cast<row_state>(from.state);
	to.mode = static_cast<cq_mode>(from.mode);
	to.id = from.id;
	to.generation = from.generation;
	to.device = from.device;
	if (from.type == KVERBS_ROW_QUEUE && from.cq != UINT32_MAX)
		to.cq = from.cq;
	to.number = from.number;
	to.depth = from.depth;
	to.memory = from.memory;
	to.slot_memory = from.slot_memory;
	if (load(live->cpu) != UINT32_MAX)
		to.cpu = load(live->cpu);
	to.name.assign(from.name, strnlen(from.name, sizeof(from.name)));
	to.driver.assign(from.driver, strnlen(from.driver, sizeof(from.driver)));
	present = (size - offsetof(kverbs_row, counter)) / sizeof(from.counter[0]);
	for (std::size_t i = 0; i < std::min(present, counter_count); i++)
		to.values[i] = load(live->counter[i]);
	to.cost = post_cost_of(*live, size);
	return to;
}

std::uint32_t generation_acquire(const std::byte *at)
{
	return __atomic_load_n(&as_row(at)->generation, __ATOMIC_ACQUIRE);
}

std::uint32_t generation_relaxed(const std::byte *at)
{
	return load(as_row(at)->generation);
}

std::uint32_t arena_rows(const std::byte *at)
{
	return load(as_row(at)->depth);
}

} // namespace kverbs::uapi
