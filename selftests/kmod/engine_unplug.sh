#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# engine_unplug.sh: the RDMA device is deleted while a queue of the kverbs_engine module
# has its traffic on it, on each kind of CQ.
# shellcheck disable=SC2317 # called by name
set -eu
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/../ktap.sh"
debugfs=/sys/kernel/debug/kverbs_engine

add() { [ -e /sys/class/infiniband/rxe0 ] || rdma link add rxe0 type rxe netdev eth0; }

# unplug CASE: runs it, deletes the device once it asks for that, shows what it said.
unplug() {
	local run tries=0
	add
	echo "$1" >"$debugfs/run" &
	run=$!
	until grep -q "unplug the device now: $1" "$debugfs/ktap" || [ "$tries" -gt 300 ]; do
		tries=$((tries + 1))
		sleep 0.1
	done
	# Some traffic first.
	sleep 0.2
	rdma link del rxe0
	wait "$run"
	sed -n 's/^# /# /p' "$debugfs/ktap"
	grep -q "^ok 1 - $1" "$debugfs/ktap" && [ ! -e /sys/class/infiniband/rxe0 ]
}

for cq in interrupt poll softirq workqueue direct; do
	check "device deleted under a scripted HCA: $cq" unplug "life_unplug/$cq"
	check "device deleted under the driver's traffic: $cq" unplug "life_unplug_data/$cq"
done
for cq in softirq workqueue direct; do
	check "CQEs that come after all: $cq" unplug "life_unplug_late/$cq"
done
add
check "the module can be unloaded" rmmod kverbs_engine
finish
