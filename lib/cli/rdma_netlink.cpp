// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Asks RDMA netlink which driver a device has: sysfs does not tell for devices
// without hardware. The kernel answers with the number that uverbs gives drivers.

#include "netlink.hpp"
#include "rdma_devices.hpp"

#include <netlink/attr.h>

#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rdma_netlink.h>

namespace kverbs::cli
{
namespace
{

const char *driver_module(std::uint64_t id)
{
	switch (id) {
	case RDMA_DRIVER_MLX5:
		return "mlx5_ib";
	case RDMA_DRIVER_MLX4:
		return "mlx4_ib";
	case RDMA_DRIVER_CXGB4:
		return "iw_cxgb4";
	case RDMA_DRIVER_MTHCA:
		return "ib_mthca";
	case RDMA_DRIVER_BNXT_RE:
		return "bnxt_re";
	case RDMA_DRIVER_OCRDMA:
		return "ocrdma";
	case RDMA_DRIVER_IRDMA:
		return "irdma";
	case RDMA_DRIVER_VMW_PVRDMA:
		return "vmw_pvrdma";
	case RDMA_DRIVER_QEDR:
		return "qedr";
	case RDMA_DRIVER_HNS:
		return "hns_roce_hw_v2";
	case RDMA_DRIVER_USNIC:
		return "usnic_verbs";
	case RDMA_DRIVER_RXE:
		return "rdma_rxe";
	case RDMA_DRIVER_HFI1:
		return "hfi1";
	case RDMA_DRIVER_QIB:
		return "ib_qib";
	case RDMA_DRIVER_EFA:
		return "efa";
	case RDMA_DRIVER_SIW:
		return "siw";
	case RDMA_DRIVER_ERDMA:
		return "erdma";
	default:
		return "";
	}
}

// What one answer holds of what we want.
struct answer {
	std::optional<std::uint32_t> index;
	std::string name;
	std::optional<std::uint64_t> driver;
};

int parse(nl_msg *message, void *to)
{
	auto *answers = static_cast<std::vector<answer> *>(to);
	nlattr *attrs[RDMA_NLDEV_ATTR_MAX] = {};
	answer a;

	if (nlmsg_parse(nlmsg_hdr(message), 0, attrs, RDMA_NLDEV_ATTR_MAX - 1, nullptr) < 0)
		return NL_SKIP;
	if (attrs[RDMA_NLDEV_ATTR_DEV_INDEX])
		a.index = nla_get_u32(attrs[RDMA_NLDEV_ATTR_DEV_INDEX]);
	if (attrs[RDMA_NLDEV_ATTR_DEV_NAME])
		a.name = nla_get_string(attrs[RDMA_NLDEV_ATTR_DEV_NAME]);
	if (attrs[RDMA_NLDEV_ATTR_UVERBS_DRIVER_ID]) {
		// Older kernels send four bytes where the header says eight.
		const nlattr *id = attrs[RDMA_NLDEV_ATTR_UVERBS_DRIVER_ID];

		a.driver = nla_len(id) >= 8 ? nla_get_u64(id) : nla_get_u32(id);
	}
	answers->push_back(std::move(a));
	return NL_OK;
}

// Send @command, with the device and the kind of character device if @index is
// given, and take all answers. None, if the kernel refuses.
std::vector<answer> ask(nl_sock *socket, int command, std::optional<std::uint32_t> index)
{
	std::vector<answer> answers;
	message_ptr message(nlmsg_alloc_simple(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command),
					       index ? 0 : NLM_F_DUMP),
			    nlmsg_free);

	if (!message)
		return answers;
	if (index && (nla_put_u32(message.get(), RDMA_NLDEV_ATTR_DEV_INDEX, *index) ||
		      nla_put_string(message.get(), RDMA_NLDEV_ATTR_CHARDEV_TYPE, "uverbs")))
		return answers;
	nl_socket_modify_cb(socket, NL_CB_VALID, NL_CB_CUSTOM, parse, &answers);
	if (nl_send_auto(socket, message.get()) < 0 || nl_recvmsgs_default(socket) < 0)
		answers.clear();
	return answers;
}

bool connected(nl_sock *socket)
{
	return socket && nl_connect(socket, NETLINK_RDMA) >= 0;
}

} // namespace

std::optional<std::uint32_t> rdma_device_index(const std::string &name)
{
	socket_ptr socket(nl_socket_alloc(), nl_socket_free);

	if (!connected(socket.get()))
		return std::nullopt;
	for (const answer &device : ask(socket.get(), RDMA_NLDEV_CMD_GET, std::nullopt))
		if (device.name == name)
			return device.index;
	return std::nullopt;
}

std::map<std::string, std::string> rdma_drivers()
{
	std::map<std::string, std::string> drivers;
	socket_ptr socket(nl_socket_alloc(), nl_socket_free);

	if (!connected(socket.get()))
		return drivers;
	for (const answer &device : ask(socket.get(), RDMA_NLDEV_CMD_GET, std::nullopt)) {
		if (!device.index)
			continue;
		for (const answer &a : ask(socket.get(), RDMA_NLDEV_CMD_GET_CHARDEV, device.index))
			if (a.driver && *driver_module(*a.driver))
				drivers[device.name] = driver_module(*a.driver);
	}
	return drivers;
}

} // namespace kverbs::cli
