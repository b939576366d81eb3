#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# storm.sh IDLE LOADED: so many simulated HCAs are created and removed, some at once, idle and
# with the bench running on each, by each of the ways that a device can go: its link is
# deleted, its netdev, its network namespace, its module. Nothing is left, and memory does
# not grow.
# shellcheck disable=SC2317 # functions that check() calls
set -u
cd "$(dirname "$0")" || exit
# shellcheck source=selftests/ktap.sh
. ../ktap.sh
# shellcheck source=selftests/sim/common.sh
. ./common.sh
# shellcheck source=selftests/kmod/bench_lib.sh
. ../kmod/bench_lib.sh

ways=(link netdev namespace module)
ops=(write read send)
contexts=(thread softirq hrtimer post)
engines=(raw chain kverbs)
devices=(sim0 sim1 sim2 sim3)
growth_kb=4096

# lines TEXT: of a batch, one for each device, its number in place of @.
lines() {
	local i
	for i in "${!devices[@]}"; do
		echo "${1//@/$i}"
	done
}

# netdevs OPTION...: of ip.
netdevs() {
	{
		lines "link add storm@ type dummy"
		lines "addr add 10.9.@.1/24 dev storm@"
		lines "link set storm@ up"
	} | ip "$@" -batch -
}

links() { lines "link add sim@ type kverbs_sim netdev storm@"; }

# come WAY, go WAY: all devices are created, and leave.
come() {
	if [ "$1" = namespace ]; then
		ip netns add storm && netdevs -n storm && links | ip netns exec storm rdma --batch -
	else
		[ -e /sys/class/net/storm0 ] || netdevs || return
		links | rdma --batch -
	fi
}

go() {
	local device
	case $1 in
	link) lines "link del sim@" | rdma --batch - ;;
	netdev) lines "link del storm@" | ip -batch - ;;
	namespace) ip netns del storm ;;
	module) rmmod kverbs_sim && insmod "$KVERBS_OUT/$KVERBS_KERNEL/modules/kverbs_sim.ko" ;;
	esac || return
	for device in "${devices[@]}"; do
		sim_gone "$device" || return
	done
}

# idle TIMES WAY
idle() {
	local i
	for ((i = 0; i < $1; i++)); do
		come "$2" && go "$2" || return
	done
}

# uses DEVICE OP ENGINE: the bench in the background, which ends when the device leaves.
uses() {
	kverbs bench --device "$1" --op "$2" --engine "$3" --queues 4 --seconds 60 \
		>/dev/null 2>"$work/$1.err" &
	users+=($!)
}

# used DEVICE OP PID: waits until it is, or until its user has ended by itself.
used() {
	local ended=0
	until [ "$ended" -gt 1000 ] || ! kill -0 "$3" 2>/dev/null; do
		sleep 0.02
		read -r ended <"/sys/class/infiniband/$1/ports/1/hw_counters/${2}s"
	done
}

# told WAY DEVICE PID: the bench ends with an error, and no signal: the device has left (6),
# or the peer was not heard first, as the port goes down with its netdev.
told() {
	local status=0
	wait "$3" || status=$?
	case $1:$status in
	*:6 | netdev:1 | namespace:1) return 0 ;;
	esac
	echo "# $1, $2: exit status $status"
	grep -v '^round ' "$work/$2.err" | sed 's/^/# /'
	return 1
}

# one_loaded WAY N: the Nth time, so that each device has another use each time.
one_loaded() {
	local way=$1 n=$2 i users=() status=0
	echo "${contexts[n % 4]}" >/sys/module/kverbs_sim/parameters/context
	come "$way" || return
	for i in "${!devices[@]}"; do
		uses "${devices[i]}" "${ops[(n + i) % 3]}" "${engines[(n + i + (n + i) / 3) % 3]}"
	done
	for i in "${!devices[@]}"; do
		used "${devices[i]}" "${ops[(n + i) % 3]}" "${users[i]}"
	done
	go "$way" || status=1
	for i in "${!devices[@]}"; do
		told "$way" "${devices[i]}" "${users[i]}" || status=1
	done
	return "$status"
}

# loaded TIMES WAY
loaded() {
	local i
	for ((i = 0; i < $1; i++)); do
		one_loaded "$2" "$i" || return
	done
}

each_way() {
	local way
	for way in "${ways[@]}"; do
		idle 1 "$way" && loaded 1 "$way" || return
	done
}

# What the kernel has for itself, without what it keeps for later, in KiB.
memory() {
	local shrink
	for shrink in /sys/kernel/slab/*/shrink; do
		echo 1 >"$shrink"
	done 2>/dev/null
	echo 3 >/proc/sys/vm/drop_caches
	awk '/^(SUnreclaim|VmallocUsed|KernelStack|Percpu):/ { sum += $2 } END { print sum }' /proc/meminfo
}

left() {
	pgrep -l kverbs_sim/
	ls -d /sys/bus/platform/devices/kverbs_sim.* /sys/kernel/config/kverbs_sim/sim* 2>/dev/null
}

[ -e /proc/self/ns/net ] || unset 'ways[2]'
# What is made once is not growth.
check "a device can go by: ${ways[*]}" each_way
before=$(memory)
together=$((${#ways[@]} * ${#devices[@]}))
for way in "${ways[@]}"; do
	check "$way: $(($1 / ${#ways[@]})) devices come and go" idle $(($1 / together)) "$way"
	check "$way: $(($2 / ${#ways[@]})) go while they are used" loaded $(($2 / together)) "$way"
done
lines "link del storm@" | ip -batch -
is "no part of a device is left" "$(left)" ""
after=$(memory)
echo "# memory of the kernel: $before KiB before, $after after"
check "memory does not grow" test $((after - before)) -lt $growth_kb
finish
