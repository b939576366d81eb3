// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// When it pays to poll, in a world of its own: completions come at given times, a poll
// and an event cost so much, and the poller does what the verdicts say. Nanoseconds.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

#include <kverbs/core/pollmode.h>

#include "seed.hpp"

namespace
{

using selftest::dice;
using arrivals = std::vector<std::uint64_t>;

constexpr std::uint64_t ms = 1000000;

struct costs {
	std::uint64_t event = 6000; // from the event to its pass
	std::uint64_t poll = 100;
	std::uint64_t pass = 300; // beside the poll that found something
};

struct outcome {
	std::vector<std::uint64_t> latencies;
	std::uint64_t events = 0;
	std::uint64_t empty_polls = 0;
	std::uint64_t clock_reads = 0;
	std::uint64_t spun = 0;      // time of empty polls
	std::uint64_t idle_spin = 0; // longest stretch of them that ended in arming
	std::uint64_t end = 0;

	std::uint64_t median() const
	{
		std::vector<std::uint64_t> sorted = latencies;

		std::nth_element(sorted.begin(), sorted.begin() + sorted.size() / 2, sorted.end());
		return sorted[sorted.size() / 2];
	}

	double events_per_completion() const
	{
		return static_cast<double>(events) / static_cast<double>(latencies.size());
	}

	double spun_percent() const
	{
		return 100.0 * static_cast<double>(spun) / static_cast<double>(end);
	}
};

// The poller over one completion queue, from the first arrival to a while after the last.
class world
{
      public:
	world(arrivals at, costs cost) : at_(std::move(at)), cost_(cost)
	{
	}

	outcome run(kverbs_pollmode mode)
	{
		while (next_ < at_.size()) {
			wait_for_event(mode);
			while (mode.window_ns && spin(mode))
				;
		}
		out_.end = now_;
		return out_;
	}

      private:
	// What is there, in one pass.
	bool poll()
	{
		bool any = false;

		now_ += cost_.poll;
		for (; next_ < at_.size() && at_[next_] <= now_; next_++, any = true)
			out_.latencies.push_back(now_ - at_[next_]);
		if (any)
			now_ += cost_.pass;
		return any;
	}

	void found(kverbs_pollmode &mode, bool spun)
	{
		std::uint64_t since = now_ - found_at_;

		found_at_ = now_;
		kverbs_pollmode_found(&mode, since, spun);
	}

	void wait_for_event(kverbs_pollmode &mode)
	{
		std::uint64_t event = std::max(now_, at_[next_]);

		out_.events++;
		now_ = event + cost_.event;
		poll();
		kverbs_pollmode_event(&mode, now_ - event);
		found(mode, false);
	}

	// Until something is found: true; or until that is given up.
	bool spin(kverbs_pollmode &mode)
	{
		std::uint64_t from = now_;

		while (!poll()) {
			out_.empty_polls++;
			out_.spun += cost_.poll;
			if (!kverbs_pollmode_empty(&mode))
				continue;
			out_.clock_reads++;
			if (kverbs_pollmode_over(&mode, now_ - found_at_)) {
				out_.idle_spin = std::max(out_.idle_spin, now_ - from);
				return false;
			}
		}
		found(mode, true);
		return true;
	}

