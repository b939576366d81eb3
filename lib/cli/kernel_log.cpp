// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// /dev/kmsg gives a record a read: "PRIORITY,NUMBER,TIME,FLAGS;LINE\n", and then
// lines about the device, if any.

#include "kernel_log.hpp"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <string_view>
#include <unistd.h>

namespace kverbs::cli
{

kernel_log::kernel_log() : fd_(::open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC))
{
	if (fd_ >= 0)
		::lseek(fd_, 0, SEEK_END);
}

kernel_log::~kernel_log()
{
	if (fd_ >= 0)
		::close(fd_);
}

std::string kernel_log::last(const std::vector<std::string> &beginnings) const
{
	std::array<char, 8192> record;
	std::string found;

	if (fd_ < 0)
		return found;
	for (;;) {
		ssize_t size = ::read(fd_, record.data(), record.size());

		if (size < 0 && errno == EPIPE)
			continue; // the log went round: go on with what is left
		if (size <= 0)
			return found;

		std::string_view text(record.data(), static_cast<std::size_t>(size));

		text = text.substr(0, text.find('\n'));
		text = text.substr(std::min(text.find(';'), text.size() - 1) + 1);
		for (const std::string &beginning : beginnings)
			if (text.starts_with(beginning))
				found = text;
	}
}

} // namespace kverbs::cli
