// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Tables, JSON and numbers for people.

#include "output.hpp"
#include "errors.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <unistd.h>

namespace kverbs::cli
{
namespace
{

struct unit {
	double factor;
	const char *name;
};

// @value in the largest unit that leaves a number of at least 1, three digits.
template <std::size_t N> std::string scale(double value, const std::array<unit, N> &units)
{
	std::size_t i = 0;

	while (i + 1 < N && value >= units[i + 1].factor)
		i++;
	value /= units[i].factor;
	if (i == 0)
		return fmt::format("{:.0f}{}", value, units[i].name);
	return fmt::format("{:.{}f}{}", value,
			   value < 9.995   ? 2
			   : value < 99.95 ? 1
					   : 0,
			   units[i].name);
}

constexpr std::array<unit, 4> time_units = {{{1, " ns"}, {1e3, " us"}, {1e6, " ms"}, {1e9, " s"}}};
constexpr std::array<unit, 5> count_units = {
	{{1, ""}, {1e3, "k"}, {1e6, "M"}, {1e9, "G"}, {1e12, "T"}}};
constexpr std::array<unit, 5> byte_units = {
	{{1, " B"}, {0x1p10, " KiB"}, {0x1p20, " MiB"}, {0x1p30, " GiB"}, {0x1p40, " TiB"}}};

std::string pad(const std::string &cell, std::size_t width, table::align side)
{
	return side == table::align::left ? fmt::format("{:<{}}", cell, width)
					  : fmt::format("{:>{}}", cell, width);
}

} // namespace

void add_json_flag(CLI::App &command, globals &g)
{
	command.add_flag("--json", g.json, "Print JSON");
}

void print_json(const json &document)
{
	fmt::print("{}\n", document.dump(2));
}

void print_json_line(const json &document)
{
	fmt::print("{}\n", document.dump());
	flush_output();
}

void flush_output()
{
	if (std::fflush(stdout))
		throw error(exit_code::failure,
			    fmt::format("standard output: {}", std::strerror(errno)));
	// A write that failed earlier is remembered, but not why.
	if (std::ferror(stdout))
		throw error(exit_code::failure, "standard output: it cannot be written");
}

bool colour()
{
	static const bool yes = [] {
		const char *term = std::getenv("TERM");

		return ::isatty(STDOUT_FILENO) && !std::getenv("NO_COLOR") && term &&
		       std::string_view(term) != "dumb";
	}();
	return yes;
}

std::string strong(std::string_view text)
{
	return colour() ? fmt::format("\033[1m{}\033[0m", text) : std::string(text);
}

std::string faint(std::string_view text)
{
	return colour() ? fmt::format("\033[2m{}\033[0m", text) : std::string(text);
}

std::string format(std::chrono::nanoseconds time)
{
	return scale(static_cast<double>(time.count()), time_units);
}

std::string format_count(double value)
{
	return scale(value, count_units);
}

std::string format_bytes(double bytes)
{
	return scale(bytes, byte_units);
}

std::string format_ratio(std::uint64_t part, std::uint64_t whole)
{
	if (!whole)
		return "-";
	double ratio = static_cast<double>(part) / static_cast<double>(whole);

	return fmt::format("{:.{}f}", ratio, ratio < 0.1 ? 4 : 2);
}

std::string format_share(std::uint64_t part, std::uint64_t whole)
{
	if (!whole)
		return "-";
	return fmt::format("{:.1f}%",
			   100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

void table::print() const
{
	std::vector<std::size_t> width;

	for (std::size_t i = 0; i < columns_.size(); i++) {
		width.push_back(columns_[i].heading.size());
		for (const auto &row : rows_)
			width[i] = std::max(width[i], row[i].size());
	}
	auto line = [&](auto cell) {
		std::string out;

		for (std::size_t i = 0; i < columns_.size(); i++)
			out += (i ? "  " : "") + pad(cell(i), width[i], columns_[i].side);
		out.erase(out.find_last_not_of(' ') + 1);
		return out;
	};

	fmt::print("{}\n", strong(line([&](std::size_t i) { return columns_[i].heading; })));
	for (const auto &row : rows_)
		fmt::print("{}\n", line([&](std::size_t i) { return row[i]; }));
}

} // namespace kverbs::cli
