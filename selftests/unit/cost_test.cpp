// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// The cost model: examples that were computed by hand, and what holds whatever the constants.

#include <cstdint>
#include <gtest/gtest.h>
#include <vector>

#include <kverbs/core/cost.h>

#include "seed.hpp"

namespace
{

using selftest::dice;
using times = std::vector<__u64>;

kverbs_cost zero()
{
	kverbs_cost cost;

	kverbs_cost_zero(&cost);
	return cost;
}

kverbs_cost articles()
{
	kverbs_cost cost;

	kverbs_cost_articles(&cost);
	return cost;
}

// A write of one element, or inline.
kverbs_cost_wqe write(__u32 length)
{
	return {kverbs_cost_wqe_bytes(1, 0), 1, length};
}

kverbs_cost_wqe inlined(__u32 length)
{
	return {kverbs_cost_wqe_bytes(0, length), 0, length};
}

times ring(const kverbs_cost &cost, kverbs_cost_run &run, __u64 now,
	   const std::vector<kverbs_cost_wqe> &wqes)
{
	times executed;

	kverbs_cost_ring(&cost, &run, now, wqes.front().bytes, wqes.size() == 1);
	for (const auto &wqe : wqes)
		executed.push_back(kverbs_cost_execute(&cost, &run, &wqe));
	return executed;
}

times ring(const kverbs_cost &cost, const std::vector<kverbs_cost_wqe> &wqes)
{
	kverbs_cost_run run = {};

	return ring(cost, run, 0, wqes);
}

TEST(Wqe, IsMadeOfBlocks)
{
	EXPECT_EQ(kverbs_cost_wqe_bytes(0, 0), 64U) << "32";
	EXPECT_EQ(kverbs_cost_wqe_bytes(1, 0), 64U) << "48";
	EXPECT_EQ(kverbs_cost_wqe_bytes(2, 0), 64U) << "64";
	EXPECT_EQ(kverbs_cost_wqe_bytes(3, 0), 128U) << "80";
	EXPECT_EQ(kverbs_cost_wqe_bytes(0, 28), 64U) << "32 + 4 + 28";
	EXPECT_EQ(kverbs_cost_wqe_bytes(0, 29), 128U);
	EXPECT_EQ(kverbs_cost_wqe_bytes(0, 1024), 1088U) << "1060";
}

TEST(Zero, CostsNothingAndCounts)
{
	kverbs_cost cost = zero();
	kverbs_cost_run run = {};

	EXPECT_TRUE(kverbs_cost_is_zero(&cost));
	EXPECT_EQ(ring(cost, run, 1000, {write(64), write(1 << 20), inlined(64)}), times(3, 1000));
	EXPECT_EQ(run.doorbells, 1U);
	EXPECT_EQ(run.wqe_fetches, 1U) << "64 + 64 + 128 bytes";
	EXPECT_EQ(run.payload_reads, 2U);
	EXPECT_EQ(run.blueflames, 0U);
}

TEST(Zero, NothingElseIs)
{
	__u32 kverbs_cost::*const fields[] = {
		&kverbs_cost::doorbell_ns,  &kverbs_cost::notice_ns,       &kverbs_cost::fetch_ns,
		&kverbs_cost::fetch_bytes,  &kverbs_cost::parse_ns,        &kverbs_cost::payload_ns,
		&kverbs_cost::wire_ns,      &kverbs_cost::wire_ns_per_kib, &kverbs_cost::cqe_ns,
		&kverbs_cost::interrupt_ns, &kverbs_cost::blueflame_bytes,
	};
	kverbs_cost cost = articles();

	static_assert(sizeof(fields) / sizeof(fields[0]) * sizeof(__u32) == sizeof(kverbs_cost));
	EXPECT_FALSE(kverbs_cost_is_zero(&cost));
	for (auto field : fields) {
		cost = zero();
		cost.*field += 1;
		EXPECT_FALSE(kverbs_cost_is_zero(&cost));
	}
}

// 400 until it is fetched, 150 to parse it, 1200 for its payload, 800 on the wire.
TEST(Articles, OneWrite)
{
	kverbs_cost cost = articles();

	EXPECT_EQ(cost.doorbell_ns, 80U);
	EXPECT_EQ(ring(cost, {write(64)}), times{2550});
	EXPECT_EQ(ring(cost, {inlined(28)}), times{1350}) << "no payload to read";
}

// Their parsing follows one another; their payload is read at the same time.
TEST(Articles, AChainIsAPipeline)
{
	EXPECT_EQ(ring(articles(), {write(64), write(64), write(64), write(64)}),
		  (times{2550, 2700, 2850, 3000}));
	EXPECT_EQ(ring(articles(), {inlined(28), inlined(28), inlined(28)}),
		  (times{1350, 1500, 1650}));
}

// What is inline is ready before, and waits for its turn.
TEST(Articles, OrderIsKept)
{
	EXPECT_EQ(ring(articles(), {write(64), inlined(28), write(64)}), (times{2550, 2550, 2850}));
}

TEST(Articles, ASecondDoorbellFindsTheHcaBusy)
{
	kverbs_cost cost = articles();
	kverbs_cost_run run = {};

	EXPECT_EQ(ring(cost, run, 0, {write(64), write(64), write(64), write(64)}).back(), 3000U);
	EXPECT_EQ(ring(cost, run, 100, {write(64)}), times{3150}) << "parsed as the fifth";
	EXPECT_EQ(ring(cost, run, 10'000, {write(64)}), times{12'550}) << "long idle";
	EXPECT_EQ(run.doorbells, 3U);
	EXPECT_EQ(run.wqe_fetches, 3U);
	EXPECT_EQ(run.payload_reads, 6U);
}

// Reads of 128 bytes, 100 ns each: two WQEs of 64 bytes come with each.
TEST(Fetch, ReadsFollowOneAnother)
{
	kverbs_cost cost = zero();
	kverbs_cost_run run = {};

	cost.fetch_ns = 100;
	cost.fetch_bytes = 128;
	EXPECT_EQ(ring(cost, run, 0, std::vector(5, write(64))), (times{100, 100, 200, 200, 300}));
	EXPECT_EQ(run.wqe_fetches, 3U);

	// A WQE of 320 bytes (32 + 4 + 256, in blocks) lies in three of them.
	run = {};
	EXPECT_EQ(ring(cost, run, 0, {inlined(256), write(64), write(64)}), (times{300, 300, 400}));
	EXPECT_EQ(run.wqe_fetches, 4U);
}

TEST(Fetch, DoorbellsAreServedInTurn)
{
	kverbs_cost cost = zero();
	kverbs_cost_run run = {};

	cost.fetch_ns = 100;
	EXPECT_EQ(ring(cost, run, 0, {write(64)}), times{100});
	EXPECT_EQ(ring(cost, run, 50, {write(64)}), times{200});
}

// What one doorbell's last read brought too much is not there for the next doorbell.
TEST(Fetch, EachDoorbellReads)
{
	kverbs_cost cost = zero();
	kverbs_cost_run run = {};

	for (__u32 i = 1; i <= 100; i++) {
		ring(cost, run, i, {write(64)});
		ASSERT_EQ(run.wqe_fetches, i);
	}
}

// 82 ns for a KiB is 100 Gb/s: 8 KiB take 656 ns, and the next message waits for its end.
TEST(Wire, BytesTakeTime)
{
	kverbs_cost cost = zero();

	cost.wire_ns = 800;
	cost.wire_ns_per_kib = 82;
	EXPECT_EQ(ring(cost, {write(8192)}), times{1456});
	EXPECT_EQ(ring(cost, {write(8192), write(8192), write(0)}), (times{1456, 2112, 2112}));
	EXPECT_EQ(ring(cost, {write(UINT32_MAX)}), times{343'932'927 + 800}) << "wrapped";
}

// DMA reads of a request: WQE and payload; WQE; none.
TEST(BlueFlame, ReadsTwoOneZero)
{
	kverbs_cost cost = articles();
	kverbs_cost_run run = {};

	ring(cost, run, 0, {write(64)});
	EXPECT_EQ(run.wqe_fetches + run.payload_reads, 2U);
	run = {};
	ring(cost, run, 0, {inlined(64)});
	EXPECT_EQ(run.wqe_fetches + run.payload_reads, 1U);
	run = {};
	cost.blueflame_bytes = 128;
	ring(cost, run, 0, {inlined(64)});
	EXPECT_EQ(run.wqe_fetches + run.payload_reads, 0U);
	EXPECT_EQ(run.blueflames, 1U);
	EXPECT_EQ(run.doorbells, 1U) << "the WQE came with it";
}

// 150 to parse it, 800 on the wire: it was there with the doorbell.
TEST(BlueFlame, IsFast)
{
	kverbs_cost cost = articles();

	cost.blueflame_bytes = 64;
	EXPECT_EQ(ring(cost, {inlined(28)}), times{950});
	EXPECT_EQ(ring(cost, {write(64)}), times{2150}) << "its payload is read";
	EXPECT_EQ(ring(cost, {inlined(29)}), times{1350}) << "128 bytes: too long";
	EXPECT_EQ(ring(cost, {inlined(28), inlined(28)}), (times{1350, 1500})) << "not alone";
}

// The share of doorbells and the saving by one for four, inline: the articles' 38 % and
// 62 % lie between signaling each and signaling one in four.
TEST(Articles, PcieOfTheirModes)
{
	const double requests = 64;
	kverbs_cost cost = articles();
	kverbs_cost_run each = {}, four = {};

	for (int i = 0; i < 64; i++)
		ring(cost, each, 0, {inlined(28)});
	for (int i = 0; i < 16; i++)
		ring(cost, four, 0, std::vector(4, inlined(28)));
	auto total = [](const kverbs_cost_run &run, double cqes) {
		return run.doorbells + run.wqe_fetches + run.payload_reads + cqes;
	};
	EXPECT_LT(each.doorbells / total(each, requests), 0.38);
	EXPECT_GT(each.doorbells / total(each, requests / 4), 0.38);
	EXPECT_LT(1 - total(four, requests) / total(each, requests), 0.62);
	EXPECT_GT(1 - total(four, requests / 4) / total(each, requests / 4), 0.62);
}

kverbs_cost random_cost(dice &dice)
{
	kverbs_cost cost = zero();

	cost.doorbell_ns = dice(2000);
	cost.notice_ns = dice(2000);
	cost.fetch_ns = dice(2000);
	cost.fetch_bytes = 64U << dice(4);
	cost.parse_ns = dice(2000);
	cost.payload_ns = dice(2000);
	cost.wire_ns = dice(2000);
	cost.wire_ns_per_kib = dice(2000);
	cost.blueflame_bytes = dice(3) * 64;
	return cost;
}

std::vector<std::vector<kverbs_cost_wqe>> random_doorbells(dice &dice)
{
	std::vector<std::vector<kverbs_cost_wqe>> doorbells(1 + dice(4));

	for (auto &wqes : doorbells)
		for (auto left = 1 + dice(5); left; left--)
			wqes.push_back(dice(2) ? inlined(dice(400)) : write(dice(10'000)));
	return doorbells;
}

struct outcome {
	times executed;
	kverbs_cost_run run;
};

outcome play(const kverbs_cost &cost, const std::vector<std::vector<kverbs_cost_wqe>> &doorbells,
	     __u64 gap)
{
	outcome result = {};
	__u64 now = 0;

	for (const auto &wqes : doorbells) {
		for (auto time : ring(cost, result.run, now, wqes))
			result.executed.push_back(time);
		now += gap;
	}
	return result;
}

void none_before(const times &later, const times &sooner)
{
	ASSERT_EQ(later.size(), sooner.size());
	for (std::size_t i = 0; i < later.size(); i++)
		ASSERT_GE(later[i], sooner[i]);
}

// In order, whatever they are; a constant that grows makes nothing sooner.
TEST(Any, MonotonousInEachConstant)
{
	__u32 kverbs_cost::*const fields[] = {
		&kverbs_cost::notice_ns,  &kverbs_cost::fetch_ns, &kverbs_cost::parse_ns,
		&kverbs_cost::payload_ns, &kverbs_cost::wire_ns,  &kverbs_cost::wire_ns_per_kib,
	};

	for (std::uint64_t i = 0; i < 20'000; i++) {
		dice dice(selftest::seed() + i);
		kverbs_cost cost = random_cost(dice);
		auto doorbells = random_doorbells(dice);
		__u64 gap = dice(5000);
		outcome was = play(cost, doorbells, gap);

		for (std::size_t j = 1; j < was.executed.size(); j++)
			ASSERT_GE(was.executed[j], was.executed[j - 1]);
		for (auto field : fields) {
			kverbs_cost dearer = cost;

			dearer.*field += 1 + dice(1000);
			none_before(play(dearer, doorbells, gap).executed, was.executed);
		}
	}
}

// Larger reads and BlueFlame make nothing later, and save transactions.
TEST(Any, WhatSavesReads)
{
	for (std::uint64_t i = 0; i < 20'000; i++) {
		dice dice(selftest::seed() + i);
		kverbs_cost cost = random_cost(dice);
		auto doorbells = random_doorbells(dice);
		outcome was = play(cost, doorbells, 1000);
		kverbs_cost larger = cost, flame = cost;

		larger.fetch_bytes *= 2;
		none_before(was.executed, play(larger, doorbells, 1000).executed);
		ASSERT_LE(play(larger, doorbells, 1000).run.wqe_fetches, was.run.wqe_fetches);

		flame.blueflame_bytes += 64;
		outcome now = play(flame, doorbells, 1000);
		none_before(was.executed, now.executed);
		ASSERT_LE(now.run.wqe_fetches, was.run.wqe_fetches);
		ASSERT_GE(now.run.blueflames, was.run.blueflames);
		ASSERT_EQ(now.run.payload_reads, was.run.payload_reads);
	}
}

// A doorbell reads the bytes of its WQEs once, and no more than it must.
TEST(Any, ReadsAreTheBytes)
{
	for (std::uint64_t i = 0; i < 20'000; i++) {
		dice dice(selftest::seed() + i);
		kverbs_cost cost = random_cost(dice);
		auto doorbells = random_doorbells(dice);
		__u32 want = 0;

		for (const auto &wqes : doorbells) {
			__u32 bytes = 0;

			for (const auto &wqe : wqes)
				bytes += wqe.bytes;
			if (wqes.size() > 1 || bytes > cost.blueflame_bytes)
				want += (bytes + cost.fetch_bytes - 1) / cost.fetch_bytes;
		}
		ASSERT_EQ(play(cost, doorbells, 0).run.wqe_fetches, want);
	}
}

} // namespace
