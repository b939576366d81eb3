// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// kverbs trace: what the drivers' own functions do, on any vendor's driver, without
// a module of ours.

#include "commands.hpp"
#include "errors.hpp"
#include "interrupt.hpp"
#include "options.hpp"
#include "rdma_devices.hpp"
#include "trace_view.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <memory>
#include <optional>
#include <system_error>

namespace kverbs::cli
{
namespace
{

using clock = std::chrono::steady_clock;
using std::chrono::duration;
using std::chrono::duration_cast;

constexpr double min_seconds = 0.1;
constexpr double max_seconds = 86400 * 365;

// The kernel has room for a hundred thousand posts that are to be replayed.
constexpr std::chrono::milliseconds replay_period{20};

struct options {
	trace_choice choice;
	std::optional<std::uint32_t> qp;
	bool what_if = false;
	double duration = 0; // until a signal
	double interval = 0; // only at the end
	std::string output;
};

// ---- before it starts: what can be said in one line ----

void check_device(const std::string &device)
{
	if (!device.empty() && !rdma_device_exists(device))
		throw error(exit_code::no_device,
			    fmt::format("no RDMA device '{}'; 'kverbs devices' lists those that "
					"there are",
					device));
}

// Drivers whose post_send is there while none of their devices is.
std::string idle_drivers(const trace::plan &plan)
{
	std::vector<std::string> modules;

	for (const trace::function &f : plan.idle)
		if (std::find(modules.begin(), modules.end(), f.module) == modules.end())
			modules.push_back(f.module);
	if (modules.empty())
		return "no RDMA driver is loaded";
	return fmt::format("drivers are loaded ({}), but none has a device",
			   fmt::join(modules, ", "));
}

void check_plan(const trace::plan &plan)
{
	if (!plan.targets.empty())
		return;
	if (!plan.unsupported.empty())
		throw error(exit_code::no_device,
			    fmt::format("the drivers of {} have no post_send for the kernel: "
					"nothing to trace",
					fmt::join(plan.unsupported, ", ")));
	throw error(exit_code::no_device,
		    idle_drivers(plan) + ": nothing to trace; load the driver of your HCA, or make "
					 "a Soft-RoCE device with 'rdma link add'");
}

void check_attached(const std::vector<trace::attachment> &attached)
{
	for (const trace::attachment &a : attached)
		if (a.attached)
			return;
	throw error(exit_code::failure,
		    fmt::format("cannot attach to {}: {}", attached.front().on.post_send.text(),
				attached.front().note));
}

// Opened before anything is traced: a name that cannot be written to is said at once.
std::ofstream open_output(const std::string &name)
{
	std::ofstream file;

	if (name.empty())
		return file;
	file.open(name);
	if (!file)
		throw std::system_error(errno, std::generic_category(),
					"cannot write to '" + name + "'");
	return file;
}

void write_output(std::ofstream &file, const std::string &name, const json &document)
{
	if (name.empty())
		return;
	file << document.dump(2) << '\n' << std::flush;
	if (!file)
		throw std::system_error(errno, std::generic_category(),
					"cannot write to '" + name + "'");
}

// ---- while it runs ----

class tracer
{
      public:
	tracer(const trace_mode &mode, const options &o, bool as_json)
		: mode_(mode), o_(o), json_(as_json), plan_(trace::make_plan(o.choice.device))
	{
		check_plan(plan_);
		trace_.emplace(plan_,
			       trace::inquiry{o.what_if ? trace::question::what_if : mode.question,
					      o.qp});
		check_attached(trace_->attachments());
		started_ = last_ = clock::now();
	}

	// The result of the whole time, which was also printed.
	json run()
	{
		interrupt stop;

		if (!json_) {
			print_attachments(plan_, trace_->attachments());
			flush_output();
		}
		while (wait(stop, next()) && !ended())
			show_interval();
		trace_->stop();
		return show_end();
	}

      private:
	static clock::duration seconds(double s)
	{
		return duration_cast<clock::duration>(duration<double>(s));
	}

	clock::time_point end() const
	{
		return started_ + seconds(o_.duration > 0 ? o_.duration : max_seconds);
	}

	bool ended() const
	{
		return clock::now() >= end();
	}

	// When there is something to do: the end, or the next interval.
	clock::time_point next() const
	{
		if (o_.interval <= 0)
			return end();
		return std::min(end(), started_ + seconds(o_.interval) * (intervals_ + 1));
	}

	// Sleep until @when; false if we are to end before.
	bool wait(const interrupt &stop, clock::time_point when)
	{
		while (o_.what_if && clock::now() + replay_period < when) {
			if (!stop.sleep_until(clock::now() + replay_period))
				return false;
			trace_->events();
		}
		return stop.sleep_until(when);
	}

