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
