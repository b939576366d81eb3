// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Each counter is a file: /sys/class/infiniband/DEVICE[/ports/N]/hw_counters/NAME.

#include "hw_counters.hpp"
#include "rdma_devices.hpp"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>

namespace kverbs::cli
{
namespace
{

namespace fs = std::filesystem;

// Beside the counters; how many milliseconds the kernel keeps them.
constexpr const char *lifespan = "lifespan";

hw_counters read(const std::string &device, unsigned int port, const fs::path &dir)
{
	hw_counters found = {device, port, {}};
	std::error_code gone; // a device may leave while we look

	for (fs::directory_iterator it(dir, gone), end; !gone && it != end; it.increment(gone)) {
		std::string name = it->path().filename();
		std::ifstream in(it->path());
		std::uint64_t count;

		if (name != lifespan && in >> count)
			found.counts.emplace_back(name, count);
	}
	std::sort(found.counts.begin(), found.counts.end());
	return found;
}

const hw_counters *find(const std::vector<hw_counters> &in, const hw_counters &like)
{
	auto it = std::find_if(in.begin(), in.end(), [&like](const hw_counters &other) {
		return other.device == like.device && other.port == like.port;
	});
	return it == in.end() ? nullptr : &*it;
}

} // namespace

std::vector<hw_counters> read_hw_counters(const std::string &device)
{
	fs::path dir = fs::path("/sys/class/infiniband") / device;
	std::vector<hw_counters> all = {read(device, 0, dir / "hw_counters")};

	for (const rdma_device &found : rdma_devices()) {
		if (found.name != device)
			continue;
		for (const rdma_port &port : found.ports)
			all.push_back(read(device, port.number,
					   dir / fmt::format("ports/{}/hw_counters", port.number)));
	}
	std::erase_if(all, [](const hw_counters &counters) { return counters.counts.empty(); });
	return all;
}

std::vector<hw_counters> minus(std::vector<hw_counters> now, const std::vector<hw_counters> &before)
{
	for (hw_counters &counters : now) {
		const hw_counters *earlier = find(before, counters);

		if (!earlier)
			continue;
		for (auto &[name, count] : counters.counts) {
			auto it = std::find_if(earlier->counts.begin(), earlier->counts.end(),
					       [&name = name](const auto &other) {
						       return other.first == name;
					       });

			// Less than before: a device of that name came anew.
			if (it != earlier->counts.end() && it->second <= count)
				count -= it->second;
		}
	}
	return now;
}

} // namespace kverbs::cli
