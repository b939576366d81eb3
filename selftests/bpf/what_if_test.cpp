// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// What the replay makes of posts: the core's decisions, and nothing of its own.

#include "../../lib/trace/what_if.hpp"

#include <gtest/gtest.h>

namespace
{

using kverbs::trace::post_effort;
using kverbs::trace::replay;
using kverbs::trace::replay_row;
using kverbs::trace::replayed_queue;
using kverbs::trace::seen_post;

post_effort replayed(const std::vector<seen_post> &posts)
{
	replayed_queue q;

	for (const seen_post &p : posts)
		q.post(p);
	q.end();
	return q.engine();
}

TEST(WhatIf, PostsThatMeetNobodyStayAsTheyAre)
{
	std::vector<seen_post> posts;

	for (std::uint64_t i = 0; i < 100; i++)
		posts.push_back({1000 * i, 1000, 0, 1, 1});
	EXPECT_EQ(replayed(posts), (post_effort{100, 100}));
}

TEST(WhatIf, PostsThatMeetShareTheNext)
{
	// The first is in the driver; the others come meanwhile, and go together.
	std::vector<seen_post> posts = {{0, 1000, 0, 1, 1}};

	for (std::uint64_t i = 1; i <= 9; i++)
		posts.push_back({100 * i, 1000, 0, 1, 1});
	EXPECT_EQ(replayed(posts), (post_effort{2, 2}));
	// One more, when those are in the driver; and one when nobody is.
	posts.push_back({1500, 100, 0, 1, 1});
	EXPECT_EQ(replayed(posts), (post_effort{3, 3}));
	posts.push_back({5000, 100, 0, 1, 1});
	EXPECT_EQ(replayed(posts), (post_effort{4, 4}));
}

TEST(WhatIf, APassPostsAtItsEnd)
{
	std::vector<seen_post> posts;

	for (std::uint64_t i = 0; i < 10; i++)
		posts.push_back({1000 * i, 100, 7, 1, 1});
	// Nothing else in flight is assumed, for which each has its CQE.
	EXPECT_EQ(replayed(posts), (post_effort{1, 10}));
	posts.push_back({20000, 100, 8, 1, 1});
	EXPECT_EQ(replayed(posts), (post_effort{2, 11}));
	posts.push_back({21000, 100, 0, 1, 1});
	EXPECT_EQ(replayed(posts), (post_effort{3, 12}));
}

TEST(WhatIf, AChainEndsAtTheLimit)
{
	std::vector<seen_post> posts;

	for (std::uint64_t i = 0; i < 2 * KVERBS_BATCH_MAX; i++)
		posts.push_back({i, 0, 7, 1, 1});
	EXPECT_EQ(replayed(posts).posts, 2U);
	posts.push_back({1000, 0, 7, 1, 1});
	EXPECT_EQ(replayed(posts).posts, 3U);
}

TEST(WhatIf, SilentInARowAreAQuarterOfTheQueue)
{
	std::vector<seen_post> posts = {{0, 1000, 0, 1, 1}};

	for (std::uint64_t i = 1; i <= 64; i++)
		posts.push_back({i, 1000, 0, 1, 1});
	// 64 in a chain: one after 32, one at the end; and that of the first post.
	EXPECT_EQ(replayed(posts), (post_effort{2, 3}));
}

TEST(WhatIf, WhatTheConsumerChainedIsAGroup)
{
	// As good as the engine: nothing to save.
	EXPECT_EQ(replayed({{0, 10, 0, 16, 1}, {100, 10, 0, 16, 1}}), (post_effort{2, 2}));
	// Longer than the engine's chain, and than the queue that is assumed.
	EXPECT_EQ(replayed({{0, 10, 0, 1000, 1}, {100, 10, 0, 1000, 1}}), (post_effort{2, 2}));
}

TEST(Replay, QueuesAreApartAndAddUp)
{
	replay r;

	for (std::uint64_t i = 0; i < 20; i++)
		r.post({"a", "x"}, 1 + i % 2, {i, 100, 0, 1, 1});
	r.post({"b", "x"}, 1, {5, 100, 0, 1, 0});
	std::vector<replay_row> rows = r.end();

	ASSERT_EQ(rows.size(), 2U);
	EXPECT_EQ(rows[0].qps, 2U);
	EXPECT_EQ(rows[0].seen, (post_effort{20, 20}));
	EXPECT_EQ(rows[0].engine, (post_effort{4, 4}));
	EXPECT_EQ(rows[1].seen, (post_effort{1, 0}));
	EXPECT_EQ(rows[1].engine, (post_effort{1, 1}));
}

// They are told when they return.
TEST(Replay, PostsAreTakenInTheOrderOfTheirBeginning)
{
	replay r;

	for (std::uint64_t i = 0; i < 10; i++)
		r.post({"a", "x"}, 1, {1000 - i, 100 + 2 * i, 0, 1, 1});
	EXPECT_EQ(r.end()[0].engine, (post_effort{2, 2}));
}

TEST(Replay, QueuesBeyondTheMostAreTold)
{
	replay r;

	for (std::uint32_t qp = 0; qp < replay::most_queues + 5; qp++)
		r.post({"a", "x"}, qp, {qp, 1, 0, 1, 1});
	EXPECT_EQ(r.left_out(), 5U);
	EXPECT_EQ(r.end()[0].seen.posts, replay::most_queues);
}

} // namespace
