// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// What a bench has found, as a table and as JSON.
#pragma once

#include "output.hpp"
#include "perf_device.hpp"

namespace kverbs::cli
{

struct bench_view {
	const perf_plan &plan;
	bool software; // the device is
	const perf_progress &end;
	const std::vector<perf_result> &results;
};

void print_bench(const bench_view &view);
json bench_json(const bench_view &view);

} // namespace kverbs::cli
