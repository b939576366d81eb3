// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// kverbs bench: the engines against each other, in the kernel, on one device.

#include "bench_view.hpp"
#include "commands.hpp"
#include "errors.hpp"
#include "interrupt.hpp"
#include "options.hpp"
#include "output.hpp"
#include "perf_device.hpp"

#include <cerrno>
#include <cstdio>
#include <fmt/format.h>
#include <map>
#include <memory>
#include <poll.h>
#include <unistd.h>

namespace kverbs::cli
{
namespace
{

using namespace std::chrono_literals;

constexpr std::uint64_t default_iterations = 20'000;
constexpr double min_seconds = 0.01;
constexpr double max_seconds = 86400;
constexpr auto progress_after = 2s;
constexpr auto progress_interval = 500ms;

struct options {
	perf_plan plan;
	std::vector<perf_engine> engines;
	std::vector<perf_context> contexts;
	std::vector<perf_cq> cqs;
	std::vector<perf_policy> policies = {perf_policy::dynamic};
	double seconds = 0;
	double timeout = 10;
};

// The names that an option takes, for CLI11.
template <typename T> std::map<std::string, T> choices(T last)
{
	std::map<std::string, T> map;

	for (int i = 0; i <= static_cast<int>(last); i++)
		map.emplace(name(static_cast<T>(i)), static_cast<T>(i));
	return map;
}

template <typename T> CLI::Validator one_of(T last)
{
	std::map<std::string, T> map = choices(last);
	std::string names;

	for (int i = 0; i <= static_cast<int>(last); i++)
		names += (names.empty() ? "" : ", ") + std::string(name(static_cast<T>(i)));
	return CLI::Validator(
		[map, names](std::string &given) -> std::string {
			auto found = map.find(given);

			if (found == map.end())
				return fmt::format("'{}' is not known; there is {}", given, names);
			given = std::to_string(static_cast<int>(found->second));
			return {};
		},
		names);
}

// Raw is shown twice: on some drivers most of what a post costs in process context is
// the wake-up of the thread that does the device's work.
std::vector<perf_context> contexts_of(const options &o, perf_engine engine)
{
	if (!o.contexts.empty())
		return o.contexts;
	if (engine == perf_engine::raw)
		return {perf_context::process, perf_context::bh};
	return {perf_context::process};
}

// raw and chain post as they are; only kverbs has a choice.
std::vector<perf_policy> policies_of(const options &o, perf_engine engine)
{
	if (engine == perf_engine::kverbs)
		return o.policies;
	return {perf_policy::dynamic};
}

// Requests with replies are between endpoints, which have what is of kverbs only.
std::vector<perf_engine> engines_of(const options &o)
{
	if (!o.engines.empty())
		return o.engines;
	if (o.plan.op == perf_op::rpc)
		return {perf_engine::kverbs};
	return {perf_engine::raw, perf_engine::chain, perf_engine::kverbs};
}

std::vector<perf_cq> cqs_of(const options &o)
{
	if (!o.cqs.empty())
		return o.cqs;
	return {o.plan.op == perf_op::rpc ? perf_cq::interrupt : perf_cq::ib};
}

std::vector<perf_case> cases_of(const options &o)
{
	std::vector<perf_case> cases;

	for (perf_cq cq : cqs_of(o))
		for (perf_engine engine : engines_of(o))
			for (perf_policy policy : policies_of(o, engine))
				for (perf_context context : contexts_of(o, engine))
					cases.push_back({engine, context, cq, policy});
	return cases;
}

// On a terminal one line that changes; otherwise a line each time.
class progress_line
{
      public:
	explicit progress_line(const perf_plan &plan) : plan_(plan)
	{
	}

	~progress_line()
	{
		if (shown_ && terminal_)
			fmt::print(stderr, "\r\033[K");
	}
	progress_line(const progress_line &) = delete;
	progress_line &operator=(const progress_line &) = delete;

	void show(const perf_progress &now)
	{
		if (now.elapsed < progress_after || now.elapsed < next_)
			return;
		next_ = now.elapsed + (terminal_ ? 0s : 5s);
		fmt::print(stderr, "{}round {} of {}, {} {}, {} requests{}{}",
			   terminal_ ? "\r" : "", now.round + 1, plan_.rounds,
			   name(plan_.cases[now.which].engine),
			   name(plan_.cases[now.which].context), now.done,
			   now.total ? fmt::format(" of {}", now.total) : "",
			   terminal_ ? "\033[K" : "\n");
		std::fflush(stderr);
		shown_ = true;
	}

