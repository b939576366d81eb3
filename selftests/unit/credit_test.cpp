// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Sizes: how deep a queue must be, how long a chain may be, whether a CQ can overflow.

#include <cstdint>
#include <gtest/gtest.h>
#include <limits>

#include <kverbs/core/credit.h>

#include "seed.hpp"

namespace
{

using selftest::dice;

constexpr std::uint32_t max32 = std::numeric_limits<std::uint32_t>::max();

// Three work requests an operation, as registration, send and invalidation are.
TEST(Credit, DepthCountsEveryWorkRequest)
{
	EXPECT_EQ(kverbs_credit_depth(128, 3, 4096), 384U);
	EXPECT_EQ(kverbs_credit_depth(1, 1, 1), 1U);
	EXPECT_EQ(kverbs_credit_depth(128, 3, 384), 384U);
	EXPECT_EQ(kverbs_credit_depth(128, 3, 383), 0U);
	EXPECT_EQ(kverbs_credit_depth(0x10000, 0x10000, max32), 0U) << "wrapped to nothing";
	EXPECT_EQ(kverbs_credit_depth(0x10001, 0x10000, max32), 0U) << "wrapped to little";
}

TEST(Credit, ClaimsAddUpWithoutWrapping)
{
	EXPECT_EQ(kverbs_credit_claim(max32, max32), 2 * static_cast<__u64>(max32));
	EXPECT_TRUE(kverbs_credit_cq_fits(0, 64, 64));
	EXPECT_FALSE(kverbs_credit_cq_fits(1, 64, 64));
	EXPECT_FALSE(kverbs_credit_cq_fits(0, kverbs_credit_claim(max32, max32), max32));
}

// As many queues as fit, and whatever they leave behind: the CQ holds it.
TEST(Credit, WhatFitsCannotOverflow)
{
	for (std::uint64_t i = 0; i < 100'000; i++) {
		dice dice(selftest::seed() + i);
		std::uint32_t cqe = 1 + dice(5000);
		__u64 claimed = 0;

		for (int q = 0; q < 50; q++) {
			__u64 claim = kverbs_credit_claim(1 + dice(500), dice(500));

			if (kverbs_credit_cq_fits(claimed, claim, cqe))
				claimed += claim;
			else
				ASSERT_GT(claimed + claim, cqe);
		}
		ASSERT_LE(claimed, cqe);
	}
}

} // namespace
