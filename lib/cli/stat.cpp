// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// kverbs stat: what queues and CQs have counted, once or again and again.

#include "commands.hpp"
#include "errors.hpp"
#include "interrupt.hpp"
#include "options.hpp"
#include "output.hpp"
#include "stat_view.hpp"
#include "stats_source.hpp"

#include <fmt/format.h>
#include <memory>
#include <system_error>

namespace kverbs::cli
{
namespace
{

constexpr double min_interval = 0.1;
constexpr double max_interval = 86400;
constexpr std::uint64_t max_count = 1'000'000'000;

struct options {
	stat_choice choice;
	bool verbose = false;
	double interval = 0;
	std::uint64_t count = 0;
};

// Reads without system calls where that is allowed, with one each time otherwise.
class reader
{
      public:
	reader() : stats_(open_stats())
	{
		try {
			mapped_.emplace(stats_.map());
		} catch (const std::system_error &e) {
			if (e.code() != std::errc::operation_not_permitted)
				throw;
		}
	}

	sample read()
	{
		return mapped_ ? mapped_->snapshot() : stats_.snapshot();
	}

      private:
	device_stats stats_;
	std::optional<mapped_stats> mapped_;
};

void show(const stat_view &view, bool as_json)
{
	if (as_json && view.before)
		print_json_line(stat_json(view));
	else if (as_json)
		print_json(stat_json(view));
	else
		print_stat(view);
}

// What the devices that are shown count themselves, if that is wanted.
std::vector<hw_counters> hardware(const sample &sample, const stat_choice &choice)
{
	std::vector<hw_counters> all;

	if (!choice.hardware)
		return all;
	for (const row &row : sample.rows) {
		if (row.type != row_type::device ||
		    (!choice.device.empty() && row.name != choice.device))
			continue;
		for (hw_counters &counters : read_hw_counters(row.name))
			all.push_back(std::move(counters));
	}
	return all;
}

// That there is something to show: the device asked for, or any.
void check_devices(const sample &sample, const stat_choice &choice)
{
	if (!choice.device.empty()) {
		find_device(sample, choice.device);
		return;
	}
	for (const row &row : sample.rows)
		if (row.type == row_type::device)
			return;
	throw error(exit_code::no_device, "no RDMA device on this host; load a driver, or make a "
					  "Soft-RoCE device with 'rdma link add'");
}

void check_still_there(const sample &sample, const stat_choice &choice)
{
	if (!choice.device.empty() && !sample.device(choice.device))
		throw error(
			exit_code::device_left,
			fmt::format("device '{}' has left; see 'kverbs devices' for those that are "
				    "there",
				    choice.device));
}

void repeat(reader &reader, sample before, const options &o, bool as_json)
{
	using clock = std::chrono::steady_clock;
	auto step = std::chrono::duration_cast<clock::duration>(
		std::chrono::duration<double>(o.interval));
	clock::time_point next = before.time;
	std::vector<hw_counters> hardware_before = hardware(before, o.choice);
	interrupt stop;

	for (std::uint64_t i = 0; !o.count || i < o.count; i++) {
		next += step;
		if (!stop.sleep_until(next))
			return;
		sample now = reader.read();
		std::vector<hw_counters> hardware_now = hardware(now, o.choice);

		check_still_there(now, o.choice);
		if (i && !as_json)
			fmt::print("\n");
		show({o.choice, now, &before, minus(hardware_now, hardware_before)}, as_json);
		flush_output();
		before = std::move(now);
		hardware_before = std::move(hardware_now);
	}
}

void run(options &o, bool as_json)
{
	reader reader;
	sample first = reader.read();

	if (o.verbose)
		o.choice.queues = o.choice.cqs = o.choice.memory = true;
	check_devices(first, o.choice);
	if (o.interval > 0)
		repeat(reader, std::move(first), o, as_json);
	else
		show({o.choice, first, nullptr, hardware(first, o.choice)}, as_json);
}

constexpr const char *footer =
	"POSTS are calls of ib_post_send(), WRS the work requests in them, DONE those that have\n"
	"ended, CQE/WR the completions that the HCA wrote for each. FULL counts posts that found no\n"
	"credit, REFUSED those refused for another reason; --json tells each reason. SIGNALED and\n"
	"INLINE are shares of WRS, EMPTY of POLLS. EVENTS are completion interrupts. NS/POST is what\n"
	"a call of ib_post_send() takes, and what each work request adds to it, by a line through\n"
	"the latest calls; it takes calls of different size to tell the two apart.";

} // namespace

void add_stat(CLI::App &app, globals &g)
{
	auto o = std::make_shared<options>();
	CLI::App *command = app.add_subcommand("stat", "Show what is posted and completed");

	command->footer(footer);
	command->add_option("DEV", o->choice.device, "RDMA device; all if none is given");
	command->add_flag("--queues", o->choice.queues, "A line for each send queue");
	command->add_flag("--cqs", o->choice.cqs, "A line for each completion queue");
	command->add_flag("-v,--verbose", o->verbose, "Both, with the memory that each takes");
	command->add_flag(
		"--hardware", o->choice.hardware,
		"What the devices count themselves; those of a simulated one, and its judge");
	CLI::Option *interval =
		command->add_option("-i,--interval", o->interval,
				    "Repeat, showing rates; one JSON document a line")
			->option_text("SECONDS")
			->check(between(min_interval, max_interval, "seconds"));
	command->add_option("-c,--count", o->count, "Repeat so often, then end")
		->option_text("COUNT")
		->check(between(std::uint64_t{1}, max_count, "times"))
		->needs(interval);
	add_json_flag(*command, g);
	command->callback([o, &g] { run(*o, g.json); });
}

} // namespace kverbs::cli
