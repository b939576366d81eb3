// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Plays the producers of a send queue and the owner of its turn, by the clock of what
// was seen. The decisions are all the core's.

#include "what_if.hpp"

#include <algorithm>

namespace kverbs::trace
{

post_effort &post_effort::operator+=(const post_effort &other)
{
	posts += other.posts;
	cqes += other.cqes;
	return *this;
}

replayed_queue::replayed_queue()
{
	kverbs_batch_init(&batch_, KVERBS_BATCH_DYNAMIC, depth, 0);
	kverbs_signal_init(&signal_, depth);
	// A post may be longer than the queue that is assumed.
	kverbs_stage_init(&stage_, 1U << 30);
}

void replayed_queue::stage(const seen_post &p)
{
	std::uint32_t at = 0;

	head_ = stage_.taken;
	kverbs_stage_reserve(&stage_, &head_, p.wrs, false, &at);
	staged_.push_back(p);
}

// As collect() of the engine takes them: the last of all is signaled, and those between as
// the core says.
void replayed_queue::post_chain(std::uint64_t now)
{
	std::uint32_t tail = kverbs_stage_tail(&stage_), pos = stage_.taken, nr = 0;
	std::uint32_t spread = kverbs_batch_spread(&batch_, pass_ != 0, tail - pos);
	std::uint64_t ns = 0;

	while (!staged_.empty() && nr < batch_.limit &&
	       kverbs_batch_takes(&batch_, nr, staged_.front().wrs)) {
		std::uint32_t wrs = staged_.front().wrs;
		bool must = pos + wrs == tail || signal_.run + wrs >= spread;

		ns = std::max(ns, staged_.front().ns);
		engine_.cqes += kverbs_signal_next(&signal_, wrs, must);
		pos += wrs;
		nr += wrs;
		staged_.pop_front();
	}
	kverbs_stage_take(&stage_, pos);
	engine_.posts++;
	busy_until_ = now + ns;
}

void replayed_queue::post_staged(std::uint64_t now)
{
	while (!staged_.empty())
		post_chain(now);
}

void replayed_queue::end_pass()
{
	post_staged(busy_until_);
	pass_ = 0;
}

// The owner posts what came meanwhile, a chain after the other.
void replayed_queue::run_until(std::uint64_t ns)
{
	while (!staged_.empty() && !pass_ && busy_until_ <= ns)
		post_chain(busy_until_);
}

void replayed_queue::post(const seen_post &p)
{
	bool passing = p.pass != 0;

	if (pass_ && p.pass != pass_)
		end_pass();
	run_until(p.start_ns);
	stage(p);
	if (kverbs_batch_leaves(&batch_, passing, false)) {
		pass_ = p.pass;
		if (kverbs_batch_next(&batch_, kverbs_stage_waiting(&stage_), passing, false,
				      false) == KVERBS_BATCH_GO)
			post_staged(p.start_ns);
		return;
	}
	if (busy_until_ <= p.start_ns)
		post_chain(p.start_ns);
}

void replayed_queue::end()
{
	post_staged(busy_until_);
}

std::size_t replay::row_of(const replay_key &key)
{
	auto at = std::find_if(rows_.begin(), rows_.end(),
			       [&](const replay_row &r) { return r.key == key; });

	if (at == rows_.end())
		at = rows_.insert(rows_.end(), {key, 0, {}, {}});
	return static_cast<std::size_t>(at - rows_.begin());
}

replay::queue *replay::queue_of(const replay_key &key, std::uint32_t qp)
{
	std::string name = key.device + '/' + key.consumer + '/' + std::to_string(qp);
	auto at = queues_.find(name);

	if (at != queues_.end())
		return &at->second;
	if (queues_.size() >= most_queues)
		return nullptr;
	queue &made = queues_[name];
	made.row = row_of(key);
	rows_[made.row].qps++;
	return &made;
}

void replay::next()
{
	const waiting &w = waiting_.top();

	w.on->replayed.post(w.post);
	waiting_.pop();
}

void replay::post(const replay_key &key, std::uint32_t qp, const seen_post &p)
{
	queue *on = queue_of(key, qp);

	if (!on) {
		left_out_++;
		return;
	}
	rows_[on->row].seen += {1, p.signaled};
	waiting_.push({p, order_++, on});
	if (waiting_.size() > window)
		next();
}

std::vector<replay_row> replay::end()
{
	while (!waiting_.empty())
		next();
	for (auto &[name, q] : queues_) {
		q.replayed.end();
		rows_[q.row].engine += q.replayed.engine();
	}
	return rows_;
}

} // namespace kverbs::trace
