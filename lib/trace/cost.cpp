// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Least squares over sums. The core's own line (fit.h) is for a queue that decides by it:
// it forgets what is old and has no error. Here all posts count, and how well the line
// fits is told.

#include "cost.hpp"

#include <algorithm>
#include <cmath>

namespace kverbs::trace
{
namespace
{

// Sums of squares differ by little where posts are alike.
using real = long double;

struct moments {
	real n, mean_wrs, mean_ns;
	real wrs_wrs, wrs_ns, ns_ns; // about the means
};

moments moments_of(const kverbs_post_sums &s)
{
	real n = s.nr, wrs = s.wrs, ns = s.ns;
	real ns_ns = std::ldexp(static_cast<real>(s.ns_ns_high), 64) + s.ns_ns;

	return {n,
		wrs / n,
		ns / n,
		s.wrs_wrs - wrs * wrs / n,
		s.wrs_ns - wrs * ns / n,
		std::max<real>(ns_ns - ns * ns / n, 0)};
}

bool same_size(const kverbs_post_sums &s)
{
	return s.wrs % s.nr == 0 && s.wrs / s.nr * s.wrs == s.wrs_wrs;
}

std::string why_no_line(const kverbs_post_sums &s)
{
	std::string posts = std::to_string(s.nr) + " post" + (s.nr == 1 ? "" : "s");

	if (s.nr < KVERBS_FIT_LEAST)
		return posts + ", and it takes " + std::to_string(KVERBS_FIT_LEAST);
	if (same_size(s))
		return "all " + posts + " had " + std::to_string(s.wrs / s.nr) + " work request" +
		       (s.wrs == s.nr ? "" : "s") + ", which cannot tell the two parts apart";
	return {};
}

} // namespace

cost_line fit_line(const kverbs_post_sums &s)
{
	cost_line line{why_no_line(s)};

	if (!line.why_not.empty())
		return line;
	moments m = moments_of(s);
	real slope = m.wrs_ns / m.wrs_wrs;
	real unexplained = std::max<real>(m.ns_ns - slope * m.wrs_ns, 0);
	real variance = unexplained / (m.n - 2);

	line.request_ns = static_cast<double>(slope);
	line.fixed_ns = static_cast<double>(m.mean_ns - slope * m.mean_wrs);
	line.request_error_ns = static_cast<double>(std::sqrt(variance / m.wrs_wrs));
	line.fixed_error_ns = static_cast<double>(
		std::sqrt(variance * (1 / m.n + m.mean_wrs * m.mean_wrs / m.wrs_wrs)));
	line.r2 = m.ns_ns > 0 ? static_cast<double>(1 - unexplained / m.ns_ns) : 1;
	return line;
}

} // namespace kverbs::trace
