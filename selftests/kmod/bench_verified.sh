#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# bench_verified.sh WRITES OTHERS: so many requests of each engine, the data of each
# checked as it ends; and the reason for it all: kverbs posts and completes in sixteenths.
# Both are multiples of 16.
set -u
cd "$(dirname "$0")" || exit
# shellcheck source=selftests/ktap.sh
. ../ktap.sh
# shellcheck source=selftests/kmod/bench_lib.sh
. ./bench_lib.sh

for op in write read send; do
	requests=$2
	[ $op != write ] || requests=$1
	bench --op $op --size 64 --depth 128 --engine raw,chain,kverbs --iters "$requests" --verify
	clean "$op: $requests requests of each engine are right" "$requests"
	holds "$op: raw posts and completes each by itself" \
		'all(.results[] | select(.engine == "raw"); .post_calls_per_request == 1 and .cqes_per_request == 1)'
	holds "$op: chain posts and completes once in 16" \
		'all(.results[] | select(.engine == "chain");
			.post_calls_per_request <= 1/16 and .cqes_per_request <= 1/16)'
	holds "$op: kverbs posts at most once in 16" \
		'all(.results[] | select(.engine == "kverbs"); .post_calls_per_request <= 1/16)'
	holds "$op: kverbs completes at most once in 16" \
		'all(.results[] | select(.engine == "kverbs"); .cqes_per_request <= 1/16)'
	holds "$op: raw is there in process context and with bottom halves off" \
		'[.results[] | select(.engine == "raw") | .context] == ["process", "bh"]'
done
bench
clean "what is asked for without any option is right" 20000
finish
