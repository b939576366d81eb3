// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Requests to the kernel that are answered by done or by an errno.

#include "netlink.hpp"

#include <cerrno>
#include <netlink/attr.h>
#include <new>
#include <system_error>

namespace kverbs::cli
{
namespace
{

void check(int failed)
{
	if (failed)
		throw std::bad_alloc();
}

// libnl has error numbers of its own, and fewer than the kernel.
int keep_error(sockaddr_nl *, nlmsgerr *answer, void *to)
{
	*static_cast<int *>(to) = -answer->error;
	return NL_STOP;
}

} // namespace

netlink_request::netlink_request(int type, int flags)
	: message_(nlmsg_alloc_simple(type, flags | NLM_F_REQUEST | NLM_F_ACK), nlmsg_free)
{
	check(!message_);
}

void netlink_request::header(const void *data, std::size_t size)
{
	check(nlmsg_append(message_.get(), const_cast<void *>(data), size, NLMSG_ALIGNTO));
}

void netlink_request::put(int attribute, const void *data, std::size_t size)
{
	check(nla_put(message_.get(), attribute, static_cast<int>(size), data));
}

void netlink_request::put(int attribute, const std::string &text)
{
	check(nla_put_string(message_.get(), attribute, text.c_str()));
}

void netlink_request::put(int attribute, std::uint32_t number)
{
	check(nla_put_u32(message_.get(), attribute, number));
}

void netlink_request::put_nested(int outer, int inner, const std::string &text)
{
	nlattr *nested = nla_nest_start(message_.get(), outer);

	check(!nested);
	put(inner, text);
	check(nla_nest_end(message_.get(), nested));
}

int netlink_request::call(int protocol)
{
	socket_ptr socket(nl_socket_alloc(), nl_socket_free);
	int error = 0;

	check(!socket);
	if (nl_connect(socket.get(), protocol) < 0)
		return EPROTONOSUPPORT; // the kernel has no such family, or its module is not there
	nl_socket_modify_err_cb(socket.get(), NL_CB_CUSTOM, keep_error, &error);
	if (nl_send_auto(socket.get(), message_.get()) < 0)
		return EIO;
	if (nl_wait_for_ack(socket.get()) < 0 && !error)
		return EIO;
	return error;
}

} // namespace kverbs::cli
