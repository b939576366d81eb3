// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// The RDMA devices that are registered, and the functions they post with.
#pragma once

#include "function.hpp"

#include <string>
#include <vector>

namespace kverbs::trace
{

struct device {
	std::string name;
	function post_send; // without a name where the driver has none for the kernel
};

// All that the caller's network namespace sees; empty where there are none. Loads a
// small BPF program for as long as it runs. std::system_error if that cannot be done.
std::vector<device> registered_devices();

} // namespace kverbs::trace
