// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Adds up, subtracts and divides for `kverbs stat`.

#include "stat_figures.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace kverbs::cli
{
namespace
{

double seconds_between(const stat_view &view)
{
	if (!view.before)
		return 0;
	return std::chrono::duration<double>(view.now.time - view.before->time).count();
}

// The same object in the earlier sample, or nullptr if it is newer than that.
const row *earlier(const stat_view &view, const row &of)
{
	if (!view.before)
		return nullptr;
	const std::vector<row> &rows = view.before->rows;
	auto it = std::find_if(rows.begin(), rows.end(), [&of](const row &other) {
		return other.id == of.id && other.generation == of.generation;
	});
	return it == rows.end() ? nullptr : &*it;
}

counters minus(counters values, const counters &before)
{
	std::transform(values.begin(), values.end(), before.begin(), values.begin(),
		       std::minus<>());
	return values;
}

json share(std::uint64_t part, std::uint64_t whole)
{
	if (!whole)
		return nullptr;
	return static_cast<double>(part) / static_cast<double>(whole);
}

// Whether the view shows the device whose row has that id; its name if so.
const row *shown_device(const stat_view &view, std::uint32_t id)
{
	for (const row &row : view.now.rows)
		if (row.type == row_type::device && row.id == id &&
		    (view.choice.device.empty() || row.name == view.choice.device))
			return &row;
	return nullptr;
}

} // namespace

std::uint64_t figures::refused() const
{
	std::uint64_t sum = 0;

	for (counter c : {counter::refused_depth, counter::refused_sge, counter::refused_inline,
			  counter::refused_length, counter::refused_opcode, counter::refused_state,
			  counter::refused_device, counter::refused_driver})
		sum += (*this)[c];
	return sum;
}

std::string figures::show(std::uint64_t value) const
{
	return is_rate() ? format_count(static_cast<double>(value) / seconds_)
			 : fmt::format("{}", value);
}

std::string figures::show_bytes() const
{
	auto bytes = static_cast<double>((*this)[counter::bytes]);

	return format_bytes(is_rate() ? bytes / seconds_ : bytes);
}

std::string figures::per_post() const
{
	return format_ratio((*this)[counter::work_requests], (*this)[counter::post_calls]);
}

std::string figures::cqe_per_request() const
{
	return format_ratio((*this)[counter::queue_cqes], (*this)[counter::completions]);
}

json figures::counters_json() const
{
	json out;

	for (std::size_t i = 0; i < counter_count; i++)
		out[std::string(name(static_cast<counter>(i)))] = values_[i];
	return out;
}

json figures::rates_json() const
{
	json out;

	for (std::size_t i = 0; i < counter_count; i++)
		out[std::string(name(static_cast<counter>(i)))] =
			static_cast<double>(values_[i]) / seconds_;
	return out;
}

json figures::derived_json() const
{
	const figures &f = *this;

	return {{"requests_per_post", share(f[counter::work_requests], f[counter::post_calls])},
		{"signaled_share", share(f[counter::signaled], f[counter::work_requests])},
		{"inline_share", share(f[counter::inlined], f[counter::work_requests])},
		{"cqes_per_request", share(f[counter::queue_cqes], f[counter::completions])},
		{"empty_poll_share", share(f[counter::empty_polls], f[counter::polls])}};
}

std::vector<stat_line> device_lines(const stat_view &view)
{
	std::vector<stat_line> lines;

	for (const row &row : view.now.rows) {
		if (row.type != row_type::device || !shown_device(view, row.id))
			continue;
		counters values = view.now.total(row);

		if (const auto *before = earlier(view, row))
			values = minus(values, view.before->total(*before));
		lines.push_back({&row, row.name, figures(values, seconds_between(view))});
	}
	return lines;
}

std::vector<stat_line> object_lines(const stat_view &view, row_type type)
{
	std::vector<stat_line> lines;

	for (const row &row : view.now.rows) {
		const auto *device = row.type == type ? shown_device(view, row.device) : nullptr;

		if (!device)
			continue;
		counters values = row.values;

		if (const auto *before = earlier(view, row))
			values = minus(values, before->values);
		lines.push_back({&row, device->name, figures(values, seconds_between(view))});
	}
	return lines;
}

} // namespace kverbs::cli
