// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// What is counted of posts.
#pragma once

#include "../../bpf/post_send.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <kverbs/histogram.hpp>

namespace kverbs::trace
{

// How many posts there were by their number of work requests, in the classes of
// kverbs_post_size().
using post_sizes = std::array<std::uint64_t, KVERBS_POST_SIZES>;

// Add what other posts sum up to.
void add(kverbs_post_sums &to, const kverbs_post_sums &from);

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

	// As far as it was asked for.
	histogram latency;       // of the calls whose return was seen
	post_sizes sizes;        // calls by their number of work requests
	kverbs_post_sums sums{}; // for a line through the calls' times

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

} // namespace kverbs::trace
