// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// The open device, and what can be said about a sample without it.

#include "uapi.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace kverbs
{

counters sample::total(const row &device) const
{
	counters sum{};

	for (const row &row : rows)
		if (row.device == device.id)
			std::transform(sum.begin(), sum.end(), row.values.begin(), sum.begin(),
				       std::plus<>());
	return sum;
}

const row *sample::device(std::string_view name) const
{
	auto it = std::find_if(rows.begin(), rows.end(), [name](const row &row) {
		return row.type == row_type::device && row.name == name;
	});
	return it == rows.end() ? nullptr : &*it;
}

const char *device_stats::default_path() noexcept
{
	return uapi::device_path();
}

device_stats device_stats::open(const char *path)
{
	int fd = ::open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		throw std::system_error(errno, std::generic_category(), path);
	return device_stats(fd);
}

device_stats::device_stats(device_stats &&other) noexcept : fd_(std::exchange(other.fd_, -1))
{
}

device_stats &device_stats::operator=(device_stats &&other) noexcept
{
	std::swap(fd_, other.fd_);
	return *this;
}

device_stats::~device_stats()
{
	if (fd_ >= 0)
		::close(fd_);
}

module_info device_stats::info() const
{
	return uapi::info(fd_);
}

sample device_stats::snapshot() const
{
	return uapi::snapshot(fd_);
}

histogram device_stats::latency(const row &of, histogram_kind kind) const
{
	return uapi::latency(fd_, of, kind);
}

record device_stats::recorded(const row &queue) const
{
	return uapi::recorded(fd_, queue);
}

std::vector<record> device_stats::kept() const
{
	std::vector<record> found;
	std::uint64_t serial = 0;

	while (auto next = uapi::kept(fd_, serial)) {
		serial = next->serial;
		found.push_back(std::move(*next));
	}
	return found;
}

mapped_stats device_stats::map() const
{
	int fd = ::fcntl(fd_, F_DUPFD_CLOEXEC, 0);

	if (fd < 0)
		throw std::system_error(errno, std::generic_category(), "map rows");
	return mapped_stats(device_stats(fd), info());
}

} // namespace kverbs
