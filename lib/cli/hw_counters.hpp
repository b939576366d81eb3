// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// What a device counts itself, under the names that its driver gives: the hw_counters
// of sysfs, which any driver may have.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace kverbs::cli
{

// Of a device, or of one of its ports.
struct hw_counters {
	std::string device;
	unsigned int port = 0; // 0: of the device
	std::vector<std::pair<std::string, std::uint64_t>> counts;
};

// All of one device, those of the device first; none if its driver has none.
std::vector<hw_counters> read_hw_counters(const std::string &device);

// What came between @before and @now. What was not there before began with 0.
std::vector<hw_counters> minus(std::vector<hw_counters> now,
			       const std::vector<hw_counters> &before);

} // namespace kverbs::cli
