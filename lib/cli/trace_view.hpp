// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// What all modes of kverbs trace print.
#pragma once

#include "output.hpp"

#include "../trace/post_trace.hpp"

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

// A question that kverbs trace answers: a subcommand.
struct trace_mode {
	trace::question question;
	const char *help;
	const char *footer;
	std::vector<std::string> headings; // of columns, after those of the keys
	std::vector<std::string> (*cells)(const trace::post_row &r, double seconds);
	void (*print_details)(const std::vector<trace::post_row> &rows, const trace_choice &choice);
	void (*add_json)(const trace::post_row &r, json &entry);
};

extern const trace_mode trace_latency;
extern const trace_mode trace_batch;
extern const trace_mode trace_cost;

// The keys that --by takes.
const std::vector<std::string> &trace_keys();

// Whether the choice has it.
bool wanted(const trace::post_row &r, const trace_choice &choice);

// Those of @rows that are wanted, added up by the keys of the choice, the busiest
// first. A key that does not count is empty in them.
std::vector<trace::post_row> choose(std::vector<trace::post_row> rows, const trace_choice &choice);

// What was counted since @before, an earlier reading.
std::vector<trace::post_row> difference(std::vector<trace::post_row> rows,
					const std::vector<trace::post_row> &before);

// Columns that several modes have: what goes through, and then their own.
std::vector<std::string> load_headings(std::vector<std::string> more);
std::vector<std::string> load_cells(const trace::post_row &r, double seconds);

// "rxe0, nvme_rdma, send": what @r is about.
std::string title_of(const trace::post_row &r, const trace_choice &choice);

// @print each of @rows, the busiest at least.
void print_each(const std::vector<trace::post_row> &rows, const trace_choice &choice,
		void (*print)(const std::string &title, const trace::post_row &r));

void print_attachments(const trace::plan &plan, const std::vector<trace::attachment> &attached);
void print_posts(const std::vector<trace::post_row> &rows, const trace_mode &mode,
		 const trace_choice &choice, std::chrono::nanoseconds time);
void print_losses(const std::vector<trace::post_row> &rows, const trace::post_losses &losses);

json attachments_json(const trace::plan &plan, const std::vector<trace::attachment> &attached);
json posts_json(const std::vector<trace::post_row> &rows, const trace_mode &mode,
		const trace_choice &choice);

// What the engine would have made of the posts, which has been printed unless @as_json.
json show_what_if(trace::post_trace &t, const trace_choice &choice, bool as_json);

json losses_json(const trace::post_losses &losses);

} // namespace kverbs::cli
