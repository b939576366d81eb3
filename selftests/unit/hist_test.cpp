// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Properties of the histogram of the core: every value has one bucket, buckets are in
// order and narrow enough, percentiles are as far off as promised and no further.

#include <algorithm>
#include <array>
#include <cstdint>
#include <gtest/gtest.h>
#include <random>
#include <vector>

#include <kverbs/core/hist.h>

namespace
{

using buckets = std::array<__u64, KVERBS_HIST_BUCKETS>;

constexpr int rounds = 200'000;

// Values of every magnitude alike.
class values
{
      public:
	explicit values(unsigned int seed) : random_(seed)
	{
	}

	__u64 operator()(unsigned int max_bits = 63)
	{
		unsigned int bits =
			std::uniform_int_distribution<unsigned int>(0, max_bits)(random_);

		return random_() & ((__u64{1} << bits) | ((__u64{1} << bits) - 1));
	}

	std::mt19937_64 &random()
	{
		return random_;
	}

      private:
	std::mt19937_64 random_;
};

// Within what the buckets tell apart.
bool in_range(__u64 value)
{
	return value >= KVERBS_HIST_MIN && value < KVERBS_HIST_MAX;
}

// |a - b| <= b / 16
void expect_near(__u64 a, __u64 b)
{
	__u64 difference = a > b ? a - b : b - a;

	EXPECT_LE(difference * 16, b) << a << " for " << b;
}

TEST(Fls, IsTheHighestBit)
{
	for (__u32 bit = 0; bit < 64; bit++) {
		EXPECT_EQ(kverbs_fls64(__u64{1} << bit), bit);
		EXPECT_EQ(kverbs_fls64(~__u64{0} >> (63 - bit)), bit);
	}
}

TEST(Hist, EveryValueLiesInItsBucket)
{
	values value(1);

	for (int i = 0; i < rounds; i++) {
		__u64 v = value();
		__u32 index = kverbs_hist_index(v);

		ASSERT_LT(index, KVERBS_HIST_BUCKETS);
		ASSERT_LE(kverbs_hist_low(index), v);
		ASSERT_TRUE(index + 1 == KVERBS_HIST_BUCKETS || v < kverbs_hist_low(index + 1));
	}
}

TEST(Hist, BucketsBeginWhereTheyShould)
{
	EXPECT_EQ(kverbs_hist_low(0), 0U);
	for (__u32 i = 1; i < KVERBS_HIST_BUCKETS; i++) {
		__u64 low = kverbs_hist_low(i);

		EXPECT_GT(low, kverbs_hist_low(i - 1));
		EXPECT_EQ(kverbs_hist_index(low), i);
		EXPECT_EQ(kverbs_hist_index(low - 1), i - 1);
	}
}

TEST(Hist, ExtremesHaveABucket)
{
	EXPECT_EQ(kverbs_hist_index(0), 0U);
	EXPECT_EQ(kverbs_hist_index(KVERBS_HIST_MIN - 1), 0U);
	EXPECT_EQ(kverbs_hist_index(KVERBS_HIST_MIN), 1U);
	EXPECT_EQ(kverbs_hist_index(KVERBS_HIST_MAX - 1), KVERBS_HIST_BUCKETS - 2U);
	EXPECT_EQ(kverbs_hist_index(KVERBS_HIST_MAX), KVERBS_HIST_BUCKETS - 1U);
	EXPECT_EQ(kverbs_hist_index(~__u64{0}), KVERBS_HIST_BUCKETS - 1U);
}

TEST(Hist, MidpointIsOffByASixteenthAtMost)
{
	values value(2);

	for (int i = 0; i < rounds; i++) {
		__u64 v = value(KVERBS_HIST_MAX_BITS);

		if (in_range(v))
			expect_near(kverbs_hist_mid(kverbs_hist_index(v)), v);
	}
}

TEST(Hist, RecordCountsSamples)
{
	values value(3);
	buckets hist{};
	__u64 total = 0;

	for (int i = 0; i < rounds; i++) {
		__u64 v = value();
		__u64 count = value(10);
		__u64 before = hist[kverbs_hist_index(v)];

		kverbs_hist_record(hist.data(), v, count);
		ASSERT_EQ(hist[kverbs_hist_index(v)], before + count);
		total += count;
	}
	EXPECT_EQ(kverbs_hist_total(hist.data()), total);
}

TEST(Hist, MergeIsAsIfRecordedTogether)
{
	values value(4);
	buckets one{}, other{}, both{};

	for (int i = 0; i < rounds; i++) {
		__u64 v = value();

		kverbs_hist_record((i % 3 ? one : other).data(), v, 1);
		kverbs_hist_record(both.data(), v, 1);
	}
	kverbs_hist_merge(one.data(), other.data());
	EXPECT_EQ(one, both);
}

TEST(Hist, EmptyHasNoPercentiles)
{
	buckets hist{};

	for (__u32 p : {0U, 5000U, 9990U, 10000U})
		EXPECT_EQ(kverbs_hist_percentile(hist.data(), p), 0U);
}

// The least sample that is not exceeded by @per_10000 of them, by sorting.
__u64 exact_percentile(const std::vector<__u64> &sorted, __u64 per_10000)
{
	for (std::size_t i = 0; i < sorted.size(); i++)
		if ((i + 1) * 10000 >= sorted.size() * per_10000)
			return sorted[i];
	return sorted.back();
}

TEST(Hist, PercentilesAreThoseOfTheSamples)
{
	values value(5);

	for (int round = 0; round < 300; round++) {
		std::vector<__u64> samples;
		buckets hist{};

		for (std::size_t n = 1 + value.random()() % 500; samples.size() < n;) {
			__u64 v = value(KVERBS_HIST_MAX_BITS);

			if (!in_range(v))
				continue;
			samples.push_back(v);
			kverbs_hist_record(hist.data(), v, 1);
		}
		std::sort(samples.begin(), samples.end());
		for (__u32 p : {0U, 1U, 5000U, 9000U, 9900U, 9990U, 10000U})
			expect_near(kverbs_hist_percentile(hist.data(), p),
				    exact_percentile(samples, p));
	}
}

TEST(Hist, PercentilesOnlyGrow)
{
	values value(6);
	buckets hist{};

	for (int i = 0; i < 1000; i++)
		kverbs_hist_record(hist.data(), value(), 1);
	for (__u32 p = 1; p <= 10000; p++)
		ASSERT_GE(kverbs_hist_percentile(hist.data(), p),
			  kverbs_hist_percentile(hist.data(), p - 1));
}

TEST(Hist, ALoneSlowSampleIsSeen)
{
	buckets hist{};

	kverbs_hist_record(hist.data(), 1000, 999);
	kverbs_hist_record(hist.data(), 1'000'000, 1);
	expect_near(kverbs_hist_percentile(hist.data(), 9990), 1000);
	expect_near(kverbs_hist_percentile(hist.data(), 9991), 1'000'000);
}

TEST(Hist, LongSamplesEndInTheLastBucket)
{
	buckets hist{};

	kverbs_hist_record(hist.data(), ~__u64{0}, 3);
	EXPECT_EQ(hist.back(), 3U);
	EXPECT_EQ(kverbs_hist_percentile(hist.data(), 5000), KVERBS_HIST_MAX);
}

} // namespace
