// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// What libbpf has to say, kept until somebody wants to know.
#pragma once

#include <string>

namespace kverbs::trace
{

// While one lives, libbpf's warnings go here and not to standard error.
class libbpf_messages
{
      public:
	libbpf_messages();
	~libbpf_messages();
	libbpf_messages(const libbpf_messages &) = delete;
	libbpf_messages &operator=(const libbpf_messages &) = delete;

	// The reason: its first warning, or errno's text where it gave none.
	std::string reason() const;

	// Throw std::system_error with errno, @what and the reason.
	[[noreturn]] void fail(const std::string &what) const;

	void clear();
};

} // namespace kverbs::trace
