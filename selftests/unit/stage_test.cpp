// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// The stage, step by step: producers, owner, worker and retirement are taken apart into
// their atomic steps, which a million random schedules put together again. Every place is
// taken exactly once and in order, a producer's in the order of its posts; there is one
// owner at a time; credits never exceed the depth; at the end nothing is left.

#include <array>
#include <bit>
#include <gtest/gtest.h>
#include <vector>

#include <kverbs/core/batch.h>
#include <kverbs/core/stage.h>

#include "seed.hpp"

namespace
{

using selftest::dice;

constexpr int schedules = 1'000'000;
constexpr std::uint32_t producers = 3;
constexpr std::uint32_t ring_size = 16;

struct place {
	bool published = false;
	std::uint32_t producer = 0;
	std::uint32_t number = 0;
	std::uint32_t nr = 0;
};

// Whoever may own the turn: a producer or the worker.
struct actor {
	enum { idle, reserved, turn } at = idle;
	bool owner = false;
	std::uint32_t pos = 0;
	std::uint32_t nr = 0;
	std::uint32_t taken = 0; // in this turn
};

class schedule
{
      public:
	schedule(std::uint64_t seed, std::uint32_t depth, std::uint32_t start)
		: dice_(seed), depth_(depth), head_(start)
	{
		kverbs_stage_init(&stage_, depth);
		stage_.word = static_cast<std::uint64_t>(start) << KVERBS_STAGE_TAIL_SHIFT;
		stage_.taken = start;
	}

	void run(int steps)
	{
		while (steps--)
			step(dice_(producers + 2));
		finish();
	}

      private:
	void step(std::uint32_t who)
	{
		if (who < producers)
			advance(actors_[who], who);
		else if (who == producers)
			work();
		else
			retire();
		check();
	}

	void check()
	{
		std::uint32_t owners = 0;

		for (const actor &each : actors_)
			owners += each.at == actor::turn ||
				  (each.at == actor::reserved && each.owner);
		ASSERT_LE(owners, 1U);
		ASSERT_EQ(owners == 1, (stage_.word & KVERBS_STAGE_OWNED) != 0);
		ASSERT_LE(kverbs_stage_tail(&stage_) - head_, depth_);
		ASSERT_EQ(kverbs_stage_room(&stage_, &head_),
			  depth_ - (kverbs_stage_tail(&stage_) - head_));
	}

	void advance(actor &self, std::uint32_t who)
	{
		if (self.at == actor::turn)
			own(self);
		else if (self.at == actor::reserved)
			publish(self, who);
		else
			reserve(self, who);
	}

	void reserve(actor &self, std::uint32_t who)
	{
		bool own = !dice_.one_in(3);

		self.nr = 1 + dice_(std::min(depth_, 3U));
		switch (kverbs_stage_reserve(&stage_, &head_, self.nr, own, &self.pos)) {
		case KVERBS_RESERVED:
			self.owner = false;
			break;
		case KVERBS_RESERVED_OWNER:
			ASSERT_TRUE(own);
			self.owner = true;
			break;
		case KVERBS_RESERVE_FULL:
			ASSERT_GT(self.nr, depth_ - (kverbs_stage_tail(&stage_) - head_));
			try_turn(self);
			return;
		default:
			FAIL();
		}
		self.at = actor::reserved;
		ASSERT_FALSE(at(self.pos).published);
		at(self.pos).producer = who;
	}

	void publish(actor &self, std::uint32_t who)
	{
		place &first = at(self.pos);

		ASSERT_EQ(first.producer, who);
		first = {true, who, posted_[who]++, self.nr};
		self.taken = 0;
		self.at = self.owner ? actor::turn : actor::idle;
	}

	void try_turn(actor &self)
	{
		if (kverbs_stage_waiting(&stage_) && kverbs_stage_own(&stage_)) {
			self.taken = 0;
			self.at = actor::turn;
		}
	}

	void own(actor &self)
	{
		if (!kverbs_stage_waiting(&stage_)) {
			if (kverbs_stage_release(&stage_))
				self.at = actor::idle;
			return;
		}
		place &next = at(stage_.taken);
		if (!next.published || self.taken > KVERBS_TURN_POSTS) {
			worker_is_due_ = true;
			kverbs_stage_leave(&stage_);
			self.at = actor::idle;
			return;
		}
		ASSERT_EQ(next.number, taken_[next.producer]);
		taken_[next.producer]++;
		self.taken++;
		kverbs_stage_take(&stage_, stage_.taken + next.nr);
	}

	void work()
	{
		actor &worker = actors_[producers];

		if (worker.at == actor::turn) {
			own(worker);
		} else if (worker_is_due_) {
			worker_is_due_ = false;
			try_turn(worker);
		}
	}

