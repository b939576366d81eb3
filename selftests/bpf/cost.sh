#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# cost.sh KERNEL: what it costs to watch, and how near the truth is what one sees:
# instructions per post over Soft-RoCE, in a machine in which a nanosecond is an
# instruction. The same posts are made untraced, traced, traced again, and untraced.
set -u

limit=600       # instructions a post
further=100     # and each work request behind the first
truth_limit=200 # that a traced call may look longer than it is

# Outside: this file is the command of that machine, which has few others.
if [ "${KVERBS_VEHICLE-native}" = native ]; then
	export KERNEL=$1
	"$KVERBS_TOP/scripts/modules" "$KERNEL" >/dev/null 2>&1 || {
		echo "Bail out! the modules do not build"
		exit 1
	}
	exec "$KVERBS_TOP/selftests/vm/qemu" --icount --load "kverbs kverbs_perf" --timeout 500 \
		--log "$KVERBS_OUT/results/cost-$KERNEL.log" -- bash -c "$(cat "$0")"
fi

# shellcheck source=selftests/ktap.sh
. "$KVERBS_TOP/selftests/ktap.sh"
export PATH=$KVERBS_OUT/bin:$PATH
work=/run/cost
mkdir -p $work

# Rounds are shorter than a timer tick, and the best of them holds nothing but posts.
bench() { # NAME
	kverbs bench --engine raw,chain --context process,bh --rounds 32 --iters 8192 --json >"$work/$1.json" \
		2>/dev/null
}

traced_bench() { # NAME
	: >"$work/$1-trace"
	kverbs trace latency --output "$work/$1-trace.json" >"$work/$1-trace" &
	until grep -q . "$work/$1-trace"; do sleep 0.1; done
	bench "$1"
	kill -INT $!
	wait $!
}

# What one call of post_send took, of one request (raw) or of 16 (chain).
call() { # NAME ENGINE CONTEXT
	local requests=1
	[ "$2" = raw ] || requests=16
	jq --arg e "$2" --arg c "$3" --argjson n $requests \
		'.results[] | select(.engine == $e and .context == $c) | .call_ns_per_request * $n | round' \
		"$work/$1.json"
}

added() { echo $(($(call "$1" "$2" "$3") - $(call none "$2" "$3"))); }
each_further() { echo $((($(added traced chain "$1") - $(added traced raw "$1")) / 15)); }

bench none
traced_bench traced
traced_bench again
bench after

echo "# instructions of one call of post_send    process       bh"
printf '# %-40s %8d %8d\n' untraced "$(call none raw process)" "$(call none raw bh)" \
	"kverbs trace latency" "$(call traced raw process)" "$(call traced raw bh)" \
	"  more" "$(added traced raw process)" "$(added traced raw bh)" \
	"  and for each further work request" "$(each_further process)" "$(each_further bh)"
for context in process bh; do
	check "$context: a post costs at most $limit more" test "$(added traced raw $context)" -le $limit
	check "$context: each further work request at most $further" test "$(each_further $context)" -le $further
	check "$context: about the same again" test "$(($(added again raw $context) - $(added traced raw $context)))" -le 5
	check "$context: nothing when it is over" test "$(added after raw $context)" -le 5
done
is "posts missed or lost" "$(jq -c '[.lost[]] | add' $work/traced-trace.json)" 0
seen=$(jq '[.posts[] | select(.opcode == "write")][0].latency.p50_ns' $work/traced-trace.json)
echo "# the median call: $seen traced, $(call none raw bh) in truth"
check "the median is within $truth_limit of the truth" test $((seen - $(call none raw bh))) -le $truth_limit
finish
