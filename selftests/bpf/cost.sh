#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# What it costs to watch, and how near the truth is what one sees: instructions per
# post over Soft-RoCE, in a machine in which a nanosecond is an instruction. The same
# posts are made untraced, under kverbs trace latency, and under bpf/post_send.bt.
# shellcheck disable=SC2119,SC2317 # functions that check() calls
set -u
# shellcheck source=selftests/bpf/common.sh
. "$(dirname "$0")/common.sh"

limit=600      # instructions a post
truth_limit=200 # instructions that a traced call may look longer than it is

if [ "$(nproc)" -ne 1 ]; then
	skip "cost of tracing" "this machine has a clock of its own, which counts no instructions"
	finish
fi

# Rounds are shorter than a timer tick, and the best of them holds nothing but posts.
bench() { # NAME
	kverbs bench --engine raw,chain --context process,bh --rounds 32 --iters 8192 --json >"$work/$1.json" \
		2>/dev/null
}

# What one call of post_send took, of one request (raw) or of 16 (chain).
call() { # NAME ENGINE CONTEXT
	local requests=1
	[ "$2" = raw ] || requests=16
	jq ".results[] | select(.engine == \"$2\" and .context == \"$3\") | .call_ns_per_request * $requests |
		round" "$work/$1.json"
}

added() { echo $(($(call "$1" "$2" "$3") - $(call none "$2" "$3"))); }

row() { # NAME LABEL
	printf '# %-22s %8s %8s %8s %8s %10s\n' "$2" "$(call "$1" raw process)" "$(call "$1" raw bh)" \
		"$(added "$1" raw process)" "$(added "$1" raw bh)" \
		$((($(added "$1" chain process) - $(added "$1" raw process)) / 15))
}

hooked() { [ "$(grep -c 'rxe_post_send' /sys/kernel/debug/kprobes/list)" -ge 2 ]; }

bench none
trace_start
bench trace
trace_end
traced=$(from_trace '[.posts[] | select(.opcode == "write")][0].latency.p50_ns')
no_losses "nothing was missed or lost"
trace_start --by device,opcode --opcode write
bench again
trace_end
bpftrace "$KVERBS_TOP/bpf/post_send.bt" >"$work/bt" 2>&1 &
tracer=$!
until_true hooked
bench bpftrace
trace_end
bench after

printf '# instructions          process       bh   +process      +bh  +each further request\n'
row none untraced
row trace "kverbs trace latency"
row bpftrace "bpf/post_send.bt"
check "a post costs at most $limit more" test "$(added trace raw bh)" -le $limit
check "in process context, too" test "$(added trace raw process)" -le $limit
is "the same again" "$(added again raw bh)" "$(added trace raw bh)"
is "and nothing when it is over" "$(call after raw bh)" "$(call none raw bh)"
check "bpftrace costs more" test "$(added bpftrace raw bh)" -gt $((2 * $(added trace raw bh)))
echo "# the median call: $traced traced, $(call none raw bh) in truth"
check "the median is within $truth_limit of the truth" test $((traced - $(call none raw bh))) -le $truth_limit
finish
