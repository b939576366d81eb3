// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// How `kverbs stat` shows a sample: as totals, or as rates between two of them.
#pragma once

#include "hw_counters.hpp"
#include "output.hpp"

#include <string>
#include <vector>

#include <kverbs/device_stats.hpp>

namespace kverbs::cli
{

struct stat_choice {
	std::string device; // empty for all
	bool queues = false;
	bool cqs = false;
	bool memory = false;
	bool hardware = false;
};

// What is shown: @now, or what came between @before and @now if there is a @before.
struct stat_view {
	const stat_choice &choice;
	const sample &now;
	const sample *before = nullptr;
	std::vector<hw_counters> hardware = {}; // what the devices counted, in total or meanwhile
};

void print_stat(const stat_view &view);
json stat_json(const stat_view &view);

} // namespace kverbs::cli
