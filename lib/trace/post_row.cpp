// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Adds up what was counted of posts.

#include "post_row.hpp"

#include <algorithm>

namespace kverbs::trace
{

void add(kverbs_post_sums &to, const kverbs_post_sums &from)
{
	to.nr += from.nr;
	to.wrs += from.wrs;
	to.ns += from.ns;
	to.wrs_wrs += from.wrs_wrs;
	to.wrs_ns += from.wrs_ns;
	to.ns_ns += from.ns_ns;
	to.ns_ns_high += from.ns_ns_high + (to.ns_ns < from.ns_ns);
	to.left_out += from.left_out;
}

namespace
{

void subtract(kverbs_post_sums &from, const kverbs_post_sums &what)
{
	from.nr -= what.nr;
	from.wrs -= what.wrs;
	from.ns -= what.ns;
	from.wrs_wrs -= what.wrs_wrs;
	from.wrs_ns -= what.wrs_ns;
	from.ns_ns_high -= what.ns_ns_high + (from.ns_ns < what.ns_ns);
	from.ns_ns -= what.ns_ns;
	from.left_out -= what.left_out;
}

} // namespace

post_row &post_row::operator+=(const post_row &other)
{
	posts += other.posts;
	work_requests += other.work_requests;
	signaled += other.signaled;
	inlined += other.inlined;
	bytes += other.bytes;
	truncated += other.truncated;
	time += other.time;
	longest = std::max(longest, other.longest);
	latency += other.latency;
	for (std::size_t i = 0; i < sizes.size(); i++)
		sizes[i] += other.sizes[i];
	add(sums, other.sums);
	return *this;
}

post_row post_row::since(const post_row &before) const
{
	post_row d = *this;
	auto buckets = d.latency.buckets();
	std::size_t top = 0;

	d.posts -= before.posts;
	d.work_requests -= before.work_requests;
	d.signaled -= before.signaled;
	d.inlined -= before.inlined;
	d.bytes -= before.bytes;
	d.truncated -= before.truncated;
	d.time -= before.time;
	for (std::size_t i = 0; i < buckets.size(); i++) {
		buckets[i] -= before.latency.buckets()[i];
		if (buckets[i])
			top = i;
	}
	for (std::size_t i = 0; i < sizes.size(); i++)
		d.sizes[i] -= before.sizes[i];
	subtract(d.sums, before.sums);
	if (longest == before.longest && top + 1 < buckets.size())
		d.longest = std::min(longest, histogram::low(top + 1));
	return d;
}

post_losses &post_losses::operator+=(const post_losses &other)
{
	calls += other.calls;
	returns += other.returns;
	unmatched += other.unmatched;
	keys += other.keys;
	return *this;
}

} // namespace kverbs::trace
