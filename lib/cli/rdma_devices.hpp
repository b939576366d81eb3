// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// The RDMA devices of the host, from sysfs and RDMA netlink: no module of ours is
// needed for that.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kverbs::cli
{

struct rdma_port {
	unsigned int number = 0;
	std::string state;      // "ACTIVE", "DOWN"
	std::string link_layer; // "InfiniBand", "Ethernet"
	std::string rate;       // "100 Gb/sec (4X EDR)"
	std::string netdev;     // empty if it has none
};

struct rdma_device {
	std::string name;
	std::string node_type;        // "CA", "RNIC"
	std::string driver;           // its module; empty if that cannot be told
	std::optional<int> numa_node; // of the hardware
	std::vector<rdma_port> ports;
};

// All of them, by name.
std::vector<rdma_device> rdma_devices();

// Whether the host has a device of that name, whoever is asked.
bool rdma_device_exists(const std::string &name);

// The number that RDMA netlink knows it by.
std::optional<std::uint32_t> rdma_device_index(const std::string &name);

// The modules of the devices' drivers by device name, as far as ib_uverbs tells.
std::map<std::string, std::string> rdma_drivers();

} // namespace kverbs::cli
