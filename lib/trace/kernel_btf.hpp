// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// The types of the kernel that runs and of its modules.
#pragma once

#include "function.hpp"

#include <map>
#include <memory>
#include <string>
#include <vector>

struct btf;

namespace kverbs::trace
{

class kernel_btf
{
      public:
	// Reads them; std::system_error where the kernel has none.
	kernel_btf();

	// Functions that take (struct ib_qp *, const struct ib_send_wr *, const struct
	// ib_send_wr **) and return int. Names prove nothing: mlx5's is called
	// mlx5_ib_post_send_nodrain, and wrappers for QP1 match as well. So these are
	// candidates, until a device is seen to use one.
	std::vector<function> post_send_candidates() const;

	// Why fentry cannot be used for @f; empty if it can.
	std::string why_no_fentry(const function &f) const;

      private:
	struct deleter {
		void operator()(btf *b) const;
	};
	using handle = std::unique_ptr<btf, deleter>;

	// Of the kernel itself; those of modules build on it, so that they go before it.
	handle base_;
	std::map<std::string, handle> modules_;
};

} // namespace kverbs::trace
