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

constexpr std::array<std::string_view, 9> cause_names = {
	"none", "cqe",         "flushed", "refused",     "in_doubt",
	"tail", "cqe_missing", "drain",   "device_gone",
};
constexpr std::array<std::string_view, 3> event_names = {"unknown", "flush", "cqe"};
constexpr std::array<std::string_view, 6> reason_names = {"post", "full", "pass",
							  "hold", "call", "worker"};

// As the kernel has them: ib_wc_status, ib_wr_opcode, ib_qp_state.
constexpr std::array<std::string_view, 22> status_names = {
	"success",          "loc_len_err",       "loc_qp_op_err",     "loc_eec_op_err",
	"loc_prot_err",     "wr_flush_err",      "mw_bind_err",       "bad_resp_err",
	"loc_access_err",   "rem_inv_req_err",   "rem_access_err",    "rem_op_err",
	"retry_exc_err",    "rnr_retry_exc_err", "loc_rdd_viol_err",  "rem_inv_rd_req_err",
	"rem_abort_err",    "inv_eecn_err",      "inv_eec_state_err", "fatal_err",
	"resp_timeout_err", "general_err",
};
constexpr std::array<std::string_view, 16> opcode_names = {
	"write",          "write_imm",        "send",    "send_imm",     "read", "cmp_swp",
	"fetch_add",      "local_inv",        "bind_mw", "send_inv",     "tso",  "read_inv",
	"masked_cmp_swp", "masked_fetch_add", "flush",   "atomic_write",
};
constexpr std::uint8_t opcode_reg_mr = 0x20; // the first that only the kernel has
constexpr std::array<std::string_view, 7> qp_state_names = {"reset", "init", "rtr", "rts",
							    "sqd",   "sqe",  "err"};

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

std::string_view name(cause_kind kind)
{
	return lookup(cause_names, static_cast<std::size_t>(kind));
}

std::string_view name(event_type type)
{
	return lookup(event_names, static_cast<std::size_t>(type));
}

std::string_view name(flush_reason reason)
{
	return lookup(reason_names, static_cast<std::size_t>(reason));
}

std::string_view name_of_status(std::uint8_t status)
{
	return lookup(status_names, status);
}

std::string_view name_of_opcode(std::uint8_t opcode)
{
	return opcode == opcode_reg_mr ? "reg_mr" : lookup(opcode_names, opcode);
}

std::string_view name_of_qp_state(std::uint8_t state)
{
	return lookup(qp_state_names, state);
}

} // namespace kverbs
