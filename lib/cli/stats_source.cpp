// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Opens the statistics and finds devices in them.

#include "stats_source.hpp"

#include "errors.hpp"
#include "rdma_devices.hpp"

#include <fmt/format.h>
#include <system_error>

namespace kverbs::cli
{

device_stats open_stats()
{
	const char *path = device_stats::default_path();

	try {
		return device_stats::open();
	} catch (const std::system_error &e) {
		if (e.code() == std::errc::no_such_file_or_directory ||
		    e.code() == std::errc::no_such_device_or_address ||
		    e.code() == std::errc::no_such_device)
			throw error(exit_code::no_module,
				    fmt::format("no {}: the module kverbs is not loaded; "
						"load it with 'modprobe kverbs'",
						path));
		if (e.code() == std::errc::permission_denied ||
		    e.code() == std::errc::operation_not_permitted)
			throw error(
				exit_code::no_privilege,
				fmt::format("{} may be read by root and the group rdma only; run "
					    "as root or join the group",
					    path));
		throw;
	}
}

const row &find_device(const sample &sample, const std::string &name)
{
	std::string known;

	if (const row *device = sample.device(name))
		return *device;
	for (const row &row : sample.rows)
		if (row.type == row_type::device)
			known += (known.empty() ? "" : ", ") + row.name;
	if (known.empty())
		throw error(exit_code::no_device,
			    fmt::format("no RDMA device '{}': the host has none; load a driver, or "
					"make a Soft-RoCE device with 'rdma link add'",
					name));
	throw error(exit_code::no_device,
		    fmt::format("no RDMA device '{}'; there is {}", name, known));
}

bool is_simulated(const std::string &driver)
{
	return driver == "kverbs_sim";
}

} // namespace kverbs::cli
