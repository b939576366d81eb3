# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash disable=SC2034 # status is for who sources this
#
# A run of the runner inside a test of it. Sourced.
# shellcheck source=selftests/ktap.sh
. "$KVERBS_TOP/selftests/ktap.sh"

# run_inner NAME: runs the table on standard input; leaves $stream and $status.
run_inner() {
	local results=$KVERBS_OUT/results/harness-$1
	mkdir -p "$results"
	stream=$results/stream
	cat >"$results/table"
	"$KVERBS_TOP/selftests/run" --table "$results/table" --results "$results" >"$stream" 2>&1
	status=$?
	sed 's/^/# | /' "$stream"
}
