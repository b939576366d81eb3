// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// The figures of one line of `kverbs stat`, and what is derived from them.
#pragma once

#include "stat_view.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace kverbs::cli
{

// Counters of an object, or what they grew by in some seconds.
class figures
{
      public:
	explicit figures(const counters &values, double seconds = 0)
		: values_(values), seconds_(seconds)
	{
	}

	std::uint64_t operator[](counter c) const
	{
		return values_[static_cast<std::size_t>(c)];
	}

	// Refused for any reason but a full queue, which is no error.
	std::uint64_t refused() const;

	// The count itself, or the rate.
	std::string show(counter c) const
	{
		return show((*this)[c]);
	}
	std::string show(std::uint64_t value) const;
	std::string show_bytes() const;

	std::string per_post() const;
	std::string cqe_per_request() const;

	json counters_json() const;
	json rates_json() const;
	json derived_json() const;

	bool is_rate() const
	{
		return seconds_ > 0;
	}

      private:
	counters values_;
	double seconds_;
};

// One line: the row that it is about and its figures.
struct stat_line {
	const row *of;
	std::string device;
	figures values;
};

// The devices of the view with the totals of all that is on them, or the rows of
// @type that belong to them.
std::vector<stat_line> device_lines(const stat_view &view);
std::vector<stat_line> object_lines(const stat_view &view, row_type type);

} // namespace kverbs::cli
