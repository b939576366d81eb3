// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// What the kernel logs while this lives: a file in configfs answers a bad value by an
// errno, and by a line there that says what is wrong with it.
#pragma once

#include <string>
#include <vector>

namespace kverbs::cli
{

class kernel_log
{
      public:
	kernel_log();
	~kernel_log();
	kernel_log(const kernel_log &) = delete;
	kernel_log &operator=(const kernel_log &) = delete;

	// The last new line that begins in one of these ways; empty if there is none, or the
	// log may not be read.
	std::string last(const std::vector<std::string> &beginnings) const;

      private:
	int fd_;
};

} // namespace kverbs::cli
