// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Who asks for a CQE, against a model of a queue that is retired by CQEs only: places
// always come back, and nothing silent is ever the last.

#include <cstdint>
#include <deque>
#include <gtest/gtest.h>

#include <kverbs/core/batch.h>
#include <kverbs/core/signal.h>

#include "seed.hpp"

namespace
{

using selftest::dice;

struct group {
	std::uint32_t nr;
	bool signaled;
};

// Posts what is staged chain by chain, as the owner does; the HCA retires up to the
// signaled one that it has come to.
class model
{
      public:
	model(std::uint32_t depth, std::uint64_t seed)
		: dice_(seed), depth_(depth), limit_(kverbs_batch_limit(depth))
	{
		kverbs_signal_init(&signal_, depth);
	}

	std::uint32_t room() const
	{
		return depth_ - used_;
	}

	void stage(std::uint32_t nr)
	{
		ASSERT_LE(nr, room());
		staged_.push_back({nr, false});
		used_ += nr;
	}

	void flush()
	{
		while (!staged_.empty()) {
			std::uint32_t chain = 0;

			do {
				group next = staged_.front();

				if (chain && chain + next.nr > limit_)
					break;
				staged_.pop_front();
				chain += next.nr;
				post(next, staged_.empty());
			} while (!staged_.empty() && chain < limit_);
		}
		// Nothing follows: whatever is in flight, the last of it is signaled.
		ASSERT_TRUE(in_flight_.empty() || in_flight_.back().signaled);
		ASSERT_EQ(signal_.run, 0U);
	}

	// One CQE, if any is to come.
	bool complete()
	{
		std::uint32_t retired = 0;

		for (std::size_t i = 0; i < in_flight_.size(); i++) {
			retired += in_flight_[i].nr;
			if (!in_flight_[i].signaled)
				continue;
			in_flight_.erase(in_flight_.begin(),
					 in_flight_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
			used_ -= retired;
			return true;
		}
		return false;
	}

	std::uint32_t random(std::uint32_t below)
	{
		return dice_(below);
	}

	bool empty() const
	{
		return used_ == 0;
	}

	std::uint64_t posted = 0;
	std::uint64_t signaled = 0;

      private:
	void post(group next, bool must)
	{
		std::uint32_t before = signal_.run;

		next.signaled = kverbs_signal_next(&signal_, next.nr, must);
		// Never more silent in a row than the interval allows.
		ASSERT_LT(before, signal_.interval);
		ASSERT_TRUE(next.signaled || signal_.run < signal_.interval);
		in_flight_.push_back(next);
		posted += next.nr;
		signaled += next.signaled;
	}

	dice dice_;
	std::uint32_t depth_;
	std::uint32_t limit_;
	std::uint32_t used_ = 0;
	kverbs_signal signal_{};
	std::deque<group> staged_;
	std::deque<group> in_flight_;
};

// Whoever finds no room flushes, and then there is a CQE to wait for.
void run(model &queue, std::uint32_t depth, int steps)
{
	while (steps-- && !::testing::Test::HasFatalFailure()) {
		std::uint32_t nr = 1 + queue.random(std::min(depth, 5U));

		while (queue.room() < nr) {
			queue.flush();
			ASSERT_TRUE(queue.complete()) << "no room, and no CQE to come";
		}
		queue.stage(nr);
		if (queue.random(4) == 0)
			queue.flush();
		if (queue.random(3) == 0)
			queue.complete();
	}
	queue.flush();
	while (queue.complete())
		;
	ASSERT_TRUE(queue.empty());
}

TEST(Signal, PlacesAlwaysComeBack)
{
	for (std::uint64_t i = 0; i < 20'000 && !::testing::Test::HasFatalFailure(); i++) {
		dice dice(selftest::seed() + i);
		std::uint32_t depth = 1 + dice(dice.one_in(2) ? 20 : 600);
		model queue(depth, dice());

		run(queue, depth, 100);
	}
}

// Ten times the depth of posts on an idle queue: each asks, since nothing follows it.
TEST(Signal, OnAnIdleQueueEachAsks)
{
	for (std::uint32_t depth : {1U, 2U, 3U, 64U, 1000U}) {
		model queue(depth, 1);

		for (std::uint32_t i = 0; i < 10 * depth; i++) {
			queue.stage(1);
			queue.flush();
			ASSERT_TRUE(queue.complete());
		}
		EXPECT_EQ(queue.signaled, queue.posted);
	}
}

// Under load a quarter of the queue is silent in a row, and no more.
TEST(Signal, UnderLoadFewAsk)
{
	for (std::uint32_t depth : {16U, 128U, 1024U}) {
		model queue(depth, 1);

		for (std::uint32_t i = 0; i < 100 * depth; i++) {
			while (queue.room() < 1) {
				queue.flush();
				ASSERT_TRUE(queue.complete());
			}
			queue.stage(1);
		}
		queue.flush();
		EXPECT_LE(queue.signaled * (depth / 4), queue.posted + depth);
	}
}

TEST(Signal, DepthsBelowFourAskEachTime)
{
	for (std::uint32_t depth : {1U, 2U, 3U}) {
		kverbs_signal signal;

		kverbs_signal_init(&signal, depth);
		for (int i = 0; i < 10; i++)
			EXPECT_TRUE(kverbs_signal_next(&signal, 1, false));
	}
}

} // namespace
