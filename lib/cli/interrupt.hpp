// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Ctrl-C ends a command that repeats or waits, and what it has by then is printed.
#pragma once

#include <chrono>

namespace kverbs::cli
{

// While one lives, SIGINT and SIGTERM do not kill the process but are remembered.
class interrupt
{
      public:
	interrupt();
	~interrupt();
	interrupt(const interrupt &) = delete;
	interrupt &operator=(const interrupt &) = delete;

	bool requested() const;

	// Becomes readable upon the signal: for poll().
	int fd() const
	{
		return fd_;
	}

	// Sleep until @when; false if the signal came first.
	bool sleep_until(std::chrono::steady_clock::time_point when) const;

      private:
	int fd_;
};

} // namespace kverbs::cli
