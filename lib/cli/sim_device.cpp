// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// A device is a directory in configfs.

#include "sim_device.hpp"
#include "errors.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <sstream>

namespace kverbs::cli
{
namespace
{

namespace fs = std::filesystem;

constexpr const char *counters_file = "counters";
constexpr const char *judge_group = "judge";

// In the judge's directory what cannot be written are its verdicts.
bool is_verdict(const sim_knob &knob)
{
	return knob.group == judge_group && !knob.writable;
}

} // namespace

sim_device::sim_device(std::string name)
	: name_(std::move(name)), knobs_(sim_knobs(sim_config() / name_))
{
}

std::vector<sim_setting> sim_device::settings() const
{
	return settings_of(knobs_, name_);
}

std::vector<sim_setting> sim_device::capabilities() const
{
	std::vector<sim_setting> found;

	for (const sim_knob &knob : knobs_)
		if (!knob.writable && knob.name != counters_file && knob.group != judge_group)
			found.push_back({knob.name, read(knob, name_)});
	return found;
}

void sim_device::set(const std::vector<sim_setting> &settings) const
{
	write_all(knobs_, settings, name_);
}

sim_counts sim_device::counters() const
{
	sim_counts found;

	for (const sim_knob &knob : knobs_) {
		if (knob.name != counters_file)
			continue;

		std::istringstream lines(read(knob, name_));
		std::string counter;
		std::uint64_t value;

		while (lines >> counter >> value)
			found.emplace_back(counter, value);
	}
	return found;
}

sim_counts sim_device::judge() const
{
	sim_counts found;

	for (const sim_knob &knob : knobs_)
		if (is_verdict(knob))
			found.emplace_back(knob.name, std::stoull(read(knob, name_)));
	return found;
}

std::vector<sim_device> sim_devices()
{
	std::vector<sim_device> found;
	std::error_code gone;

	for (const fs::directory_entry &entry : fs::directory_iterator(sim_config(), gone)) {
		std::string name = entry.path().filename();

		if (name != "defaults" && name != "faults")
			found.emplace_back(name);
	}
	std::sort(found.begin(), found.end(),
		  [](const sim_device &a, const sim_device &b) { return a.name() < b.name(); });
	return found;
}

sim_device find_sim_device(const std::string &name)
{
	std::string known;

	for (const sim_device &device : sim_devices()) {
		if (device.name() == name)
			return device;
		known += (known.empty() ? "" : ", ") + device.name();
	}
	if (known.empty())
		throw error(exit_code::no_device,
			    fmt::format("no simulated device '{0}': there is none; make it with "
					"'kverbs sim create {0}'",
					name));
	throw error(exit_code::no_device,
		    fmt::format("no simulated device '{}'; there is {}", name, known));
}

} // namespace kverbs::cli
