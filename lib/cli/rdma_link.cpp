// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// RDMA_NLDEV_CMD_NEWLINK and DELLINK.

#include "rdma_link.hpp"
#include "netlink.hpp"
#include "rdma_devices.hpp"

#include <cerrno>

#include <rdma/rdma_netlink.h>

namespace kverbs::cli
{

int rdma_link_add(const std::string &name, const std::string &type, const std::string &netdev)
{
	netlink_request request(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_NEWLINK));

	request.put(RDMA_NLDEV_ATTR_DEV_NAME, name);
	request.put(RDMA_NLDEV_ATTR_LINK_TYPE, type);
	request.put(RDMA_NLDEV_ATTR_NDEV_NAME, netdev);
	return request.call(NETLINK_RDMA);
}

int rdma_link_remove(const std::string &name)
{
	std::optional<std::uint32_t> index = rdma_device_index(name);
	netlink_request request(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_DELLINK));

	if (!index)
		return ENODEV;
	request.put(RDMA_NLDEV_ATTR_DEV_INDEX, *index);
	return request.call(NETLINK_RDMA);
}

} // namespace kverbs::cli
