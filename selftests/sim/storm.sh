#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# storm.sh IDLE LOADED: simulated HCAs are created and removed so often, idle and with the
# bench running on them, by each of the ways that a device can go: its link is deleted, its
# netdev, its network namespace, its module. Nothing is left, and memory does not grow.
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
growth_kb=4096

# come WAY, go WAY: sim0 is created, and leaves.
come() {
	case $1 in
	namespace)
		ip netns add storm && ip link add storm0 netns storm type dummy &&
			ip -n storm addr add 10.9.0.1/24 dev storm0 && ip -n storm link set storm0 up &&
			ip netns exec storm rdma link add sim0 type kverbs_sim netdev storm0
		;;
	*)
		[ -e /sys/class/net/dummy0 ] || sim_net dummy0 10.9.0.1/24 || return
		sim_add sim0 dummy0
		;;
	esac
}

go() {
	case $1 in
	link) rdma link del sim0 ;;
	netdev) ip link del dummy0 ;;
	namespace) ip netns del storm ;;
	module) rmmod kverbs_sim && insmod "$KVERBS_OUT/$KVERBS_KERNEL/modules/kverbs_sim.ko" ;;
	esac && sim_gone sim0
}

# idle COUNT WAY
idle() {
	local i
	for ((i = 0; i < $1; i++)); do
		come "$2" && go "$2" || return
	done
}

# one_loaded WAY OP CONTEXT ENGINE: the bench ends with an error, and no signal: the device
# has left (6), or the peer was not heard first, as the port goes down with its netdev.
one_loaded() {
	local pid status=0 ended=0
	echo "$3" >/sys/module/kverbs_sim/parameters/context
	come "$1" || return
	kverbs bench --device sim0 --op "$2" --engine "$4" --queues 4 --seconds 60 >/dev/null 2>"$work/err" &
	pid=$!
	until [ "$ended" -gt 1000 ] || ! kill -0 "$pid" 2>/dev/null; do
		sleep 0.02
		read -r ended <"/sys/class/infiniband/sim0/ports/1/hw_counters/${2}s"
	done
	go "$1" || return
	wait "$pid" || status=$?
	case $1:$status in
	*:6 | netdev:1 | namespace:1) return 0 ;;
	esac
	echo "# $*: exit status $status"
	said
	return 1
}

# loaded COUNT WAY
loaded() {
	local i
	for ((i = 0; i < $1; i++)); do
		one_loaded "$2" "${ops[i % 3]}" "${contexts[i / 3 % 4]}" "${engines[(i + i / 12) % 3]}" || return
	done
}

each_way() {
	local way
	for way in "${ways[@]}"; do
		idle 2 "$way" && loaded 1 "$way" || return
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
sim_net dummy0 10.9.0.1/24
# What is made once is not growth.
check "a device can go by: ${ways[*]}" each_way
before=$(memory)
for way in "${ways[@]}"; do
	check "$way: $(($1 / ${#ways[@]})) devices come and go" idle $(($1 / ${#ways[@]})) "$way"
	check "$way: $(($2 / ${#ways[@]})) go while they are used" loaded $(($2 / ${#ways[@]})) "$way"
done
is "no part of a device is left" "$(left)" ""
after=$(memory)
echo "# memory of the kernel: $before KiB before, $after after"
check "memory does not grow" test $((after - before)) -lt $growth_kb
finish
