# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
#
# The load of the module kverbs_conformance on a device sim0, counted. Sourced, after
# ktap.sh and common.sh; $work is a directory.

load_debugfs=/sys/kernel/debug/kverbs_conformance
load_parameters=/sys/module/kverbs_conformance/parameters

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

# load_prepare THREADS
load_prepare() {
	[ -w $load_debugfs/run ] || { echo "Bail out! the kverbs_conformance module is not loaded"; exit 1; }
	sim_net dummy0 10.9.0.1/24
	# A string parameter keeps a new line.
	printf sim0 >$load_parameters/device
	echo "$1" >$load_parameters/load_threads
}

# load_run NAME CASE REQUESTS SEED: on the device that there is; three cases, and the tally
# is in $work/lines.
load_run() {
	local name=$1 lines
	echo "$3" >$load_parameters/load_requests
	echo "$4" >$load_parameters/load_seed
	# shellcheck disable=SC2154 # the test's
	statistic >"$work/before"
	echo "$2" >$load_debugfs/run
	statistic >"$work/after"
	cat $load_debugfs/result >"$work/result"
	grep '^[a-z_]* [0-9]*$' "$work/result" >"$work/lines"
	sed -n '/^#/p; /^skip/p' "$work/result"
	is "$name: data and completions are right" "$(tail -n 1 "$work/result")" pass
	check "$name: $3 requests" test "$(awk '$1 == "send_wqes" { print $2 }' "$work/lines")" -ge "$3"
	grep -v '^op_' "$work/lines" >"$work/tally"
	lines=$(compare "$work/before" "$work/after" "$work/tally")
	[ -z "$lines" ] || printf '%s\n' "$lines"
	is "$name: the device counts what was posted" "$lines" ""
}
