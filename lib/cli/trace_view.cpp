// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Rows of a trace, chosen, added up and printed.

#include "trace_view.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>
#include <map>
#include <tuple>

namespace kverbs::cli
{
namespace
{

using trace::post_row;

constexpr std::size_t most_histograms = 8;

using key = std::tuple<std::string, std::string, std::uint32_t, std::string, bool>;

// Modules spell their names with '_' where people write '-'.
bool same_consumer(std::string_view a, std::string_view b)
{
	return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
		return (x == '-' ? '_' : x) == (y == '-' ? '_' : y);
	});
}

bool counts(const trace_choice &c, const char *key)
{
	return c.by.empty() || std::find(c.by.begin(), c.by.end(), key) != c.by.end();
}

key key_of(const post_row &r)
{
	return {r.device, r.consumer, r.pid, r.opcode, r.user};
}

std::string consumer_text(const post_row &r)
{
	return r.pid ? fmt::format("{}/{}", r.consumer, r.pid) : r.consumer;
}

const char *caller_text(const post_row &r)
{
	return r.user ? "user" : "kernel";
}

std::vector<table::column> columns(const trace_mode &mode, const trace_choice &c)
{
	std::vector<table::column> out;

	for (const std::string &k : trace_keys()) {
		std::string heading = k;

		std::transform(k.begin(), k.end(), heading.begin(), ::toupper);
		if (counts(c, k.c_str()))
			out.push_back({heading, table::align::left});
	}
	for (const std::string &heading : mode.headings)
		out.push_back({heading});
	return out;
}

std::vector<std::string> cells(const post_row &r, const trace_mode &mode, const trace_choice &c,
			       double seconds)
{
	std::vector<std::string> out;

	if (counts(c, "device"))
		out.push_back(r.device);
	if (counts(c, "consumer"))
		out.push_back(consumer_text(r));
	if (counts(c, "caller"))
		out.push_back(caller_text(r));
	if (counts(c, "opcode"))
		out.push_back(r.opcode);
	for (std::string &cell : mode.cells(r, seconds))
		out.push_back(std::move(cell));
	return out;
}

} // namespace

std::string title_of(const post_row &r, const trace_choice &c)
{
	std::vector<std::string> parts;

	if (counts(c, "device"))
		parts.push_back(r.device);
	if (counts(c, "consumer"))
		parts.push_back(consumer_text(r));
	if (counts(c, "caller"))
		parts.push_back(caller_text(r));
	if (counts(c, "opcode"))
		parts.push_back(r.opcode);
	return fmt::format("{}", fmt::join(parts, ", "));
}

bool wanted(const post_row &r, const trace_choice &c)
{
	return (c.device.empty() || r.device == c.device) &&
	       (c.consumer.empty() || same_consumer(r.consumer, c.consumer)) &&
	       (c.opcode.empty() || r.opcode == c.opcode);
}

std::vector<std::string> load_headings(std::vector<std::string> more)
{
	std::vector<std::string> out = {"POSTS",    "POSTS/S", "WR/POST",
					"SIGNALED", "INLINE",  "BYTES"};

	std::move(more.begin(), more.end(), std::back_inserter(out));
	return out;
}

std::vector<std::string> load_cells(const post_row &r, double seconds)
{
	return {fmt::format("{}", r.posts),
		format_count(static_cast<double>(r.posts) / seconds),
		r.work_requests ? format_ratio(r.work_requests, r.posts) : "-",
		format_share(r.signaled, r.work_requests),
		format_share(r.inlined, r.work_requests),
		r.work_requests ? format_bytes(static_cast<double>(r.bytes)) : "-"};
}

const std::vector<std::string> &trace_keys()
{
	static const std::vector<std::string> keys = {"device", "consumer", "caller", "opcode"};

	return keys;
}

std::vector<post_row> choose(std::vector<post_row> rows, const trace_choice &choice)
{
	std::map<key, post_row> sums;
	std::vector<post_row> out;

	for (post_row &r : rows) {
		if (!wanted(r, choice))
			continue;
		if (!counts(choice, "device"))
			r.device.clear();
		if (!counts(choice, "consumer")) {
			r.consumer.clear();
			r.pid = 0;
		}
		if (!counts(choice, "opcode"))
			r.opcode.clear();
		if (!counts(choice, "caller"))
			r.user = false;
		auto [at, is_new] = sums.try_emplace(key_of(r), r);

		if (!is_new)
			at->second += r;
	}
	out.reserve(sums.size());
	for (auto &[k, r] : sums)
		out.push_back(std::move(r));
	std::stable_sort(out.begin(), out.end(), [](const post_row &a, const post_row &b) {
		return std::tuple(a.user, b.posts) < std::tuple(b.user, a.posts);
	});
	return out;
}

