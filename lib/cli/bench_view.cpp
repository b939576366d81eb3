// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Counts are summed over the rounds. Times are those of the best round: what disturbs
// a round only ever adds to them.

#include "bench_view.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace kverbs::cli
{
namespace
{

// Nanoseconds of one request, in the best round.
struct best_times {
	std::optional<double> call;
	std::optional<double> post;
	std::optional<double> total;
};

// A case over all rounds that it had.
struct case_summary {
	perf_figures sum;
	best_times best;
};

bool has_policy(const perf_case &what)
{
	return what.engine == perf_engine::kverbs;
}

double per_request(std::chrono::nanoseconds time, const perf_figures &figures)
{
	return static_cast<double>(time.count()) / static_cast<double>(figures.requests);
}

void improve(std::optional<double> &best, double value)
{
	best = best ? std::min(*best, value) : value;
}

case_summary summarize(const bench_view &view, std::size_t which)
{
	case_summary summary;

	for (const perf_result &result : view.results) {
		if (result.which != which || !result.figures.requests)
			continue;
		summary.sum += result.figures;
		improve(summary.best.call, per_request(result.figures.call, result.figures));
		improve(summary.best.post, per_request(result.figures.post, result.figures));
		improve(summary.best.total, per_request(result.figures.elapsed, result.figures));
	}
	return summary;
}

double rate(const perf_figures &figures)
{
	std::chrono::duration<double> seconds = figures.elapsed;

	return seconds.count() > 0 ? static_cast<double>(figures.requests) / seconds.count() : 0;
}

std::string whole(const std::optional<double> &nanoseconds)
{
	return nanoseconds ? fmt::format("{:.0f}", *nanoseconds) : "-";
}

std::string latency(const perf_figures &figures, double percent)
{
	return figures.latency.total() ? format(figures.latency.percentile(percent)) : "-";
}

json optional_json(const std::optional<double> &value)
{
	return value ? json(*value) : json(nullptr);
}

json ratio_json(std::optional<std::uint64_t> part, std::uint64_t whole)
{
	if (!part || !whole)
		return nullptr;
	return static_cast<double>(*part) / static_cast<double>(whole);
}

json count_json(std::optional<std::uint64_t> count)
{
	return count ? json(*count) : json(nullptr);
}

json latency_json(const histogram &hist)
{
	json out = {{"samples", hist.total()}};

	if (!hist.total())
		return out;
	out["p50_ns"] = hist.percentile(50).count();
	out["p99_ns"] = hist.percentile(99).count();
	out["p99.9_ns"] = hist.percentile(99.9).count();
	return out;
}

json ledger_json(const perf_figures &sum)
{
	return {{"lost", sum.lost},     {"doubled", sum.doubled}, {"reordered", sum.reordered},
		{"failed", sum.failed}, {"flushed", sum.flushed}, {"corrupt", sum.corrupt}};
}

// What the threads got of it, on each queue: in a run by time they need not get the same.
json shares_json(const perf_figures &sum)
{
	return {{"least", sum.least}, {"most", sum.most}};
}

json result_json(const bench_view &view, std::size_t which)
{
	const perf_case &what = view.plan.cases[which];
	case_summary summary = summarize(view, which);
	const perf_figures &sum = summary.sum;

	return {{"engine", name(what.engine)},
		{"policy", has_policy(what) ? json(name(what.policy)) : json(nullptr)},
		{"context", name(what.context)},
		{"cq", name(what.cq)},
		{"requests", sum.requests},
		{"bytes", sum.requests * view.plan.size},
		{"elapsed_ns", sum.elapsed.count()},
		{"requests_per_second", rate(sum)},
		{"latency", latency_json(sum.latency)},
		{"post_calls", sum.post_calls},
		{"signaled", sum.signaled},
		{"cqes", sum.cqes},
		{"wakeups", count_json(sum.wakeups)},
		{"passes", count_json(sum.passes)},
		{"received", sum.received},
		{"shares", shares_json(sum)},
		{"post_calls_per_request", ratio_json(sum.post_calls, sum.requests)},
		{"cqes_per_request", ratio_json(sum.cqes, sum.requests)},
		{"wakeups_per_request", ratio_json(sum.wakeups, sum.requests)},
		{"call_ns_per_request", optional_json(summary.best.call)},
		{"post_ns_per_request", optional_json(summary.best.post)},
		{"total_ns_per_request", optional_json(summary.best.total)},
		{"batch_call_ns", sum.batch_call.count()},
		{"ledger", ledger_json(sum)}};
}

std::string title(const bench_view &view)
{
	const perf_plan &plan = view.plan;
	std::string shape =
		fmt::format("{}: {} of {} over {}, {} {} of depth {}, batches of {}", plan.device,
			    name(plan.op), format_bytes(plan.size), name(plan.transport),
			    plan.queues, plan.queues == 1 ? "queue" : "queues", plan.depth,
			    plan.batch);

	if (plan.threads > 1)
		shape += fmt::format(", {} threads", plan.threads);
	return shape + (plan.verify ? ", each request's data checked" : "");
}

void add_row(table &rows, const perf_case &what, const case_summary &summary)
{
	const perf_figures &sum = summary.sum;

	rows.add({std::string(name(what.engine)),
		  has_policy(what) ? std::string(name(what.policy)) : "-",
		  std::string(name(what.context)), std::string(name(what.cq)),
		  fmt::format("{}", sum.requests), format_count(rate(sum)), latency(sum, 50),
		  latency(sum, 99), latency(sum, 99.9), format_ratio(sum.post_calls, sum.requests),
		  format_ratio(sum.cqes, sum.requests),
		  sum.wakeups ? format_ratio(*sum.wakeups, sum.requests) : "n/a",
		  whole(summary.best.call), whole(summary.best.post), whole(summary.best.total)});
}

void print_ledger(const perf_figures &all, bool finished)
{
	fmt::print("lost {}, doubled {}, out of order {}, failed {}, flushed {}, data wrong {}{}\n",
		   all.lost, all.doubled, all.reordered, all.failed, all.flushed, all.corrupt,
		   finished ? "" : "; the run was ended early");
}

} // namespace

void print_bench(const bench_view &view)
{
	using align = table::align;
	table rows({{"ENGINE", align::left},
		    {"POLICY", align::left},
		    {"CONTEXT", align::left},
		    {"CQ", align::left},
		    {"REQUESTS"},
		    {"REQ/S"},
		    {"P50"},
		    {"P99"},
		    {"P99.9"},
		    {"POSTS/REQ"},
		    {"CQES/REQ"},
		    {"EVENTS/REQ"},
		    {"CALL"},
		    {"POST"},
		    {"TOTAL"}});
	perf_figures all;

	for (std::size_t i = 0; i < view.plan.cases.size(); i++) {
		case_summary summary = summarize(view, i);

		add_row(rows, view.plan.cases[i], summary);
		all += summary.sum;
	}
	fmt::print("{}\n", strong(title(view)));
	rows.print();
	print_ledger(all, !view.end.error);
	if (view.software)
		fmt::print("device {} is software; times are not those of hardware\n",
			   view.plan.device);
}

json bench_json(const bench_view &view)
{
	const perf_plan &plan = view.plan;
	json document = {{"device", plan.device},
			 {"software", view.software},
			 {"op", name(plan.op)},
			 {"transport", name(plan.transport)},
			 {"size", plan.size},
			 {"depth", plan.depth},
			 {"queues", plan.queues},
			 {"threads", plan.threads},
			 {"batch", plan.batch},
			 {"rounds", plan.rounds},
			 {"verify", plan.verify},
			 {"elapsed_ns", view.end.elapsed.count()},
			 {"error", view.end.error ? json(view.end.message) : json(nullptr)},
			 {"results", json::array()}};

	for (std::size_t i = 0; i < plan.cases.size(); i++)
		document["results"].push_back(result_json(view, i));
	return document;
}

} // namespace kverbs::cli
