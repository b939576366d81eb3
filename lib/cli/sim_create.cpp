// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// How a simulated HCA comes and goes. What it is born with are the defaults of the
// module, which belong to all: they are changed for a moment, under a lock that every
// kverbs takes, and not while a signal can end us.

#include "dummy_netdev.hpp"
#include "errors.hpp"
#include "interrupt.hpp"
#include "kernel_log.hpp"
#include "rdma_devices.hpp"
#include "rdma_link.hpp"
#include "sim_device.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <system_error>
#include <unistd.h>

namespace kverbs::cli
{
namespace
{

constexpr const char *link_type = "kverbs_sim";
constexpr std::size_t max_name = 63; // of an RDMA device

class defaults
{
      public:
	explicit defaults(const std::vector<sim_setting> &settings)
		: lock_(::open(dir().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)),
		  knobs_(sim_knobs(dir()))
	{
		if (lock_ < 0 || ::flock(lock_, LOCK_EX))
			throw std::system_error(errno, std::generic_category(), dir().string());
		before_ = settings_of(knobs_, whose);
		write_all(knobs_, settings, whose);
	}

	~defaults()
	{
		try {
			write_all(knobs_, before_, whose);
		} catch (const std::exception &) {
			// The module left meanwhile, and its defaults with it.
		}
		::close(lock_);
	}

	defaults(const defaults &) = delete;
	defaults &operator=(const defaults &) = delete;

      private:
	static std::filesystem::path dir()
	{
		return sim_config() / "defaults";
	}

	static constexpr const char *whose = "a new device";

	interrupt no_signal_;
	int lock_;
	std::vector<sim_knob> knobs_;
	std::vector<sim_setting> before_;
};

// Its directory in configfs is beside these two.
void check_name(const std::string &name)
{
	if (name.empty() || name.size() > max_name ||
	    name.find_first_of("/% \t\n") != std::string::npos || name == "." || name == ".." ||
	    name == "defaults" || name == "faults")
		throw error(
			exit_code::usage,
			fmt::format("'{}' cannot be the name of a device; give 1 to {} "
				    "characters without '/', '%' and blanks, not 'defaults' and "
				    "not 'faults'",
				    name, max_name));
	if (rdma_device_exists(name))
		throw error(exit_code::usage,
			    fmt::format("there is an RDMA device '{}' already; choose another name",
					name));
}

std::string user_of(const std::string &netdev)
{
	for (const rdma_device &device : rdma_devices())
		for (const rdma_port &port : device.ports)
			if (port.netdev == netdev)
				return device.name;
	return "another one";
}

[[noreturn]] void refuse(const sim_plan &plan, const std::string &netdev, int error_number,
			 const std::string &words)
{
	switch (error_number) {
	case EPERM:
	case EACCES:
		throw error(exit_code::no_privilege,
			    fmt::format("{} needs the capability CAP_NET_ADMIN; run it as root",
					plan.name));
	case ENODEV:
		throw error(exit_code::no_device,
			    fmt::format("no network device '{}'; 'ip link' shows which there are, "
					"without --netdev one is made",
					netdev));
	case EEXIST:
		if (words.empty())
			throw error(exit_code::usage,
				    fmt::format("network device {} has a simulated device, {}; "
						"give another, or none and one is made",
						netdev, user_of(netdev)));
		[[fallthrough]];
	default:
		throw error(exit_code::failure,
			    fmt::format("{}: {}", plan.name,
					words.empty() ? std::strerror(error_number) : words));
	}
}

void add(const sim_plan &plan, const std::string &netdev)
{
	kernel_log log;
	const std::string prefix = "kverbs_sim: ";

	if (int failed = rdma_link_add(plan.name, link_type, netdev)) {
		std::string words = log.last({prefix});

		refuse(plan, netdev, failed, words.empty() ? words : words.substr(prefix.size()));
	}
}

// The netdev of a device, empty if that cannot be told.
std::string sim_netdev(const std::string &name)
{
	for (const rdma_device &device : rdma_devices())
		if (device.name == name && !device.ports.empty())
			return device.ports.front().netdev;
	return {};
}

} // namespace

std::string create_sim_device(const sim_plan &plan)
{
	sim_config(); // the module is loaded, or nothing is begun
	check_name(plan.name);

	defaults changed(plan.settings); // also, one at a time looks for an address

	if (plan.netdev) {
		add(plan, *plan.netdev);
		return *plan.netdev;
	}
	make_dummy_netdev(plan.name);
	try {
		add(plan, plan.name);
	} catch (const std::exception &) {
		remove_netdev(plan.name);
		throw;
	}
	return plan.name;
}

std::optional<std::string> remove_sim_device(const sim_device &device)
{
	bool made = sim_netdev(device.name()) == device.name() && is_made_netdev(device.name());

	switch (int failed = rdma_link_remove(device.name())) {
	case 0:
		break;
	case EPERM:
	case EACCES:
		throw error(exit_code::no_privilege,
			    fmt::format("to remove {} needs the capability CAP_NET_ADMIN; run it "
					"as root",
					device.name()));
	case ENODEV:
	case ENOENT:
		throw error(exit_code::device_left,
			    fmt::format("{} left meanwhile", device.name()));
	default:
		throw error(exit_code::failure,
			    fmt::format("{}: {}", device.name(), std::strerror(failed)));
	}
	if (!made)
		return std::nullopt;
	remove_netdev(device.name());
	return device.name();
}

} // namespace kverbs::cli