	void retire()
	{
		while (head_ != stage_.taken && !dice_.one_in(3)) {
			std::uint32_t nr = at(head_).nr;

			at(head_).published = false;
			head_ += nr;
		}
	}

	// Everybody finishes what he is at, and flushes; nobody posts any more.
	void finish()
	{
		for (actor &each : actors_)
			while (each.at != actor::idle)
				advance(each, static_cast<std::uint32_t>(&each - actors_.data()));
		try_turn(actors_[0]);
		while (actors_[0].at != actor::idle)
			own(actors_[0]);
		ASSERT_EQ(kverbs_stage_waiting(&stage_), 0U);
		ASSERT_EQ(posted_, taken_);
		ASSERT_EQ(stage_.word & KVERBS_STAGE_OWNED, 0U);
	}

	place &at(std::uint32_t pos)
	{
		return ring_[pos % ring_size];
	}

	dice dice_;
	std::uint32_t depth_;
	kverbs_stage stage_{};
	__u32 head_;
	std::array<place, ring_size> ring_{};
	std::array<actor, producers + 1> actors_{};
	std::array<std::uint32_t, producers> posted_{};
	std::array<std::uint32_t, producers> taken_{};
	bool worker_is_due_ = false;
};

TEST(Stage, EveryScheduleTakesEachPlaceOnceAndInOrder)
{
	for (int i = 0; i < schedules && !::testing::Test::HasFatalFailure(); i++) {
		dice dice(selftest::seed() + static_cast<std::uint64_t>(i));
		std::uint32_t depth = 1 + dice(ring_size);
		// Half of them wrap.
		std::uint32_t start = dice.one_in(2) ? dice(100) : 0U - dice(100);

		schedule(dice(), depth, start).run(20 + static_cast<int>(dice(60)));
	}
}

TEST(Stage, DepthOneTakesOneAtATime)
{
	kverbs_stage stage;
	__u32 head = 0, pos = 0;

	kverbs_stage_init(&stage, 1);
	for (std::uint32_t i = 0; i < 1000; i++) {
		ASSERT_EQ(kverbs_stage_reserve(&stage, &head, 1, true, &pos),
			  KVERBS_RESERVED_OWNER);
		ASSERT_EQ(pos, i);
		ASSERT_EQ(kverbs_stage_reserve(&stage, &head, 1, true, &pos), KVERBS_RESERVE_FULL);
		ASSERT_FALSE(kverbs_stage_release(&stage));
		kverbs_stage_take(&stage, i + 1);
		ASSERT_TRUE(kverbs_stage_release(&stage));
		head = i + 1;
	}
}

TEST(Stage, AGroupAboveTheDepthNeverFits)
{
	for (std::uint32_t depth = 1; depth < 40; depth++) {
		kverbs_stage stage;
		__u32 head = 0, pos = 0;

		kverbs_stage_init(&stage, depth);
		EXPECT_EQ(kverbs_stage_reserve(&stage, &head, depth + 1, true, &pos),
			  KVERBS_RESERVE_FULL);
		EXPECT_EQ(kverbs_stage_reserve(&stage, &head, depth, true, &pos),
			  KVERBS_RESERVED_OWNER);
	}
}

// A head that moved on after the tail was read looks like more than there is: no room, not
// room for four thousand million.
TEST(Stage, AHeadBeyondTheTailIsNoRoom)
{
	kverbs_stage stage;
	__u32 head = 5;

	kverbs_stage_init(&stage, 8);
	EXPECT_EQ(kverbs_stage_room(&stage, &head), 0U);
}

TEST(Stage, AClosedStageTakesNothingUntilItIsOpened)
{
	kverbs_stage stage;
	__u32 head = 0, pos = 0;

	kverbs_stage_init(&stage, 8);
	ASSERT_EQ(kverbs_stage_reserve(&stage, &head, 3, false, &pos), KVERBS_RESERVED);
	kverbs_stage_close(&stage);
	EXPECT_EQ(kverbs_stage_reserve(&stage, &head, 1, true, &pos), KVERBS_RESERVE_CLOSED);
	EXPECT_EQ(kverbs_stage_waiting(&stage), 3U);
	// What is staged can still be taken.
	ASSERT_TRUE(kverbs_stage_own(&stage));
	EXPECT_FALSE(kverbs_stage_own(&stage));
	EXPECT_FALSE(kverbs_stage_release(&stage));
	kverbs_stage_take(&stage, 3);
	EXPECT_TRUE(kverbs_stage_release(&stage));
	kverbs_stage_open(&stage);
	EXPECT_EQ(kverbs_stage_reserve(&stage, &head, 1, true, &pos), KVERBS_RESERVED_OWNER);
	EXPECT_EQ(pos, 3U);
}

} // namespace
