// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// The commands of kverbs, one file each. A function add_NAME() adds a
// subcommand to the application; its callback does the work and throws
// kverbs::cli::error, or std::system_error, to fail.
#pragma once

#include <CLI/CLI.hpp>

namespace kverbs::cli
{

// What every command shares. Lives as long as the application.
struct globals {
	bool json = false; // set by add_json_flag() of output.hpp
};

void add_bench(CLI::App &app, globals &g);
void add_devices(CLI::App &app, globals &g);
void add_hist(CLI::App &app, globals &g);
void add_sim(CLI::App &app, globals &g);
void add_sim_fault(CLI::App &sim, globals &g);
void add_stat(CLI::App &app, globals &g);
void add_trace(CLI::App &app, globals &g);
void add_why(CLI::App &app, globals &g);

} // namespace kverbs::cli
