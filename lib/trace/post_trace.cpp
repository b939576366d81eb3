// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Chooses what to attach to by two witnesses: the type of a function says that it
// may be a post_send, a registered device says that it is one.

#include "post_trace.hpp"

#include "devices.hpp"
#include "kernel_btf.hpp"

#include <algorithm>
#include <map>
#include <system_error>
#include <tuple>

namespace kverbs::trace
{

plan make_plan(const std::string &device)
{
	kernel_btf types;
	std::map<function, std::vector<std::string>> used;
	plan p;

	for (const trace::device &d : registered_devices()) {
		if (d.post_send.name.empty())
			p.unsupported.push_back(d.name);
		else
			used[d.post_send].push_back(d.name);
	}
	for (const function &f : types.post_send_candidates())
		if (!used.contains(f))
			p.idle.push_back(f);
	for (auto &[f, devices] : used) {
		bool wanted = device.empty() ||
			      std::find(devices.begin(), devices.end(), device) != devices.end();

		if (wanted)
			p.targets.push_back({f, std::move(devices), types.why_no_fentry(f)});
	}
	return p;
}

post_trace::post_trace(const plan &p, const inquiry &asked) : asked_(asked)
{
	for (const target &t : p.targets)
		attach(t);
}

// fentry, which costs less; kprobe where that cannot be had.
void post_trace::attach(const target &t)
{
	attachment a{t, true, method::fentry, t.why_no_fentry};

	if (t.why_no_fentry.empty()) {
		try {
			probes_.emplace_back(t.post_send, method::fentry, asked_);
			attachments_.push_back(std::move(a));
			return;
		} catch (const std::system_error &e) {
			a.note = e.what();
		}
	}
	try {
		a.how = method::kprobe;
		probes_.emplace_back(t.post_send, method::kprobe, asked_);
	} catch (const std::system_error &e) {
		a.attached = false;
		a.note += std::string("; kprobe: ") + e.what();
	}
	attachments_.push_back(std::move(a));
}

void post_trace::stop()
{
	for (post_send_probe &p : probes_)
		p.stop();
}

std::vector<post_row> post_trace::rows() const
{
	std::map<std::tuple<std::string, std::string, std::uint32_t, std::string>, post_row> sum;
	std::vector<post_row> rows;

	for (const post_send_probe &p : probes_) {
		for (post_row &r : p.rows()) {
			std::tuple key(r.device, r.consumer, r.pid, r.opcode);
			auto [at, is_new] = sum.try_emplace(std::move(key), std::move(r));

			if (!is_new)
				at->second += r; // try_emplace left it alone
		}
	}
	rows.reserve(sum.size());
	for (auto &[key, r] : sum)
		rows.push_back(std::move(r));
	return rows;
}

post_losses post_trace::losses() const
{
	post_losses sum;

	for (const post_send_probe &p : probes_)
		sum += p.losses();
	return sum;
}

void post_trace::events()
{
	for (post_send_probe &p : probes_)
		p.events(replay_);
}

std::vector<replay_row> post_trace::replayed()
{
	events();
	return replay_.end();
}

event_losses post_trace::lost_events() const
{
	event_losses sum;

	for (const post_send_probe &p : probes_) {
		event_losses l = p.lost_events();

		sum.no_room += l.no_room;
		if (sum.no_passes.empty())
			sum.no_passes = l.no_passes;
	}
	return sum;
}

} // namespace kverbs::trace
