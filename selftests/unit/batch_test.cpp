// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Batching that is free: what is posted together, and that nothing is left behind.

#include <cstdint>
#include <functional>
#include <gtest/gtest.h>
#include <iostream>

#include "batch_queue.hpp"
#include "seed.hpp"

namespace
{

using selftest::batch_queue;
using selftest::dice;

constexpr std::uint32_t max32 = ~0U;
constexpr kverbs_batch_policy policies[] = {KVERBS_BATCH_DYNAMIC, KVERBS_BATCH_EACH,
					    KVERBS_BATCH_FOUR};

kverbs_batch rule(kverbs_batch_policy policy, std::uint32_t depth = 256, std::uint64_t hold_ns = 0)
{
	kverbs_batch batch;

	EXPECT_TRUE(kverbs_batch_init(&batch, policy, depth, hold_ns));
	return batch;
}

TEST(Batch, TwoChainsFit)
{
	EXPECT_EQ(kverbs_batch_limit(1), 1U);
	for (std::uint32_t depth = 2; depth < 5000; depth++) {
		std::uint32_t limit = kverbs_batch_limit(depth);

		ASSERT_GE(limit, 1U);
		ASSERT_LE(2 * limit, depth);
		ASSERT_LE(limit, KVERBS_BATCH_MAX);
		ASSERT_GE(limit, kverbs_batch_limit(depth - 1));
	}
	EXPECT_EQ(kverbs_batch_limit(max32), KVERBS_BATCH_MAX);
}

TEST(Batch, RefusesWhatIsNoPolicy)
{
	kverbs_batch batch;

	EXPECT_FALSE(kverbs_batch_init(&batch, KVERBS_BATCH_NR_POLICIES, 64, 0));
	EXPECT_FALSE(kverbs_batch_init(&batch, max32, 64, 0));
	EXPECT_FALSE(kverbs_batch_init(&batch, KVERBS_BATCH_EACH, 64, 1)) << "nothing to hold";
}

TEST(Batch, AChainsWorthDoesNotWait)
{
	for (kverbs_batch_policy policy : policies) {
		kverbs_batch batch = rule(policy);

		for (bool passing : {false, true})
			for (bool more : {false, true})
				for (std::uint32_t waiting : {batch.limit, batch.limit + 1, max32})
					EXPECT_EQ(kverbs_batch_next(&batch, waiting, passing, more,
								    false),
						  KVERBS_BATCH_GO);
	}
	kverbs_batch batch = rule(KVERBS_BATCH_DYNAMIC, 256, 1000);

	EXPECT_EQ(kverbs_batch_next(&batch, 64, false, false, true), KVERBS_BATCH_GO);
	EXPECT_EQ(kverbs_batch_next(&batch, 63, false, false, true), KVERBS_BATCH_HOLD);
	EXPECT_EQ(kverbs_batch_next(&batch, 63, true, false, true), KVERBS_BATCH_PASS);
}

TEST(Batch, AGroupIsNeverSplit)
{
	for (kverbs_batch_policy policy : policies) {
		kverbs_batch batch = rule(policy);

		EXPECT_TRUE(kverbs_batch_takes(&batch, 0, 1));
		EXPECT_TRUE(kverbs_batch_takes(&batch, 0, 10 * KVERBS_BATCH_MAX));
		EXPECT_FALSE(kverbs_batch_takes(&batch, batch.limit, 1));
		EXPECT_FALSE(kverbs_batch_takes(&batch, 1, batch.limit));
	}
}

// A queue whose posts are counted, and whose groups are all to end once, in order.
class counted
{
      public:
	counted(kverbs_batch_policy policy, std::uint32_t depth, std::uint64_t hold_ns = 0)
		: queue(policy, depth, hold_ns)
	{
		queue.driver = [this](std::uint32_t, std::uint32_t nr) {
			EXPECT_GT(nr, 0U) << "a post without a new work request";
			posts++;
			wrs += nr;
			if (nr > largest)
				largest = nr;
			if (on_post)
				on_post();
		};
		queue.done = [this](std::uint64_t tag) {
			EXPECT_GT(tag, last_tag_) << "doubled or out of order";
			last_tag_ = tag;
			ended++;
			if (on_done)
				on_done();
		};
	}

	// Its driver may let others post, also if this one is refused: they come after it.
	bool post(std::uint32_t nr = 1, bool more = false)
	{
		bool taken = queue.post(nr, next_tag_++, more);

		accepted += taken;
		return taken;
	}

	batch_queue queue;
	std::function<void()> on_post;
	std::function<void()> on_done;
	std::uint64_t posts = 0;
	std::uint64_t wrs = 0;
	std::uint64_t accepted = 0;
	std::uint64_t ended = 0;
	std::uint32_t largest = 0;

