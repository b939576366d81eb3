// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// The programs of bpf/post_send.bpf.c on one function.
#pragma once

#include "function.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <kverbs/histogram.hpp>

struct bpf_link;
struct kverbs_post_row;
struct post_send_bpf;

namespace kverbs::trace
{

enum class method {
	fentry, // a trampoline at the function's entry
	kprobe, // a breakpoint there
};

std::string_view name(method m);

// What was posted under one key.
struct post_row {
	std::string device;
	std::string consumer;  // module, or program of a user's process
	std::string opcode;    // of the first work request of each call
	bool user = false;     // the QP is a process's
	std::uint32_t pid = 0; // of that process

	std::uint64_t posts = 0; // calls
	std::uint64_t work_requests = 0;
	std::uint64_t signaled = 0;
	std::uint64_t inlined = 0;
	std::uint64_t bytes = 0;
	std::uint64_t truncated = 0; // calls that were too long to be looked at as a whole
	std::chrono::nanoseconds time{};
	std::chrono::nanoseconds longest{};
	histogram latency; // of the calls whose return was seen

	// Add what another row counts.
	post_row &operator+=(const post_row &other);

	// What was counted since @before, an earlier reading of the same row. The longest
	// is then as good as the histogram tells.
	post_row since(const post_row &before) const;
};

// What the programs know that they did not see.
struct post_losses {
	std::uint64_t calls = 0;     // calls that no program saw
	std::uint64_t returns = 0;   // calls that were counted but not timed
	std::uint64_t unmatched = 0; // returns of calls that no program saw
	std::uint64_t keys = 0;      // calls counted in a row of their own since the table is full

	post_losses &operator+=(const post_losses &other);
};

// The names of opcodes that rows can have.
const std::vector<std::string> &opcode_names();

class post_send_probe
{
      public:
	// Attach to @f; std::system_error if that cannot be done.
	post_send_probe(const function &f, method m);
	~post_send_probe();
	post_send_probe(post_send_probe &&) noexcept;
	post_send_probe &operator=(post_send_probe &&) noexcept;

	// No call is counted any more; those under way may still return.
	void stop();

	std::vector<post_row> rows() const;

	// Exact after stop(): before it, calls under way count as returns not seen.
	post_losses losses() const;

      private:
	struct deleter {
		void operator()(post_send_bpf *s) const;
		void operator()(bpf_link *l) const;
	};
	using link = std::unique_ptr<bpf_link, deleter>;

	void configure();
	void attach(const function &f);
	template <typename F> std::vector<kverbs_post_row> read(F &&other) const;
	post_row describe(std::uint32_t index, const kverbs_post_row &from) const;
	std::uint64_t recursion_misses() const;

	std::unique_ptr<post_send_bpf, deleter> programs_;
	link exit_, entry_, pd_freed_, freed_, renamed_;
	method method_;
	std::uint32_t cpus_ = 0;
};

} // namespace kverbs::trace
