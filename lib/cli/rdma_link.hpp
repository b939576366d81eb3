// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Devices of software come and go by RDMA netlink, as with 'rdma link add' and 'del'.
#pragma once

#include <string>

namespace kverbs::cli
{

// 0, or the kernel's errno.
int rdma_link_add(const std::string &name, const std::string &type, const std::string &netdev);
int rdma_link_remove(const std::string &name);

} // namespace kverbs::cli
