#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# What kverbs trace latency counts is what was posted, exactly: by the figures of the
# bench, which posts in the kernel, and by a kprobe in the same window.
# shellcheck disable=SC2119,SC2317 # functions that check() calls
set -u
# shellcheck source=selftests/bpf/common.sh
. "$(dirname "$0")/common.sh"

# bench NAME OPTION...: its figures go to $work/NAME.json.
bench() {
	local name=$1
	shift
	kverbs bench --rounds 2 --json "$@" >"$work/$name.json" 2>"$work/bench.err" || cat "$work/bench.err"
}

# of_bench FIELD NAME...: added up over all engines of all those runs.
of_bench() {
	local field=$1
	shift
	(cd "$work" && jq -s "[.[].results[].$field] | add" "${@/%/.json}")
}

trace_start || exit
count_start rxe_post_send
bench write --op write --iters 4000
bench read --op read --iters 1000 --engine raw,chain
bench send --op send --size 256 --iters 1000 --queues 2
calls=$(count_end)
check "Ctrl-C ends it with 0" trace_end

is "calls equal those of a kprobe in the same window" "$(sum posts) 0" "$calls"
no_losses "nothing was missed or lost"
for op in write read send; do
	is "$op: calls" "$(sum posts ".opcode == \"$op\"")" "$(of_bench post_calls $op)"
	is "$op: signaled" "$(sum signaled ".opcode == \"$op\"")" "$(of_bench signaled $op)"
	is "$op: work requests" "$(sum work_requests ".opcode == \"$op\"")" "$(of_bench requests $op)"
	is "$op: bytes" "$(sum bytes ".opcode == \"$op\"")" "$(of_bench bytes $op)"
done
is "a time for each call" "$(sum latency.count)" "$(sum posts)"
is "the consumer is the module that posts" "$(from_trace '[.posts[].consumer] | unique | join(" ")')" kverbs_perf
is "in the kernel" "$(from_trace '[.posts[].caller] | unique | join(" ")')" kernel
is "on the device" "$(from_trace '[.posts[].device] | unique | join(" ")')" rxe0
holds "percentiles are in order and below the maximum" '[.posts[] | select(.posts > 100) |
	.latency.p50_ns <= .latency.p99_ns and .latency.p99_ns <= .latency["p99.9_ns"] and
	.sum_ns >= .latency.p50_ns * .posts / 3 and .max_ns * .posts >= .sum_ns] | all'
check "the table names the consumer" grep -q '^rxe0 *kverbs_perf *kernel *write ' "$work/trace.out"
check "and the histogram has bars" grep -q '|@@' "$work/trace.out"
check "and it says that nothing was lost" grep -q '^nothing was missed or lost$' "$work/trace.out"

# A chain longer than is looked at must be told, and its calls counted all the same.
trace_start || exit
bench long --op write --engine chain --depth 2048 --batch 2048 --iters 8192
trace_end
is "chains of 2048: calls" "$(sum posts '.opcode == "write"')" "$(of_bench post_calls long)"
is "chains of 2048: what was not counted is told" \
	"$(sum truncated '.opcode == "write"')" "$(of_bench post_calls long)"
check "chains of 2048: in words, too" grep -q '^truncated: ' "$work/trace.out"

# Inline is counted by the flag.
trace_start || exit
bench inline --op write --engine kverbs --size 32 --iters 1000
trace_end
holds "inline: no more than work requests" '[.posts[] | .inline <= .work_requests] | all'
finish
