// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// What commands print: tables and bars for people, JSON for programs. Colour only
// on a terminal.
#pragma once

#include "commands.hpp"

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include <kverbs/histogram.hpp>

namespace kverbs::cli
{

using nlohmann::json;

// Give a subcommand its --json.
void add_json_flag(CLI::App &command, globals &g);

// One document on standard output, indented.
void print_json(const json &document);

// One document on one line, at once: for commands that print again and again.
void print_json_line(const json &document);

// What was printed must have arrived: the disk may be full. Throws if it has not.
void flush_output();

// Whether standard output is a terminal that takes colour.
bool colour();

// @text as it stands out on a terminal.
std::string strong(std::string_view text);
std::string faint(std::string_view text);

// "950 ns", "1.23 us", "45.6 ms".
std::string format(std::chrono::nanoseconds time);

// "950", "1.23k", "45.6M".
std::string format_count(double value);

// "950 B", "4.00 KiB".
std::string format_bytes(double bytes);

// "0.06", or "-" where @whole is zero.
std::string format_ratio(std::uint64_t part, std::uint64_t whole);

// "12.5%", or "-" where @whole is zero.
std::string format_share(std::uint64_t part, std::uint64_t whole);

// Rows of cells under a heading, each column as wide as it needs.
class table
{
      public:
	enum class align { left, right };

	struct column {
		std::string heading;
		align side = align::right;
	};

	explicit table(std::vector<column> columns) : columns_(std::move(columns))
	{
	}

	void add(std::vector<std::string> cells)
	{
		rows_.push_back(std::move(cells));
	}
	bool empty() const
	{
		return rows_.empty();
	}
	void print() const;

      private:
	std::vector<column> columns_;
	std::vector<std::vector<std::string>> rows_;
};

// A line of a histogram.
struct bar {
	std::string label; // all of the same width
	std::uint64_t count = 0;
};

// Bars, the longest as long as there is room.
void print_bars(const std::vector<bar> &bars);

// A histogram as bars, buckets next to each other taken together where there are
// too many lines, under a line with count and percentiles.
void print_histogram(std::string_view title, const histogram &hist);

// The same as JSON: count, percentiles in nanoseconds, buckets that are not empty.
json to_json(const histogram &hist);

} // namespace kverbs::cli
