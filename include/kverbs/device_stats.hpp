// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// What kverbs.ko counts: rows of counters for devices, completion queues and send
// queues, and their latency histograms.
//
//	auto stats = kverbs::device_stats::open();
//	for (const kverbs::row &row : stats.snapshot().rows)
//		std::cout << row.name << ' ' << row[kverbs::counter::post_calls] << '\n';
//
// A reader that looks often maps the rows instead: device_stats::map(). Errors are
// std::system_error; the errnos are those of the user ABI.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <kverbs/histogram.hpp>
#include <kverbs/record.hpp>

namespace kverbs
{

enum class row_type : std::uint8_t {
	device = 1, // its counters: what queues and CQs that are gone had counted
	cq,
	queue,
};

enum class row_state : std::uint8_t {
	live,
	failed,  // the QP is in an error state; everything is flushed
	stopped, // the owner stopped it; nothing more is accepted
};

enum class cq_mode : std::uint8_t {
	foreign,   // served by ib_core, not by kverbs
	interrupt, // armed, polled upon a completion event
	poll,      // polled by a thread, never armed
	hybrid,    // after each completion polled for a fixed time, then armed
	adaptive,  // polled or armed, as budgets of latency and CPU allow
};

enum class histogram_kind : std::uint32_t {
	post,     // a call of ib_post_send(), one sample a call
	complete, // from the post of a group to its retirement, one sample a group
};

// What is counted. The user ABI header tells what each means.
enum class counter : std::size_t {
	// by send queues: the post side
	post_calls,
	work_requests,
	signaled,
	inlined,
	bytes,
	noops,
	op_send,
	op_write,
	op_read,
	op_atomic,
	op_reg_mr,
	op_local_inv,
	// the retire side
	queue_cqes,
	completions,
	errors,
	flushed,
	cqe_stale,
	cqe_missing,
	// requests not accepted, by reason
	refused_full,
	refused_depth,
	refused_sge,
	refused_inline,
	refused_length,
	refused_opcode,
	refused_state,
	refused_device,
	refused_driver,
	// by completion queues
	polls,
	empty_polls,
	cqes,
	arms,
	arm_missed,
	wakeups,
	passes,
};

inline constexpr std::size_t counter_count = static_cast<std::size_t>(counter::passes) + 1;

// "post_calls" and so on.
std::string_view name(counter c);
std::string_view name(row_type type);
std::string_view name(row_state state);
std::string_view name(cq_mode mode);
std::string_view name(histogram_kind kind);

using counters = std::array<std::uint64_t, counter_count>;

// What a call of ib_post_send() takes, by a line through the latest of them.
struct post_cost {
	std::chrono::nanoseconds fixed{};                          // whatever is in it
	std::chrono::duration<std::uint32_t, std::pico> request{}; // more for each work request
};

// Identity and counters of one object.
struct row {
	row_type type{};
	row_state state{};
	cq_mode mode{};
	std::uint32_t id = 0;             // unique among the rows that exist
	std::uint32_t generation = 0;     // another one each time that the row is used again
	std::uint32_t device = 0;         // id of the row of the device
	std::optional<std::uint32_t> cq;  // id of the row of the kverbs CQ that serves the queue
	std::uint32_t number = 0;         // QP number, or completion vector of a CQ
	std::uint32_t depth = 0;          // work requests or CQEs that it holds
	std::uint64_t memory = 0;         // bytes of kernel memory
	std::uint64_t slot_memory = 0;    // bytes more that grow with the depth
	std::optional<std::uint32_t> cpu; // where the last event of a CQ arrived
	std::string name;                 // of the device, or of the consumer
	std::string driver;               // module of the driver of a device
	counters values{};
	std::optional<post_cost> cost; // of a queue or device; not if its posts are too much alike

	std::uint64_t operator[](counter c) const
	{
		return values[static_cast<std::size_t>(c)];
	}
};

// All rows at one moment: none is missing or counted twice in a device's total.
struct sample {
	std::chrono::steady_clock::time_point time;
	std::vector<row> rows;

	// The device's own counters and those of all its CQs and queues, added up.
	counters total(const row &device) const;

	// The row of the device called @name, or nullptr.
	const row *device(std::string_view name) const;
};

struct module_info {
	std::uint32_t abi_version = 0;
	std::uint32_t row_size = 0;
	std::uint32_t row_count = 0; // rows that the arena has, free ones included
	std::string version;
};

class mapped_stats;

// An open /dev/kverbs. Its functions may be called from several threads at once.
class device_stats
{
      public:
	// The default path, /dev/kverbs.
	static const char *default_path() noexcept;

	// ENOENT or ENXIO if the module is not loaded, EACCES without privilege.
	static device_stats open(const char *path = default_path());

	device_stats(device_stats &&other) noexcept;
	device_stats &operator=(device_stats &&other) noexcept;
	~device_stats();

	module_info info() const;

	// All rows that the caller's network namespace may see, by a system call.
	sample snapshot() const;

	// The histogram of @row; of a device or CQ, the sum over its queues. ENODEV if
	// the row has gone or was used again.
	histogram latency(const row &of, histogram_kind kind) const;

	// What @queue did last. ENODEV as above, ENOTTY of a module that has no records.
	record recorded(const row &queue) const;

	// The records of queues that failed and are gone, the oldest first.
	std::vector<record> kept() const;

	// Map the rows, to read them without a system call. EPERM outside the initial
	// network namespace.
	mapped_stats map() const;

      private:
	explicit device_stats(int fd) noexcept : fd_(fd)
	{
	}

	int fd_;

	friend class mapped_stats;
};

// The rows, mapped. One thread at a time.
class mapped_stats
{
      public:
	mapped_stats(mapped_stats &&other) noexcept;
	mapped_stats &operator=(mapped_stats &&other) noexcept;
	~mapped_stats();

	// All rows, without a system call, unless the arena grew, or rows come and go
	// so fast that no moment of rest is found.
	sample snapshot();

      private:
	friend class device_stats;
	mapped_stats(device_stats file, const module_info &info);

	bool try_snapshot(sample &to);
	void extend(std::size_t length);

	device_stats file_;
	std::byte *base_ = nullptr;
	std::size_t length_ = 0;
	std::size_t row_size_ = 0;
};

} // namespace kverbs