std::vector<post_row> difference(std::vector<post_row> rows, const std::vector<post_row> &before)
{
	std::map<key, const post_row *> old;

	for (const post_row &r : before)
		old.emplace(key_of(r), &r);
	for (post_row &r : rows) {
		auto at = old.find(key_of(r));

		if (at != old.end())
			r = r.since(*at->second);
	}
	std::erase_if(rows, [](const post_row &r) { return r.posts == 0; });
	return rows;
}

void print_attachments(const trace::plan &plan, const std::vector<trace::attachment> &attached)
{
	for (const trace::attachment &a : attached) {
		fmt::print("{}: {} on {}{}{}\n", fmt::join(a.on.devices, ", "),
			   a.attached ? trace::name(a.how) : "NOT ATTACHED", a.on.post_send.text(),
			   a.note.empty() ? "" : ", since ", a.note);
		if (a.attached && !a.on.post_send.module.empty())
			fmt::print("  {} cannot be unloaded while this runs\n",
				   a.on.post_send.module);
	}
	for (const std::string &device : plan.unsupported)
		fmt::print("{}: its driver has no post_send for the kernel\n", device);
	for (const trace::function &f : plan.idle)
		fmt::print("{}: candidate, no device uses it\n", f.text());
	fmt::print("\n");
}

void print_posts(const std::vector<post_row> &rows, const trace_mode &mode,
		 const trace_choice &choice, std::chrono::nanoseconds time)
{
	double seconds = std::chrono::duration<double>(time).count();

	if (rows.empty()) {
		fmt::print("no posts in {}\n", format(time));
		return;
	}
	table out(columns(mode, choice));
	for (const post_row &r : rows)
		out.add(cells(r, mode, choice, seconds));
	out.print();
	mode.print_details(rows, choice);
}

void print_each(const std::vector<post_row> &rows, const trace_choice &choice,
		void (*print)(const std::string &title, const post_row &r))
{
	std::size_t left = most_histograms;

	for (const post_row &r : rows) {
		if (!left--) {
			fmt::print("\n{} more histograms with --json\n",
				   rows.size() - most_histograms);
			break;
		}
		fmt::print("\n");
		print(title_of(r, choice), r);
	}
}

void print_losses(const std::vector<post_row> &rows, const trace::post_losses &losses)
{
	std::uint64_t truncated = 0;

	for (const post_row &r : rows)
		truncated += r.truncated;
	fmt::print("\n");
	if (losses.calls)
		fmt::print("missed: {} posts, made while a program of the trace was interrupted\n",
			   losses.calls);
	if (losses.unmatched > losses.calls)
		fmt::print("missed: {} returns of posts whose call was not seen\n",
			   losses.unmatched - losses.calls);
	if (losses.returns)
		fmt::print("not timed: {} posts, whose return came after the end or was missed\n",
			   losses.returns);
	if (losses.keys)
		fmt::print(
			"lost: {} posts are counted as 'other', since the table of keys is full\n",
			losses.keys);
	if (truncated)
		fmt::print("truncated: {} posts were too long to count all their work requests\n",
			   truncated);
	if (!losses.calls && !losses.unmatched && !losses.returns && !losses.keys && !truncated)
		fmt::print("nothing was missed or lost\n");
}

json attachments_json(const trace::plan &plan, const std::vector<trace::attachment> &attached)
{
	json out = {{"functions", json::array()},
		    {"unsupported", plan.unsupported},
		    {"candidates", json::array()}};

	for (const trace::attachment &a : attached) {
		json entry = {{"function", a.on.post_send.name},
			      {"module", a.on.post_send.module},
			      {"devices", a.on.devices},
			      {"method", nullptr},
			      {"reason", nullptr}};

		if (a.attached)
			entry["method"] = trace::name(a.how);
		if (!a.note.empty())
			entry["reason"] = a.note;
		out["functions"].push_back(std::move(entry));
	}
	for (const trace::function &f : plan.idle)
		out["candidates"].push_back({{"function", f.name}, {"module", f.module}});
	return out;
}

json posts_json(const std::vector<post_row> &rows, const trace_mode &mode,
		const trace_choice &choice)
{
	json out = json::array();

	for (const post_row &r : rows) {
		json entry = {{"posts", r.posts},       {"work_requests", r.work_requests},
			      {"signaled", r.signaled}, {"inline", r.inlined},
			      {"bytes", r.bytes},       {"truncated", r.truncated}};

		if (counts(choice, "device"))
			entry["device"] = r.device;
		if (counts(choice, "consumer")) {
			entry["consumer"] = r.consumer;
			entry["pid"] = r.pid ? json(r.pid) : json(nullptr);
		}
		if (counts(choice, "caller"))
			entry["caller"] = caller_text(r);
		if (counts(choice, "opcode"))
			entry["opcode"] = r.opcode;
		mode.add_json(r, entry);
		out.push_back(std::move(entry));
	}
	return out;
}

json losses_json(const trace::post_losses &losses)
{
	return {{"calls", losses.calls},
		{"returns", losses.returns},
		{"unmatched", losses.unmatched},
		{"keys", losses.keys}};
}

} // namespace kverbs::cli
