// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// What goes through the post_send of all devices: what to attach to, and the sum of what the
// programs on each function count.
#pragma once

#include "function.hpp"
#include "post_send.hpp"

#include <string>
#include <vector>

namespace kverbs::trace
{

// A function that registered devices post with.
struct target {
	function post_send;
	std::vector<std::string> devices;
	std::string why_no_fentry; // empty: nothing known against it
};

struct plan {
	std::vector<target> targets;
	std::vector<std::string> unsupported; // devices whose driver has no post_send
	std::vector<function> idle;           // look like post_send, but no device uses them
};

// What there is to attach to, now; only for @device if it is not empty. No targets
// where no device is registered. std::system_error where the kernel cannot be asked.
plan make_plan(const std::string &device);

// A target, and what became of it.
struct attachment {
	target on;
	bool attached = false;
	method how = method::fentry;
	std::string note; // why it is not fentry, or not attached
};

class post_trace
{
      public:
	// Attach to all targets of @p. Whether that worked is told by attachments().
	post_trace(const plan &p, const inquiry &asked);

	const std::vector<attachment> &attachments() const
	{
		return attachments_;
	}

	// No call is counted any more. Also done by the destructor, and by the kernel
	// when the process ends, however it ends.
	void stop();

	// One row a key, whatever function it came through.
	std::vector<post_row> rows() const;

	post_losses losses() const;

	// Of question::what_if: see post_send_probe::events().
	void events();
	std::vector<replay_row> replayed();
	event_losses lost_events() const;
	std::uint64_t left_out() const // posts of QPs that were too many to be replayed
	{
		return replay_.left_out();
	}

      private:
	void attach(const target &t);

	inquiry asked_;
	std::vector<attachment> attachments_;
	std::vector<post_send_probe> probes_;
	replay replay_;
};

} // namespace kverbs::trace
