#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# The other questions of kverbs trace, against what was posted.
# shellcheck disable=SC2119,SC2317 # functions that check() calls
set -u
# shellcheck source=selftests/bpf/common.sh
. "$(dirname "$0")/common.sh"

shape() { python3 "$KVERBS_TOP/selftests/cli/shape.py" "$shapes/$1.json" <"$result"; }

context=process

# bench OPTION...: posts of the bench.
bench() { kverbs bench --rounds 1 --context "$context" --json "$@" >"$work/bench.json" 2>"$work/bench.err" || { cat "$work/bench.err" && return 1; }; }

# sizes OPCODE: how many posts had how many work requests.
sizes() {
	from_trace "[.posts[] | select(.opcode == \"$1\") | .sizes[] | \"\\(.low)-\\(.high):\\(.posts)\"] | join(\" \")"
}

# ---- how many work requests share a post ----

mode="batch"
shapes_are_counted
check "batch: the result has its shape" shape batch
is "batch: posts of one and of 16" "$(sizes write)" "1-1:20 16-16:20"
is "batch: posts of 64 are those of 64 to 71" "$(sizes read)" "64-71:20"
is "batch: posts of 1024 are the longest told apart" "$(sizes flush)" "1024-null:20"
is "batch: and longer ones are among them" "$(sizes tso)" "1024-null:20"
check "batch: the table has the longest" grep -Eq '^rxe0 +kverbs_posts +kernel +send +40 .* 7$' "$work/trace.out"
check "batch: and the bars" grep -Eq '^  +16 +20 \|@' "$work/trace.out"

# What the simulated HCA says that it was given.
given() { kverbs sim counters sim0 --json | jq ".counters.$1"; }

mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config
kverbs sim create sim0 >/dev/null || exit
trace_start --device sim0 || exit
check "batch: posts on the simulated HCA" bench --device sim0 --op write --size 48 --iters 2000
trace_end
is "batch: posts are the doorbells of the HCA" "$(sum posts)" "$(given doorbells)"
is "batch: work requests are those that it took" "$(sum work_requests)" "$(given send_wqes)"
is "batch: inline ones, too" "$(sum inline)" "$(given inline_wqes)"
is "batch: signaled ones are its CQEs" "$(sum signaled)" "$(given cqes)"
is "batch: bytes" "$(sum bytes '.opcode == "write"')" "$(given bytes)"
is "batch: the sizes are those of all posts and work requests" \
	"$(from_trace '[.posts[].sizes[] | [.posts, .posts * .low]] | transpose | map(add | tostring) | join(" ")')" \
	"$(sum posts) $(sum work_requests)"
no_losses "batch: nothing was missed or lost"

# ---- what the engine would have made of them ----

# what_if SIDE FIELD: of the bench's posts.
what_if() { from_trace "[.what_if.consumers[] | select(.consumer == \"kverbs_perf\").$1.$2] | add"; }

trace_start --what-if || exit
check "what-if: posts that meet nobody" bench --engine raw --iters 2000
trace_end
check "what-if: the result has its shape" shape what-if
is "what-if: all posts were replayed" "$(what_if seen posts)" "$(sum posts '.consumer == "kverbs_perf"')"
is "what-if: with their CQEs" "$(what_if seen cqes)" "$(sum signaled '.consumer == "kverbs_perf"')"
is "what-if: there is nothing to save" "$(what_if engine posts)" "$(what_if seen posts)"
check "what-if: it says what it assumes" grep -q '^assumed: ' "$work/trace.out"
no_losses "what-if: nothing was missed or lost"
is "what-if: nor is there a post that was not replayed" "$(from_trace '.what_if | [.lost.no_room, .lost.queues, .no_passes] | tostring')" "[0,0,null]"

context=completion
trace_start --what-if || exit
check "what-if: posts in passes over a CQ" bench --engine raw --iters 2000
trace_end
is "what-if: all posts in passes were replayed" "$(what_if seen posts)" "$(sum posts '.consumer == "kverbs_perf"')"
echo "# in passes: $(from_trace '.what_if.consumers | tostring')"
context=process
check "what-if: their passes share posts" test "$(what_if engine posts)" -lt "$(what_if seen posts)"

# ---- what a post costs, and what each of its work requests adds ----

mode=cost
kverbs sim set sim0 doorbell_ns=50000 >/dev/null
trace_start --device sim0 || exit
check "cost: posts of several sizes" bench --device sim0 --iters 500 --engine raw,chain
check "cost: posts of one size" bench --device sim0 --iters 200 --engine raw --op read
trace_end
check "cost: the result has its shape" shape cost
line='.posts[] | select(.opcode == "write") | .cost'
is "cost: each post is a sample or left out" "$(from_trace "$line | .samples + .left_out")" "$(sum posts '.opcode == "write"')"
holds "cost: the HCA's doorbell is in the fixed part" "$line | .fixed_ns + 4 * .fixed_error_ns >= 50000"
holds "cost: and not in the other" "$line | .request_ns - 4 * .request_error_ns < 25000"
is "cost: no line where all posts had one size" "$(from_trace '.posts[] | select(.opcode == "read") | .cost |
	[.fixed_ns, .why_not] | map(tostring) | join(" ") | gsub("[0-9]+ posts"; "N posts")')" \
	"null all N posts had 1 work request, which cannot tell the two parts apart"
check "cost: and it says so" grep -q '^sim0, kverbs_perf, kernel, read: no line: all ' "$work/trace.out"
no_losses "cost: nothing was missed or lost"

# ---- one QP of several ----

# Of the bench's two QPs one posts.
kverbs bench --seconds 120 --rounds 1 --context process --engine raw >/dev/null 2>&1 &
load=$!
qps() { rdma -j resource show qp | jq '.[] | select(.kern == "kverbs_perf" or .comm == "kverbs_perf").lqpn'; }
two_qps() { [ "$(qps | wc -l)" -eq 2 ]; }
until_true two_qps
posted=()
for qp in $(qps); do
	kverbs trace batch --qp "$qp" --opcode write --duration 1 --output "$result" >/dev/null
	posted+=("$(sum posts)")
done
kill $load
wait $load 2>/dev/null
is "posts of one QP are seen, of the other there are none (${posted[*]})" \
	"$(((posted[0] > 0) + (posted[1] > 0)))" 1
finish
