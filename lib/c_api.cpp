// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// The C face of the library. No exception passes: each becomes an errno.

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>

#include <kverbs/device_stats.hpp>
#include <kverbs/kverbs.h>

struct kverbs_stats {
	kverbs::device_stats stats;
};

namespace
{

static_assert(kverbs::counter_count <= KVERBS_STATS_COUNTER_ROOM);
static_assert(static_cast<int>(kverbs::row_type::queue) == KVERBS_STATS_QUEUE);
static_assert(static_cast<int>(kverbs::row_state::stopped) == KVERBS_STATS_STOPPED);
static_assert(static_cast<int>(kverbs::cq_mode::adaptive) == KVERBS_STATS_ADAPTIVE);
static_assert(static_cast<int>(kverbs::histogram_kind::complete) == KVERBS_STATS_COMPLETE_NS);

// Run @body; what it throws becomes a negative errno.
template <typename Body> int guarded(Body &&body) noexcept
{
	try {
		return body();
	} catch (const std::system_error &e) {
		return -e.code().value();
	} catch (const std::bad_alloc &) {
		return -ENOMEM;
	} catch (...) {
		return -EIO;
	}
}

void fill(kverbs_stats_row &to, const kverbs::row &from)
{
	to = {};
	to.id = from.id;
	to.generation = from.generation;
	to.type = static_cast<uint32_t>(from.type);
	to.state = static_cast<uint32_t>(from.state);
	to.mode = static_cast<uint32_t>(from.mode);
	to.device = from.device;
	to.cq = from.cq.value_or(KVERBS_STATS_NONE);
	to.number = from.number;
	to.depth = from.depth;
	to.cpu = from.cpu.value_or(KVERBS_STATS_NONE);
	to.memory = from.memory;
	to.slot_memory = from.slot_memory;
	from.name.copy(to.name, sizeof(to.name) - 1);
	from.driver.copy(to.driver, sizeof(to.driver) - 1);
	std::copy(from.values.begin(), from.values.end(), to.counter);
}

} // namespace

int kverbs_stats_open(const char *path, kverbs_stats **stats)
{
	return guarded([&] {
		path = path ? path : kverbs::device_stats::default_path();
		*stats = new kverbs_stats{kverbs::device_stats::open(path)};
		return 0;
	});
}

void kverbs_stats_close(kverbs_stats *stats)
{
	delete stats;
}

int kverbs_stats_snapshot(kverbs_stats *stats, kverbs_stats_row *rows, size_t *nr,
			  uint64_t *time_ns)
{
	return guarded([&] {
		kverbs::sample sample = stats->stats.snapshot();
		size_t room = *nr;

		*nr = sample.rows.size();
		if (room < *nr)
			return -EMSGSIZE;
		for (size_t i = 0; i < *nr; i++)
			fill(rows[i], sample.rows[i]);
		if (time_ns)
			*time_ns = static_cast<uint64_t>(
				std::chrono::nanoseconds(sample.time.time_since_epoch()).count());
		return 0;
	});
}

int kverbs_stats_counter(const char *name)
{
	for (size_t i = 0; i < kverbs::counter_count; i++)
		if (kverbs::name(static_cast<kverbs::counter>(i)) == name)
			return static_cast<int>(i);
	return -ENOENT;
}

const char *kverbs_stats_counter_name(size_t index)
{
	// The names are literals, so that data() ends with a zero.
	if (index >= kverbs::counter_count)
		return nullptr;
	return kverbs::name(static_cast<kverbs::counter>(index)).data();
}

int kverbs_stats_histogram(kverbs_stats *stats, const kverbs_stats_row *row,
			   enum kverbs_stats_kind kind, uint64_t *bucket, size_t room)
{
	return guarded([&] {
		kverbs::row of;

		if (room < kverbs::histogram::bucket_count)
			return -EMSGSIZE;
		of.id = row->id;
		of.generation = row->generation;
		kverbs::histogram hist =
			stats->stats.latency(of, static_cast<kverbs::histogram_kind>(kind));
		std::copy(hist.buckets().begin(), hist.buckets().end(), bucket);
		return 0;
	});
}

size_t kverbs_stats_buckets(void)
{
	return kverbs::histogram::bucket_count;
}

uint64_t kverbs_stats_bucket_low(size_t index)
{
	return static_cast<uint64_t>(kverbs::histogram::low(index).count());
}

uint64_t kverbs_stats_percentile(const uint64_t *bucket, unsigned int per_10000)
{
	kverbs::histogram hist;

	std::copy_n(bucket, kverbs::histogram::bucket_count, hist.buckets().begin());
	return static_cast<uint64_t>(hist.percentile(std::min(per_10000, 10000U) / 100.0).count());
}
