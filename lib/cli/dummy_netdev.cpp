// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Links and addresses by rtnetlink. The mark is the alias of the link.

#include "dummy_netdev.hpp"
#include "errors.hpp"
#include "netlink.hpp"

#include <arpa/inet.h>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <ifaddrs.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <memory>
#include <net/if.h>
#include <set>

namespace kverbs::cli
{
namespace
{

constexpr const char *mark = "made by kverbs sim";
constexpr unsigned int prefix_length = 24;

// 198.18.0.0/15 is set aside for tests of network devices (RFC 2544).
constexpr std::uint32_t first_network = 0xc6120000;
constexpr std::uint32_t networks = 512;

using ifaddrs_ptr = std::unique_ptr<ifaddrs, decltype(&freeifaddrs)>;

ifaddrs_ptr addresses()
{
	ifaddrs *first = nullptr;

	if (getifaddrs(&first))
		first = nullptr;
	return {first, freeifaddrs};
}

std::uint32_t ipv4(const sockaddr *address)
{
	sockaddr_in in;

	std::memcpy(&in, address, sizeof(in));
	return ntohl(in.sin_addr.s_addr);
}

std::string text(std::uint32_t address)
{
	in_addr in = {htonl(address)};
	char out[INET_ADDRSTRLEN];

	return inet_ntop(AF_INET, &in, out, sizeof(out));
}

// Of the networks for tests the first that the host is not in.
std::uint32_t free_address()
{
	std::set<std::uint32_t> taken;
	ifaddrs_ptr all = addresses();

	for (const ifaddrs *i = all.get(); i; i = i->ifa_next)
		if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET)
			taken.insert(ipv4(i->ifa_addr) >> (32 - prefix_length));
	for (std::uint32_t n = 0; n < networks; n++) {
		std::uint32_t network = first_network + (n << (32 - prefix_length));

		if (!taken.contains(network >> (32 - prefix_length)))
			return network + 1;
	}
	throw error(exit_code::failure,
		    "all networks of 198.18.0.0/15 are in use; give a network device with "
		    "--netdev");
}

ifinfomsg info_of(const std::string &name)
{
	ifinfomsg info = {};

	info.ifi_index = static_cast<int>(if_nametoindex(name.c_str()));
	return info;
}

int add_link(const std::string &name)
{
	netlink_request request(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
	ifinfomsg info = {};

	info.ifi_flags = info.ifi_change = IFF_UP;
	request.header(&info, sizeof(info));
	request.put(IFLA_IFNAME, name);
	request.put_nested(IFLA_LINKINFO, IFLA_INFO_KIND, "dummy");
	return request.call(NETLINK_ROUTE);
}

int set_mark(const std::string &name)
{
	netlink_request request(RTM_SETLINK);
	ifinfomsg info = info_of(name);

	request.header(&info, sizeof(info));
	request.put(IFLA_IFALIAS, mark, std::strlen(mark));
	return request.call(NETLINK_ROUTE);
}

int add_address(const std::string &name, std::uint32_t address)
{
	netlink_request request(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL);
	std::uint32_t big_endian = htonl(address);
	ifaddrmsg info = {};

	info.ifa_family = AF_INET;
	info.ifa_prefixlen = prefix_length;
	info.ifa_index = if_nametoindex(name.c_str());
	request.header(&info, sizeof(info));
	request.put(IFA_LOCAL, &big_endian, sizeof(big_endian));
	request.put(IFA_ADDRESS, &big_endian, sizeof(big_endian));
	return request.call(NETLINK_ROUTE);
}

[[noreturn]] void refuse(const std::string &name, int error_number)
{
	switch (error_number) {
	case EPERM:
		throw error(exit_code::no_privilege,
			    fmt::format("a network device for {} needs the capability "
					"CAP_NET_ADMIN; run it as root",
					name));
	case EEXIST:
		throw error(exit_code::usage,
			    fmt::format("there is a network device '{0}' already; choose another "
					"name, or give it with --netdev {0}",
					name));
	case EOPNOTSUPP:
		throw error(exit_code::failure,
			    "this kernel has no dummy network devices; load the module with "
			    "'modprobe dummy', or give a network device with --netdev");
	default:
		throw error(exit_code::failure, fmt::format("network device {}: {}", name,
							    std::strerror(error_number)));
	}
}

} // namespace

bool netdev_exists(const std::string &name)
{
	return if_nametoindex(name.c_str()) != 0;
}

std::optional<std::string> netdev_address(const std::string &name)
{
	ifaddrs_ptr all = addresses();

	for (const ifaddrs *i = all.get(); i; i = i->ifa_next)
		if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET && name == i->ifa_name)
			return fmt::format("{}/{}", text(ipv4(i->ifa_addr)),
					   std::popcount(ipv4(i->ifa_netmask)));
	return std::nullopt;
}

void make_dummy_netdev(const std::string &name)
{
	if (name.size() >= IFNAMSIZ)
		throw error(exit_code::usage,
			    fmt::format("'{}' is too long for a network device, whose name has at "
					"most {} characters; choose a shorter one, or give a "
					"network device with --netdev",
					name, IFNAMSIZ - 1));

	std::uint32_t address = free_address();

	if (int failed = add_link(name))
		refuse(name, failed);

	int failed = set_mark(name);

	if (!failed)
		failed = add_address(name, address);
	if (failed) {
		remove_netdev(name);
		refuse(name, failed);
	}
}

bool is_made_netdev(const std::string &name)
{
	std::ifstream in("/sys/class/net/" + name + "/ifalias");
	std::string alias;

	return std::getline(in, alias) && alias == mark;
}

int remove_netdev(const std::string &name)
{
	netlink_request request(RTM_DELLINK);
	ifinfomsg info = info_of(name);

	if (!info.ifi_index)
		return ENODEV;
	request.header(&info, sizeof(info));
	return request.call(NETLINK_ROUTE);
}

} // namespace kverbs::cli
