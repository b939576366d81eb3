// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// kverbs trace batch: how many work requests share a post.

#include "trace_view.hpp"

#include <fmt/format.h>
#include <numeric>

namespace kverbs::cli
{
namespace
{

using trace::post_row;
using trace::post_sizes;

constexpr std::size_t last_size = KVERBS_POST_SIZES - 1;

std::uint64_t total(const post_sizes &sizes)
{
	return std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
}

// The number of work requests that @percent of the posts do not exceed, or where the
// class of posts begins in which it lies.
std::uint64_t percentile(const post_sizes &sizes, std::uint64_t percent)
{
	std::uint64_t all = total(sizes), seen = 0;

	for (std::uint32_t i = 0; i < sizes.size(); i++) {
		seen += sizes[i];
		if (sizes[i] && seen * 100 >= all * percent)
			return kverbs_post_size_low(i);
	}
	return 0;
}

std::uint64_t most(const post_sizes &sizes)
{
	return percentile(sizes, 100);
}

std::vector<std::string> cells(const post_row &r, double seconds)
{
	std::vector<std::string> out = load_cells(r, seconds);

	for (std::uint64_t n : {percentile(r.sizes, 50), percentile(r.sizes, 99), most(r.sizes)})
		out.push_back(n ? fmt::format("{}", n) : "-");
	return out;
}

// "5", "64 .. 71", "1024 and more"
std::string label(std::uint32_t size)
{
	std::uint64_t low = kverbs_post_size_low(size);

	if (size == last_size)
		return fmt::format("{} and more", low);
	std::uint64_t high = kverbs_post_size_low(size + 1) - 1;
	return high == low ? fmt::format("{}", low) : fmt::format("{} .. {}", low, high);
}

void print_sizes(const std::string &title, const post_row &r)
{
	std::vector<bar> bars;

	if (!total(r.sizes)) {
		fmt::print("{}: the kernel does not see the work requests\n", strong(title));
		return;
	}
	for (std::uint32_t i = 0; i < r.sizes.size(); i++)
		if (r.sizes[i])
			bars.push_back({fmt::format("{:>13}", label(i)), r.sizes[i]});
	fmt::print("{}: {} posts by their number of work requests\n", strong(title),
		   total(r.sizes));
	print_bars(bars);
}

void print_details(const std::vector<post_row> &rows, const trace_choice &choice)
{
	print_each(rows, choice, print_sizes);
}

void add_json(const post_row &r, json &entry)
{
	json sizes = json::array();

	for (std::uint32_t i = 0; i < r.sizes.size(); i++) {
		json high = nullptr;

		if (!r.sizes[i])
			continue;
		if (i < last_size)
			high = kverbs_post_size_low(i + 1) - 1;
		sizes.push_back(
			{{"low", kverbs_post_size_low(i)}, {"high", high}, {"posts", r.sizes[i]}});
	}
	entry["sizes"] = std::move(sizes);
}

} // namespace

const trace_mode trace_batch = {
	trace::question::batch,
	"Show how many work requests share a post, by who posts what",
	"",
	load_headings({"P50", "P99", "MAX"}),
	cells,
	print_details,
	add_json,
};

} // namespace kverbs::cli
