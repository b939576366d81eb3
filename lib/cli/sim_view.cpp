// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// What there is to see of simulated HCAs.

#include "sim_view.hpp"
#include "dummy_netdev.hpp"
#include "rdma_devices.hpp"

#include <charconv>
#include <fmt/format.h>

namespace kverbs::cli
{
namespace
{

// What RDMA says of it; empty words where it says nothing (any more).
struct link {
	std::string state;
	std::string netdev;
	std::optional<std::string> address;
};

link link_of(const std::vector<rdma_device> &all, const std::string &name)
{
	link found;

	for (const rdma_device &device : all) {
		if (device.name != name || device.ports.empty())
			continue;
		found.state = device.ports.front().state;
		found.netdev = device.ports.front().netdev;
		found.address = netdev_address(found.netdev);
	}
	return found;
}

json or_null(const std::string &text)
{
	return text.empty() ? json(nullptr) : json(text);
}

std::string or_dash(const std::string &text)
{
	return text.empty() ? "-" : text;
}

json counts_json(const sim_counts &counts)
{
	json out = json::object();

	for (const auto &[name, count] : counts)
		out[name] = count;
	return out;
}

// Not said of a rule in a table, which shows what it narrows and how it fails.
bool is_neutral(const sim_setting &setting)
{
	return setting.value == "0" || setting.value == "any" ||
	       (setting.knob == "probability_ppm" && setting.value == "1000000");
}

bool has_column(const std::string &knob)
{
	return knob == "device" || knob == "kind" || knob == "enabled" || knob == "hits";
}

std::string value_of(const std::vector<sim_setting> &settings, const std::string &knob)
{
	for (const sim_setting &setting : settings)
		if (setting.knob == knob)
			return setting.value;
	return "-";
}

// A line for each knob, a column for each device. All have the same knobs.
void print_knobs(const std::string &heading, const std::vector<sim_device> &devices,
		 std::vector<sim_setting> (sim_device::*knobs)() const)
{
	std::vector<table::column> columns = {{heading, table::align::left}};
	std::vector<std::vector<sim_setting>> all;

	for (const sim_device &device : devices) {
		columns.push_back({device.name()});
		all.push_back((device.*knobs)());
	}

	table out(std::move(columns));

	for (const sim_setting &line : all.front()) {
		std::vector<std::string> cells = {line.knob};

		for (const std::vector<sim_setting> &settings : all)
			cells.push_back(value_of(settings, line.knob));
		out.add(std::move(cells));
	}
	out.print();
}

void print_counts(const std::string &heading, const sim_counts &counts)
{
	using enum table::align;
	table out({{heading, left}, {"COUNT"}});

	for (const auto &[name, count] : counts)
		out.add({name, fmt::format("{}", count)});
	out.print();
}

} // namespace

json value_json(const std::string &text)
{
	std::int64_t number = 0;
	auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);

	if (failed == std::errc() && end == text.data() + text.size())
		return number;
	return text;
}

json settings_json(const std::vector<sim_setting> &settings)
{
	json out = json::object();

	for (const sim_setting &setting : settings)
		out[setting.knob] = value_json(setting.value);
	return out;
}

std::string settings_text(const std::vector<sim_setting> &settings)
{
	std::string out;

	for (const sim_setting &setting : settings)
		out += fmt::format("{}{}={}", out.empty() ? "" : " ", setting.knob, setting.value);
	return out;
}

json devices_json(const std::vector<sim_device> &devices)
{
	std::vector<rdma_device> all = rdma_devices();
	json out = json::array();

	for (const sim_device &device : devices) {
		link link = link_of(all, device.name());
		json rules = json::array();

		for (const sim_rule &rule : sim_rules(device.name()))
			rules.push_back(rule.name);
		out.push_back({{"name", device.name()},
			       {"simulated", true},
			       {"state", or_null(link.state)},
			       {"netdev", or_null(link.netdev)},
			       {"netdev_made", is_made_netdev(link.netdev)},
			       {"address", or_null(link.address.value_or(""))},
			       {"settings", settings_json(device.settings())},
			       {"capabilities", settings_json(device.capabilities())},
			       {"rules", rules}});
	}
	return out;
}

void print_devices(const std::vector<sim_device> &devices)
{
	using enum table::align;
	std::vector<rdma_device> all = rdma_devices();
	table out({{"SIMULATED", left},
		   {"STATE", left},
		   {"NETDEV", left},
		   {"ADDRESS", left},
		   {"RULES"}});

	for (const sim_device &device : devices) {
		link link = link_of(all, device.name());

		out.add({device.name(), or_dash(link.state), or_dash(link.netdev),
			 link.address.value_or("-"),
			 fmt::format("{}", sim_rules(device.name()).size())});
	}
	out.print();
	fmt::print("\n");
	print_knobs("SETTING", devices, &sim_device::settings);
	fmt::print("\n");
	print_knobs("CAPABILITY", devices, &sim_device::capabilities);
}

json counters_json(const sim_device &device)
{
	return {{"device", device.name()},
		{"simulated", true},
		{"counters", counts_json(device.counters())},
		{"judge", counts_json(device.judge())}};
}

void print_counters(const sim_device &device)
{
	fmt::print("{} (simulated)\n\n", device.name());
	print_counts("COUNTER", device.counters());
	fmt::print("\n");
	print_counts("JUDGE", device.judge());
}

json rule_json(const sim_rule &rule)
{
	json out = {{"rule", rule.name}, {"simulated", true}};

	for (const sim_setting &setting : rule.values)
		out[setting.knob] = value_json(setting.value);
	out["enabled"] = rule.value("enabled") == "1";
	out["device"] = or_null(rule.value("device"));
	return out;
}

void print_rules(const std::vector<sim_rule> &rules)
{
	using enum table::align;
	table out({{"RULE", left},
		   {"SIMULATED", left},
		   {"KIND", left},
		   {"ENABLED", left},
		   {"HITS"},
		   {"SETTINGS", left}});

	for (const sim_rule &rule : rules) {
		std::vector<sim_setting> others;

		for (const sim_setting &setting : rule.values)
			if (!has_column(setting.knob) && !is_neutral(setting))
				others.push_back(setting);
		std::string device = rule.value("device");

		out.add({rule.name, device.empty() ? "any" : device, rule.value("kind"),
			 rule.value("enabled") == "1" ? "yes" : "no", rule.value("hits"),
			 settings_text(others)});
	}
	if (!out.empty())
		out.print();
}

} // namespace kverbs::cli
