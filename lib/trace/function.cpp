// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// How the kernel writes its symbols.

#include "function.hpp"

namespace kverbs::trace
{

function function::parse(std::string_view symbol)
{
	function f;
	std::size_t bracket = symbol.find(" [");

	if (symbol.empty() || symbol.starts_with("0x"))
		return f;
	f.name = symbol.substr(0, bracket);
	if (bracket != std::string_view::npos && symbol.ends_with(']'))
		f.module = symbol.substr(bracket + 2, symbol.size() - bracket - 3);
	return f;
}

std::string function::text() const
{
	return module.empty() ? name : name + " [" + module + "]";
}

std::string function::probe_name() const
{
	return module.empty() ? name : module + ":" + name;
}

} // namespace kverbs::trace
