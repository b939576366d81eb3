// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Simulated HCAs and rules of faults as tables and as JSON. All says that it is simulated.
#pragma once

#include "output.hpp"
#include "sim_device.hpp"
#include "sim_rule.hpp"

#include <string>
#include <vector>

namespace kverbs::cli
{

// A number where it is one.
json value_json(const std::string &text);

json settings_json(const std::vector<sim_setting> &settings);

// "context=thread strict=0"
std::string settings_text(const std::vector<sim_setting> &settings);

json devices_json(const std::vector<sim_device> &devices);
void print_devices(const std::vector<sim_device> &devices);

json counters_json(const sim_device &device);
void print_counters(const sim_device &device);

json rule_json(const sim_rule &rule);
void print_rules(const std::vector<sim_rule> &rules);

} // namespace kverbs::cli
