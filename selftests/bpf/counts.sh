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

shapes_are_counted

# Posts in hard interrupts, which meet other posts in the middle of a call and of the
# programs that watch it. The kernel runs no program inside itself: those are told.
trace_start || exit
check "posts in interrupts" posts shapes=0 rounds=100000 interrupt_us=40
trace_end
truth=$(awk '{ n += $2 } END { print n }' "$work/posts")
echo "# $(tr '\n' ' ' <"$work/posts"): $(jq -c .lost "$result")"
is "posts that met others: seen and missed are all" "$(from_trace '([.posts[].posts] | add) + .lost.calls')" "$truth"
is "posts that met others: timed and not timed are those seen" \
	"$(from_trace '([.posts[].latency.count] | add) + .lost.returns')" "$(sum posts)"
check "posts that met others: some were missed, or this proves nothing" test "$(from_trace .lost.calls)" -gt 0
check "posts that met others: some were seen, too" test "$(sum posts '.opcode == "fetch_add"')" -gt 0
is "no return is taken for another's" "$(from_trace '.lost | .unmatched <= .calls')" true
finish
