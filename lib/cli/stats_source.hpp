// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// The statistics for the commands that show them, with failures in plain words.
#pragma once

#include <string>

#include <kverbs/device_stats.hpp>

namespace kverbs::cli
{

// Open /dev/kverbs; an error with its exit code tells what is in the way.
device_stats open_stats();

// The row of the device called @name, or an error that says which there are.
const row &find_device(const sample &sample, const std::string &name);

// Whether that driver's devices are made of software that only counts costs.
bool is_simulated(const std::string &driver);

} // namespace kverbs::cli
