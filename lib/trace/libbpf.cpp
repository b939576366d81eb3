// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// libbpf has one print function for the whole process, so what it says is kept by
// process as well.

#include "libbpf.hpp"

#include <bpf/libbpf.h>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <system_error>

namespace kverbs::trace
{
namespace
{

std::string first_warning;
libbpf_print_fn_t previous;

int keep(libbpf_print_level level, const char *format, va_list arguments)
{
	char line[256];
	int error = errno; // the caller of libbpf reads it after us

	if (level == LIBBPF_WARN && first_warning.empty()) {
		std::vsnprintf(line, sizeof(line), format, arguments);
		first_warning.assign(line, std::strcspn(line, "\n"));
	}
	errno = error;
	return 0;
}

} // namespace

libbpf_messages::libbpf_messages()
{
	clear();
	previous = libbpf_set_print(keep);
}

libbpf_messages::~libbpf_messages()
{
	libbpf_set_print(previous);
}

std::string libbpf_messages::reason() const
{
	return first_warning.empty() ? std::strerror(errno) : first_warning;
}

void libbpf_messages::fail(const std::string &what) const
{
	int error = errno;

	throw std::system_error(error, std::generic_category(), what + ": " + reason());
}

void libbpf_messages::clear()
{
	first_warning.clear();
}

} // namespace kverbs::trace
