// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// The files below /sys/kernel/config/kverbs_sim. Which there are and what they take is
// known to the kernel alone: a command lists what it finds, writes what it is told, and
// passes on what the kernel says of it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace kverbs::cli
{

// The directory; an error, if the module is not loaded.
std::filesystem::path sim_config();

struct sim_knob {
	std::string name;  // "silent_tail_ms"
	std::string group; // the directory that it is in, "judge"; empty for the top one
	std::filesystem::path path;
	bool readable = false;
	bool writable = false;
};

// All below that directory, by group and name.
std::vector<sim_knob> sim_knobs(const std::filesystem::path &dir);

// What it holds, without the end of the line. @whose is named where it cannot be read.
std::string read(const sim_knob &knob, std::string_view whose);

// Throws the kernel's own words if it takes no such value.
void write(const sim_knob &knob, const std::string &value, std::string_view whose);

// "context=softirq"
struct sim_setting {
	std::string knob;
	std::string value;
};

sim_setting parse_setting(const std::string &given);

// What all hold that can be set, and be read.
std::vector<sim_setting> settings_of(const std::vector<sim_knob> &knobs, std::string_view whose);

// The knob that a setting means; an error that names those there are.
const sim_knob &find_knob(const std::vector<sim_knob> &knobs, const std::string &name,
			  std::string_view whose);

// Write all, or none: if one is refused, those before it get back what they held.
void write_all(const std::vector<sim_knob> &knobs, const std::vector<sim_setting> &settings,
	       std::string_view whose);

} // namespace kverbs::cli
