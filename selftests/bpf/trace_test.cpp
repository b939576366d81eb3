// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// The short way to a histogram's bucket that the BPF programs take, and symbols as the
// kernel prints them.

#include "../../bpf/post_send.h"
#include "../../lib/trace/function.hpp"

#include <array>
#include <cstdint>
#include <gtest/gtest.h>

namespace
{

using kverbs::trace::function;

class Bucket : public testing::Test
{
      protected:
	Bucket()
	{
		for (__u32 byte = 16; byte < of_.size(); byte++)
			of_[byte] = static_cast<__u8>(kverbs_hist_index(byte << 4));
	}

	void expect_same(std::uint64_t ns)
	{
		EXPECT_EQ(kverbs_post_bucket(of_.data(), ns), kverbs_hist_index(ns)) << ns;
	}

	std::array<__u8, 256> of_{};
};

TEST_F(Bucket, SameForAllSmallValues)
{
	for (std::uint64_t ns = 0; ns < 1 << 17; ns++)
		expect_same(ns);
}

TEST_F(Bucket, SameAroundEveryBoundary)
{
	for (__u32 bucket = 0; bucket < KVERBS_HIST_BUCKETS; bucket++)
		for (std::uint64_t off : {0U, 1U, 2U})
			expect_same(kverbs_hist_low(bucket) + off - 1);
}

TEST_F(Bucket, SameForLargeValues)
{
	for (std::uint64_t ns = 1 << 17; ns < 4 * KVERBS_HIST_MAX; ns += ns / 997)
		expect_same(ns);
	expect_same(~std::uint64_t{0});
}

TEST_F(Bucket, EveryRowHasItsTable)
{
	// The bias of each branch is taken off or put on in multiples of four octaves.
	EXPECT_EQ(KVERBS_HIST_SUB_BITS, 3U);
	EXPECT_LT(kverbs_hist_index(255 << 4), 256U);
	EXPECT_GE(kverbs_hist_index(KVERBS_HIST_MIN << 4), 4 * KVERBS_HIST_SUB);
}

TEST(Function, OfAModule)
{
	function f = function::parse("rxe_post_send [rdma_rxe]");

	EXPECT_EQ(f.name, "rxe_post_send");
	EXPECT_EQ(f.module, "rdma_rxe");
	EXPECT_EQ(f.text(), "rxe_post_send [rdma_rxe]");
	EXPECT_EQ(f.probe_name(), "rdma_rxe:rxe_post_send");
}

TEST(Function, OfTheKernel)
{
	function f = function::parse("some_post_send");

	EXPECT_EQ(f.name, "some_post_send");
	EXPECT_EQ(f.module, "");
	EXPECT_EQ(f.text(), "some_post_send");
	EXPECT_EQ(f.probe_name(), "some_post_send");
}

TEST(Function, NoneAtAll)
{
	EXPECT_EQ(function::parse("").name, "");
	EXPECT_EQ(function::parse("0xffffffffc0123450").name, "");
}

} // namespace
