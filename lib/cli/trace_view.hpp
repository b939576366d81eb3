// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// What kverbs trace latency prints.
#pragma once

#include "output.hpp"

#include "../trace/latency.hpp"

#include <chrono>
#include <string>
#include <vector>

namespace kverbs::cli
{

// By what rows are told apart, and which of them are shown.
struct trace_choice {
	std::string device;
	std::string consumer;
	std::string opcode;
	std::vector<std::string> by; // keys of rows; all if it is empty
};

// The keys that --by takes.
const std::vector<std::string> &trace_keys();

// Those of @rows that are wanted, added up by the keys of the choice, the busiest
// first. A key that does not count is empty in them.
std::vector<trace::post_row> choose(std::vector<trace::post_row> rows, const trace_choice &choice);

// What was counted since @before, an earlier reading.
std::vector<trace::post_row> difference(std::vector<trace::post_row> rows,
					const std::vector<trace::post_row> &before);

void print_attachments(const trace::plan &plan, const std::vector<trace::attachment> &attached);
void print_posts(const std::vector<trace::post_row> &rows, const trace_choice &choice,
		 std::chrono::nanoseconds time);
void print_losses(const std::vector<trace::post_row> &rows, const trace::post_losses &losses);

json attachments_json(const trace::plan &plan, const std::vector<trace::attachment> &attached);
json posts_json(const std::vector<trace::post_row> &rows, const trace_choice &choice);
json losses_json(const trace::post_losses &losses);

} // namespace kverbs::cli