	void show_interval()
	{
		clock::time_point now = clock::now();
		std::vector<trace::post_row> rows = trace_->rows();
		auto shown = choose(difference(rows, before_), o_.choice);

		intervals_++;
		if (json_) {
			print_json_line({{"interval", intervals_},
					 {"time_ns", (now - last_).count()},
					 {"posts", posts_json(shown, mode_, o_.choice)}});
		} else {
			print_posts(shown, mode_, o_.choice, now - last_);
			fmt::print("\n");
			flush_output();
		}
		before_ = std::move(rows);
		last_ = now;
	}

	json show_end()
	{
		std::chrono::nanoseconds time = clock::now() - started_;
		auto rows = choose(trace_->rows(), o_.choice);
		trace::post_losses losses = trace_->losses();
		json document = {{"time_ns", time.count()},
				 {"attached", attachments_json(plan_, trace_->attachments())},
				 {"posts", posts_json(rows, mode_, o_.choice)},
				 {"lost", losses_json(losses)}};

		if (!json_)
			print_posts(rows, mode_, o_.choice, time);
		if (o_.what_if)
			document["what_if"] = show_what_if(*trace_, o_.choice, json_);
		if (json_ && o_.interval > 0)
			print_json_line(document);
		else if (json_)
			print_json(document);
		else
			print_losses(rows, losses);
		return document;
	}

	const trace_mode &mode_;
	const options &o_;
	bool json_;
	trace::plan plan_;
	std::optional<trace::post_trace> trace_;
	clock::time_point started_;
	clock::time_point last_;
	std::vector<trace::post_row> before_;
	std::int64_t intervals_ = 0;
};

json traced(const trace_mode &mode, const options &o, bool as_json)
{
	try {
		return tracer(mode, o, as_json).run();
	} catch (const std::system_error &e) {
		if (e.code() != std::errc::operation_not_permitted &&
		    e.code() != std::errc::permission_denied)
			throw;
		throw error(exit_code::no_privilege,
			    fmt::format("{}; tracing needs root, or CAP_BPF and CAP_PERFMON",
					e.what()));
	}
}

void run(const trace_mode &mode, const options &o, bool as_json)
{
	check_device(o.choice.device);
	std::ofstream output = open_output(o.output);

	write_output(output, o.output, traced(mode, o, as_json));
}

CLI::Validator one_of(const std::vector<std::string> &names, const char *kind)
{
	return CLI::Validator(
		[=](std::string &given) -> std::string {
			if (std::find(names.begin(), names.end(), given) != names.end())
				return {};
			return fmt::format("'{}' is no {}; give one of {}", given, kind,
					   fmt::join(names, ", "));
		},
		"");
}

void add_mode(CLI::App &trace, globals &g, const trace_mode &mode)
{
	auto o = std::make_shared<options>();
	CLI::App *command =
		trace.add_subcommand(std::string(trace::name(mode.question)), mode.help);
	auto seconds = [] { return between(min_seconds, max_seconds, "seconds"); };

	command->footer(std::string(mode.footer) +
			"Runs until Ctrl-C, or for as long as --duration says. OPCODE is that of "
			"the first work request\nof each post. A user's posts are seen as calls "
			"only, and only where the driver posts in the kernel.");
	command->add_option("--device", o->choice.device, "Only that RDMA device")
		->option_text("DEV");
	command->add_option("--consumer", o->choice.consumer,
			    "Only that kernel module, or program of a user")
		->option_text("NAME");
	command->add_option("--opcode", o->choice.opcode, "Only posts that begin with that opcode")
		->option_text("OP")
		->check(one_of(trace::opcode_names(), "opcode"));
	command->add_option("--qp", o->qp, "Only the QP with that number, as rdma(8) shows it")
		->option_text("NUMBER")
		->check(between(0U, 0xffffffU, ""));
	command->add_option("--by", o->choice.by,
			    "What rows are told apart by; default: device,consumer,caller,opcode")
		->option_text("KEY,...")
		->delimiter(',')
		->check(one_of(trace_keys(), "key"));
	command->add_option("--duration", o->duration, "End after that time")
		->option_text("SECONDS")
		->check(seconds());
	command->add_option("-i,--interval", o->interval,
			    "Also print what each interval brought; one JSON document a line")
		->option_text("SECONDS")
		->check(seconds());
	command->add_option("--output", o->output, "Write the end result to that file, as JSON")
		->option_text("FILE");
	if (mode.question == trace::question::batch)
		command->add_flag("--what-if", o->what_if,
				  "Replay the posts as the engine would have made them: what it "
				  "would have saved")
			->excludes("--opcode"); // posts of a queue go together
	add_json_flag(*command, g);
	command->callback([o, &g, &mode] { run(mode, *o, g.json); });
}

} // namespace

void add_trace(CLI::App &app, globals &g)
{
	CLI::App *command = app.add_subcommand("trace", "Watch the drivers' own functions");

	command->require_subcommand(1);
	for (const trace_mode *mode : {&trace_latency, &trace_batch, &trace_cost})
		add_mode(*command, g, *mode);
}

} // namespace kverbs::cli
