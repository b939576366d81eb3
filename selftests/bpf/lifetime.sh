#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Coming and going: nothing stays in the kernel after a trace, however it ended, and a
# trace is right about devices and consumers that change while it runs.
# shellcheck disable=SC2119,SC2317 # functions that check() calls
set -u
# shellcheck source=selftests/bpf/common.sh
. "$(dirname "$0")/common.sh"

rounds=10

traffic() { kverbs bench --engine raw --context process --iters "${1-1000}" --rounds 1 >"$work/bench.out" 2>&1; }

shape() { python3 "$KVERBS_TOP/selftests/cli/shape.py" "$shapes/$1.json" <"$2"; }

# The kernel frees what BPF leaves after a grace period or two.
as_before() { [ "$(bpf_objects)" = "$before" ]; }

before=$(bpf_objects)
while traffic 2000; do :; done &
load=$!
for ((i = 0; i < rounds; i++)); do
	kverbs trace latency >"$work/trace.out" 2>&1 &
	tracer=$!
	# From the middle of loading on.
	sleep "0.$((RANDOM % 10))"
	if ((i % 2)); then kill -KILL $tracer; else kill -TERM $tracer; fi
	wait $tracer
done 2>/dev/null
check "traffic goes on" kill -0 $load
kill $load
wait $load 2>/dev/null
until_true as_before
is "killed $rounds times under load: no program, map or link is left" "$(bpf_objects)" "$before"

trace_start || exit
check "the driver is pinned meanwhile" test "$(cat /sys/module/rdma_rxe/refcnt)" -gt 0
check "which is said" grep -q 'rdma_rxe cannot be unloaded' "$work/trace.out"
check "traffic 1" traffic
rdma dev set rxe0 name rxe7
check "traffic after the device got another name" kverbs bench --device rxe7 --engine raw --context process --iters 500 --rounds 1
check "removing the device is not held up" rdma link del rxe7
rdma link add rxe0 type rxe netdev eth0
check "traffic on a new device" traffic
trace_end
is "posts under the first name" "$(sum posts '.device == "rxe0" and .opcode == "write"')" 2000
is "posts under the other name" "$(sum posts '.device == "rxe7" and .opcode == "write"')" 500
no_losses "nothing was missed or lost"

# A PD that is freed leaves its address to the next one of its size.
trace_start || exit
for ((i = 0; i < 4; i++)); do
	traffic 100 || fail "traffic"
	posts shapes=0 rounds=50 || fail "posts"
done
trace_end
is "a PD at the address of another consumer's: kverbs_perf" \
	"$(sum posts '.consumer == "kverbs_perf" and .opcode == "write"')" 400
is "a PD at the address of another consumer's: kverbs_posts" "$(sum posts '.consumer == "kverbs_posts"')" 200

# Intervals add up to the whole.
kverbs trace latency -i 0.5 --json --output "$result" >"$work/lines" &
tracer=$!
until_true grep -q . "$work/lines"
traffic
sleep 1
trace_end
is "intervals add up" "$(jq -s '[.[] | select(has("interval")) | .posts[].posts] | add' "$work/lines")" "$(sum posts)"
grep '"interval"' "$work/lines" >"$work/intervals"
check "each line is a document" shape latency-interval "$work/intervals"
tail -n 1 "$work/lines" | jq -S . >"$work/last"
jq -S . "$result" >"$work/whole"
check "the last is the whole" cmp "$work/last" "$work/whole"
check "the result has its shape" shape latency "$result"

until_true as_before
is "no program, map or link is left" "$(bpf_objects)" "$before"
rdma link del rxe0
check "the driver can be unloaded" modprobe -r rdma_rxe
finish
