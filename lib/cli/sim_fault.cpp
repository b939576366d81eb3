// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// kverbs sim fault: rules that make a simulated HCA fail.

#include "commands.hpp"
#include "errors.hpp"
#include "output.hpp"
#include "sim_view.hpp"

#include <fmt/format.h>
#include <memory>

namespace kverbs::cli
{
namespace
{

struct add_options {
	std::string device;
	std::string what;
	std::vector<std::string> settings;
};

// @knob: what the second argument is, a kind or a preset.
void add(const add_options &o, const char *knob, bool as_json)
{
	sim_device device = find_sim_device(o.device);
	std::vector<sim_setting> settings;

	for (const std::string &given : o.settings)
		settings.push_back(parse_setting(given));

	std::string name = add_sim_rule(device.name(), {knob, o.what}, settings);

	for (const sim_rule &rule : sim_rules(device.name())) {
		if (rule.name != name)
			continue;
		if (as_json)
			print_json(rule_json(rule));
		else
			print_rules({rule});
	}
}

void list(const std::string &name, bool as_json)
{
	if (!name.empty())
		find_sim_device(name);

	std::vector<sim_rule> rules = sim_rules(name);
	json document = {{"rules", json::array()}};

	for (const sim_rule &rule : rules)
		document["rules"].push_back(rule_json(rule));
	if (as_json)
		print_json(document);
	else
		print_rules(rules);
}

void remove(const std::vector<std::string> &names, bool as_json)
{
	for (const std::string &name : names)
		remove_sim_rule(name);
	if (as_json)
		print_json({{"simulated", true}, {"rules_removed", names}});
}

constexpr const char *settings_help =
	"Settings, each with its unit in its name:\n"
	"  after_hits=N         let so many events that match pass first (0)\n"
	"  count_hits=N         fail so often at most, 0 for no end (1; presets: 0)\n"
	"  probability_ppm=N    then fail so many of a million (1000000)\n"
	"  seed=N               of that choice: the same again with the same seed\n"
	"  opcode=NAME          any, send, send_imm, send_inv, write, write_imm, read, cas, fadd,\n"
	"                       reg_mr, local_inv or recv (any)\n"
	"  qp_num=N             of that queue pair only, 0 for all (0)\n"
	"  status=NAME          what an error ends with, such as rem_access_err (general_err)\n"
	"  errno=N              what a post returns; drivers were seen to return positive ones (-12)\n"
	"  delay_ns=N           how late what comes late is, and how long the port is down (1000000)";

constexpr const char *kinds_help =
	"Kinds:\n"
	"  post_fail            a request is refused; bad_wr says which\n"
	"  post_half            of a chain the second half is refused\n"
	"  post_bad_head        a request is refused, and bad_wr names the head of the chain\n"
	"  post_bad_unset       a request is refused, and bad_wr is left alone\n"
	"  post_bad_wrong       a request is refused, and bad_wr names none of the chain\n"
	"  post_taken           all are taken, and an error is returned\n"
	"  error                a request is not executed and ends with the status\n"
	"  sqe                  the same on UC and UD, whose queue goes to SQE\n"
	"  rnr                  the peer has no receive posted\n"
	"  no_answer            the peer does not answer\n"
	"  flush_executed       an error flushes silent requests that had succeeded, too\n"
	"  read_overtaken       the completion of a READ comes after that of a later request\n"
	"  cqe_late             a completion is late\n"
	"  cqe_lost             a completion never comes\n"
	"  cqe_twice            a completion comes twice\n"
	"  event_lost           an armed CQ is not told of a completion\n"
	"  event_locked         the handler is called under the lock of poll and arm\n"
	"  event_in_post        the handler is called inside post_send\n"
	"  port_down            the port goes down\n"
	"  remove               the device is unregistered\n\n";

constexpr const char *presets_help =
	"Presets, by the drivers that were seen to do so:\n"
	"  irdma                an error flushes silent requests that had succeeded\n"
	"  erdma                a refusal names the head of the chain, whatever was taken\n"
	"  siw                  a refusal after all was taken, without bad_wr\n"
	"  mlx5                 the handler is called by who posts, as in its drain\n"
	"  iwarp                READs complete after later requests\n\n";

void add_adder(CLI::App &fault, globals &g, const char *name, const char *help, const char *what,
	       const char *knob, const std::string &footer)
{
	auto o = std::make_shared<add_options>();
	CLI::App *command = fault.add_subcommand(name, help);

	command->add_option("DEVICE", o->device, "Simulated HCA")->required()->option_text(" ");
	command->add_option(what, o->what, "See below")->required()->option_text(" ");
	command->add_option("SETTING=VALUE", o->settings, "See below")->option_text("...");
	command->footer(footer);
	add_json_flag(*command, g);
	command->callback([o, knob, &g] { add(*o, knob, g.json); });
}

void add_list(CLI::App &fault, globals &g)
{
	auto device = std::make_shared<std::string>();
	CLI::App *command = fault.add_subcommand("list", "List rules, and how often each has hit");

	command->add_option("DEVICE", *device, "Of that simulated HCA only")->option_text(" ");
	add_json_flag(*command, g);
	command->callback([device, &g] { list(*device, g.json); });
}

void add_remove(CLI::App &fault, globals &g)
{
	auto rules = std::make_shared<std::vector<std::string>>();
	CLI::App *command = fault.add_subcommand("remove", "Remove rules");

	command->add_option("RULE", *rules, "Their names")->required()->option_text("...");
	add_json_flag(*command, g);
	command->callback([rules, &g] { remove(*rules, g.json); });
}

} // namespace

void add_sim_fault(CLI::App &sim, globals &g)
{
	CLI::App *fault = sim.add_subcommand("fault", "Make a simulated HCA fail, by rules");

	fault->require_subcommand(1);
	add_adder(*fault, g, "add", "Add a rule", "KIND", "kind",
		  std::string(kinds_help) + settings_help);
	add_list(*fault, g);
	add_remove(*fault, g);
	add_adder(*fault, g, "preset", "Add the habit of a real driver", "PRESET", "preset",
		  std::string(presets_help) + settings_help);
}

} // namespace kverbs::cli