      private:
	const perf_plan &plan_;
	const bool terminal_ = ::isatty(STDERR_FILENO);
	std::chrono::nanoseconds next_{0};
	bool shown_ = false;
};

// Until the run has ended by itself or by Ctrl-C. Returns how it stood then.
perf_progress wait_for_end(perf_device &device, const perf_plan &plan, const interrupt &stop)
{
	constexpr int interval = std::chrono::milliseconds(progress_interval).count();
	progress_line line(plan);
	bool stopping = false;

	for (;;) {
		pollfd fds[] = {{device.fd(), POLLIN, 0}, {stopping ? -1 : stop.fd(), POLLIN, 0}};

		if (::poll(fds, 2, interval) < 0 && errno != EINTR)
			throw std::system_error(errno, std::generic_category(), "poll");
		if (!stopping && stop.requested()) {
			device.stop();
			stopping = true;
		}
		perf_progress now = device.progress();

		if (!now.running)
			return now;
		line.show(now);
	}
}

// Ctrl-C is no failure: what there was by then has been printed.
void check(const perf_progress &end)
{
	if (!end.error || end.error == ECANCELED)
		return;
	throw error(end.error == ENODEV ? exit_code::device_left : exit_code::failure, end.message);
}

void run(options &o, bool as_json)
{
	perf_device device;

	o.plan.cases = cases_of(o);
	o.plan.duration = std::chrono::duration_cast<std::chrono::nanoseconds>(
		std::chrono::duration<double>(o.seconds));
	o.plan.timeout = std::chrono::duration_cast<std::chrono::milliseconds>(
		std::chrono::duration<double>(o.timeout));

	interrupt stop;

	device.start(o.plan);
	perf_progress end = wait_for_end(device, o.plan, stop);
	std::vector<perf_result> results = device.results();
	bench_view view = {o.plan, device.software(), end, results};

	if (as_json)
		print_json(bench_json(view));
	else
		print_bench(view);
	check(end);
}

constexpr const char *footer =
	"raw posts and signals requests one by one, chain posts a batch as a chain written by hand,\n"
	"kverbs posts it through the engine. Contexts: process, a thread; bh, the same with bottom\n"
	"halves off; completion, each completion posts the next. CQs: ib, ib_alloc_cq() in softirq;\n"
	"the others, those of kverbs: interrupt, poll, hybrid (polled for 50 us after a completion),\n"
	"adaptive (with all of a CPU to spend). Policies of kverbs: dynamic posts together what is\n"
	"there anyway, each nothing, four by fours, for which requests wait while others are out.\n"
	"rpc is a request by send, and a reply with the same data by send, between endpoints that\n"
	"connect by the connection manager: latencies are from post to reply, and each reply is\n"
	"compared. It has the engine kverbs and its CQs only.\n"
	"POSTS are calls of ib_post_send(), CQES completions, EVENTS completion interrupts (n/a on\n"
	"CQs that do not count them). Times are nanoseconds a request, of the best round: CALL in\n"
	"the post call, POST until bottom halves were on again, TOTAL from first to last. With\n"
	"--verify they hold the filling and checking of the data, too.";

void add_shape(CLI::App &command, const std::shared_ptr<options> &o)
{
	command.add_option("--device", o->plan.device, "RDMA device; the first if none is given")
		->option_text("DEV");
	command.add_option("--op", o->plan.op, "What a request does (write)")
		->transform(one_of(perf_op::rpc))
		->option_text("write|read|send|rpc");
	command.add_option("--transport", o->plan.transport, "Type of the QPs; ud only sends (rc)")
		->transform(one_of(perf_transport::ud))
		->option_text("rc|ud");
	command.add_option("--size", o->plan.size, "Payload of a request (64)")
		->option_text("BYTES");
	command.add_option("--depth", o->plan.depth, "Requests in flight on a queue (128)")
		->option_text("N");
	command.add_option("--queues", o->plan.queues, "Pairs of QPs (1)")->option_text("N");
	command.add_option("--threads", o->plan.threads, "Threads that post (1)")->option_text("N");
	command.add_option("--batch", o->plan.batch,
			   "Requests at hand when a thread posts; at most its depth (16)")
		->option_text("N");
}

void add_cases(CLI::App &command, const std::shared_ptr<options> &o)
{
	command.add_option("--engine", o->engines, "Who posts, in turn (all; kverbs for rpc)")
		->delimiter(',')
		->transform(one_of(perf_engine::kverbs))
		->option_text("raw,chain,kverbs");
	command.add_option("--policy", o->policies, "What kverbs posts together, in turn (dynamic)")
		->delimiter(',')
		->transform(one_of(perf_policy::four))
		->option_text("dynamic,each,four");
	command.add_option("--context", o->contexts, "Where they post (process; raw also bh)")
		->delimiter(',')
		->transform(one_of(perf_context::completion))
		->option_text("process,bh,completion");
	command.add_option("--cq", o->cqs, "Completion queue of the sends (ib; interrupt for rpc)")
		->delimiter(',')
		->transform(one_of(perf_cq::adaptive))
		->option_text("ib,interrupt,poll,hybrid,adaptive");
}

void add_length(CLI::App &command, const std::shared_ptr<options> &o)
{
	o->plan.iterations = default_iterations;
	CLI::Option *iterations =
		command.add_option("--iters", o->plan.iterations,
				   "Requests of each engine, over all rounds (20000)")
			->option_text("N");
	command.add_option("--seconds", o->seconds, "Run each engine that long instead")
		->option_text("S")
		->check(between(min_seconds, max_seconds, "seconds"))
		->excludes(iterations)
		->each([o](const std::string &) { o->plan.iterations = 0; });
	command.add_option("--rounds", o->plan.rounds, "Turns that each engine gets (4)")
		->option_text("N");
	command.add_option("--timeout", o->timeout, "Fail after so long without progress (10)")
		->option_text("S")
		->check(between(min_seconds, 600.0, "seconds"));
}

} // namespace

void add_bench(CLI::App &app, globals &g)
{
	auto o = std::make_shared<options>();
	CLI::App *command = app.add_subcommand("bench", "Measure posting, in the kernel");

	command->footer(footer);
	add_shape(*command, o);
	add_cases(*command, o);
	add_length(*command, o);
	command->add_flag("--verify", o->plan.verify, "Check the data of every request as it ends");
	add_json_flag(*command, g);
	command->callback([o, &g] { run(*o, g.json); });
}

} // namespace kverbs::cli