	arrivals at_;
	costs cost_;
	outcome out_;
	std::uint64_t now_ = 0;
	std::uint64_t found_at_ = 0;
	std::size_t next_ = 0;
};

kverbs_pollmode adaptive(std::uint32_t max_latency_ns, std::uint32_t max_cpu_percent)
{
	kverbs_pollmode mode;

	kverbs_pollmode_init(&mode, 0, max_latency_ns, max_cpu_percent);
	return mode;
}

kverbs_pollmode hybrid(std::uint32_t spin_ns)
{
	kverbs_pollmode mode;

	kverbs_pollmode_init(&mode, spin_ns, 0, 0);
	return mode;
}

arrivals every(std::uint64_t gap, std::size_t n)
{
	arrivals at;

	for (std::size_t i = 1; i <= n; i++)
		at.push_back(i * gap);
	return at;
}

// Gaps by a function of the number of the completion.
arrivals shaped(std::size_t n, const std::function<std::uint64_t(std::size_t)> &gap)
{
	arrivals at;
	std::uint64_t time = 0;

	for (std::size_t i = 0; i < n; i++)
		at.push_back(time += gap(i));
	return at;
}

TEST(pollmode, who_may_spend_a_cpu_has_the_latency_of_polling)
{
	for (std::uint64_t gap : {1000U, 10000U, 100000U, 900000U}) {
		outcome got = world(every(gap, 2000), {}).run(adaptive(0, 100));

		EXPECT_LE(got.median(), costs{}.poll) << gap;
		EXPECT_LE(got.events, 20U) << gap;
	}
}

TEST(pollmode, where_events_are_soon_enough_cpu_is_not_spent)
{
	outcome got = world(every(50000, 2000), {}).run(adaptive(100000, 100));

	EXPECT_EQ(got.median(), costs{}.event + costs{}.poll);
	EXPECT_LT(got.spun_percent(), 0.2);
}

// The latency of the better fixed mode that fits: here that of interrupts.
TEST(pollmode, a_small_budget_is_kept)
{
	for (std::uint32_t percent : {1U, 5U, 20U, 50U, 90U}) {
		outcome got = world(every(30000, 40000), {}).run(adaptive(0, percent));

		EXPECT_LE(got.spun_percent(), percent + 1.0) << percent;
		EXPECT_LE(got.median(), costs{}.event + costs{}.poll) << percent;
	}
}

TEST(pollmode, no_budget_no_spinning)
{
	outcome got = world(every(1500, 5000), {}).run(adaptive(0, 0));

	EXPECT_EQ(got.empty_polls, 0U);
}

TEST(pollmode, under_load_events_are_rare)
{
	for (std::uint32_t latency : {0U, 1000000U}) {
		for (std::uint64_t gap : {50U, 300U, 1000U, 2000U}) {
			outcome got = world(every(gap, 100000), {}).run(adaptive(latency, 10));

			EXPECT_LE(got.events_per_completion(), 0.05) << gap << ' ' << latency;
		}
	}
}

TEST(pollmode, an_idle_queue_is_left_alone_after_a_millisecond)
{
	for (std::uint64_t poll : {20U, 100U, 700U}) {
		costs cost;

		cost.poll = poll;
		outcome got =
			world(shaped(3000, [](std::size_t i) { return i % 100 ? 5000 : 20 * ms; }),
			      cost)
				.run(adaptive(0, 100));

		EXPECT_GT(got.idle_spin, ms / 2) << poll;
		EXPECT_LE(got.idle_spin, ms + 2 * poll + 400) << poll;
	}
}

// What polls cost changes on the way: the window is overrun by no more than that once.
TEST(pollmode, a_fixed_window_is_kept)
{
	for (std::uint64_t poll : {10U, 33U, 150U, 1000U}) {
		costs cost;

		cost.poll = poll;
		outcome got = world(every(100000, 1000), cost).run(hybrid(20000));

		EXPECT_EQ(got.events, 1000U);
		EXPECT_LE(got.idle_spin, std::max<std::uint64_t>(20000 + 2 * poll, 202 * poll));
		EXPECT_LE(got.clock_reads, 5 * got.events) << poll;
	}
	EXPECT_EQ(world(every(15000, 1000), {}).run(hybrid(20000)).events, 1U);
}

TEST(pollmode, the_clock_is_read_seldom)
{
	outcome got = world(every(30000, 10000), {}).run(adaptive(0, 100));

	EXPECT_LE(got.clock_reads, 100U);
}

// Steps, ramps, bursts, on and off: all are served, and the budget holds for the whole.
TEST(pollmode, any_load_within_the_budget)
{
	const std::vector<std::function<std::uint64_t(std::size_t)>> loads = {
		[](std::size_t i) { return i < 20000 ? 200000 : 2000; },
		[](std::size_t i) { return 500 + i * 5; },
		[](std::size_t i) { return i % 64 ? 200 : 300000; },
		[](std::size_t i) { return i / 1000 % 2 ? 4 * ms : 1500; },
	};
	dice roll(selftest::seed());

	for (std::size_t load = 0; load < loads.size(); load++) {
		for (std::uint32_t percent : {0U, 3U, 30U, 100U}) {
			outcome got = world(shaped(40000,
						   [&](std::size_t i) {
							   return loads[load](i) / 2 + roll(1000);
						   }),
					    {})
					      .run(adaptive(roll(20000), percent));

			EXPECT_EQ(got.latencies.size(), 40000U);
			EXPECT_LE(got.spun_percent(), percent + 12.0) << load;
		}
	}
}

TEST(pollmode, nothing_is_too_odd)
{
	constexpr std::uint64_t huge = std::numeric_limits<std::uint64_t>::max();
	dice roll(selftest::seed());

	for (std::uint32_t i = 0; i < 100000; i++) {
		kverbs_pollmode mode = roll.one_in(2) ? hybrid(1 + roll(1000000))
						      : adaptive(roll(2000000), roll(101));

		for (std::uint32_t step = 0; step < 20; step++) {
			std::uint64_t ns = roll.one_in(4)   ? 0
					   : roll.one_in(4) ? huge - roll(3)
							    : roll();

			switch (roll(5)) {
			case 0:
				kverbs_pollmode_event(&mode, ns);
				break;
			case 1:
				kverbs_pollmode_found(&mode, ns, roll.one_in(2));
				break;
			case 2:
				kverbs_pollmode_over(&mode, ns);
				break;
			case 3:
				kverbs_pollmode_yield(&mode);
				break;
			default:
				kverbs_pollmode_empty(&mode);
			}
			ASSERT_LE(mode.window_ns, KVERBS_SPIN_MAX_NS);
			ASSERT_LE(mode.saved_ns, KVERBS_SPIN_SAVED_NS);
			ASSERT_LE(mode.gap_ns, 2 * KVERBS_SPIN_MAX_NS);
			ASSERT_GE(mode.poll_ns, 1U);
			ASSERT_GE(mode.look_at, 1U);
		}
	}
}

} // namespace
