// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Checks of option values that say what was given, what may be given, and where the
// limit comes from, in one line.
#pragma once

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <string>
#include <string_view>

namespace kverbs::cli
{

// A number from @least to @most, both included; @unit may be empty.
template <typename T> CLI::Validator between(T least, T most, std::string_view unit)
{
	std::string space = unit.empty() ? "" : " ";
	std::string limits = fmt::format("{} to {}{}{}", least, most, space, unit);

	return CLI::Validator(
		[=](std::string &given) -> std::string {
			T value{};

			if (!CLI::detail::lexical_cast(given, value))
				return fmt::format("'{}' is no number; give {}", given, limits);
			if (!(value >= least && value <= most))
				return fmt::format("{} is out of range; give {}", given, limits);
			return {};
		},
		limits);
}

} // namespace kverbs::cli
