#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Simulated HCAs come with a link, and go with it, with their netdev, and with its
# namespace.
set -u
cd "$(dirname "$0")" || exit
# shellcheck source=selftests/ktap.sh
. ../ktap.sh
# shellcheck source=selftests/sim/common.sh
. ./common.sh

refused() { ! "$@" 2>/dev/null; }
port_state() { cut -d' ' -f2 "/sys/class/infiniband/$1/ports/1/state"; }
gid_of() { grep -qs "$2" "/sys/class/infiniband/$1/ports/1/gids/"*; }

check "a netdev gets a device" sim_up sim0 dummy0 10.9.0.1/24
is "its port is up" "$(port_state sim0)" ACTIVE
check "its address is a GID" gid_of sim0 0000:0000:0000:0000:0000:ffff:0a09:0001
check "one device a netdev" refused sim_add sim1 dummy0
check "another netdev gets another" sim_up sim1 dummy1 10.9.1.1/24
check "a name is taken once" refused sim_add sim1 lo
check "the kernel's consumers see it" grep -q . /sys/class/infiniband/sim0/node_desc
is "rdma counts its objects" "$(rdma -j resource show | jq -r '.[] | select(.ifname == "sim0") | .qp')" 1

ip link set dummy1 down
is "the port goes down with its netdev" "$(port_state sim1)" DOWN
ip link set dummy1 up
is "and up with it" "$(port_state sim1)" ACTIVE

mountpoint -q /sys/kernel/config || mount -t configfs configfs /sys/kernel/config
directories() { (cd /sys/kernel/config/kverbs_sim && echo sim*); }
is "each device has a directory in configfs" "$(directories)" "sim0 sim1"
check "a device gets another name" rdma dev set sim1 name sim2
is "and its directory does" "$(directories)" "sim0 sim2"
check "what is there works" grep -q '^doorbells 0' /sys/kernel/config/kverbs_sim/sim2/counters
rdma dev set sim2 name sim1

check "a device is removed" rdma link del sim0
check "and is gone" sim_gone sim0
check "and comes again" sim_add sim0 dummy0
ip link del dummy1
check "a device goes with its netdev" sim_gone sim1
if ip netns add kverbs-sim 2>/dev/null; then
	ip link add dummy1 netns kverbs-sim type dummy
	check "in a network namespace" ip netns exec kverbs-sim rdma link add sim1 type kverbs_sim netdev dummy1
	ip netns del kverbs-sim
	check "a device goes with the namespace" sim_gone sim1
else
	skip "a device goes with the namespace" "this kernel makes no network namespaces"
fi
check "a module in use leaves with its devices" rmmod kverbs_sim
check "and they with it" sim_gone sim0
finish
