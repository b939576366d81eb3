// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// The signals are blocked and read from a descriptor: no handler, so nothing that
// a handler may not do. The signal is never taken out of it, so that it stays
// readable for whoever asks later.

#include "interrupt.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <poll.h>
#include <sys/signalfd.h>
#include <system_error>
#include <unistd.h>

namespace kverbs::cli
{
namespace
{

sigset_t signals()
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	return set;
}

// Whether @fd becomes readable within @timeout.
bool readable(int fd, std::chrono::nanoseconds timeout)
{
	timeout = std::max(timeout, std::chrono::nanoseconds::zero());

	auto seconds = std::chrono::duration_cast<std::chrono::seconds>(timeout);
	timespec limit = {seconds.count(), (timeout - seconds).count()};
	pollfd poll = {fd, POLLIN, 0};

	return ::ppoll(&poll, 1, &limit, nullptr) > 0;
}

} // namespace

interrupt::interrupt()
{
	sigset_t set = signals();

	fd_ = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd_ < 0)
		throw std::system_error(errno, std::generic_category(), "signalfd");
	::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

interrupt::~interrupt()
{
	sigset_t set = signals();
	timespec now = {};

	// A signal that was heeded must not kill the process now.
	while (::sigtimedwait(&set, nullptr, &now) > 0)
		;
	::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
	::close(fd_);
}

bool interrupt::requested() const
{
	return readable(fd_, std::chrono::nanoseconds::zero());
}

bool interrupt::sleep_until(std::chrono::steady_clock::time_point when) const
{
	return !readable(fd_, when - std::chrono::steady_clock::now());
}

} // namespace kverbs::cli
