// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// kverbs why: what a send queue did last, and why it failed.

#include "commands.hpp"
#include "errors.hpp"
#include "output.hpp"
#include "stats_source.hpp"
#include "why_view.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <memory>
#include <system_error>

namespace kverbs::cli
{
namespace
{

constexpr std::uint32_t max_qp_number = (1U << 24) - 1;

struct target {
	std::string device; // all if it is empty
	std::optional<std::uint32_t> qp;
};

// "DEV" or "DEV/QP".
target parse(const std::string &given)
{
	std::size_t slash = given.find('/');
	std::string number = slash == std::string::npos ? "" : given.substr(slash + 1);
	target t{given.substr(0, slash), std::nullopt};
	std::uint32_t qp = 0;

	if (slash == std::string::npos)
		return t;
	auto [end, err] = std::from_chars(number.data(), number.data() + number.size(), qp);
	if (t.device.empty() || number.empty() || err != std::errc() ||
	    end != number.data() + number.size() || qp > max_qp_number)
		throw error(exit_code::usage,
			    fmt::format("'{}' names no queue; give DEV/QP, with a QP number of 0 "
					"to {}; 'kverbs why DEV' lists those of a device",
					given, max_qp_number));
	t.qp = qp;
	return t;
}

bool is_wanted(const target &t, const std::string &device, std::uint32_t qp)
{
	return (t.device.empty() || device == t.device) && (!t.qp || *t.qp == qp);
}

std::string device_of(const sample &sample, const row &of)
{
	for (const row &row : sample.rows)
		if (row.type == row_type::device && row.id == of.device)
			return row.name;
	return "?";
}

// Of a queue that may go at this moment: then it is among those that are kept.
std::optional<record> try_recorded(const device_stats &stats, const row &queue)
{
	try {
		return stats.recorded(queue);
	} catch (const std::system_error &e) {
		if (e.code() != std::errc::no_such_device)
			throw;
		return std::nullopt;
	}
}

// The queues that are there, then those that are gone, the newest first.
std::vector<record> find_records(const device_stats &stats, const sample &sample, const target &t)
{
	std::vector<record> found;

	for (const row &row : sample.rows) {
		if (row.type != row_type::queue ||
		    !is_wanted(t, device_of(sample, row), row.number))
			continue;
		if (auto record = try_recorded(stats, row))
			found.push_back(std::move(*record));
	}
	std::vector<record> kept = stats.kept();
	std::reverse(kept.begin(), kept.end());
	for (record &record : kept)
		if (is_wanted(t, record.device, record.number))
			found.push_back(std::move(record));
	return found;
}

// There may be records of a device that has left.
void check_found(const sample &sample, const target &t, const std::vector<record> &found)
{
	if (!found.empty() || t.device.empty())
		return;
	find_device(sample, t.device);
	if (t.qp)
		throw error(exit_code::usage,
			    fmt::format("no kverbs queue of {} has QP number {}, and no record of "
					"one is kept; 'kverbs why {}' lists those that there are",
					t.device, *t.qp, t.device));
}

void run(const std::string &given, bool as_json)
{
	target t = parse(given);
	device_stats stats = open_stats();
	sample sample = stats.snapshot();
	std::vector<record> records = find_records(stats, sample, t);
	json document = {{"records", json::array()}};

	check_found(sample, t, records);
	for (const record &record : records)
		document["records"].push_back(record_json(record, t.qp.has_value()));
	if (as_json) {
		print_json(document);
	} else if (!t.qp) {
		print_records(records);
	} else {
		for (const record &record : records) {
			if (&record != &records.front())
				fmt::print("\n");
			print_record(record);
		}
	}
}

constexpr const char *footer =
	"The record of a queue ends at its first failure. Times in the list count from that, or from\n"
	"now if nothing has failed. TIME is what a post took in the driver, and for a CQE the time\n"
	"since the post; WRS are the work requests posted, or ended by the CQE. Records of queues\n"
	"that failed and are gone are kept, the last 16 of each device, also when that left.";

} // namespace

void add_why(CLI::App &app, globals &g)
{
	auto given = std::make_shared<std::string>();
	CLI::App *command = app.add_subcommand("why", "Tell why a send queue failed");

	command->footer(footer);
	command->add_option(
		       "QUEUE", *given,
		       "DEV/QP: a queue by its device and QP number, as 'kverbs stat --queues' "
		       "lists them; DEV or nothing: a line for each")
		->option_text("[DEV[/QP]]");
	add_json_flag(*command, g);
	command->callback([given, &g] { run(*given, g.json); });
}

} // namespace kverbs::cli
