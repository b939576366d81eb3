// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// The histogram of the core, as a class.

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <kverbs/histogram.hpp>

namespace kverbs
{

void histogram::record(std::chrono::nanoseconds value, std::uint64_t count)
{
	auto ns = std::max<std::chrono::nanoseconds::rep>(value.count(), 0);

	kverbs_hist_record(buckets_.data(), static_cast<__u64>(ns), count);
}

histogram &histogram::operator+=(const histogram &other)
{
	std::transform(buckets_.begin(), buckets_.end(), other.buckets_.begin(), buckets_.begin(),
		       std::plus<>());
	return *this;
}

std::uint64_t histogram::total() const
{
	return kverbs_hist_total(buckets_.data());
}

std::chrono::nanoseconds histogram::percentile(double percent) const
{
	if (!(percent >= 0 && percent <= 100))
		throw std::out_of_range("a percentile is from 0 to 100");
	auto steps = static_cast<__u32>(std::lround(percent * 100));

	return std::chrono::nanoseconds(kverbs_hist_percentile(buckets_.data(), steps));
}

std::chrono::nanoseconds histogram::low(std::size_t bucket)
{
	return std::chrono::nanoseconds(kverbs_hist_low(static_cast<__u32>(bucket)));
}

} // namespace kverbs
