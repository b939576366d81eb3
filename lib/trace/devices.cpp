// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Asks for each device over RDMA netlink, while bpf/devices.bpf.c watches what the
// kernel finds.

#include "devices.hpp"

#include "../../bpf/devices.h"
#include "devices.skel.h"
#include "libbpf.hpp"

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <rdma/rdma_netlink.h>
#include <system_error>

namespace kverbs::trace
{
namespace
{

constexpr int get_device = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET);

// RDMA netlink, as far as it is needed here.
class netlink
{
      public:
	netlink() : socket_(nl_socket_alloc(), nl_socket_free)
	{
		if (!socket_)
			throw std::bad_alloc();
		check(nl_connect(socket_.get(), NETLINK_RDMA));
		nl_socket_modify_cb(socket_.get(), NL_CB_VALID, NL_CB_CUSTOM, on_device, this);
	}

	// The indices of all devices.
	std::vector<std::uint32_t> indices()
	{
		found_.clear();
		check(nl_send_simple(socket_.get(), get_device, NLM_F_DUMP, nullptr, 0));
		check(nl_recvmsgs_default(socket_.get()));
		return found_;
	}

	// Let the kernel look one up. It may have left since, which is no error.
	void get(std::uint32_t index)
	{
		std::unique_ptr<nl_msg, decltype(&nlmsg_free)> message(
			nlmsg_alloc_simple(get_device, 0), nlmsg_free);

		if (!message)
			throw std::bad_alloc();
		check(nla_put_u32(message.get(), RDMA_NLDEV_ATTR_DEV_INDEX, index));
		check(nl_send_auto(socket_.get(), message.get()));
		nl_recvmsgs_default(socket_.get());
	}

      private:
	static void check(int error)
	{
		if (error < 0)
			throw std::runtime_error(std::string("RDMA netlink: ") +
						 nl_geterror(error));
	}

	static int on_device(nl_msg *message, void *self)
	{
		nlattr *index = nlmsg_find_attr(nlmsg_hdr(message), 0, RDMA_NLDEV_ATTR_DEV_INDEX);

		if (index)
			static_cast<netlink *>(self)->found_.push_back(nla_get_u32(index));
		return NL_OK;
	}

	std::unique_ptr<nl_sock, decltype(&nl_socket_free)> socket_;
	std::vector<std::uint32_t> found_;
};

using skeleton = std::unique_ptr<devices_bpf, decltype(&devices_bpf::destroy)>;

// Loaded and attached, or null.
skeleton attach(bool fexit)
{
	skeleton s(devices_bpf::open(), devices_bpf::destroy);

	if (!s)
		return s;
	bpf_program__set_autoload(s->progs.fexit_get_device, fexit);
	bpf_program__set_autoload(s->progs.kretprobe_get_device, !fexit);
	if (devices_bpf::load(s.get()) || devices_bpf::attach(s.get()))
		s.reset();
	return s;
}

bool any_device()
{
	std::error_code none;
	std::filesystem::directory_iterator dir("/sys/class/infiniband", none);

	return !none && dir != std::filesystem::directory_iterator();
}

} // namespace

std::vector<device> registered_devices()
{
	std::vector<device> found;

	if (!any_device())
		return found;
	libbpf_messages messages;
	skeleton programs = attach(true);

	if (!programs)
		programs = attach(false);
	if (!programs)
		messages.fail("cannot look at the RDMA devices");

	netlink nl;
	for (std::uint32_t index : nl.indices()) {
		kverbs_device_ops ops{};

		nl.get(index);
		if (bpf_map__lookup_elem(programs->maps.devices, &index, sizeof(index), &ops,
					 sizeof(ops), 0) == 0)
			found.push_back({ops.name, function::parse(ops.post_send)});
	}
	return found;
}

} // namespace kverbs::trace
