#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# bpf/post_send.bt works as it stands, and counts what the bench and a user's program
# posted.
# shellcheck disable=SC2317 # functions that check() calls
set -u
# shellcheck source=selftests/bpf/common.sh
. "$(dirname "$0")/common.sh"

iterations=100

hooked() { [ "$(grep -c 'rxe_post_send' /sys/kernel/debug/kprobes/list)" -ge 2 ]; }

# A map of integers or of stats, by key.
from_maps() { grep -F "@$1[$2]: " "$work/bt" | sed "s/.*: //"; }

bpftrace "$KVERBS_TOP/bpf/post_send.bt" >"$work/bt" 2>&1 &
tracer=$!
until_true hooked || cat "$work/bt"
sleep 1
kverbs bench --engine raw,chain --context process --iters 1000 --rounds 1 --json >"$work/bench.json"
perftest ib_send_bw "$iterations"
trace_end
is "calls and requests of the bench, and the registration of two MRs" "$(from_maps requests kverbs_perf)" \
	"count $(jq '[.results[].post_calls] | add + 2' "$work/bench.json"), average 1, total 2002"
is "calls of a user's program" "$(from_maps user_calls ib_send_bw)" "$iterations"
check "a histogram of the times" grep -q '^@ns\[kverbs_perf\]:' "$work/bt"
check "and of requests per call" grep -q '^@requests_per_call\[kverbs_perf\]:' "$work/bt"
check "and nothing of its own state" bash -c "! grep -E '^@(start|depth|name)' $work/bt"
finish
