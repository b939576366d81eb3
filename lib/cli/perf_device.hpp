// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// The kernel-mode bench, /dev/kverbs_perf: what can be asked of it, and what it
// answers, without the structures of its ABI.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <kverbs/histogram.hpp>

namespace kverbs::cli
{

// In the order of the ABI's constants; names() has how they are written.
enum class perf_op { write, read, send, rpc };
enum class perf_transport { rc, ud };
enum class perf_engine { raw, chain, kverbs };
enum class perf_context { process, bh, completion };
enum class perf_cq { ib, interrupt, poll, hybrid, adaptive };
enum class perf_policy { dynamic, each, four };

std::string_view name(perf_op op);
std::string_view name(perf_transport transport);
std::string_view name(perf_engine engine);
std::string_view name(perf_context context);
std::string_view name(perf_cq cq);
std::string_view name(perf_policy policy);

// Who posts, where, with which completion queue; what the kverbs engine posts together.
struct perf_case {
	perf_engine engine;
	perf_context context;
	perf_cq cq;
	perf_policy policy;
};

struct perf_plan {
	std::string device; // empty: the first
	perf_op op = perf_op::write;
	perf_transport transport = perf_transport::rc;
	std::uint32_t size = 64;
	std::uint32_t depth = 128;
	std::uint32_t queues = 1;
	std::uint32_t threads = 1;
	std::uint32_t batch = 16;
	std::uint32_t rounds = 4;
	std::uint64_t iterations = 0;              // of each case, or
	std::chrono::nanoseconds duration{0};      // for each case
	std::chrono::milliseconds timeout{10'000}; // without progress
	bool verify = false;
	std::vector<perf_case> cases;
};

// What one case did in one round, or in several of them together.
struct perf_figures {
	std::uint64_t requests = 0;
	std::chrono::nanoseconds elapsed{0};
	std::chrono::nanoseconds call{0};       // in the post call
	std::chrono::nanoseconds post{0};       // until bottom halves were on again
	std::chrono::nanoseconds batch_call{0}; // the least for a whole batch
	std::uint64_t post_calls = 0;
	std::uint64_t signaled = 0;
	std::uint64_t cqes = 0;
	std::optional<std::uint64_t> wakeups;
	std::optional<std::uint64_t> passes;
	std::uint64_t received = 0;
	std::uint64_t lost = 0;
	std::uint64_t doubled = 0;
	std::uint64_t reordered = 0;
	std::uint64_t failed = 0;
	std::uint64_t flushed = 0;
	std::uint64_t corrupt = 0;
	std::uint64_t least = 0; // of a thread on a queue, in each round
	std::uint64_t most = 0;
	histogram latency;

	perf_figures &operator+=(const perf_figures &other);
};

struct perf_result {
	std::size_t which; // of the plan's cases
	std::uint32_t round;
	perf_figures figures;
};

struct perf_progress {
	bool running = false;
	int error = 0; // an errno, once it does not run any more
	std::string message;
	std::size_t which = 0;
	std::uint32_t round = 0;
	std::uint64_t done = 0;
	std::uint64_t total = 0;
	std::chrono::nanoseconds elapsed{0};
};

class perf_device
{
      public:
	// Throws cli::error if the module is not loaded or not for this caller.
	perf_device();
	~perf_device();
	perf_device(const perf_device &) = delete;
	perf_device &operator=(const perf_device &) = delete;

	// Starts a run, and tells in @plan what became of it: the device, the batch.
	// Throws cli::error, with one line on what to change, if it is refused.
	void start(perf_plan &plan);

	// Whether the device that runs is software.
	bool software() const
	{
		return software_;
	}

	// What the run is about now, and what it has found so far.
	perf_progress progress() const;
	std::vector<perf_result> results() const;

	// Ends the run; what is in flight completes.
	void stop();

	// Readable once the run has ended.
	int fd() const
	{
		return fd_;
	}

      private:
	int fd_;
	bool software_ = false;
};

} // namespace kverbs::cli
