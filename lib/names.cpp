// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// What things are called, in tables and in JSON.

#include <kverbs/device_stats.hpp>

namespace kverbs
{
namespace
{

constexpr std::array<std::string_view, counter_count> counter_names = {
	"post_calls",     "work_requests",  "signaled",       "inline",         "bytes",
	"noops",          "op_send",        "op_write",       "op_read",        "op_atomic",
	"op_reg_mr",      "op_local_inv",   "queue_cqes",     "completions",    "errors",
	"flushed",        "cqe_stale",      "cqe_missing",    "refused_full",   "refused_depth",
	"refused_sge",    "refused_inline", "refused_length", "refused_opcode", "refused_state",
	"refused_device", "refused_driver", "polls",          "empty_polls",    "cqes",
	"arms",           "arm_missed",     "wakeups",        "passes",
};
static_assert(!counter_names.back().empty());

// A newer module may know values that we do not.
template <std::size_t N>
std::string_view lookup(const std::array<std::string_view, N> &names, std::size_t index)
{
	return index < N ? names[index] : "unknown";
}

constexpr std::array<std::string_view, 4> type_names = {"free", "device", "cq", "queue"};
constexpr std::array<std::string_view, 3> state_names = {"live", "failed", "stopped"};
constexpr std::array<std::string_view, 5> mode_names = {"foreign", "interrupt", "poll", "hybrid",
							"adaptive"};
constexpr std::array<std::string_view, 2> kind_names = {"post", "complete"};

} // namespace

std::string_view name(counter c)
{
	return lookup(counter_names, static_cast<std::size_t>(c));
}

std::string_view name(row_type type)
{
	return lookup(type_names, static_cast<std::size_t>(type));
}

std::string_view name(row_state state)
{
	return lookup(state_names, static_cast<std::size_t>(state));
}

std::string_view name(cq_mode mode)
{
	return lookup(mode_names, static_cast<std::size_t>(mode));
}

std::string_view name(histogram_kind kind)
{
	return lookup(kind_names, static_cast<std::size_t>(kind));
}

} // namespace kverbs
