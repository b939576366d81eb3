// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// A function of the kernel or of one of its modules.
#pragma once

#include <compare>
#include <string>
#include <string_view>

namespace kverbs::trace
{

struct function {
	std::string name;
	std::string module; // empty: built into the kernel

	auto operator<=>(const function &) const = default;

	// As the kernel prints symbols: "name" or "name [module]". A name that is no
	// symbol (empty, or an address) gives a function without a name.
	static function parse(std::string_view symbol);

	// The same again.
	std::string text() const;

	// As kprobes take it: "name" or "module:name".
	std::string probe_name() const;
};

} // namespace kverbs::trace
