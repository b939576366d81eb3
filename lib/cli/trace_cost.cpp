// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// kverbs trace cost: what a post costs, and what each of its work requests adds.

#include "../trace/cost.hpp"
#include "trace_view.hpp"

#include <fmt/format.h>

namespace kverbs::cli
{
namespace
{

using trace::cost_line;
using trace::post_row;

std::string nanoseconds(double ns)
{
	return fmt::format("{:.{}f} ns", ns, ns < 100 && ns > -100 ? 1 : 0);
}

std::vector<std::string> cells(const post_row &r, double)
{
	cost_line line = trace::fit_line(r.sums);
	std::vector<std::string> out = {fmt::format("{}", r.posts),
					r.work_requests ? format_ratio(r.work_requests, r.posts)
							: "-",
					fmt::format("{}", r.sums.nr)};

	if (!line.why_not.empty()) {
		out.resize(out.size() + 5, "-");
		return out;
	}
	for (double ns :
	     {line.fixed_ns, line.fixed_error_ns, line.request_ns, line.request_error_ns})
		out.push_back(nanoseconds(ns));
	out.push_back(fmt::format("{:.3f}", line.r2));
	return out;
}

// Why a row has no line, and what is in none.
void print_details(const std::vector<post_row> &rows, const trace_choice &choice)
{
	fmt::print("\n");
	for (const post_row &r : rows) {
		std::string why_not = trace::fit_line(r.sums).why_not;

		if (!r.work_requests)
			why_not = "the kernel does not see the work requests";
		if (!why_not.empty())
			fmt::print("{}: no line: {}\n", title_of(r, choice), why_not);
		if (r.work_requests && r.sums.left_out)
			fmt::print("{}: {} posts left out: they took more than eight times what "
				   "others did, or had more than {} work requests\n",
				   title_of(r, choice), r.sums.left_out, KVERBS_FIT_WRS_MAX);
	}
}

void add_json(const post_row &r, json &entry)
{
	cost_line line = trace::fit_line(r.sums);
	json cost = {{"samples", r.sums.nr},  {"left_out", r.sums.left_out},
		     {"fixed_ns", nullptr},   {"fixed_error_ns", nullptr},
		     {"request_ns", nullptr}, {"request_error_ns", nullptr},
		     {"r2", nullptr},         {"why_not", nullptr}};

	if (line.why_not.empty()) {
		cost["fixed_ns"] = line.fixed_ns;
		cost["fixed_error_ns"] = line.fixed_error_ns;
		cost["request_ns"] = line.request_ns;
		cost["request_error_ns"] = line.request_error_ns;
		cost["r2"] = line.r2;
	} else {
		cost["why_not"] = line.why_not;
	}
	entry["cost"] = std::move(cost);
}

} // namespace

const trace_mode trace_cost = {
	trace::question::cost,
	"Show what a post costs, and what each of its work requests adds",
	"A line through the times of posts, by least squares; +/- is the standard error of the "
	"part before it,\nR2 the share of the times' variance that the line explains.\n",
	{"POSTS", "WR/POST", "SAMPLES", "FIXED", "+/-", "PER WR", "+/-", "R2"},
	cells,
	print_details,
	add_json,
};

} // namespace kverbs::cli
