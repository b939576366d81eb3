#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# ep_unplug.sh DRIVER: connections of the kverbs_engine module are under load while their
# device (rxe, kverbs_sim) is deleted, or the network namespace that it is in.
# shellcheck disable=SC2317 # called by name
set -eu
cd "$(dirname "$0")"
# shellcheck source=selftests/ktap.sh
. ../ktap.sh
# shellcheck source=selftests/sim/common.sh
. ../sim/common.sh
debugfs=/sys/kernel/debug/kverbs_engine
driver=$1
device=${driver#kverbs_}0
[ "$driver" != rxe ] || device=rxe0

add() {
	sim_there "$device" && return
	case $driver in
	rxe) rdma link add rxe0 type rxe netdev eth0 ;;
	*) sim_up "$device" dummy0 10.9.0.1/24 ;;
	esac
}

add_in_namespace() {
	ip netns add parting && ip -n parting link set lo up &&
		ip link add parting0 netns parting type dummy &&
		ip -n parting addr add 10.9.1.1/24 dev parting0 && ip -n parting link set parting0 up &&
		ip netns exec parting rdma link add "$device" type "$driver" netdev parting0
}

# during CASE COMMAND...: runs it, and the command once it asks for that; shows what it said.
during() {
	local run tries=0 name=$1 status=0
	shift
	"${inside[@]}" sh -c "echo '$name' >$debugfs/run" &
	run=$!
	until grep -q "unplug the device now: $name" "$debugfs/ktap" || [ "$tries" -gt 300 ]; do
		tries=$((tries + 1))
		sleep 0.1
	done
	# Some traffic first.
	sleep 0.2
	"$@" || status=$?
	wait "$run" || status=$?
	sed -n 's/^# /# /p' "$debugfs/ktap"
	[ "$status" = 0 ] && grep -q "^ok 1 - $name" "$debugfs/ktap" && sim_gone "$device"
}

printf %s "$device" >/sys/module/kverbs_engine/parameters/device
inside=()
for cq in interrupt poll; do
	add
	check "device deleted under load: $cq" during "ep_unplug/$cq" rdma link del "$device"
done
if [ "$driver" = kverbs_sim ] && [ -e /proc/self/ns/net ]; then
	inside=(nsenter --net=/run/netns/parting) # which leaves debugfs where it is
	sim_there "$device" && rdma link del "$device"
	check "a device in a namespace" add_in_namespace
	check "namespace deleted under load" during "ep_namespace/interrupt" ip netns del parting
else
	skip "namespace deleted under load" "only where devices are in namespaces"
fi
check "the module can be unloaded" rmmod kverbs_engine
finish
