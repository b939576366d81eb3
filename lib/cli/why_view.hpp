// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// The accounts, tables and JSON of `kverbs why`.
#pragma once

#include "output.hpp"

#include <string>
#include <vector>

#include <kverbs/device_stats.hpp>

namespace kverbs::cli
{

// What failed, in one sentence.
std::string account(const cause &cause);

// One queue: what failed, how it was then, and what was done before, the newest last.
void print_record(const record &record);

// One line for each.
void print_records(const std::vector<record> &records);

json record_json(const record &record, bool with_events);

} // namespace kverbs::cli
