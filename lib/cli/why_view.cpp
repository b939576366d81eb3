// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// The accounts, tables and JSON of `kverbs why`.

#include "why_view.hpp"

#include <array>
#include <cstring>
#include <fmt/format.h>

namespace kverbs::cli
{
namespace
{

using std::chrono::nanoseconds;
using time_point = std::chrono::steady_clock::time_point;

// What a status mostly means to who reads it.
struct meaning {
	std::string_view status;
	std::string_view text;
};

constexpr std::array<meaning, 12> meanings = {{
	{"loc_len_err", "it was longer than the QP may send"},
	{"loc_qp_op_err", "the QP could not do what was asked"},
	{"loc_prot_err", "a local SGE is not covered by its key"},
	{"bad_resp_err", "the peer's answer made no sense"},
	{"loc_access_err", "local memory does not allow that access"},
	{"rem_inv_req_err", "the peer cannot do that, or its receive was too short"},
	{"rem_access_err", "the remote key or address does not allow it"},
	{"rem_op_err", "the peer could not carry it out"},
	{"retry_exc_err", "the peer did not answer"},
	{"rnr_retry_exc_err", "the peer had no receive posted"},
	{"rem_abort_err", "the peer gave it up"},
	{"fatal_err", "the device failed"},
}};

std::string_view meaning_of(std::string_view status)
{
	for (const meaning &m : meanings)
		if (m.status == status)
			return m.text;
	return "";
}

std::string error_name(int error)
{
	const char *name = ::strerrorname_np(error < 0 ? -error : error);

	return name ? name : fmt::format("{}", error);
}

std::string opcode(const cause &c)
{
	return c.opcode ? std::string(name_of_opcode(*c.opcode)) : "work request";
}

std::string subject(const cause &c)
{
	return fmt::format("{} of {} at position {}", opcode(c),
			   format_bytes(static_cast<double>(c.bytes)), c.position);
}

std::string after_post(const cause &c)
{
	return c.age ? fmt::format(", {} after its post", format(*c.age)) : "";
}

std::string cqe_account(const cause &c)
{
	std::string_view status = name_of_status(c.status), means = meaning_of(status);
	std::string vendor = c.vendor_err ? fmt::format(" (vendor error {:#x})", c.vendor_err) : "";

	return fmt::format("the {} failed with {}{}{}{}{}", subject(c), status, vendor,
			   after_post(c), means.empty() ? "" : ": ", means);
}

std::string waiting(const cause &c)
{
	return fmt::format("{} work requests from position {} on ({} first{})", c.in_flight,
			   c.position, opcode(c),
			   c.age ? fmt::format(", posted {} before", format(*c.age)) : "");
}

std::string label(const record &r)
{
	return fmt::format("{}/{}", r.device, r.number);
}

std::string ago(const record &r, time_point then)
{
	return format(r.time - then) + " ago";
}

std::string state_of(const record &r)
{
	return r.gone ? "gone" : std::string(name(r.state));
}

void print_cause(const char *head, const record &r, const cause &c)
{
	std::string oldest = c.oldest ? fmt::format(", the oldest for {}", format(*c.oldest)) : "";

	fmt::print("{}{}, {}.\n", head, strong(account(c)), ago(r, c.time));
	fmt::print("In flight: {} of {} work requests{}. Receives claimed: {}. QP state: {}.\n",
		   c.in_flight, r.depth, oldest, c.receives,
		   c.qp_state ? name_of_qp_state(*c.qp_state) : "not asked");
}

// "-1.23 ms" before what the times of a record are told from.
std::string offset(time_point then, time_point from)
{
	return then <= from ? "-" + format(from - then) : "+" + format(then - from);
}

std::string range(const record_event &e)
{
	if (e.type != event_type::flush || e.count < 2)
		return fmt::format("{}", e.position);
	return fmt::format("{}..{}", e.position, e.position + e.count - 1);
}

std::vector<std::string> cells(const record_event &e, time_point from)
{
	bool flush = e.type == event_type::flush;
	std::string result = flush ? e.result ? error_name(e.result) : "taken"
				   : std::string(name_of_status(e.status));

	if (e.vendor_err)
		result += fmt::format(" {:#x}", e.vendor_err);
	return {offset(e.time, from),
		flush ? "post" : "cqe",
		range(e),
		std::string(name_of_opcode(e.opcode)),
		fmt::format("{}", e.count),
		flush ? fmt::format("{}", e.signaled) : "-",
		flush ? format_bytes(static_cast<double>(e.bytes)) : "-",
		format(e.duration),
		result};
}

void print_events(const record &r)
{
	using enum table::align;
	time_point from = r.first.kind != cause_kind::none ? r.first.time : r.time;
	table out({{"WHEN"},
		   {"WHAT", left},
		   {"POSITION"},
		   {"OPCODE", left},
		   {"WRS"},
		   {"SIGNALED"},
		   {"BYTES"},
		   {"TIME"},
		   {"RESULT", left}});

	for (const record_event &e : r.events)
		out.add(cells(e, from));
	if (out.empty())
		fmt::print("{}\n", faint("Nothing was posted."));
	else
		out.print();
}

json or_null(const std::optional<nanoseconds> &time)
{
	return time ? json(time->count()) : json(nullptr);
}

std::int64_t ns(time_point time)
{
	return nanoseconds(time.time_since_epoch()).count();
}

json cause_json(const cause &c)
{
	if (c.kind == cause_kind::none)
		return nullptr;
	bool cqe = c.kind == cause_kind::cqe || c.kind == cause_kind::flushed;

	return {{"kind", name(c.kind)},
		{"account", account(c)},
		{"time_ns", ns(c.time)},
		{"opcode", c.opcode ? json(name_of_opcode(*c.opcode)) : json(nullptr)},
		{"bytes", c.bytes},
		{"position", c.position},
		{"age_ns", or_null(c.age)},
		{"status", cqe ? json(name_of_status(c.status)) : json(nullptr)},
		{"vendor_err", c.vendor_err},
		{"errno", c.error ? json(error_name(c.error)) : json(nullptr)},
		{"qp_state", c.qp_state ? json(name_of_qp_state(*c.qp_state)) : json(nullptr)},
		{"in_flight", c.in_flight},
		{"oldest_ns", or_null(c.oldest)},
		{"receives", c.receives}};
}

// What the other type has is null.
json event_json(const record_event &e)
{
	bool flush = e.type == event_type::flush;
	auto posted = [flush](auto value) { return flush ? json(value) : json(nullptr); };
	auto ended = [flush](auto value) { return flush ? json(nullptr) : json(value); };

	return {{"type", name(e.type)},
		{"time_ns", ns(e.time)},
		{"position", e.position},
		{"opcode", name_of_opcode(e.opcode)},
		{"work_requests", posted(e.count)},
		{"signaled", posted(e.signaled)},
		{"bytes", posted(e.bytes)},
		{"driver_ns", posted(e.duration.count())},
		{"errno", e.result ? json(error_name(e.result)) : json(nullptr)},
		{"reason", posted(name(e.reason))},
		{"retired", ended(e.count)},
		{"age_ns", ended(e.duration.count())},
		{"status", ended(name_of_status(e.status))},
		{"vendor_err", ended(e.vendor_err)}};
}

} // namespace

std::string account(const cause &c)
{
	switch (c.kind) {
	case cause_kind::none:
		return "nothing has failed";
	case cause_kind::cqe:
		return cqe_account(c);
	case cause_kind::flushed:
		return fmt::format("somebody else moved the QP to the error state: the {} was "
				   "flushed{}, and nothing had failed before",
				   subject(c), after_post(c));
	case cause_kind::refused:
		return fmt::format("the driver refused the {} with {}, and the queue went on",
				   subject(c), error_name(c.error));
	case cause_kind::in_doubt:
		return fmt::format("the driver refused the post at position {} ({} first, {} in "
				   "all) with {} and left in doubt what it took",
				   c.position, opcode(c),
				   format_bytes(static_cast<double>(c.bytes)), error_name(c.error));
	case cause_kind::tail:
		return fmt::format("after a refusal nothing could be posted behind what was "
				   "silent in flight: {}",
				   waiting(c));
	case cause_kind::cqe_missing:
		return fmt::format("a completion is missing: none came for {}", waiting(c));
	case cause_kind::drain:
		return fmt::format("the drain timed out: no completion came for {}", waiting(c));
	case cause_kind::device_gone:
		return c.in_flight ? fmt::format("the device left, with {}", waiting(c))
				   : "the device left";
	}
	return "it failed in a way that this command does not know";
}

void print_record(const record &r)
{
	fmt::print("{} ({}), {}{}\n", label(r), r.name, state_of(r),
		   r.gone ? fmt::format(" since {}", format(r.time - *r.gone)) : "");
	if (r.first.kind == cause_kind::none) {
		fmt::print("{}. This is what it did last:\n", account(r.first));
	} else {
		print_cause("", r, r.first);
		if (r.later.kind != cause_kind::none)
			print_cause("Later ", r, r.later);
	}
	fmt::print("\n");
	print_events(r);
}

void print_records(const std::vector<record> &records)
{
	using enum table::align;
	table out(
		{{"QUEUE", left}, {"CONSUMER", left}, {"STATE", left}, {"FAILED"}, {"WHY", left}});

	for (const record &r : records) {
		const cause &c = r.later.kind != cause_kind::none ? r.later : r.first;
		bool failed = c.kind != cause_kind::none;

		out.add({label(r), r.name, state_of(r), failed ? ago(r, c.time) : "-", account(c)});
	}
	if (out.empty())
		fmt::print("{}\n", faint("No send queue of kverbs, and none that failed is kept."));
	else
		out.print();
}

json record_json(const record &r, bool with_events)
{
	json out = {{"device", r.device},
		    {"qp", r.number},
		    {"consumer", r.name},
		    {"depth", r.depth},
		    {"state", state_of(r)},
		    {"time_ns", ns(r.time)},
		    {"gone_ns", r.gone ? json(ns(*r.gone)) : json(nullptr)},
		    {"cause", cause_json(r.first)},
		    {"later", cause_json(r.later)}};

	if (with_events) {
		out["events"] = json::array();
		for (const record_event &e : r.events)
			out["events"].push_back(event_json(e));
	}
	return out;
}

} // namespace kverbs::cli
