#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# The events of all consumers, kverbs:ib_*: what they count is what was posted, no hook is in
# the kernel while they are off, and drivers, devices and this module come and go meanwhile.
# shellcheck disable=SC2317 # functions that check() calls
set -u
cd "$(dirname "$0")" || exit
# shellcheck source=selftests/ktap.sh
. ../ktap.sh
work=$(mktemp -d)
tracing=/sys/kernel/tracing
events=$tracing/events/kverbs
modules=$KVERBS_OUT/$KVERBS_KERNEL/modules
export LC_ALL=C

on() { local event; for event; do echo 1 >"$events/ib_$event/enable"; done; }
off() { local event; for event; do echo 0 >"$events/ib_$event/enable"; done; }

# collect: what was traced goes to $work/trace, the buffer is empty again.
collect() { cat $tracing/trace >"$work/trace" && echo >$tracing/trace; }

# of FIELD EVENT [PATTERN...]: the sum of a field over the events whose line has each pattern, or
# with "calls" their number.
of() {
	local field=$1 event=$2
	shift 2
	awk -v field="$field=" -v event=" ib_$event:" -v patterns="$*" '
		BEGIN { n = split(patterns, pattern, " ") }
		index($0, event) {
			for (i = 1; i <= n; i++) if (!index($0 " ", " " pattern[i] " ")) next
			calls++
			for (i = 1; i <= NF; i++) if (index($i, field) == 1) sum += substr($i, length(field) + 1)
		}
		END { printf "%d\n", field == "calls=" ? calls : sum }' "$work/trace"
}

# seen_by_opcode: a line for each: calls, returns, those truncated, and where none is: work
# requests, signaled, inline, bytes.
seen_by_opcode() {
	awk '
		!/device=rxe0 .*consumer=kverbs_posts / { next }
		{
			for (i = 1; i <= NF; i++) if (split($i, pair, "=") == 2) value[pair[1]] = pair[2]
			op = value["opcode"] ~ /^0x/ ? "other" : value["opcode"]
		}
		/ ib_post_send_done:/ { returns[op]++ }
		/ ib_post_send:/ {
			calls[op]++
			cut[op] += value["truncated"]
			wrs[op] += value["wrs"]
			signaled[op] += value["signaled"]
			inlined[op] += value["inline"]
			bytes[op] += value["bytes"]
		}
		END {
			for (op in calls) {
				rest = cut[op] ? "-" : wrs[op] " " signaled[op] " " inlined[op] " " bytes[op]
				print op, calls[op], returns[op], cut[op], rest
			}
		}' "$work/trace" | sort
}

hooks() { cat /sys/kernel/debug/kverbs/hooks; }
hooked() { hooks | grep -c 'hook=[fk]'; }
# in_kernel: of such functions, those that kprobes or ftrace have a hook on.
in_kernel() {
	cat /sys/kernel/debug/kprobes/list $tracing/enabled_functions |
		grep -oE '[a-z]*_(post_send|poll_cq)' | sort -u | wc -l
}
missed() { hooks | awk -v op="$1" '$1 == op { sub(/.*missed=/, ""); sum += $0 } END { print sum + 0 }'; }

posts() {
	dmesg -C
	insmod "$modules/kverbs_posts.ko" "$@" && rmmod kverbs_posts || return
	dmesg | sed -n 's/.*kverbs_posts: //p' >"$work/posts"
}

bench() { kverbs bench --rounds 1 --json "$@" >"$work/bench.json" 2>"$work/bench.err" || cat "$work/bench.err"; }
of_bench() { jq "[.results[].$1] | add" "$work/bench.json"; }

# until_true COMMAND...: for up to a minute.
until_true() {
	local i
	for ((i = 0; i < 300; i++)); do
		if "$@"; then return; fi
		sleep 0.2
	done
	echo "# not within a minute: $*"
	return 1
}
refs() { cat "/sys/module/$1/refcnt"; }
unused() { [ "$(refs "$1")" = 0 ]; }
used() { [ "$(refs "$1")" -gt 0 ]; }

rxe_up() { modprobe rdma_rxe && rdma link add rxe0 type rxe netdev eth0; }

echo 8192 >$tracing/buffer_size_kb
check "no event shows an address" sh -c "! grep -hE 'field:[^;]*\*|%p' $events/ib_*/format"
check "posts while all is off" posts rounds=2
collect
is "off: nothing is seen" "$(grep -c ' ib_' "$work/trace")" 0
is "off: nothing is hooked" "$(hooked) $(in_kernel)" "0 0"
check "and what would be is told" sh -c "grep -q '^post_send rxe_post_send .*hook=none' /sys/kernel/debug/kverbs/hooks"

