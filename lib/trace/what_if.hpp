// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// The posts of a consumer, as they were seen, replayed through the engine's pure core:
// what the engine would have made of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <queue>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include <kverbs/core/batch.h>
#include <kverbs/core/signal.h>
#include <kverbs/core/stage.h>

namespace kverbs::trace
{

// A call of post_send by the kernel.
struct seen_post {
	std::uint64_t start_ns = 0;
	std::uint64_t ns = 0;       // it took
	std::uint64_t pass = 0;     // of the QP's send CQ, in which it was made; 0: in none
	std::uint32_t wrs = 0;      // work requests
	std::uint32_t signaled = 0; // of them
};

// How many calls and how many CQEs.
struct post_effort {
	std::uint64_t posts = 0;
	std::uint64_t cqes = 0;

	bool operator==(const post_effort &) const = default;
	post_effort &operator+=(const post_effort &other);
};

// The send queue of one QP. Posts come in the order in which they were made.
//
// What the engine decides by and nobody can see is assumed against it: the consumer
// promises no more posts, and nothing is in flight but what is staged. Times are those that were seen: a
// chain takes as long as the longest of its posts.
class replayed_queue
{
      public:
	// Not seen either; kverbs bench and most consumers have as much or more.
	static constexpr std::uint32_t depth = 128;

	replayed_queue();

	void post(const seen_post &p);

	// What is still staged goes, too.
	void end();

	post_effort engine() const
	{
		return engine_;
	}

      private:
	void run_until(std::uint64_t ns);
	void stage(const seen_post &p);
	void end_pass();
	void post_staged(std::uint64_t now);
	void post_chain(std::uint64_t now);

	kverbs_batch batch_{};
	kverbs_signal signal_{};
	kverbs_stage stage_{};
	std::deque<seen_post> staged_; // not posted yet
	std::uint32_t head_ = 0;       // room comes back at once
	std::uint64_t pass_ = 0;       // that what is staged waits for the end of
	std::uint64_t busy_until_ = 0; // the owner is in the driver
	post_effort engine_;
};

// Whose posts they are.
struct replay_key {
	std::string device;
	std::string consumer;

	auto operator<=>(const replay_key &) const = default;
};

struct replay_row {
	replay_key key;
	std::size_t qps = 0;
	post_effort seen;
	post_effort engine;
};

// All queues. Bounded: posts are put in order as far as a window of them reaches.
class replay
{
      public:
	static constexpr std::size_t most_queues = 4096;
	static constexpr std::size_t window = 8192;

	void post(const replay_key &key, std::uint32_t qp, const seen_post &p);

	// What came of the posts, those of the window included. To be asked once.
	std::vector<replay_row> end();

	// Posts of queues beyond the most that are replayed.
	std::uint64_t left_out() const
	{
		return left_out_;
	}

      private:
	struct queue {
		std::size_t row = 0;
		replayed_queue replayed;
	};
	struct waiting {
		seen_post post;
		std::uint64_t order = 0; // of posts that began at the same time
		queue *on = nullptr;

		bool operator>(const waiting &other) const
		{
			return std::tie(post.start_ns, order) >
			       std::tie(other.post.start_ns, other.order);
		}
	};

	std::size_t row_of(const replay_key &key);
	queue *queue_of(const replay_key &key, std::uint32_t qp);
	void next();

	std::vector<replay_row> rows_;
	std::unordered_map<std::string, queue> queues_;
	std::priority_queue<waiting, std::vector<waiting>, std::greater<>> waiting_;
	std::uint64_t order_ = 0;
	std::uint64_t left_out_ = 0;
};

} // namespace kverbs::trace
