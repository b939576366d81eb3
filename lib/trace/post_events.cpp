// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// The part of a probe that hands posts, one by one, to a replay.

#include "post_send.hpp"

#include "post_send.skel.h"

#include "libbpf.hpp"

#include <algorithm>
#include <bpf/bpf.h>
#include <cerrno>
#include <system_error>

namespace kverbs::trace
{
namespace
{

// In one go, so that a host that posts faster than it is read does not keep us for ever.
constexpr std::size_t most_events = 1 << 18;

} // namespace

void post_send_probe::deleter::operator()(ring_buffer *r) const
{
	ring_buffer__free(r);
}

// Where passes cannot be seen, posts count as made outside of them, and that is told.
void post_send_probe::attach_passes()
{
	const auto &p = programs_->progs;
	libbpf_messages messages;

	// Ends first: a pass whose end nobody sees would never end.
	for (bpf_program *program : {p.end_softirq, p.end_work, p.end_direct, p.begin_softirq,
				     p.begin_work, p.begin_direct}) {
		passes_.emplace_back(bpf_program__attach(program));
		if (!passes_.back()) {
			no_passes_ = messages.reason();
			passes_.clear();
			return;
		}
	}
}

const replay_key &post_send_probe::key_of(std::uint32_t row)
{
	kverbs_post_key key{};

	keys_.resize(KVERBS_POST_ROWS);
	replay_key &known = keys_[row % KVERBS_POST_ROWS];
	if (!known.device.empty())
		return known;
	if (row == KVERBS_POST_ROW_LOST) {
		known = {"other", "other"};
	} else if (!bpf_map__lookup_elem(programs_->maps.keys, &row, sizeof(row), &key, sizeof(key),
					 0)) {
		known = {key.device, key.consumer};
	}
	return known;
}

int post_send_probe::on_event(void *self, void *event, std::size_t)
{
	auto *probe = static_cast<post_send_probe *>(self);
	const auto *e = static_cast<const kverbs_post_event *>(event);

	probe->to_->post(probe->key_of(e->row), e->qp,
			 {e->start, e->ns, e->pass, e->wrs, e->signaled});
	return --probe->left_ ? 0 : -EAGAIN;
}

void post_send_probe::events(replay &to)
{
	libbpf_messages messages;

	if (!ring_)
		ring_.reset(ring_buffer__new(bpf_map__fd(programs_->maps.events), on_event, this,
					     nullptr));
	if (!ring_)
		messages.fail("cannot read posts one by one");
	to_ = &to;
	left_ = most_events;
	int done = ring_buffer__consume(ring_.get());

	if (done < 0 && done != -EAGAIN)
		throw std::system_error(-done, std::generic_category(), "cannot read posts");
}

event_losses post_send_probe::lost_events() const
{
	event_losses l{0, no_passes_};

	read([&](const kverbs_post_cpu &cpu) { l.no_room += cpu.no_events; });
	return l;
}

} // namespace kverbs::trace
