// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// The line through what posts cost: it finds costs that are known, says nothing where the
// posts cannot tell, and no input makes it overflow (the sanitizers and a wider
// arithmetic watch).

#include <cstdint>
#include <gtest/gtest.h>

#include <kverbs/core/fit.h>

#include "seed.hpp"

namespace
{

using selftest::dice;

constexpr std::uint64_t most = ~std::uint64_t{0};

struct costs {
	std::uint64_t fixed_ns;
	std::uint64_t wr_ns;
};

std::uint64_t cost_of(const costs &c, std::uint32_t wrs)
{
	return c.fixed_ns + c.wr_ns * wrs;
}

// Posts of 1 to 64 that cost exactly what they should.
void feed(kverbs_fit &fit, const costs &c, dice &dice, int posts)
{
	while (posts--) {
		std::uint32_t wrs = 1 + dice(64);

		kverbs_fit_add(&fit, wrs, cost_of(c, wrs));
	}
}

// The same line, in an arithmetic that cannot overflow.
void expect_line(const kverbs_fit &fit)
{
	using wide = __int128;
	kverbs_fit_sums all = kverbs_fit_all(&fit);
	wide nr = all.nr, spread = nr * all.wrs_wrs - wide(all.wrs) * all.wrs;
	wide slope = (nr * all.wrs_ns - wide(all.wrs) * all.ns) * 1000 / spread;
	wide fixed = (wide(all.ns) * 1000 - slope * all.wrs + 500 * nr) / (1000 * nr);

	ASSERT_TRUE(fit.known);
	ASSERT_EQ(fit.wr_ps, slope > UINT32_MAX ? UINT32_MAX : std::uint32_t(slope));
	ASSERT_EQ(fit.fixed_ns, std::uint64_t(fixed));
}

TEST(Fit, DividesAsThePlainOperatorDoes)
{
	dice dice(selftest::seed());

	for (int i = 0; i < 1'000'000; i++) {
		std::uint64_t num = dice() >> dice(64), den = (dice() >> 2) >> dice(62);

		den += !den;
		ASSERT_EQ(kverbs_fit_div(num, den), num / den) << num << " / " << den;
	}
	for (std::uint64_t den : {std::uint64_t{1}, std::uint64_t{3}, (std::uint64_t{1} << 62) - 1})
		for (std::uint64_t num : {std::uint64_t{0}, den - 1, den, most})
			ASSERT_EQ(kverbs_fit_div(num, den), num / den);
}

TEST(Fit, FindsKnownCosts)
{
	dice dice(selftest::seed());

	for (int i = 0; i < 20'000; i++) {
		costs c = {dice(20'000), dice(2'000)};
		kverbs_fit fit = {};

		feed(fit, c, dice, 16 + static_cast<int>(dice(600)));
		ASSERT_TRUE(kverbs_fit_line(&fit));
		ASSERT_EQ(fit.wr_ps, c.wr_ns * 1000);
		ASSERT_EQ(fit.fixed_ns, c.fixed_ns);
	}
}

// Also where half of the posts have one work request, and half have two.
TEST(Fit, ALittleVarietyIsEnough)
{
	kverbs_fit fit = {};

	for (std::uint32_t i = 0; i < KVERBS_FIT_LEAST; i++)
		kverbs_fit_add(&fit, 1 + i % 2, cost_of({300, 45}, 1 + i % 2));
	ASSERT_TRUE(kverbs_fit_line(&fit));
	EXPECT_EQ(fit.fixed_ns, 300U);
	EXPECT_EQ(fit.wr_ps, 45'000U);
}

TEST(Fit, RefusesPostsThatAreAlike)
{
	dice dice(selftest::seed());

	for (std::uint32_t wrs : {1U, 2U, 3U, 16U, 63U, 64U, 1000U, KVERBS_FIT_WRS_MAX}) {
		kverbs_fit fit = {};

		for (int i = 0; i < 5000; i++) {
			kverbs_fit_add(&fit, wrs, dice(1'000'000));
			ASSERT_FALSE(kverbs_fit_line(&fit)) << wrs;
		}
		EXPECT_FALSE(fit.known);
	}
}

// One of thirty is larger by one: what it took says little.
TEST(Fit, RefusesTooLittleVariety)
{
	kverbs_fit fit = {};

	for (int i = 0; i < 600; i++) {
		kverbs_fit_add(&fit, i % 30 ? 8 : 9, 1000);
		ASSERT_FALSE(kverbs_fit_line(&fit));
	}
}

TEST(Fit, RefusesTooFew)
{
	kverbs_fit fit = {};

	EXPECT_FALSE(kverbs_fit_line(&fit));
	for (std::uint32_t i = 1; i < KVERBS_FIT_LEAST; i++) {
		kverbs_fit_add(&fit, i, 100 + i);
		EXPECT_FALSE(kverbs_fit_line(&fit));
	}
	kverbs_fit_add(&fit, KVERBS_FIT_LEAST, 100 + KVERBS_FIT_LEAST);
	EXPECT_TRUE(kverbs_fit_line(&fit));
}

// A longer post that takes less time, or one of no work request that would take less than
// none: that is noise.
TEST(Fit, RefusesCostsBelowNothing)
{
	kverbs_fit falls = {}, below = {};

	for (std::uint32_t i = 0; i < 100; i++) {
		std::uint32_t wrs = 1 + i % 10;

		kverbs_fit_add(&falls, wrs, 1000 - 10 * wrs);
		kverbs_fit_add(&below, wrs, 100 * wrs - 100);
	}
	EXPECT_FALSE(kverbs_fit_line(&falls));
	EXPECT_FALSE(kverbs_fit_line(&below));
}

TEST(Fit, KeepsTheLastGoodOne)
{
	dice dice(selftest::seed());
	kverbs_fit fit = {};

	feed(fit, {500, 40}, dice, 200);
	ASSERT_TRUE(kverbs_fit_line(&fit));
	for (int i = 0; i < 3000; i++)
		kverbs_fit_add(&fit, 16, 900);
	EXPECT_FALSE(kverbs_fit_line(&fit));
	EXPECT_TRUE(fit.known);
	EXPECT_EQ(fit.fixed_ns, 500U);
	EXPECT_EQ(fit.wr_ps, 40'000U);
}

// New costs, dearer or cheaper by far, are found within some rounds.
TEST(Fit, ForgetsTheOldOnes)
{
	dice dice(selftest::seed());
	const costs all[] = {{500, 40}, {50'000, 3000}, {20, 1}, {0, 0}, {100'000, 0}};
	kverbs_fit fit = {};

	for (const costs &c : all) {
		feed(fit, c, dice, 8 * KVERBS_FIT_ROUND);
		ASSERT_TRUE(kverbs_fit_line(&fit));
		EXPECT_EQ(fit.fixed_ns, c.fixed_ns);
		EXPECT_EQ(fit.wr_ps, c.wr_ns * 1000);
	}
}

// One post in a hundred is interrupted for a millisecond.
TEST(Fit, IsNotMisledByInterruptions)
{
	dice dice(selftest::seed());
	costs c = {800, 50};
	kverbs_fit fit = {};
	std::uint64_t fixed = 0, rounds = 0;

	for (int i = 0; i < 200'000; i++) {
		std::uint32_t wrs = 1 + dice(64);
		std::uint64_t late = dice.one_in(100) ? 1'000'000 : 0;

		kverbs_fit_add(&fit, wrs, cost_of(c, wrs) + late);
		if (i % 64 == 63 && kverbs_fit_line(&fit)) {
			fixed += fit.fixed_ns;
			rounds++;
		}
	}
	ASSERT_GT(rounds, 0U);
	// By as much as 10,000 ns, if they counted in full.
	EXPECT_LT(fixed / rounds, 2 * c.fixed_ns);
}

TEST(Fit, IgnoresWhatIsNoSample)
{
	kverbs_fit fit = {};

	kverbs_fit_add(&fit, 0, 100);
	kverbs_fit_add(&fit, KVERBS_FIT_WRS_MAX + 1, 100);
	kverbs_fit_add(&fit, ~0U, 100);
	kverbs_fit_add(&fit, 1, KVERBS_FIT_NS_MAX + 1);
	kverbs_fit_add(&fit, 1, most);
	kverbs_fit_add(&fit, 1, std::uint64_t{100} - 200);
	EXPECT_EQ(fit.now.nr, 0U);
	EXPECT_FALSE(kverbs_fit_line(&fit));
}

TEST(Fit, NothingCostsNothing)
{
	dice dice(selftest::seed());
	kverbs_fit fit = {};

	feed(fit, {0, 0}, dice, 1000);
	ASSERT_TRUE(kverbs_fit_line(&fit));
	EXPECT_EQ(fit.fixed_ns, 0U);
	EXPECT_EQ(fit.wr_ps, 0U);
}

// Samples of every size, the greatest often among them: each line is the one that
// arithmetic without limits gives.
TEST(Fit, DoesNotOverflow)
{
	dice dice(selftest::seed());

	for (int i = 0; i < 2'000; i++) {
		std::uint32_t wrs_max = dice.one_in(2) ? KVERBS_FIT_WRS_MAX : 1 + dice(64);
		std::uint32_t ns_max = dice.one_in(2) ? KVERBS_FIT_NS_MAX : 1 + dice(100'000);
		kverbs_fit fit = {};

		for (int n = 0; n < 600; n++) {
			std::uint32_t wrs = dice.one_in(2) ? wrs_max : 1 + dice(wrs_max);
			std::uint64_t ns = dice.one_in(2) ? ns_max : dice(ns_max);

			kverbs_fit_add(&fit, wrs, ns);
			if (kverbs_fit_line(&fit))
				expect_line(fit);
			if (testing::Test::HasFatalFailure())
				return;
		}
	}
}

} // namespace
