// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Histograms, as bars and as JSON.

#include "output.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace kverbs::cli
{
namespace
{

constexpr std::size_t max_lines = 24;
constexpr std::size_t bar_width = 50;

struct percentile {
	double percent;
	const char *label;
	const char *key;
};

constexpr std::array<percentile, 4> percentiles = {{{50, "p50", "p50_ns"},
						    {90, "p90", "p90_ns"},
						    {99, "p99", "p99_ns"},
						    {99.9, "p99.9", "p99.9_ns"}}};

// The last bucket has no end: what lies in it is only known to be as long.
std::string format_percentile(const histogram &hist, double percent)
{
	std::chrono::nanoseconds value = hist.percentile(percent);
	bool endless = value >= histogram::low(histogram::bucket_count - 1);

	return (endless ? ">= " : "") + format(value);
}

// The buckets from @first to before @last hold all samples.
struct range {
	std::size_t first;
	std::size_t last;
};

range used(const histogram &hist)
{
	auto buckets = hist.buckets();
	auto filled = [](std::uint64_t n) { return n != 0; };
	auto first = std::find_if(buckets.begin(), buckets.end(), filled);
	auto last = std::find_if(buckets.rbegin(), buckets.rend(), filled).base();

	if (first == buckets.end())
		return {0, 0};
	return {static_cast<std::size_t>(first - buckets.begin()),
		static_cast<std::size_t>(last - buckets.begin())};
}

// How many buckets to a line: a power of two, so that lines begin where octaves do.
std::size_t buckets_per_line(range r)
{
	std::size_t step = 1;

	while ((r.last - r.first + step - 1) / step > max_lines)
		step *= 2;
	return step;
}

std::string label(std::size_t first, std::size_t last)
{
	if (last >= histogram::bucket_count)
		return fmt::format("{:>8} and more", format(histogram::low(first)));
	return fmt::format("{:>8} .. {:>8}", format(histogram::low(first)),
			   format(histogram::low(last)));
}

std::vector<bar> bars_of(const histogram &hist)
{
	range r = used(hist);
	std::size_t step = buckets_per_line(r);
	std::vector<bar> bars;

	// Bucket 0 is by itself; octaves begin at bucket 1.
	std::size_t at = r.first ? (r.first - 1) / step * step + 1 : 0;

	while (at < r.last) {
		std::size_t end = at ? std::min(at + step, histogram::bucket_count) : 1;
		bar b{label(at, end)};

		for (; at < end; at++)
			b.count += hist.buckets()[at];
		bars.push_back(std::move(b));
	}
	return bars;
}

} // namespace

void print_bars(const std::vector<bar> &bars)
{
	std::uint64_t most = 1;

	for (const bar &b : bars)
		most = std::max(most, b.count);
	for (const bar &b : bars) {
		auto width = static_cast<std::size_t>(std::lround(
			static_cast<double>(b.count) * bar_width / static_cast<double>(most)));

		fmt::print("  {} {:>12} |{:<{}}|\n", b.label, b.count, std::string(width, '@'),
			   bar_width);
	}
}

void print_histogram(std::string_view title, const histogram &hist)
{
	std::uint64_t total = hist.total();

	fmt::print("{}: {} samples", strong(title), total);
	for (const percentile &p : percentiles)
		if (total)
			fmt::print(", {} {}", p.label, format_percentile(hist, p.percent));
	fmt::print("\n");
	print_bars(bars_of(hist));
}

json to_json(const histogram &hist)
{
	json out = {{"count", hist.total()}, {"buckets", json::array()}};

	for (const percentile &p : percentiles)
		out[p.key] = hist.percentile(p.percent).count();
	for (std::size_t i = 0; i < histogram::bucket_count; i++) {
		if (!hist.buckets()[i])
			continue;
		json high = nullptr;

		if (i + 1 < histogram::bucket_count)
			high = histogram::low(i + 1).count();
		out["buckets"].push_back({{"low_ns", histogram::low(i).count()},
					  {"high_ns", high},
					  {"count", hist.buckets()[i]}});
	}
	return out;
}

} // namespace kverbs::cli
