// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// kverbs trace batch --what-if: what the engine would have saved.

#include "trace_view.hpp"

#include <fmt/format.h>

namespace kverbs::cli
{
namespace
{

using trace::replay_row;

// What the figures stand on, since no trace can see it.
constexpr const char *assumptions[] = {
	"send queues of 128 work requests, whose room comes back at once",
	"a post takes as long as it was seen to, a chain as long as the longest of its posts",
	"no consumer promises that more will follow",
	"nothing is in flight but what is staged, so that in a CQ pass most have their CQE",
	"CQEs seen are those that work requests ask for: of a QP that signals all there are more",
};

std::string saved(std::uint64_t seen, std::uint64_t engine)
{
	double share =
		seen ? 100.0 - 100.0 * static_cast<double>(engine) / static_cast<double>(seen) : 0;

	return seen ? fmt::format("{:.1f}%", share) : "-";
}

json effort_json(const trace::post_effort &e)
{
	return {{"posts", e.posts}, {"cqes", e.cqes}};
}

bool chosen(const replay_row &r, const trace_choice &c)
{
	trace::post_row as_row;

	as_row.device = r.key.device;
	as_row.consumer = r.key.consumer;
	return wanted(as_row, c);
}

void print(const std::vector<replay_row> &rows)
{
	using align = table::align;
	table out({{"DEVICE", align::left},
		   {"CONSUMER", align::left},
		   {"QPS"},
		   {"POSTS"},
		   {"ENGINE"},
		   {"SAVED"},
		   {"CQES"},
		   {"ENGINE"},
		   {"SAVED"}});

	fmt::print("\nwhat the engine would have made of that:\n");
	for (const replay_row &r : rows)
		out.add({r.key.device, r.key.consumer, fmt::format("{}", r.qps),
			 fmt::format("{}", r.seen.posts), fmt::format("{}", r.engine.posts),
			 saved(r.seen.posts, r.engine.posts), fmt::format("{}", r.seen.cqes),
			 fmt::format("{}", r.engine.cqes), saved(r.seen.cqes, r.engine.cqes)});
	out.print();
	for (const char *assumption : assumptions)
		fmt::print("assumed: {}\n", assumption);
}

void print_lost(const trace::event_losses &lost, std::uint64_t left_out)
{
	if (!lost.no_passes.empty())
		fmt::print("CQ passes could not be seen, and save nothing here: {}\n",
			   lost.no_passes);
	if (lost.no_room)
		fmt::print("not replayed: {} posts, which came faster than they were read\n",
			   lost.no_room);
	if (left_out)
		fmt::print("not replayed: {} posts of QPs beyond the first {}\n", left_out,
			   trace::replay::most_queues);
}

} // namespace

json show_what_if(trace::post_trace &t, const trace_choice &choice, bool as_json)
{
	std::vector<replay_row> rows = t.replayed();
	trace::event_losses lost = t.lost_events();
	json out = {{"consumers", json::array()},
		    {"assumed", json::array()},
		    {"lost", {{"no_room", lost.no_room}, {"queues", t.left_out()}}},
		    {"no_passes", nullptr}};

	std::erase_if(rows, [&](const replay_row &r) { return !chosen(r, choice); });
	if (!as_json) {
		print(rows);
		print_lost(lost, t.left_out());
	}
	for (const replay_row &r : rows)
		out["consumers"].push_back({{"device", r.key.device},
					    {"consumer", r.key.consumer},
					    {"qps", r.qps},
					    {"seen", effort_json(r.seen)},
					    {"engine", effort_json(r.engine)}});
	for (const char *assumption : assumptions)
		out["assumed"].push_back(assumption);
	if (!lost.no_passes.empty())
		out["no_passes"] = lost.no_passes;
	return out;
}

} // namespace kverbs::cli
