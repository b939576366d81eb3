// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// The line through the posts' times, and the classes that posts are counted in.

#include "../../lib/trace/cost.hpp"
#include "../../lib/trace/post_row.hpp"

#include <cmath>
#include <gtest/gtest.h>
#include <random>

namespace
{

using kverbs::trace::cost_line;
using kverbs::trace::fit_line;
using kverbs::trace::post_row;

TEST(Cost, ALineWithoutNoiseIsFoundExactly)
{
	kverbs_post_sums s{};

	for (unsigned i = 0; i < 1000; i++)
		kverbs_post_sum(&s, 1 + i % 64, 700 + 30 * (1 + i % 64));
	cost_line line = fit_line(s);

	EXPECT_EQ(line.why_not, "");
	EXPECT_NEAR(line.fixed_ns, 700, 1e-6);
	EXPECT_NEAR(line.request_ns, 30, 1e-6);
	EXPECT_NEAR(line.request_error_ns, 0, 1e-6);
	EXPECT_NEAR(line.r2, 1, 1e-9);
	EXPECT_EQ(s.left_out, 0U);
}

// Of many lines through noise, as many are within their error as there should be.
TEST(Cost, TheErrorIsThatOfTheNoise)
{
	std::mt19937 random(7);
	std::normal_distribution<double> noise(0, 50);
	int within = 0, rounds = 1000;

	for (int round = 0; round < rounds; round++) {
		kverbs_post_sums s{};

		for (unsigned i = 0; i < 200; i++)
			kverbs_post_sum(&s, 1 + i % 16,
					static_cast<__u64>(std::lround(1000 + 40 * (1 + i % 16) +
								       noise(random))));
		cost_line line = fit_line(s);

		within += std::abs(line.fixed_ns - 1000) < line.fixed_error_ns &&
			  std::abs(line.request_ns - 40) < line.request_error_ns;
	}
	// Each is in 68 of 100 cases; the two go together more often than not.
	EXPECT_GT(within, rounds * 46 / 100);
	EXPECT_LT(within, rounds * 68 / 100);
}

TEST(Cost, OneSizeTellsNothing)
{
	kverbs_post_sums s{};

	for (unsigned i = 0; i < 1000; i++)
		kverbs_post_sum(&s, 16, 1000 + i % 7);
	EXPECT_NE(fit_line(s).why_not.find("all 1000 posts had 16 work requests"),
		  std::string::npos);
	kverbs_post_sum(&s, 17, 1000);
	EXPECT_EQ(fit_line(s).why_not, "");
}

TEST(Cost, FewTellNothing)
{
	kverbs_post_sums s{};

	EXPECT_NE(fit_line(s).why_not, "");
	for (unsigned i = 1; i < KVERBS_FIT_LEAST; i++)
		kverbs_post_sum(&s, i, 100 * i);
	EXPECT_NE(fit_line(s).why_not, "");
	kverbs_post_sum(&s, KVERBS_FIT_LEAST, 100 * KVERBS_FIT_LEAST);
	EXPECT_EQ(fit_line(s).why_not, "");
}

TEST(Cost, WhatWasInterruptedIsLeftOut)
{
	kverbs_post_sums s{};

	for (unsigned i = 0; i < 1000; i++)
		kverbs_post_sum(&s, 1 + i % 8, 500 + 20 * (1 + i % 8));
	kverbs_post_sum(&s, 4, 1000000);
	kverbs_post_sum(&s, KVERBS_FIT_WRS_MAX + 1, 500);
	kverbs_post_sum(&s, 0, 500);
	EXPECT_EQ(s.left_out, 3U);
	EXPECT_NEAR(fit_line(s).fixed_ns, 500, 1e-6);
}

TEST(Cost, SquaresMayBeLong)
{
	kverbs_post_sums s{};
	post_row whole, half;

	for (unsigned i = 0; i < 200000; i++)
		kverbs_post_sum(&s, 1 + i % 2, KVERBS_FIT_NS_MAX - 1 + i % 2);
	EXPECT_GT(s.ns_ns_high, 0U);
	EXPECT_NEAR(fit_line(s).request_ns, 1, 1e-3);

	half.sums = s;
	whole += half;
	whole += half;
	EXPECT_EQ(whole.sums.ns_ns_high, 2 * s.ns_ns_high + (s.ns_ns >> 63));
	EXPECT_EQ(whole.since(half).sums.ns_ns, s.ns_ns);
	EXPECT_EQ(whole.since(half).sums.ns_ns_high, s.ns_ns_high);
}

TEST(Size, ClassesFollowEachOther)
{
	__u32 before = 0;

	for (__u64 wrs = 1; wrs <= KVERBS_POST_CHAIN; wrs++) {
		__u32 size = kverbs_post_size(wrs);

		EXPECT_LE(kverbs_post_size_low(size), wrs);
		EXPECT_TRUE(size == before || size == before + 1) << wrs;
		EXPECT_EQ(size != before, kverbs_post_size_low(size) == wrs) << wrs;
		before = size;
	}
	EXPECT_EQ(before, KVERBS_POST_SIZES - 1);
}

} // namespace
