// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// How a command fails: one line on standard error that names the value, the
// limit and the remedy, and one of these exit codes. Scripts rely on the codes,
// so that they never change their meaning.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace kverbs::cli
{

enum class exit_code : int {
	ok = 0,           // also when Ctrl-C ended a repeating command
	failure = 1,      // anything that has no code of its own
	usage = 2,        // an option or a value that the command cannot take
	no_module = 3,    // no /dev/kverbs: the module is not loaded
	no_privilege = 4, // the caller may not do this
	no_device = 5,    // no RDMA device of that name, or none at all, or no driver
	device_left = 6,  // the device went away meanwhile
};

// What a command throws to end: main() prints what() and returns code().
class error : public std::runtime_error
{
      public:
	error(exit_code code, const std::string &line) : std::runtime_error(line), code_(code)
	{
	}

	exit_code code() const noexcept
	{
		return code_;
	}

      private:
	exit_code code_;
};

// The end of every --help.
extern const char *const exit_code_help;

} // namespace kverbs::cli
