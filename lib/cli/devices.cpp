// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// kverbs devices: the RDMA devices of the host, and what kverbs has on each.

#include "commands.hpp"
#include "errors.hpp"
#include "output.hpp"
#include "rdma_devices.hpp"
#include "stats_source.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <system_error>

namespace kverbs::cli
{
namespace
{

// The rows of kverbs, or nothing if the module is not there or not for us: the
// devices are listed all the same.
std::optional<sample> try_sample()
{
	try {
		return device_stats::open().snapshot();
	} catch (const std::system_error &) {
		return std::nullopt;
	}
}

struct usage {
	std::size_t queues = 0;
	std::size_t cqs = 0;
};

// What kverbs has on @device, which takes its driver from the row: the module
// knows it for every device.
std::optional<usage> count_usage(const std::optional<sample> &sample, rdma_device &device)
{
	const row *row = sample ? sample->device(device.name) : nullptr;
	usage found;

	if (!row)
		return std::nullopt;
	device.driver = row->driver;
	for (const auto &other : sample->rows) {
		if (other.device != row->id)
			continue;
		found.queues += other.type == row_type::queue;
		found.cqs += other.type == row_type::cq;
	}
	return found;
}

json port_json(const rdma_port &port)
{
	json netdev = nullptr;

	if (!port.netdev.empty())
		netdev = port.netdev;
	return {{"port", port.number},
		{"state", port.state},
		{"link_layer", port.link_layer},
		{"rate", port.rate},
		{"netdev", netdev}};
}

json device_json(const rdma_device &device, const std::optional<usage> &usage)
{
	json out = {{"name", device.name},  {"node_type", device.node_type},
		    {"driver", nullptr},    {"simulated", is_simulated(device.driver)},
		    {"numa_node", nullptr}, {"ports", json::array()},
		    {"kverbs", nullptr}};

	if (!device.driver.empty())
		out["driver"] = device.driver;
	if (device.numa_node)
		out["numa_node"] = *device.numa_node;
	for (const rdma_port &port : device.ports)
		out["ports"].push_back(port_json(port));
	if (usage)
		out["kverbs"] = {{"queues", usage->queues}, {"cqs", usage->cqs}};
	return out;
}

std::string or_dash(const std::string &text)
{
	return text.empty() ? "-" : text;
}

void add_lines(table &out, const rdma_device &device, const std::optional<usage> &usage)
{
	std::string driver = or_dash(device.driver);
	std::string node = device.numa_node ? fmt::format("{}", *device.numa_node) : "-";
	std::string queues = usage ? fmt::format("{}", usage->queues) : "-";
	std::string cqs = usage ? fmt::format("{}", usage->cqs) : "-";

	if (is_simulated(device.driver))
		driver += " (simulated)";
	for (const rdma_port &port : device.ports)
		out.add({device.name, device.node_type, driver, fmt::format("{}", port.number),
			 port.state, port.link_layer, or_dash(port.netdev), node, queues, cqs});
}

void show(std::vector<rdma_device> devices, bool as_json)
{
	using enum table::align;
	std::optional<sample> sample = try_sample();
	json document = {{"devices", json::array()}};
	table out({{"DEVICE", left},
		   {"TYPE", left},
		   {"DRIVER", left},
		   {"PORT"},
		   {"STATE", left},
		   {"LINK", left},
		   {"NETDEV", left},
		   {"NUMA"},
		   {"QUEUES"},
		   {"CQS"}});

	for (rdma_device &device : devices) {
		std::optional<usage> usage = count_usage(sample, device);

		document["devices"].push_back(device_json(device, usage));
		add_lines(out, device, usage);
	}
	if (as_json)
		print_json(document);
	else if (!out.empty())
		out.print();
}

void run(bool as_json)
{
	std::vector<rdma_device> devices = rdma_devices();
	bool none = devices.empty();

	show(std::move(devices), as_json);
	if (none)
		throw error(
			exit_code::no_device,
			"no RDMA device on this host; load a driver, or make a Soft-RoCE device "
			"with 'rdma link add rxe0 type rxe netdev NETDEV'");
}

} // namespace

void add_devices(CLI::App &app, globals &g)
{
	CLI::App *command = app.add_subcommand("devices", "List the RDMA devices of this host");

	command->footer("QUEUES and CQS are those of kverbs; '-' where its module is not loaded or "
			"may not be asked.");
	add_json_flag(*command, g);
	command->callback([&g] { run(g.json); });
}

} // namespace kverbs::cli
