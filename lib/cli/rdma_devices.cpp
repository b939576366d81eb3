// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Walks /sys/class/infiniband.

#include "rdma_devices.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace kverbs::cli
{
namespace
{

namespace fs = std::filesystem;

const fs::path class_dir = "/sys/class/infiniband";

// The first line of an attribute, or nothing if there is none or it cannot be read.
std::string attribute(const fs::path &path)
{
	std::ifstream in(path);
	std::string line;

	std::getline(in, line);
	return line;
}

// "4: ACTIVE" without the number.
std::string word(const std::string &value)
{
	std::size_t colon = value.find(": ");

	return colon == std::string::npos ? value : value.substr(colon + 2);
}

std::vector<fs::path> entries(const fs::path &dir)
{
	std::vector<fs::path> found;
	std::error_code gone; // a device may leave while we look

	for (fs::directory_iterator it(dir, gone), end; !gone && it != end; it.increment(gone))
		found.push_back(it->path());
	std::sort(found.begin(), found.end());
	return found;
}

rdma_port read_port(const fs::path &dir)
{
	rdma_port port;

	port.number = static_cast<unsigned int>(std::stoul(dir.filename()));
	port.state = word(attribute(dir / "state"));
	port.link_layer = attribute(dir / "link_layer");
	port.rate = attribute(dir / "rate");
	port.netdev = attribute(dir / "gid_attrs/ndevs/0");
	return port;
}

std::optional<int> numa_node(const fs::path &dir)
{
	std::string value = attribute(dir / "device/numa_node");

	if (value.empty() || value == "-1")
		return std::nullopt;
	return std::stoi(value);
}

rdma_device read_device(const fs::path &dir)
{
	rdma_device device;

	device.name = dir.filename();
	device.node_type = word(attribute(dir / "node_type"));
	device.numa_node = numa_node(dir);
	for (const fs::path &port : entries(dir / "ports"))
		device.ports.push_back(read_port(port));
	std::sort(device.ports.begin(), device.ports.end(),
		  [](const rdma_port &a, const rdma_port &b) { return a.number < b.number; });
	return device;
}

// The driver of the device below, which need not be the RDMA driver's module
// (mlx5_core, not mlx5_ib), where nobody knows better.
std::string parent_driver(const std::string &name)
{
	std::error_code none;

	return fs::read_symlink(class_dir / name / "device/driver", none).filename();
}

} // namespace

std::vector<rdma_device> rdma_devices()
{
	std::map<std::string, std::string> drivers = rdma_drivers();
	std::vector<rdma_device> devices;

	for (const fs::path &dir : entries(class_dir)) {
		rdma_device device = read_device(dir);
		auto driver = drivers.find(device.name);

		device.driver =
			driver != drivers.end() ? driver->second : parent_driver(device.name);
		devices.push_back(std::move(device));
	}
	return devices;
}

bool rdma_device_exists(const std::string &name)
{
	std::error_code none;

	return name.find('/') == std::string::npos && fs::exists(class_dir / name, none);
}

} // namespace kverbs::cli
