// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Why a bench cannot run, in one line: what was given, what may be given, what to do.
#pragma once

#include "errors.hpp"
#include "perf_device.hpp"

#include <uapi/rdma/kverbs_perf.h>

namespace kverbs::cli
{

// The device file cannot be opened.
error open_refusal(int error_number);

// The kernel refused @plan; @answer names the attribute and its limit.
error run_refusal(int error_number, const perf_plan &plan, const kverbs_perf_run &answer);

} // namespace kverbs::cli
