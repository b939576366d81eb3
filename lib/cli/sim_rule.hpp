// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Rules of faults: which fault a simulated HCA makes, and of what. Each is a directory
// faults/NAME in configfs, which whoever made it removes.
#pragma once

#include "sim_knob.hpp"

#include <string>
#include <vector>

namespace kverbs::cli
{

struct sim_rule {
	std::string name;
	std::vector<sim_setting> values; // all that can be read of it

	// "" if it has no such value.
	std::string value(const std::string &knob) const;
};

// All of them, by name; only those of @device, unless it is empty.
std::vector<sim_rule> sim_rules(const std::string &device);

// Make one for @device, and enable it; its name, DEVICE-WHAT or, if that is taken, with
// a number behind. @first is its kind, or the preset that it begins with.
std::string add_sim_rule(const std::string &device, const sim_setting &first,
			 const std::vector<sim_setting> &settings);

// An error if there is none, which says which there are.
void remove_sim_rule(const std::string &name);

} // namespace kverbs::cli
