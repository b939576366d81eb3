// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// A network device that leads nowhere, with an address: what a simulated HCA sits on
// where it is given none. It carries a mark, so that who removes the HCA knows that
// the network device was made for it.
#pragma once

#include <optional>
#include <string>

namespace kverbs::cli
{

// Whether there is a network device of that name.
bool netdev_exists(const std::string &name);

// Its first IPv4 address with the length of its prefix, "198.18.0.1/24".
std::optional<std::string> netdev_address(const std::string &name);

// Make one, give it an address that the host has not, bring it up. Throws an error.
void make_dummy_netdev(const std::string &name);

// Whether make_dummy_netdev() made it.
bool is_made_netdev(const std::string &name);

// 0, or the kernel's errno.
int remove_netdev(const std::string &name);

} // namespace kverbs::cli
