// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// A latency histogram as kverbs keeps them: log-linear, eight buckets an octave, so
// that what it answers is off by at most 1/16.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

#include <kverbs/core/hist.h>

namespace kverbs
{

class histogram
{
      public:
	static constexpr std::size_t bucket_count = KVERBS_HIST_BUCKETS;

	// 64 bits, of the kernel's type.
	using count_type = __u64;

	histogram() = default;

	// Count @count samples of @value.
	void record(std::chrono::nanoseconds value, std::uint64_t count = 1);

	histogram &operator+=(const histogram &other);

	// How many samples there are.
	std::uint64_t total() const;

	// The value that @percent of the samples do not exceed, in steps of 1/100;
	// zero without samples. std::out_of_range outside 0 to 100.
	std::chrono::nanoseconds percentile(double percent) const;

	// Samples by bucket.
	std::span<const count_type, bucket_count> buckets() const
	{
		return buckets_;
	}
	std::span<count_type, bucket_count> buckets()
	{
		return buckets_;
	}

	// The least value of a bucket; the first begins at 0, the last has no end.
	static std::chrono::nanoseconds low(std::size_t bucket);

      private:
	std::array<count_type, bucket_count> buckets_{};
};

} // namespace kverbs
