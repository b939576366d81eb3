// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// A send queue around the core's decisions, as kmod/ has it around them, of one processor:
// groups are reserved, an owner chains and posts them, a CQ pass retires them and posts
// what its callbacks staged.
#ifndef KVERBS_SELFTESTS_BATCH_QUEUE_HPP
#define KVERBS_SELFTESTS_BATCH_QUEUE_HPP

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include <kverbs/core/batch.h>
#include <kverbs/core/signal.h>
#include <kverbs/core/stage.h>

namespace selftest
{

class batch_queue
{
      public:
	struct place {
		std::uint32_t nr = 0; // work requests of the group; only in its first place
		bool signaled = false;
		std::uint64_t tag = 0; // the test's, of the group
	};

	batch_queue(kverbs_batch_policy policy, std::uint32_t depth, std::uint64_t hold_ns = 0)
		: ring_(depth)
	{
		kverbs_stage_init(&stage_, depth);
		kverbs_signal_init(&signal_, depth);
		kverbs_batch_init(&batch_, policy, depth, hold_ns);
	}

	// The driver is given the work requests from @pos on, and may let others post.
	std::function<void(std::uint32_t pos, std::uint32_t nr)> driver;
	// A group has ended, and may post.
	std::function<void(std::uint64_t tag)> done;

	// False if there is no room.
	bool post(std::uint32_t nr, std::uint64_t tag, bool more = false)
	{
		bool leaves = kverbs_batch_leaves(&batch_, passing_, more);
		std::uint32_t pos = 0;
		auto verdict = kverbs_stage_reserve(&stage_, &head_, nr, !leaves, &pos);

		if (verdict == KVERBS_RESERVE_FULL) {
			if (!passing_)
				flush();
			return false;
		}
		at(pos) = {nr, false, tag};
		if (verdict == KVERBS_RESERVED_OWNER)
			turn();
		else if (leaves)
			staged(more);
		return true;
	}

	void flush()
	{
		if (waiting() && kverbs_stage_own(&stage_))
			turn();
	}

	// The deadline is over, if it runs.
	void expire()
	{
		if (hold_armed)
			flush();
		hold_armed = false;
	}

	// The worker comes, if it was called.
	void work()
	{
		worker_called = false;
		flush();
	}

	// A pass: CQEs of so many signaled work requests, or of all in flight.
	void pass(std::uint32_t cqes)
	{
		cqes = std::min(cqes, signaled_in_flight());
		passing_ = true;
		while (cqes--)
			retire();
		if (batch_.by_pass || touched_)
			flush();
		touched_ = false;
		passing_ = false;
	}

	std::uint32_t signaled_in_flight() const
	{
		std::uint32_t nr = 0;

		for (std::uint32_t pos = head_; pos != stage_.taken; pos++)
			nr += ring_[pos % ring_.size()].signaled;
		return nr;
	}

	std::uint32_t waiting() const
	{
		return kverbs_stage_waiting(&stage_);
	}

	std::uint32_t in_flight() const
	{
		return stage_.taken - head_;
	}

	place &at(std::uint32_t pos)
	{
		return ring_[pos % ring_.size()];
	}

	const kverbs_batch &batch() const
	{
		return batch_;
	}

	bool hold_armed = false;
	bool worker_called = false;

      private:
	void staged(bool more)
	{
		switch (kverbs_batch_next(&batch_, waiting(), passing_, more, !in_flight())) {
		case KVERBS_BATCH_GO:
			flush();
			break;
		case KVERBS_BATCH_PASS:
			touched_ = true;
			break;
		case KVERBS_BATCH_HOLD:
			hold_armed = true;
			break;
		case KVERBS_BATCH_STAY:
			break;
		}
	}

	void turn()
	{
		std::uint32_t posts = 0;

		while (!kverbs_stage_release(&stage_)) {
			if (kverbs_batch_hands_over(posts++)) {
				kverbs_stage_leave(&stage_);
				worker_called = true;
				return;
			}
			post_chain();
			hold_armed = false;
		}
	}

	void post_chain()
	{
		std::uint32_t from = stage_.taken, pos = from, tail = kverbs_stage_tail(&stage_);
		std::uint32_t spread = kverbs_batch_spread(&batch_, passing_, tail - head_);

		do {
			std::uint32_t nr = at(pos).nr;

			if (!kverbs_batch_takes(&batch_, pos - from, nr))
				break;
			pos += nr;
			if (kverbs_signal_next(&signal_, nr,
					       pos == tail || signal_.run + nr >= spread))
				at(pos - 1).signaled = true;
		} while (pos != tail && pos - from < batch_.limit);
		kverbs_stage_take(&stage_, pos);
		driver(from, pos - from);
	}

	void retire()
	{
		bool last = false;

		while (!last) {
			std::uint32_t nr = at(head_).nr;
			std::uint64_t tag = at(head_).tag;

			last = at(head_ + nr - 1).signaled;
			for (std::uint32_t i = 0; i < nr; i++)
				at(head_ + i) = {};
			kverbs_store_release(&head_, head_ + nr);
			done(tag);
		}
	}

	kverbs_batch batch_{};
	kverbs_signal signal_{};
	kverbs_stage stage_{};
	std::uint32_t head_ = 0;
	std::vector<place> ring_;
	bool passing_ = false;
	bool touched_ = false;
};

} // namespace selftest

#endif
