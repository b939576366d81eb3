// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// kverbs sim: the simulated HCAs of kverbs_sim.ko made, looked at, set and removed.

#include "commands.hpp"
#include "dummy_netdev.hpp"
#include "errors.hpp"
#include "output.hpp"
#include "sim_view.hpp"

#include <fmt/format.h>
#include <memory>

namespace kverbs::cli
{
namespace
{

struct create_options {
	std::string name;
	std::string netdev;
	std::vector<std::string> settings;
};

struct set_options {
	std::string name;
	std::vector<std::string> settings;
};

std::vector<sim_setting> parse_settings(const std::vector<std::string> &given)
{
	std::vector<sim_setting> settings;

	settings.reserve(given.size());
	for (const std::string &setting : given)
		settings.push_back(parse_setting(setting));
	return settings;
}

void create(const create_options &o, bool as_json)
{
	sim_plan plan = {o.name, std::nullopt, parse_settings(o.settings)};

	if (!o.netdev.empty())
		plan.netdev = o.netdev;

	std::string netdev = create_sim_device(plan);
	std::string address = netdev_address(netdev).value_or("");

	if (as_json)
		print_json({{"name", o.name},
			    {"simulated", true},
			    {"netdev", netdev},
			    {"netdev_made", !plan.netdev},
			    {"address", address.empty() ? json(nullptr) : json(address)}});
	else if (plan.netdev)
		fmt::print("{} (simulated) on network device {}, {}\n", o.name, netdev,
			   address.empty() ? "which has no IPv4 address" : address);
	else
		fmt::print("{0} (simulated) on network device {1}, {2}, a dummy made for it; "
			   "'kverbs sim remove {0}' removes both\n",
			   o.name, netdev, address);
}

void list(bool as_json)
{
	std::vector<sim_device> devices = sim_devices();

	if (as_json)
		print_json({{"devices", devices_json(devices)}});
	else if (!devices.empty())
		print_devices(devices);
	if (devices.empty())
		throw error(exit_code::no_device,
			    "no simulated device; make one with 'kverbs sim create sim0'");
}

void set(const set_options &o, bool as_json)
{
	sim_device device = find_sim_device(o.name);
	std::vector<sim_setting> settings = parse_settings(o.settings);

	device.set(settings);
	if (as_json)
		print_json({{"name", device.name()},
			    {"simulated", true},
			    {"settings", settings_json(device.settings())}});
	else
		fmt::print("{} (simulated): {}\n", device.name(), settings_text(settings));
}

void counters(const std::string &name, bool as_json)
{
	sim_device device = find_sim_device(name);

	if (as_json)
		print_json(counters_json(device));
	else
		print_counters(device);
}

void remove(const std::string &name, bool as_json)
{
	sim_device device = find_sim_device(name);
	std::vector<sim_rule> rules = sim_rules(name);
	std::optional<std::string> netdev = remove_sim_device(device);
	json removed = json::array();

	for (const sim_rule &rule : rules) {
		remove_sim_rule(rule.name);
		removed.push_back(rule.name);
	}
	if (as_json) {
		print_json({{"name", name},
			    {"simulated", true},
			    {"removed", true},
			    {"netdev_removed", netdev ? json(*netdev) : json(nullptr)},
			    {"rules_removed", removed}});
		return;
	}
	fmt::print("{} (simulated) removed", name);
	if (netdev)
		fmt::print(", with the network device {} that was made for it", *netdev);
	if (!rules.empty())
		fmt::print(", with {} rule{} of faults", rules.size(),
			   rules.size() == 1 ? "" : "s");
	fmt::print("\n");
}

constexpr const char *create_footer =
	"Knobs, each with its unit in its name:\n"
	"  context=NAME         where it executes requests: thread, softirq, hrtimer or post (thread)\n"
	"  virtual_dma=1        DMA addresses are kernel pointers, as with Soft-RoCE (0)\n"
	"  qp_wr=N              work requests that a queue takes at most\n"
	"  sge=N                SGEs of a work request at most\n"
	"  inline_bytes=N       inline data of a work request at most\n"
	"  cqe=N, qps=N, mrs=N  CQEs of a CQ, queue pairs, memory regions at most\n"
	"  comp_vectors=N       completion vectors\n"
	"  numa_node=N          its NUMA node, -1 for that of the network device (-1)\n"
	"What is not given is as /sys/kernel/config/kverbs_sim/defaults has it.";

void add_create(CLI::App &sim, globals &g)
{
	auto o = std::make_shared<create_options>();
	CLI::App *command = sim.add_subcommand("create", "Make a simulated HCA");

	command->add_option("NAME", o->name, "Its name")->required()->option_text(" ");
	command->add_option("KNOB=VALUE", o->settings, "What it is made with, see below")
		->option_text("...");
	command->add_option("--netdev", o->netdev,
			    "Network device that it is on; if none is given, a dummy with an "
			    "address is made")
		->option_text("DEV");
	command->footer(create_footer);
	add_json_flag(*command, g);
	command->callback([o, &g] { create(*o, g.json); });
}

void add_set(CLI::App &sim, globals &g)
{
	auto o = std::make_shared<set_options>();
	CLI::App *command = sim.add_subcommand("set", "Change settings of a simulated HCA");

	command->add_option("NAME", o->name, "Its name")->required()->option_text(" ");
	command->add_option("KNOB=VALUE", o->settings, "What to change, see below")
		->required()
		->option_text("...");
	command->footer(
		"All are changed, or none. 'kverbs sim list' shows what there is to set, among it:\n"
		"  context=NAME         where it executes requests: thread, softirq, hrtimer or post\n"
		"  strict=1             each rule of the judge that a consumer breaks is a warning of\n"
		"                       the kernel, with a stack\n"
		"  silent_tail_ms=N     how long a queue may be idle behind a silent request\n"
		"  lost_arm_ms=N        how long completions may wait without anybody being told\n"
		"  preset=NAME          what its work costs: zero, or articles; each cost is a knob, too");
	add_json_flag(*command, g);
	command->callback([o, &g] { set(*o, g.json); });
}

// A command that is given the name of a device, and no more.
void add_named(CLI::App &sim, globals &g, const char *name, const char *help,
	       void (*run)(const std::string &, bool))
{
	auto device = std::make_shared<std::string>();
	CLI::App *command = sim.add_subcommand(name, help);

	command->add_option("NAME", *device, "Its name")->required()->option_text(" ");
	add_json_flag(*command, g);
	command->callback([device, run, &g] { run(*device, g.json); });
}

} // namespace

void add_sim(CLI::App &app, globals &g)
{
	CLI::App *sim = app.add_subcommand("sim", "Simulated HCAs, to test kernel consumers with");
	CLI::App *command;

	sim->require_subcommand(1);
	sim->footer(
		"They move data between queue pairs of this host, fail on demand, and judge who "
		"uses them.\nWhat they count is exact; it is simulated, and says so. Needs the "
		"module kverbs_sim.");
	add_create(*sim, g);
	command = sim->add_subcommand("list",
				      "List the simulated HCAs, their settings and capabilities");
	add_json_flag(*command, g);
	command->callback([&g] { list(g.json); });
	add_set(*sim, g);
	add_sim_fault(*sim, g);
	add_named(*sim, g, "counters", "What a simulated HCA did, and what its judge found",
		  counters);
	add_named(*sim, g, "remove", "Remove a simulated HCA, its rules and its dummy", remove);
}

} // namespace kverbs::cli
