// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// The stage with real threads, under the thread sanitizer: what a producer writes in its
// place is seen by the owner who takes it, what the owner keeps for himself goes from one
// owner to the next, and a place is used again only after it was retired. None of that is
// atomic here, so that a missing barrier is a data race.

#include <array>
#include <atomic>
#include <gtest/gtest.h>
#include <thread>
#include <vector>

#include <kverbs/core/batch.h>
#include <kverbs/core/stage.h>

#include "seed.hpp"

namespace
{

using selftest::dice;

constexpr std::uint32_t producers = 3;
constexpr std::uint32_t posts_each = 350'000;
constexpr std::uint32_t spins = 64;

struct place {
	__u64 published = 0; // by release and acquire
	std::uint32_t producer = 0;
	std::uint32_t number = 0;
	std::uint32_t nr = 0;
};

class queue
{
      public:
	explicit queue(std::uint32_t depth, std::uint32_t start)
		: depth_(depth), mask_(std::bit_ceil(depth) - 1), ring_(mask_ + 1), head_(start)
	{
		kverbs_stage_init(&stage_, depth);
		stage_.word = static_cast<std::uint64_t>(start) << KVERBS_STAGE_TAIL_SHIFT;
		stage_.taken = start;
		retired_ = start;
	}

	void produce(std::uint32_t who, std::uint64_t seed)
	{
		dice dice(seed);

		for (std::uint32_t i = 0; i < posts_each;) {
			if (post(who, i, 1 + dice(std::min(depth_, 3U)), !dice.one_in(4)))
				i++;
			else
				std::this_thread::yield();
		}
		try_turn();
	}

	// The worker comes for what an owner left, and the HCA retires.
	void serve()
	{
		while (!over_.load()) {
			retire();
			if (left_.exchange(false))
				try_turn();
			std::this_thread::yield();
		}
		try_turn();
		retire();
	}

	void end()
	{
		over_.store(true);
	}

	void expect_all() const
	{
		EXPECT_EQ(kverbs_stage_waiting(&stage_), 0U);
		EXPECT_EQ(stage_.word & KVERBS_STAGE_OWNED, 0U);
		for (std::uint32_t taken : taken_)
			EXPECT_EQ(taken, posts_each);
		EXPECT_EQ(out_of_order_, 0U);
	}

      private:
	bool post(std::uint32_t who, std::uint32_t number, std::uint32_t nr, bool own)
	{
		__u32 pos = 0;
		auto verdict = kverbs_stage_reserve(&stage_, &head_, nr, own, &pos);

		if (verdict > KVERBS_RESERVED_OWNER) {
			try_turn();
			return false;
		}
		place &first = at(pos);
		first.producer = who;
		first.number = number;
		first.nr = nr;
		kverbs_store_release(&first.published, 1);
		if (verdict == KVERBS_RESERVED_OWNER)
			turn();
		else if (kverbs_stage_waiting(&stage_) >= kverbs_batch_limit(depth_))
			try_turn();
		return true;
	}

	void try_turn()
	{
		if (kverbs_stage_waiting(&stage_) && kverbs_stage_own(&stage_))
			turn();
	}

	bool is_published(std::uint32_t pos)
	{
		for (std::uint32_t i = 0; i < spins; i++) {
			if (kverbs_load_acquire(&at(pos).published))
				return true;
			kverbs_relax();
		}
		return false;
	}

	void turn()
	{
		std::uint32_t posts = 0;

		do {
			while (kverbs_stage_waiting(&stage_)) {
				if (kverbs_batch_hands_over(posts++) ||
				    !is_published(stage_.taken)) {
					kverbs_stage_leave(&stage_);
					left_.store(true);
					return;
				}
				take();
			}
		} while (!kverbs_stage_release(&stage_));
	}

	// The owner's own state is plain: it is handed over with the turn.
	void take()
	{
		const place &next = at(stage_.taken);

		out_of_order_ += next.number != taken_[next.producer];
		taken_[next.producer]++;
		kverbs_stage_take(&stage_, stage_.taken + next.nr);
	}

	void retire()
	{
		std::uint32_t taken = kverbs_load_acquire(&stage_.taken);

		while (retired_ != taken) {
			place &old = at(retired_);
			std::uint32_t nr = old.nr;

			old.number = ~0U;
			kverbs_store(&old.published, 0);
			retired_ += nr;
			kverbs_store_release(&head_, retired_);
		}
	}

	place &at(std::uint32_t pos)
	{
		return ring_[pos & mask_];
	}

	std::uint32_t depth_;
	std::uint32_t mask_;
	std::vector<place> ring_;
	kverbs_stage stage_{};
	__u32 head_;
	std::uint32_t retired_ = 0;
	std::array<std::uint32_t, producers> taken_{};
	std::uint32_t out_of_order_ = 0;
	std::atomic<bool> left_ = false;
	std::atomic<bool> over_ = false;
};

class StageThreads : public ::testing::TestWithParam<std::uint32_t>
{
};

TEST_P(StageThreads, NothingIsLostDoubledOrTorn)
{
	queue queue(GetParam(), 0U - 1000);
	std::vector<std::thread> threads;
	std::thread server([&] { queue.serve(); });

	for (std::uint32_t i = 0; i < producers; i++)
		threads.emplace_back([&, i] { queue.produce(i, selftest::seed() + i); });
	for (std::thread &each : threads)
		each.join();
	queue.end();
	server.join();
	queue.expect_all();
}

INSTANTIATE_TEST_SUITE_P(Depths, StageThreads, ::testing::Values(1U, 5U, 64U));

} // namespace
