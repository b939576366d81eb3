#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# bench_rpc.sh [COUNT]: requests and replies between two endpoints, on rxe0 and on a simulated
# HCA, by each kind of CQ: each request has its reply, with its own data, and a latency.
set -u
cd "$(dirname "$0")" || exit
# shellcheck source=selftests/ktap.sh
. ../ktap.sh
# shellcheck source=selftests/kmod/bench_lib.sh
. ./bench_lib.sh
# shellcheck source=selftests/sim/common.sh
. ../sim/common.sh
count=${1:-2000}

answered() { # NAME REQUESTS
	clean "$1" "$2"
	holds "$1: received, timed" "all(.results[]; .received == $2 and .latency.samples == $2 and
		.latency.p50_ns > 0 and .latency.p50_ns <= .latency.\"p99.9_ns\")"
}

sim_up sim0 dummy0 10.9.0.1/24 || exit
bench --device sim0 --op rpc --iters "$count" --cq interrupt,poll,hybrid,adaptive
answered "every request has its reply: sim" "$count"
bench --device rxe0 --op rpc --iters "$count" --depth 16 --cq interrupt,adaptive
answered "every request has its reply: rxe" "$count"
bench --device sim0 --op rpc --iters 100 --depth 1 --size 1 --rounds 1
answered "one at a time, of one byte" 100
bench --device sim0 --op rpc --iters "$count" --queues 2 --threads 5 --depth 7 --size 4099 --verify \
	--context process,completion
answered "threads that share connections" "$count"
bench --device sim0 --op rpc --iters 40 --depth 3 --size 1048576 --rounds 1
answered "messages of 1 MiB" 40
kverbs bench --device sim0 --op rpc --seconds 60 --depth 64 >/dev/null 2>"$work/err" &
sleep 1
kill -INT $!
check "interrupted, it ends well" wait $!
check "the device leaves" rdma link del sim0
finish
