// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Simulated HCAs: kverbs_sim.ko makes one of a network device.
#pragma once

#include "sim_knob.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kverbs::cli
{

using sim_counts = std::vector<std::pair<std::string, std::uint64_t>>;

class sim_device
{
      public:
	explicit sim_device(std::string name);

	const std::string &name() const
	{
		return name_;
	}

	// What it is set to, by the names of the knobs.
	std::vector<sim_setting> settings() const;

	// What it was made with, and cannot be changed.
	std::vector<sim_setting> capabilities() const;

	// Change some of that, or nothing if one of them is refused.
	void set(const std::vector<sim_setting> &settings) const;

	// What it did, and which rules of the judge its consumers broke, and how often.
	sim_counts counters() const;
	sim_counts judge() const;

      private:
	std::string name_;
	std::vector<sim_knob> knobs_;
};

// All of them, by name.
std::vector<sim_device> sim_devices();

// The one of that name; an error that says which there are.
sim_device find_sim_device(const std::string &name);

struct sim_plan {
	std::string name;
	std::optional<std::string> netdev; // else one is made
	std::vector<sim_setting> settings; // that hold from its beginning
};

// Make one; the name of its network device.
std::string create_sim_device(const sim_plan &plan);

// Remove it, and the network device if that was made for it: the name of that.
std::optional<std::string> remove_sim_device(const sim_device &device);

} // namespace kverbs::cli
