// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// What a post costs, and what each of its work requests adds: a line by least squares.
#pragma once

#include "../../bpf/post_send.h"

#include <string>

namespace kverbs::trace
{

struct cost_line {
	std::string why_not; // empty: there is a line
	double fixed_ns = 0; // of a post, besides its work requests
	double fixed_error_ns = 0;
	double request_ns = 0; // each of them
	double request_error_ns = 0;
	double r2 = 0; // the share of the times' variance that the line explains
};

// The line through the posts of @s, with the standard errors of its two parts. None
// where they are too few or all of the same size.
cost_line fit_line(const kverbs_post_sums &s);

} // namespace kverbs::trace
