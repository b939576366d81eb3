// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// The tables and the JSON of `kverbs stat`.

#include "stat_view.hpp"

#include "stat_figures.hpp"
#include "stats_source.hpp"

#include <fmt/format.h>

namespace kverbs::cli
{
namespace
{

using column = table::column;
using enum table::align;

const std::vector<column> post_columns = {
	{"POSTS"},  {"WRS"},    {"WR/POST"}, {"SIGNALED"}, {"INLINE"},  {"BYTES"},   {"DONE"},
	{"CQE/WR"}, {"ERRORS"}, {"FLUSHED"}, {"FULL"},     {"REFUSED"}, {"NS/POST"},
};

double request_ns(const post_cost &cost)
{
	return std::chrono::duration<double, std::nano>(cost.request).count();
}

std::string format_cost(const std::optional<post_cost> &cost)
{
	return cost ? fmt::format("{}+{:.1f}/WR", cost->fixed.count(), request_ns(*cost)) : "-";
}

void add_cost_json(json &out, const std::optional<post_cost> &cost)
{
	out["post_fixed_ns"] = cost ? json(cost->fixed.count()) : json(nullptr);
	out["post_request_ns"] = cost ? json(request_ns(*cost)) : json(nullptr);
}

void add_post_cells(std::vector<std::string> &cells, const stat_line &line)
{
	const figures &f = line.values;
	std::uint64_t wrs = f[counter::work_requests];

	cells.insert(cells.end(),
		     {f.show(counter::post_calls), f.show(counter::work_requests), f.per_post(),
		      format_share(f[counter::signaled], wrs),
		      format_share(f[counter::inlined], wrs), f.show_bytes(),
		      f.show(counter::completions), f.cqe_per_request(), f.show(counter::errors),
		      f.show(counter::flushed), f.show(counter::refused_full), f.show(f.refused()),
		      format_cost(line.of->cost)});
}

const std::vector<column> poll_columns = {
	{"POLLS"}, {"EMPTY"}, {"CQES"}, {"ARMS"}, {"MISSED"}, {"EVENTS"}, {"PASSES"},
};

void add_poll_cells(std::vector<std::string> &cells, const figures &f)
{
	cells.insert(cells.end(),
		     {f.show(counter::polls),
		      format_share(f[counter::empty_polls], f[counter::polls]),
		      f.show(counter::cqes), f.show(counter::arms), f.show(counter::arm_missed),
		      f.show(counter::wakeups), f.show(counter::passes)});
}

const std::vector<column> memory_columns = {{"MEMORY"}, {"SLOTS"}, {"SLOT"}};

void add_memory_cells(std::vector<std::string> &cells, const row &row)
{
	std::uint64_t per_slot = row.depth ? row.slot_memory / row.depth : 0;

	cells.insert(cells.end(), {format_bytes(static_cast<double>(row.memory)),
				   format_bytes(static_cast<double>(row.slot_memory)),
				   format_bytes(static_cast<double>(per_slot))});
}

table make_table(std::vector<column> columns, const std::vector<column> &figures, bool memory)
{
	columns.insert(columns.end(), figures.begin(), figures.end());
	if (memory)
		columns.insert(columns.end(), memory_columns.begin(), memory_columns.end());
	return table(std::move(columns));
}

std::size_t count(const stat_view &view, row_type type, std::uint32_t device)
{
	std::size_t n = 0;

	for (const row &row : view.now.rows)
		n += row.type == type && row.device == device;
	return n;
}

void print_devices(const stat_view &view)
{
	table out = make_table({{"DEVICE", left}, {"QUEUES"}, {"CQS"}}, post_columns, false);

	for (const stat_line &line : device_lines(view)) {
		std::string label = line.device;

		if (is_simulated(line.of->driver))
			label += " (simulated)";
		std::vector<std::string> cells = {
			std::move(label),
			fmt::format("{}", count(view, row_type::queue, line.of->id)),
			fmt::format("{}", count(view, row_type::cq, line.of->id))};

		add_post_cells(cells, line);
		out.add(std::move(cells));
	}
	out.print();
}

void print_or_say(const table &out, const char *nothing)
{
	fmt::print("\n");
	if (out.empty())
		fmt::print("{}\n", faint(nothing));
	else
		out.print();
}

void print_queues(const stat_view &view)
{
	table out = make_table({{"DEVICE", left},
				{"QP"},
				{"CONSUMER", left},
				{"STATE", left},
				{"CQ", left},
				{"DEPTH"}},
			       post_columns, view.choice.memory);

	for (const stat_line &line : object_lines(view, row_type::queue)) {
		const row &row = *line.of;
		bool ib_core = row.mode == cq_mode::foreign;
		std::vector<std::string> cells = {line.device,
						  fmt::format("{}", row.number),
						  row.name,
						  std::string(name(row.state)),
						  std::string(ib_core ? "ib_core" : name(row.mode)),
						  fmt::format("{}", row.depth)};

		add_post_cells(cells, line);
		if (view.choice.memory)
			add_memory_cells(cells, row);
		out.add(std::move(cells));
	}
	print_or_say(out, "No send queue of kverbs.");
}

void print_cqs(const stat_view &view)
{
	table out = make_table({{"DEVICE", left},
				{"VECTOR"},
				{"CPU"},
				{"CONSUMER", left},
				{"MODE", left},
				{"DEPTH"}},
			       poll_columns, view.choice.memory);

	for (const stat_line &line : object_lines(view, row_type::cq)) {
		const row &row = *line.of;
		std::vector<std::string> cells = {line.device,
						  fmt::format("{}", row.number),
						  row.cpu ? fmt::format("{}", *row.cpu) : "-",
						  row.name,
						  std::string(name(row.mode)),
						  fmt::format("{}", row.depth)};

		add_poll_cells(cells, line.values);
		if (view.choice.memory)
			add_memory_cells(cells, row);
		out.add(std::move(cells));
	}
	print_or_say(out, "No completion queue of kverbs; those of ib_core do not count polls.");
}

double seconds(const stat_view &view)
{
	return std::chrono::duration<double>(view.now.time - view.before->time).count();
}

std::string label_of(const stat_view &view, const std::string &device)
{
	const row *row = view.now.device(device);

	return row && is_simulated(row->driver) ? device + " (simulated)" : device;
}

// A device may have a hundred counters: only those that are above 0.
void print_hardware(const stat_view &view)
{
	table out({{"DEVICE", left}, {"PORT"}, {"HARDWARE COUNTER", left}, {"COUNT"}});

	for (const hw_counters &counters : view.hardware)
		for (const auto &[name, count] : counters.counts)
			if (count)
				out.add({label_of(view, counters.device),
					 counters.port ? fmt::format("{}", counters.port) : "-",
					 name,
					 view.before ? format_count(static_cast<double>(count) /
								    seconds(view))
						     : fmt::format("{}", count)});
	print_or_say(out, "No hardware counter is above 0.");
}

json hardware_json(const stat_view &view, const hw_counters &counters)
{
	json out = {{"device", counters.device},
		    {"port", counters.port ? json(counters.port) : json(nullptr)},
		    {"counters", json::object()}};

	for (const auto &[name, count] : counters.counts) {
		out["counters"][name] = count;
		if (view.before)
			out["rates"][name] = static_cast<double>(count) / seconds(view);
	}
	return out;
}

json figures_json(const figures &f)
{
	json out = {{"counters", f.counters_json()}, {"derived", f.derived_json()}};

	if (f.is_rate())
		out["rates"] = f.rates_json();
	return out;
}

json device_json(const stat_view &view, const stat_line &line)
{
	json out = figures_json(line.values);

	out["name"] = line.device;
	out["driver"] = line.of->driver;
	out["simulated"] = is_simulated(line.of->driver);
	out["queues"] = count(view, row_type::queue, line.of->id);
	out["cqs"] = count(view, row_type::cq, line.of->id);
	add_cost_json(out, line.of->cost);
	return out;
}

json object_json(const stat_line &line)
{
	const row &row = *line.of;
	json out = figures_json(line.values);

	out["id"] = row.id;
	out["device"] = line.device;
	out["consumer"] = row.name;
	out["state"] = name(row.state);
	out["mode"] = name(row.mode);
	out["depth"] = row.depth;
	out["memory_bytes"] = row.memory;
	out["slot_memory_bytes"] = row.slot_memory;
	if (row.type == row_type::queue) {
		out["qp"] = row.number;
		out["cq"] = row.cq ? json(*row.cq) : json(nullptr);
		add_cost_json(out, row.cost);
	} else {
		out["vector"] = row.number;
		out["cpu"] = row.cpu ? json(*row.cpu) : json(nullptr);
	}
	return out;
}

} // namespace

void print_stat(const stat_view &view)
{
	if (view.before)
		fmt::print("{}\n", faint("Counts are per second."));
	print_devices(view);
	if (view.choice.queues)
		print_queues(view);
	if (view.choice.cqs)
		print_cqs(view);
	if (view.choice.hardware)
		print_hardware(view);
}

json stat_json(const stat_view &view)
{
	std::chrono::nanoseconds time = view.now.time.time_since_epoch();
	json out = {{"time_ns", time.count()}, {"devices", json::array()}};

	if (view.before)
		out["interval_s"] = seconds(view);
	for (const stat_line &line : device_lines(view))
		out["devices"].push_back(device_json(view, line));
	if (view.choice.queues) {
		out["queues"] = json::array();
		for (const stat_line &line : object_lines(view, row_type::queue))
			out["queues"].push_back(object_json(line));
	}
	if (view.choice.cqs) {
		out["cqs"] = json::array();
		for (const stat_line &line : object_lines(view, row_type::cq))
			out["cqs"].push_back(object_json(line));
	}
	if (view.choice.hardware) {
		out["hardware"] = json::array();
		for (const hw_counters &counters : view.hardware)
			out["hardware"].push_back(hardware_json(view, counters));
	}
	return out;
}

} // namespace kverbs::cli
