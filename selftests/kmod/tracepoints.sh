#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# The trace events kverbs:*: what they count is what the queue counts, every common
# tool reads them, and none of them shows an address.
set -u
cd "$(dirname "$0")" || exit
# shellcheck source=selftests/ktap.sh
. ../ktap.sh
tracing=/sys/kernel/tracing
iters=1000
work=$(mktemp -d)

bench() {
	kverbs bench --engine kverbs --op write --size 64 --depth 32 --iters $iters --rounds 1 \
		--cq "$1" --json >"$work/bench.json" 2>"$work/bench.err"
}

# counter NAME: of rxe0, all its queues together.
counter() {
	kverbs stat rxe0 --json | jq "[.. | objects | select(.name? == \"rxe0\") | .counters.$1] | first"
}

# events FIELD NAME: what the events NAME in the trace add up to in FIELD, or their number.
events() {
	awk -v event="kverbs_$2:" -v field="$1=" '
		index($0, " " event) {
			n++
			for (i = 1; i <= NF; i++)
				if (index($i, field) == 1) sum += substr($i, length(field) + 1)
		}
		END { print field == "n=" && event != "kverbs_poll:" ? n + 0 : sum + 0 }' "$work/trace"
}

# shellcheck disable=SC2317 # called by check
no_pointers() {
	! grep -hE 'field:[^;]*\*|%p' "$tracing"/events/kverbs/*/format
}

# shellcheck disable=SC2317 # called by check
scalars_only() {
	! grep -hE 'field:[^;]*(\[|__data_loc)' "$tracing"/events/kverbs/kverbs_*/format
}

check "events exist" test -d $tracing/events/kverbs/kverbs_post
for event in post flush complete poll spin error; do
	check "event kverbs_$event exists" test -e "$tracing/events/kverbs/kverbs_$event/format"
done
check "no event shows an address" no_pointers
check "fields are scalars" scalars_only

posts=$(counter post_calls)
completions=$(counter completions)
echo 1 >$tracing/events/kverbs/enable
echo 65536 >$tracing/buffer_size_kb
bench interrupt || fail "bench" "$(cat "$work/bench.err")"
echo 0 >$tracing/events/kverbs/enable
cat $tracing/trace >"$work/trace"
echo >$tracing/trace
posts=$(($(counter post_calls) - posts))
completions=$(($(counter completions) - completions))
is "posts traced are groups posted" "$(events n post)" "$iters"
is "flushes traced are post calls" "$(events n flush)" "$posts"
is "work requests flushed are those posted" "$(events wrs flush)" "$iters"
is "completions traced are work requests retired" "$(events retired complete)" "$completions"
# Processors have clocks of their own, so a completion may stand before its post.
# shellcheck disable=SC2016 # awk expands
check "a post and its completion have the same seq" \
	awk 'function seq(i) { for (i = 1; i <= NF; i++) if ($i ~ /^seq=/) return $i }
		/kverbs_post:/ { posted[seq()] = 1 }
		/kverbs_complete:/ { completed[seq()] = 1; n++ }
		END { for (s in completed) bad += !(s in posted); exit !n || bad }' "$work/trace"

echo 1 >$tracing/events/kverbs/kverbs_spin/enable
bench hybrid || fail "bench, hybrid" "$(cat "$work/bench.err")"
echo 0 >$tracing/events/kverbs/enable
begun=$(grep -c 'kverbs_spin:.*window_ns=50000' $tracing/trace)
ended=$(grep -c 'kverbs_spin:.*window_ns=0' $tracing/trace)
check "a CQ is handed over to be polled" test "$begun" -gt 0
is "and given back each time" "$ended" "$begun"
echo >$tracing/trace

if [ "$KVERBS_VEHICLE" = uml ]; then
	for tool in "perf record" trace-cmd bpftrace; do
		skip "$tool reads the events" "User Mode Linux has neither perf events nor BPF attachments"
	done
	finish
fi

(cd "$work" && perf record -q -a -e 'kverbs:*' -o perf.data -- kverbs bench --engine kverbs --iters 100 \
	--rounds 1 --json >/dev/null 2>perf.err)
check "perf record -e 'kverbs:*' reads them" \
	test "$(perf script -i "$work/perf.data" 2>/dev/null | grep -c 'kverbs:kverbs_flush:')" -gt 0

(cd "$work" && trace-cmd record -q -e kverbs -o trace.dat kverbs bench --engine kverbs --iters 100 \
	--rounds 1 --json >/dev/null 2>trace.err)
check "trace-cmd record -e kverbs reads them" \
	test "$(trace-cmd report -i "$work/trace.dat" 2>/dev/null | grep -c 'kverbs_flush:')" -gt 0

bpftrace -e 'tracepoint:kverbs:kverbs_flush { @wrs = sum(args->wrs); }' \
	-c "$(command -v kverbs) bench --engine kverbs --iters 200 --rounds 1 --json" \
	>"$work/bpftrace" 2>&1
is "bpftrace counts the work requests flushed" \
	"$(sed -n 's/^@wrs: //p' "$work/bpftrace")" 200
finish
