#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# The counters as a PMU: perf counts what "kverbs stat" counts, on one device or all, also
# where a device leaves meanwhile, and nothing that cannot be counted is taken.
# shellcheck disable=SC2317 # functions that check() calls
set -u
cd "$(dirname "$0")" || exit
# shellcheck source=selftests/ktap.sh
. ../ktap.sh
work=$(mktemp -d)
pmu=/sys/bus/event_source/devices/kverbs
export LC_ALL=C

bench() { kverbs bench --engine kverbs --cq interrupt --rounds 1 --json "$@" >"$work/bench.json" 2>"$work/bench.err"; }

# stat EVENTS COMMAND...: perf counts while the command runs.
stat() {
	local events=$1
	shift
	perf stat -x , -a -o "$work/stat" -e "$events" -- "$@" >"$work/out" 2>&1 || sed 's/^/# | /' "$work/out" "$work/stat"
}

# counted EVENT: of the last stat.
counted() { awk -F , -v event="kverbs/$1/" '$3 == event { print $1 }' "$work/stat"; }

# All counters of rxe0, its queues' included.
counters() { kverbs stat rxe0 --json | jq -c '[.. | objects | select(.name? == "rxe0") | .counters] | first'; }
counters | jq -r 'keys[]' | sort >"$work/names"
find $pmu/events -type f ! -name '*.*' -printf '%f\n' | sort >"$work/events"
check "an event for each counter, by its name" diff "$work/names" "$work/events"
perf list --no-desc 2>/dev/null | sed -n 's,^ *kverbs/\([a-z_]*\)/ .*,\1,p' | sort -u >"$work/listed"
check "perf list shows them" diff "$work/names" "$work/listed"
is "one CPU counts for the host" "$(cat $pmu/cpumask)" 0

events=$(sed 's,.*,kverbs/&/,' "$work/names" | paste -sd ,)
before=$(counters)
stat "$events" kverbs bench --engine kverbs --op write --size 64 --depth 32 --iters 1000 --rounds 1
after=$(counters)
jq -rn --argjson a "$before" --argjson b "$after" '$b | keys[] | "\(.) \($b[.] - $a[.])"' | sort >"$work/said"
awk -F , '{ split($3, part, "/") } part[1] == "kverbs" { print part[2], $1 }' "$work/stat" | sort >"$work/seen"
check "perf counts what the counters of the device say" diff "$work/said" "$work/seen"
is "all of them" "$(wc -l <"$work/seen")" "$(wc -l <"$work/names")"
check "there was something to count" test "$(counted work_requests)" -ge 1000
check "and a unit where there is one" grep -q ',B,kverbs/bytes/' "$work/stat"

# By device: another one has none of it, and a number that no device has is refused.
modprobe dummy numdummies=0
ip link add dummy9 type dummy
ip addr add 192.168.79.1/24 dev dummy9
ip link set dummy9 up
check "a second device" rdma link add rxe9 type rxe netdev dummy9
number() { sed -n "s/^device=\([0-9]*\) $1\$/\1/p" $pmu/devices; }
first=$(number rxe0)
second=$(number rxe9)
is "a device's number is its RDMA index and one" "$first" \
	"$(($(rdma dev show rxe0 | sed 's/:.*//') + 1))"
stat "kverbs/work_requests,device=$first,name=first/,kverbs/work_requests,device=$second,name=second/" \
	kverbs bench --engine kverbs --device rxe0 --iters 500 --rounds 1
of() { awk -F , -v event="$1" '$3 == event { print $1 }' "$work/stat"; }
is "on the device" "$(of first)" 500
is "on the other" "$(of second)" 0

# A device leaves while it is counted, with all its queues.
rm "$work/stat"
perf stat -x , -a -I 100 -o "$work/stat" -e "kverbs/work_requests/,kverbs/work_requests,device=$second,name=second/" &
counter=$!
for ((i = 0; i < 300; i++)); do
	if grep -q second "$work/stat" 2>/dev/null; then break; fi
	sleep 0.2
done
bench --device rxe9 --iters 700 || fail "bench" "$(cat "$work/bench.err")"
rdma link del rxe9
bench --device rxe0 --iters 300 || fail "bench" "$(cat "$work/bench.err")"
check "the module is held" test "$(cat /sys/module/kverbs/refcnt)" -gt 0
is "and cannot be unloaded" "$(rmmod kverbs_perf; rmmod kverbs 2>&1 | grep -c 'in use')" 1
sleep 0.3
kill -INT $counter
wait $counter
sums() { awk -F , -v event="$1" '$4 == event { sum += $2; if ($2 < 0) bad = 1 } END { print sum + 0, bad + 0 }' "$work/stat"; }
is "a device that left: its count, never backwards" "$(sums second)" "700 0"
is "the host's count has both" "$(sums kverbs/work_requests/)" "1000 0"

# What perf_event_open() says, without perf's own judgement.
python3 - "$(cat $pmu/type)" "$first" >"$work/opened" <<'PY'
import ctypes, errno, struct, sys

def opened(config, config1=0, config2=0, pid=-1, cpu=0, period=0):
    attr = bytearray(128)
    struct.pack_into('IIQQ', attr, 0, int(sys.argv[1]), len(attr), config, period)
    struct.pack_into('QQ', attr, 56, config1, config2)
    fd = libc.syscall(298, (ctypes.c_char * len(attr)).from_buffer(attr), pid, cpu, -1, 0)
    return 'opened' if fd >= 0 else errno.errorcode[ctypes.get_errno()]

libc = ctypes.CDLL(None, use_errno=True)
print('a config beyond the counters EINVAL', opened(255))
print('a device that is not there ENODEV', opened(0, 4096))
print("more than a device's number EINVAL", opened(0, 1 << 32))
print('a field that there is not EINVAL', opened(0, 0, 1))
print('an event of a task EINVAL', opened(0, pid=0, cpu=-1))
print('an event of a task on a processor EINVAL', opened(0, pid=0))
print('sampling ENOTSUP', opened(0, period=1000))
print('what is right opened', opened(0, int(sys.argv[2])))
PY
while read -r line; do
	said=${line##* }
	line=${line% *}
	is "opening ${line% *}" "$said" "${line##* }"
done <"$work/opened"
is "all were tried" "$(wc -l <"$work/opened")" 8

if [ -w /sys/devices/system/cpu/cpu1/online ]; then
	echo 0 >/sys/devices/system/cpu/cpu1/online
	is "a CPU that does not count may go" "$(cat $pmu/cpumask)" 0
	echo 1 >/sys/devices/system/cpu/cpu1/online
fi
check "the module leaves when nobody counts" rmmod kverbs
check "the PMU is gone" test ! -e $pmu
insmod "$KVERBS_OUT/$KVERBS_KERNEL/modules/kverbs.ko"
insmod "$KVERBS_OUT/$KVERBS_KERNEL/modules/kverbs_perf.ko"
finish
