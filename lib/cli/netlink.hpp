// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Netlink as the commands use it: libnl, with its objects owned and its errors in the
// kernel's own numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <string>

namespace kverbs::cli
{

using socket_ptr = std::unique_ptr<nl_sock, decltype(&nl_socket_free)>;
using message_ptr = std::unique_ptr<nl_msg, decltype(&nlmsg_free)>;

// One request to the kernel.
class netlink_request
{
      public:
	explicit netlink_request(int type, int flags = 0);

	// @size bytes of the family's own header, which follows netlink's.
	void header(const void *data, std::size_t size);

	void put(int attribute, const void *data, std::size_t size);
	void put(int attribute, const std::string &text);
	void put(int attribute, std::uint32_t number);

	// An attribute that holds one other.
	void put_nested(int outer, int inner, const std::string &text);

	// Send it to that family and wait until it is done; 0, or the kernel's errno.
	int call(int protocol);

      private:
	message_ptr message_;
};

} // namespace kverbs::cli
