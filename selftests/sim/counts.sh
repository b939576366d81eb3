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

requests=$1
debugfs=/sys/kernel/debug/kverbs_conformance
parameters=/sys/module/kverbs_conformance/parameters
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# All counters of the device as rdma prints them, "NAME VALUE" lines.
statistic() { rdma -j statistic show link sim0/1 | jq -r '.[] | to_entries[] | "\(.key) \(.value)"'; }

# compare BEFORE AFTER TALLY: prints what the device did not count as it was posted.
# What a tally has no line for must not have happened: errors, retries, losses.
compare() {
	awk '
		FILENAME == ARGV[1] { before[$1] = $2; next }
		FILENAME == ARGV[2] { after[$1] = $2; next }
		{ want[$1] = $2 }
		END {
			for (name in want)
				if (!(name in after))
					print "# no counter " name
			for (name in after)
				if (after[name] ~ /^[0-9]+$/ && after[name] - before[name] != want[name] + 0)
					printf "# %s: the device counts %d, posted were %d\n", name,
						after[name] - before[name], want[name] + 0
		}' "$@"
}

# load CASE CONTEXT REQUESTS SEED
load() {
	local name="$1 in context $2" lines
	echo "$2" >/sys/module/kverbs_sim/parameters/context
	sim_add sim0 dummy0 || { fail "$name: there is a device"; return; }
	echo "$3" >$parameters/load_requests
	echo "$4" >$parameters/load_seed
	statistic >"$work/before"
	echo "$1" >$debugfs/run
	statistic >"$work/after"
	cat $debugfs/result >"$work/result"
	grep '^[a-z_]* [0-9]*$' "$work/result" >"$work/lines"
	sed -n '/^#/p; /^skip/p' "$work/result"
	is "$name: data and completions are right" "$(tail -n 1 "$work/result")" pass
	check "$name: $3 requests" test "$(awk '$1 == "send_wqes" { print $2 }' "$work/lines")" -ge "$3"
	is "$name: every opcode" "$(awk '/^op_/ { n++ } /^op_.* 0$/ { print $1 } END { print n }' "$work/lines")" 10
	grep -v '^op_' "$work/lines" >"$work/tally"
	lines=$(compare "$work/before" "$work/after" "$work/tally")
	[ -z "$lines" ] || printf '%s\n' "$lines"
	is "$name: the device counts what was posted" "$lines" ""
	sed 's/^/# /' "$work/lines" | paste -sd' ' | fold -sw 100 | sed 's/^[^#]/# &/'
	rdma link del sim0
}

[ -w $debugfs/run ] || { echo "Bail out! the kverbs_conformance module is not loaded"; exit 1; }
sim_net dummy0 10.9.0.1/24
# A string parameter keeps a new line.
printf sim0 >$parameters/device
echo 2 >$parameters/load_threads
load load/own thread "$requests" 1
seed=2
for context in thread softirq post; do
	# Where two threads share a queue they meet seldom, so there are more.
	load load/shared $context $((requests / 4)) $((seed++))
	load load/own $context $((requests / 20)) $((seed++))
done
finish
