// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// kverbs trace latency: how long posts take.

#include "trace_view.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace kverbs::cli
{
namespace
{

using trace::post_row;

std::vector<std::string> cells(const post_row &r, double seconds)
{
	std::vector<std::string> out = load_cells(r, seconds);

	for (double percent : {50.0, 99.0, 99.9})
		out.push_back(format(std::min(r.latency.percentile(percent), r.longest)));
	out.push_back(format(r.longest));
	return out;
}

void print_details(const std::vector<post_row> &rows, const trace_choice &choice)
{
	print_each(rows, choice, [](const std::string &title, const post_row &r) {
		print_histogram(title, r.latency);
	});
}

void add_json(const post_row &r, json &entry)
{
	entry["sum_ns"] = r.time.count();
	entry["max_ns"] = r.longest.count();
	entry["latency"] = to_json(r.latency);
}

} // namespace

const trace_mode trace_latency = {
	trace::question::latency,
	"Show how long the drivers' post_send takes, by who posts what",
	"",
	load_headings({"P50", "P99", "P99.9", "MAX"}),
	cells,
	print_details,
	add_json,
};

} // namespace kverbs::cli