      private:
	std::uint64_t next_tag_ = 1;
	std::uint64_t last_tag_ = 0;
};

// Each request follows the end of the one before: no policy makes it wait.
TEST(Batch, AtDepthOneEachIsOnePost)
{
	for (kverbs_batch_policy policy : policies) {
		for (std::uint32_t depth : {1U, 2U, 64U, 1000U}) {
			counted q(policy, depth);
			int left = 1000;

			q.on_done = [&] {
				if (--left) {
					ASSERT_TRUE(q.post());
				}
			};
			ASSERT_TRUE(q.post());
			while (q.ended != 1000) {
				ASSERT_EQ(q.queue.in_flight(), 1U);
				q.queue.pass(1);
			}
			EXPECT_EQ(q.posts, 1000U);
		}
	}
}

// What gathers while one is in the driver goes by the chain.
TEST(Batch, ABacklogIsPostedBySixtyFour)
{
	for (std::uint32_t chains : {1U, 2U, 7U, 15U}) {
		counted q(KVERBS_BATCH_DYNAMIC, 2048);

		q.on_post = [&] {
			q.on_post = nullptr;
			for (std::uint32_t i = 0; i < 64 * chains; i++)
				ASSERT_TRUE(q.post());
		};
		ASSERT_TRUE(q.post());
		EXPECT_EQ(q.posts, 1 + chains);
		EXPECT_EQ(q.wrs, 1 + 64 * chains);
	}
}

TEST(Batch, APassIsPostedBySixtyFour)
{
	for (std::uint32_t nr : {64U, 128U, 512U}) {
		counted q(KVERBS_BATCH_DYNAMIC, 1024);

		for (std::uint32_t i = 0; i < nr; i++)
			ASSERT_TRUE(q.post(1, i + 1 < nr));
		EXPECT_EQ(q.posts, nr / 64);
		q.on_done = [&] { ASSERT_TRUE(q.post()); };
		for (int round = 2; round < 10; round++) {
			q.queue.pass(max32);
			EXPECT_EQ(q.posts, round * nr / 64);
			EXPECT_EQ(q.queue.waiting(), 0U);
		}
	}
}

TEST(Batch, EachMeansEach)
{
	counted q(KVERBS_BATCH_EACH, 256);

	q.on_done = [&] { ASSERT_TRUE(q.post()); };
	for (int i = 0; i < 100; i++)
		ASSERT_TRUE(q.post(1, i % 3));
	EXPECT_EQ(q.posts, 100U);
	q.queue.pass(max32);
	EXPECT_EQ(q.posts, q.wrs);
	EXPECT_EQ(q.largest, 1U);
}

TEST(Batch, FourMeansFour)
{
	counted q(KVERBS_BATCH_FOUR, 256);

	ASSERT_TRUE(q.post());
	EXPECT_EQ(q.posts, 1U) << "nothing was in flight";
	for (int i = 0; i < 40; i++)
		ASSERT_TRUE(q.post());
	EXPECT_EQ(q.posts, 11U);
	for (int i = 0; i < 3; i++)
		ASSERT_TRUE(q.post());
	EXPECT_EQ(q.posts, 11U);
	q.queue.pass(1);
	EXPECT_EQ(q.posts, 12U) << "the pass takes what is short of four";
	EXPECT_EQ(q.wrs, 44U);
}

// Whoever promised more has broken it by the end of a schedule, so that somebody flushes.
class schedule
{
      public:
	explicit schedule(std::uint64_t seed)
		: dice_(seed), policy_(policies[dice_(3)]),
		  depth_(1 + dice_(dice_.one_in(2) ? 8 : 200)),
		  hold_(policy_ != KVERBS_BATCH_EACH && dice_.one_in(4)), q_(policy_, depth_, hold_)
	{
		q_.on_post = [this] { others_post(); };
		q_.on_done = [this] { others_post(); };
	}

	void run()
	{
		for (std::uint32_t steps = 1 + dice_(12); steps; steps--) {
			step();
			expect_nothing_left();
			if (testing::Test::HasFailure())
				return;
		}
		end();
	}

	std::uint64_t posts() const
	{
		return q_.posts;
	}

      private:
	void post(bool more)
	{
		std::uint32_t nr = 1 + dice_(depth_ < 3 ? depth_ : 3);

		// A burst that ends with a refusal is flushed: kmod/post.c refuse_last().
		if (q_.post(nr, more))
			promised_ = more;
		else if (!more)
			promised_ = false;
	}

	// In the driver, or in a callback.
	void others_post()
	{
		if (dice_.one_in(3))
			q_.post(1, false);
	}

	void step()
	{
		switch (dice_(6)) {
		case 0:
			q_.queue.pass(1 + dice_(4));
			break;
		case 1:
			q_.queue.expire();
			break;
		case 2:
			q_.queue.work();
			break;
		case 3:
			post(true);
			break;
		default:
			post(false);
		}
	}

	// Between two steps: who is it that comes for what is staged?
	void expect_nothing_left()
	{
		if (!q_.queue.waiting() || promised_ || q_.queue.worker_called)
			return;
		if (q_.queue.hold_armed && hold_)
			return;
		ASSERT_TRUE(policy_ == KVERBS_BATCH_FOUR && q_.queue.signaled_in_flight())
			<< "policy " << policy_ << ", depth " << depth_ << ", "
			<< q_.queue.waiting() << " left";
	}

	void end()
	{
		if (promised_)
			q_.queue.flush();
		for (int i = 0; i < 5000 && (q_.queue.waiting() || q_.queue.in_flight()); i++) {
			if (q_.queue.worker_called)
				q_.queue.work();
			q_.queue.expire();
			q_.queue.pass(1 + dice_(3));
		}
		ASSERT_EQ(q_.queue.waiting(), 0U);
		ASSERT_EQ(q_.queue.in_flight(), 0U);
		ASSERT_EQ(q_.ended, q_.accepted);
	}

	dice dice_;
	kverbs_batch_policy policy_;
	std::uint32_t depth_;
	bool hold_;
	counted q_;
	bool promised_ = false;
};

TEST(Batch, NothingIsLeftUnposted)
{
	std::uint64_t posts = 0;

	for (std::uint64_t i = 0; i < 1'000'000; i++) {
		schedule schedule(selftest::seed() + i);

		schedule.run();
		posts += schedule.posts();
		ASSERT_FALSE(testing::Test::HasFailure()) << "schedule " << i;
	}
	std::cout << "a million schedules, " << posts << " posts\n";
	EXPECT_GT(posts, 1'000'000U);
}

} // namespace
