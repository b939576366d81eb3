# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
#
# What the tests of the simulated HCA share. Sourced, after ktap.sh.

# sim_net NETDEV ADDRESS/LENGTH: a dummy netdev with an address, up.
sim_net() {
	modprobe -q dummy numdummies=0
	ip link show "$1" >/dev/null 2>&1 || ip link add "$1" type dummy || return
	ip addr replace "$2" dev "$1" && ip link set "$1" up
}

sim_add() { rdma link add "$1" type kverbs_sim netdev "$2"; }

# sim_up NAME NETDEV ADDRESS/LENGTH
sim_up() { sim_net "$2" "$3" && sim_add "$1" "$2"; }

sim_there() { [ -e "/sys/class/infiniband/$1" ]; }

# sim_gone NAME: waits until a device that leaves by itself has left.
sim_gone() {
	local i
	for ((i = 0; i < 1500; i++)); do
		sim_there "$1" || return 0
		sleep 0.02
	done
	return 1
}

# sim_count NAME COUNTER
sim_count() { cat "/sys/class/infiniband/$1/ports/1/hw_counters/$2"; }
