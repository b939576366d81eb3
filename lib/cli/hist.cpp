// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// kverbs hist: how long posts and requests take, as percentiles and bars.

#include "commands.hpp"
#include "errors.hpp"
#include "options.hpp"
#include "output.hpp"
#include "stats_source.hpp"

#include <fmt/format.h>
#include <memory>
#include <system_error>

namespace kverbs::cli
{
namespace
{

constexpr std::uint32_t max_qp_number = (1U << 24) - 1;

struct options {
	std::string device;
	std::optional<std::uint32_t> qp;
	std::string kind;
};

// A histogram and whose it is.
struct subject {
	std::string device;
	const row *of;
};

std::string device_name(const sample &sample, const row &of)
{
	for (const row &row : sample.rows)
		if (row.type == row_type::device && row.id == of.device)
			return row.name;
	return "?";
}

subject find_queue(const sample &sample, const options &o)
{
	std::vector<subject> found;
	std::string devices;

	for (const row &row : sample.rows) {
		if (row.type != row_type::queue || row.number != *o.qp)
			continue;
		subject s{device_name(sample, row), &row};

		if (!o.device.empty() && s.device != o.device)
			continue;
		devices += (devices.empty() ? "" : ", ") + s.device;
		found.push_back(std::move(s));
	}
	if (found.empty())
		throw error(
			exit_code::usage,
			fmt::format(
				"no kverbs queue has QP number {}; 'kverbs stat --queues' lists "
				"those that there are",
				*o.qp));
	if (found.size() > 1)
		throw error(exit_code::usage,
			    fmt::format("QP number {} is used on several devices: {}; name one",
					*o.qp, devices));
	return found.front();
}

std::vector<subject> find_subjects(const sample &sample, const options &o)
{
	std::vector<subject> found;

	if (!o.device.empty())
		found.push_back({o.device, &find_device(sample, o.device)});
	if (o.qp)
		return {find_queue(sample, o)};
	if (!found.empty())
		return found;
	for (const row &row : sample.rows)
		if (row.type == row_type::device)
			found.push_back({row.name, &row});
	if (found.empty())
		throw error(
			exit_code::no_device,
			"no RDMA device on this host; load a driver, or make a Soft-RoCE device "
			"with 'rdma link add'");
	return found;
}

histogram fetch(const device_stats &stats, const subject &s, histogram_kind kind)
{
	try {
		return stats.latency(*s.of, kind);
	} catch (const std::system_error &e) {
		if (e.code() != std::errc::no_such_device)
			throw;
		throw error(exit_code::device_left,
			    fmt::format("what was asked of device '{}' has left; look again",
					s.device));
	}
}

const char *title_of(histogram_kind kind)
{
	return kind == histogram_kind::post ? "post call" : "post to completion";
}

void run(const options &o, bool as_json)
{
	device_stats stats = open_stats();
	sample sample = stats.snapshot();
	json document = {{"histograms", json::array()}};

	for (const subject &s : find_subjects(sample, o)) {
		bool queue = s.of->type == row_type::queue;
		std::string whose =
			queue ? fmt::format("{} QP {}", s.device, s.of->number) : s.device;

		for (histogram_kind kind : {histogram_kind::post, histogram_kind::complete}) {
			if (!o.kind.empty() && o.kind != name(kind))
				continue;
			histogram hist = fetch(stats, s, kind);

			if (!as_json) {
				print_histogram(fmt::format("{}, {}", whose, title_of(kind)), hist);
				continue;
			}
			json entry = to_json(hist);
			entry["device"] = s.device;
			entry["qp"] = queue ? json(s.of->number) : json(nullptr);
			entry["kind"] = name(kind);
			document["histograms"].push_back(std::move(entry));
		}
	}
	if (as_json)
		print_json(document);
}

} // namespace

void add_hist(CLI::App &app, globals &g)
{
	auto o = std::make_shared<options>();
	CLI::App *command = app.add_subcommand("hist", "Show how long posts and requests take");

	command->footer("A percentile is off by at most 1/16. A device's histogram holds all its "
			"queues, also\nthose that are gone.");
	command->add_option("DEV", o->device, "RDMA device; all if none is given");
	command->add_option("--qp", o->qp, "Only the send queue with that QP number")
		->option_text("NUMBER")
		->check(between(std::uint32_t{0}, max_qp_number, ""));
	command->add_option(
		       "--kind", o->kind,
		       "post: a call of ib_post_send(); complete: from the post to the end of a "
		       "request; both if none is given")
		->option_text("post|complete")
		->check([](const std::string &given) -> std::string {
			if (given == "post" || given == "complete")
				return {};
			return fmt::format("'{}' is no kind; give post or complete", given);
		});
	add_json_flag(*command, g);
	command->callback([o, &g] { run(*o, g.json); });
}

} // namespace kverbs::cli
