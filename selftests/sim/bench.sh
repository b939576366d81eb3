#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# bench.sh REQUESTS: the engines of the bench on a simulated HCA, in each context that it
# can execute in; what the HCA counts is what was posted. One that completes nothing can be
# removed all the same.
# shellcheck disable=SC2317 # functions that check() calls
set -u
cd "$(dirname "$0")" || exit
# shellcheck source=selftests/ktap.sh
. ../ktap.sh
# shellcheck source=selftests/kmod/bench_lib.sh
. ../kmod/bench_lib.sh
# shellcheck source=selftests/sim/common.sh
. ./common.sh

requests=$1
for context in thread softirq post; do
	echo $context >/sys/module/kverbs_sim/parameters/context
	sim_up sim0 dummy0 10.9.0.1/24 || exit
	for op in write read send; do
		before=$(sim_count sim0 ${op}s)
		bench --device sim0 --op $op --iters "$requests" --engine raw,chain,kverbs --verify
		clean "$context, $op: all requests are right" "$requests"
		ran=$(jq '[.results[].requests] | add' "$work/json")
		is "$context, $op: the HCA counts each" "$(($(sim_count sim0 ${op}s) - before))" "$ran"
	done
	bench --device sim0 --transport ud --op send --iters "$requests"
	clean "$context, datagrams: all requests are right" "$requests"
	is "$context: no error" "$(sim_count sim0 send_errors)" 0
	is "$context: no CQ ran over" "$(sim_count sim0 cq_overflows)" 0
	rdma link del sim0
done

# posted PID: waits until sim0 has executed a write, or the bench has ended.
posted() {
	local writes=0
	until [ "$writes" -gt 0 ]; do
		kill -0 "$1" || return
		sleep 0.02
		read -r writes </sys/class/infiniband/sim0/ports/1/hw_counters/writes
	done
}

for engine in raw kverbs; do
	sim_up sim0 dummy0 10.9.0.1/24 || exit
	kverbs sim fault add sim0 cqe_lost opcode=write >/dev/null
	kverbs bench --device sim0 --engine $engine --timeout 600 >/dev/null 2>"$work/err" &
	check "$engine: a device that completes nothing is used" posted $!
	check "$engine: it can be removed, whatever its user would put up with" timeout 60 rdma link del sim0
	wait $!
	is "$engine: its user is told so" $? 6
	kverbs sim fault remove sim0-cqe_lost >/dev/null
done
finish
