// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// The user ABI in the library's own terms. uapi.cpp is the only file that knows the
// structures of the kernel; whatever changes there is met there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include <kverbs/device_stats.hpp>

namespace kverbs::uapi
{

module_info info(int fd);
sample snapshot(int fd);
histogram latency(int fd, const row &of, histogram_kind kind);

// The record of a queue; of those that are kept the one after @serial, if there is one.
record recorded(int fd, const row &of);
std::optional<record> kept(int fd, std::uint64_t serial);

// Where the device is.
const char *device_path() noexcept;

// A row in memory, @size bytes of it; nullopt if it is in no use.
std::optional<row> read_row(const std::byte *at, std::size_t size);

// The generation of the row at @at, for the protocol that the user ABI header tells.
std::uint32_t generation_acquire(const std::byte *at);
std::uint32_t generation_relaxed(const std::byte *at);

// Of row 0: how many rows there are.
std::uint32_t arena_rows(const std::byte *at);

} // namespace kverbs::uapi
