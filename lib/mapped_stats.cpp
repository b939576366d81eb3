// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// The rows in mapped pages. Row 0 holds a sequence count over all of them: a sample
// is good if it was even and the same before and after.

#include "uapi.hpp"

#include <atomic>
#include <cerrno>
#include <sys/mman.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace kverbs
{
namespace
{

// Rows come and go with connections: a reader that meets a change this often in a
// row asks the kernel, which can hold them still.
constexpr int attempts = 16;

std::size_t whole_pages(std::size_t bytes)
{
	auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));

	return (bytes + page - 1) / page * page;
}

[[noreturn]] void fail()
{
	throw std::system_error(errno, std::generic_category(), "map rows");
}

} // namespace

mapped_stats::mapped_stats(device_stats file, const module_info &info)
	: file_(std::move(file)), length_(whole_pages(std::size_t{info.row_count} * info.row_size)),
	  row_size_(info.row_size)
{
	void *base = ::mmap(nullptr, length_, PROT_READ, MAP_SHARED, file_.fd_, 0);

	if (base == MAP_FAILED)
		fail();
	base_ = static_cast<std::byte *>(base);
}

mapped_stats::mapped_stats(mapped_stats &&other) noexcept
	: file_(std::move(other.file_)), base_(std::exchange(other.base_, nullptr)),
	  length_(other.length_), row_size_(other.row_size_)
{
}

mapped_stats &mapped_stats::operator=(mapped_stats &&other) noexcept
{
	std::swap(file_, other.file_);
	std::swap(base_, other.base_);
	std::swap(length_, other.length_);
	std::swap(row_size_, other.row_size_);
	return *this;
}

mapped_stats::~mapped_stats()
{
	if (base_)
		::munmap(base_, length_);
}

// Reach rows that the arena got since it was mapped.
void mapped_stats::extend(std::size_t length)
{
	void *base = ::mremap(base_, length_, length, MREMAP_MAYMOVE);

	if (base == MAP_FAILED)
		fail();
	base_ = static_cast<std::byte *>(base);
	length_ = length;
}

bool mapped_stats::try_snapshot(sample &to)
{
	std::uint32_t generation = uapi::generation_acquire(base_);
	std::size_t rows = uapi::arena_rows(base_);

	if (generation & 1)
		return false;
	if (rows * row_size_ > length_)
		extend(whole_pages(rows * row_size_));

	to.time = std::chrono::steady_clock::now();
	to.rows.clear();
	for (std::size_t i = 1; i < rows; i++)
		if (auto row = uapi::read_row(base_ + i * row_size_, row_size_))
			to.rows.push_back(std::move(*row));

	// ORDER: all rows before the generation again; pairs with the kernel's barrier
	// after it made the generation odd.
	std::atomic_thread_fence(std::memory_order_acquire);
	return uapi::generation_relaxed(base_) == generation;
}

sample mapped_stats::snapshot()
{
	sample result;

	for (int i = 0; i < attempts; i++)
		if (try_snapshot(result))
			return result;
	return file_.snapshot();
}

} // namespace kverbs
