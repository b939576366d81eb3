#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# counts.sh REQUESTS: a simulated HCA counts exactly what its consumers post: a seeded
# random mix of all opcodes from two threads (load.c of the module kverbs_conformance),
# each request's data checked. Most of the requests in the HCA's own thread, on queue
# pairs of each thread; then fewer in each context, and with both threads on the same
# queue pairs.
set -u
cd "$(dirname "$0")" || exit
# shellcheck source=selftests/ktap.sh
. ../ktap.sh
# shellcheck source=selftests/sim/common.sh
. ./common.sh
# shellcheck source=selftests/sim/load_lib.sh
. ./load_lib.sh

requests=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# load CASE CONTEXT REQUESTS SEED
load() {
	local name="$1 in context $2"
	echo "$2" >/sys/module/kverbs_sim/parameters/context
	sim_add sim0 dummy0 || { fail "$name: there is a device"; return; }
	load_run "$name" "$1" "$3" "$4"
	is "$name: every opcode" "$(awk '/^op_/ { n++ } /^op_.* 0$/ { print $1 } END { print n }' "$work/lines")" 10
	sed 's/^/# /' "$work/lines" | paste -sd' ' | fold -sw 100 | sed 's/^[^#]/# &/'
	rdma link del sim0
}

load_prepare 2
load load/own thread "$requests" 1
seed=2
for context in thread softirq post; do
	# Where two threads share a queue they meet seldom, so there are more.
	load load/shared $context $((requests / 4)) $((seed++))
	load load/own $context $((requests / 20)) $((seed++))
done
finish