# Posts of every shape, in numbers that only who looks at each gets right.
on post_send post_send_done
check "on: hooked" test "$(hooked) $(in_kernel)" = "1 1"
check "posts of every shape" posts rounds=20
collect
seen_by_opcode >"$work/seen"
awk '{
	cut = $1 == "tso" || $1 == "masked_cmp_swp" # a chain or an SGL longer than is looked at
	print $1, $2, $2, cut ? $2 : 0, cut ? "-" : $3 " " $4 " " $5 " " $6
}' "$work/posts" | sort >"$work/made"
check "each is seen as it was made" diff "$work/made" "$work/seen"
check "of every shape" test "$(wc -l <"$work/seen")" -ge 15
is "a refusal is seen" "$(of calls post_send_done consumer=kverbs_posts ret=0)" 0
check "each took its time" test "$(of ns post_send_done)" -gt 0
is "nothing was missed" "$(missed post_send)" 0

off post_send
posts shapes=0 rounds=30
collect
is "one of the two is off" "$(of calls post_send) $(of calls post_send_done)" "0 30"
off post_send_done
is "both are off: nothing is hooked" "$(hooked) $(in_kernel)" "0 0"

# A post in an interrupt may meet the hook of another: then it is missed, and told.
missed=$(missed post_send)
missed_polls=$(missed poll_cq)
on post_send post_send_done poll_cq
is "a hook for each function" "$(hooked)" 2
bench --engine raw --context process --op write --iters 1000
posted=$(of_bench post_calls)
missed=$(($(missed post_send) - missed))
missed_polls=$(($(missed poll_cq) - missed_polls))
collect
echo "# missed $missed of post_send, $missed_polls of poll_cq"
is "a bench's posts" "$(($(of calls post_send consumer=kverbs_perf opcode=write) + missed))" "$posted"
if [ "$missed$missed_polls" = 00 ]; then
	is "a CQE for each that asked for one" "$(of n poll_cq consumer=kverbs_perf)" "$(of signaled post_send consumer=kverbs_perf)"
else
	skip "a CQE for each that asked for one" "some calls met other hooks"
fi
# shellcheck disable=SC2016 # awk expands
check "no poll gave more than was asked for" awk '/ ib_poll_cq:/ { split($0, a, /budget=| n=/); bad += a[3] + 0 > a[2] + 0 } END { exit bad }' "$work/trace"

# Devices and drivers come and go while hooked.
rdma link del rxe0
check "the driver can be unloaded while hooked" modprobe -r rdma_rxe
is "its hooks are gone" "$(hooked) $(in_kernel)" "0 0"
check "the driver comes back" rxe_up
is "and is hooked" "$(hooked) $(in_kernel)" "2 2"
collect
posts shapes=0 rounds=40
collect
is "posts on the driver that came back" "$(of calls post_send consumer=kverbs_posts)" 40
modprobe dummy numdummies=0
ip link add dummy9 type dummy
ip addr add 192.168.79.1/24 dev dummy9
ip link set dummy9 up
insmod "$modules/kverbs_sim.ko"
check "a device of another driver" rdma link add sim9 type kverbs_sim netdev dummy9
is "it is hooked" "$(hooked) $(in_kernel)" "4 4"
posts device=sim9 shapes=0 rounds=50
collect
is "its posts" "$(of calls post_send device=sim9)" 50
check "its driver can be unloaded while hooked" rmmod kverbs_sim
is "the others are left" "$(hooked) $(in_kernel)" "2 2"

# On and off while others post.
while [ ! -e "$work/enough" ] && bench --engine raw --context process --iters 2000; do
	:
done >/dev/null 2>&1 &
load=$!
for ((i = 0; i < 5; i++)); do
	off post_send post_send_done poll_cq
	on poll_cq post_send_done post_send
done
check "traffic goes on" kill -0 $load
# Killed, it would leave its last bench behind.
touch "$work/enough"
wait $load
rmmod kverbs_perf

# This module, while an event is on: held as perf does, which itself takes long to start here.
python3 - "$(cat $events/ib_post_send/id)" <<'PY' &
import ctypes, struct, sys, time
attr = bytearray(128)
struct.pack_into('IIQ', attr, 0, 2, len(attr), int(sys.argv[1]))
fd = ctypes.CDLL(None).syscall(298, (ctypes.c_char * len(attr)).from_buffer(attr), -1, 0, -1, 0)
assert fd >= 0
time.sleep(600)
PY
perf=$!
until_true used kverbs
is "perf has the event: the module stays" "$(rmmod kverbs 2>&1 | grep -c 'in use')" 1
kill $perf
wait $perf
until_true unused kverbs
check "an event is left on: the module goes" rmmod kverbs
is "and so does each hook" "$(in_kernel)" 0
check "posts without it" posts shapes=0 rounds=2
check "the module comes back" insmod "$modules/kverbs.ko"
is "with nothing on" "$(hooked)" 0
insmod "$modules/kverbs_perf.ko"
finish
