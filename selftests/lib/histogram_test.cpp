// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// kverbs::histogram, as far as it adds something to the core's, and the names.

#include <cerrno>
#include <cmath>
#include <gtest/gtest.h>
#include <set>
#include <stdexcept>
#include <string>

#include <kverbs/device_stats.hpp>
#include <kverbs/kverbs.h>

namespace
{

using namespace std::chrono_literals;
using kverbs::histogram;

TEST(Histogram, StartsEmpty)
{
	EXPECT_EQ(histogram().total(), 0U);
	EXPECT_EQ(histogram().percentile(50), 0ns);
}

TEST(Histogram, PercentilesInPercent)
{
	histogram hist;

	hist.record(1us, 999);
	hist.record(1ms);
	EXPECT_EQ(hist.total(), 1000U);
	EXPECT_NEAR(static_cast<double>(hist.percentile(50).count()), 1e3, 1e3 / 16);
	EXPECT_NEAR(static_cast<double>(hist.percentile(99.9).count()), 1e3, 1e3 / 16);
	EXPECT_NEAR(static_cast<double>(hist.percentile(99.91).count()), 1e6, 1e6 / 16);
	EXPECT_NEAR(static_cast<double>(hist.percentile(100).count()), 1e6, 1e6 / 16);
}

TEST(Histogram, NoPercentileOutside0To100)
{
	EXPECT_THROW(histogram().percentile(-0.01), std::out_of_range);
	EXPECT_THROW(histogram().percentile(100.01), std::out_of_range);
	EXPECT_THROW(histogram().percentile(std::nan("")), std::out_of_range);
}

TEST(Histogram, NegativeTimeCountsAsNone)
{
	histogram hist;

	hist.record(-5ns);
	EXPECT_EQ(hist.buckets()[0], 1U);
}

TEST(Histogram, AddsUp)
{
	histogram one, other;

	one.record(100ns, 2);
	other.record(100ns, 3);
	other.record(5us, 4);
	one += other;
	EXPECT_EQ(one.total(), 9U);
	EXPECT_EQ(one.buckets()[kverbs_hist_index(100)], 5U);
	EXPECT_EQ(other.total(), 7U);
}

TEST(Histogram, BucketsBeginAtZeroAndGrow)
{
	EXPECT_EQ(histogram::low(0), 0ns);
	for (std::size_t i = 1; i < histogram::bucket_count; i++)
		EXPECT_GT(histogram::low(i), histogram::low(i - 1));
}

TEST(Names, EveryCounterHasItsOwn)
{
	std::set<std::string_view> seen;

	for (std::size_t i = 0; i < kverbs::counter_count; i++)
		EXPECT_TRUE(seen.insert(name(static_cast<kverbs::counter>(i))).second) << i;
	EXPECT_EQ(seen.count(""), 0U);
	EXPECT_EQ(seen.count("unknown"), 0U);
	EXPECT_EQ(name(kverbs::counter::post_calls), "post_calls");
	EXPECT_EQ(name(kverbs::counter::refused_driver), "refused_driver");
	EXPECT_EQ(name(kverbs::counter::passes), "passes");
}

TEST(Names, ANewerModulesValuesAreUnknown)
{
	EXPECT_EQ(name(static_cast<kverbs::counter>(kverbs::counter_count)), "unknown");
	EXPECT_EQ(name(static_cast<kverbs::row_state>(200)), "unknown");
	EXPECT_EQ(name(static_cast<kverbs::cq_mode>(200)), "unknown");
}

TEST(Names, TheSameInC)
{
	for (std::size_t i = 0; i < kverbs::counter_count; i++) {
		std::string_view known = name(static_cast<kverbs::counter>(i));

		EXPECT_EQ(kverbs_stats_counter_name(i), known);
		EXPECT_EQ(kverbs_stats_counter(std::string(known).c_str()), static_cast<int>(i));
	}
	EXPECT_EQ(kverbs_stats_counter_name(kverbs::counter_count), nullptr);
	EXPECT_EQ(kverbs_stats_counter("no such"), -ENOENT);
}

} // namespace
