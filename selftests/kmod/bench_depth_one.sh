#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# At depth 1 there is nothing to batch: each request is one call and one CQE, at once,
# whoever posts, wherever, whatever completion queue serves.
set -u
cd "$(dirname "$0")" || exit
# shellcheck source=selftests/ktap.sh
. ../ktap.sh
# shellcheck source=selftests/kmod/bench_lib.sh
. ./bench_lib.sh

for cq in ib interrupt poll; do
	bench --depth 1 --iters 300 --rounds 2 --cq $cq --context process,bh,completion
	clean "CQ $cq: all requests are right" 300
	for engine in raw chain kverbs; do
		holds "CQ $cq: $engine makes exactly one post call a request" \
			"[.results[] | select(.engine == \"$engine\") | .post_calls] == [300, 300, 300]"
		holds "CQ $cq: $engine gets exactly one CQE a request" \
			"[.results[] | select(.engine == \"$engine\") | .cqes] == [300, 300, 300]"
	done
done
finish
