// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// What a send queue did last, until something failed: device_stats::recorded() of a
// queue that is there, device_stats::kept() of those that failed and are gone.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kverbs
{

enum class row_state : std::uint8_t; // of device_stats.hpp

// Why a record ended. The user ABI header tells what each means.
enum class cause_kind : std::uint8_t {
	none, // nothing has failed
	cqe,
	flushed,
	refused,
	in_doubt,
	tail,
	cqe_missing,
	drain,
	device_gone,
};

enum class event_type : std::uint8_t {
	flush = 1, // a call of ib_post_send()
	cqe,
};

enum class flush_reason : std::uint8_t {
	post, // a post that found nobody in the driver
	full, // a chain's worth was staged
	pass, // the end of a CQ pass
	hold, // what was held for company was held long enough
	call, // kverbs_flush()
	worker,
};

// "rem_access_err", "write", "err" and so on; "unknown" for what has no name.
std::string_view name(cause_kind kind);
std::string_view name(event_type type);
std::string_view name(flush_reason reason);
std::string_view name_of_status(std::uint8_t status);
std::string_view name_of_opcode(std::uint8_t opcode);
std::string_view name_of_qp_state(std::uint8_t state);

struct cause {
	using nanoseconds = std::chrono::nanoseconds;

	cause_kind kind{};
	std::chrono::steady_clock::time_point time;
	std::optional<nanoseconds> age;       // since the post of what failed
	std::optional<nanoseconds> oldest;    // since that of the oldest in flight
	std::uint64_t bytes = 0;              // payload of what failed
	std::uint32_t position = 0;           // in the send queue, from 0 on
	std::uint32_t in_flight = 0;          // work requests
	std::uint32_t receives = 0;           // CQEs that the CQ has room for on their behalf
	std::uint32_t vendor_err = 0;         // of the CQE
	int error = 0;                        // errno of a refusal
	std::uint8_t status = 0;              // of the CQE
	std::optional<std::uint8_t> opcode;   // of what failed
	std::optional<std::uint8_t> qp_state; // soon afterwards
};

struct record_event {
	event_type type{};
	std::chrono::steady_clock::time_point time;
	std::chrono::nanoseconds duration{}; // in the driver; or since the post
	std::uint64_t bytes = 0;             // posted
	std::uint32_t position = 0;          // of the first posted, or of the one with the CQE
	std::uint32_t count = 0;             // work requests posted or retired
	std::uint32_t signaled = 0;          // of those posted
	std::uint32_t vendor_err = 0;        // of the CQE
	int result = 0;                      // what the driver returned
	std::uint8_t status = 0;             // of the CQE
	std::uint8_t opcode = 0;             // of the first posted, or of the one with the CQE
	flush_reason reason{};
};

struct record {
	std::uint64_t serial = 0; // of one that is kept
	std::chrono::steady_clock::time_point time;
	std::optional<std::chrono::steady_clock::time_point> gone; // when the queue went
	std::uint32_t number = 0;                                  // of the QP
	std::uint32_t depth = 0;
	row_state state{};
	cause first; // failure
	cause later; // the one that ended the service, if the first did not
	std::string device;
	std::string name; // of the consumer
	std::vector<record_event> events;
};

} // namespace kverbs
