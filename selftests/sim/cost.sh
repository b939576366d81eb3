#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# cost.sh KERNEL: instructions that a simulated HCA takes for a 64-byte write, posted and
# executed and polled, in a machine in which a nanosecond is an instruction: one by one
# and in chains of 16, from memory and inline, by DMA addresses and by pointers. Counts
# repeat exactly, so that there is no slack in what is allowed.
set -u

# A request that comes alone pays for the call, the doorbell, the run of the queue pair and
# the poll; inline, for its address, which is held against where memory is.
declare -A limits=([write]=400 [write_chain]=285 [inline]=555 [inline_chain]=440)

# Outside: this file is the command of that machine, which has few others.
if [ "${KVERBS_VEHICLE-native}" = native ]; then
	export KERNEL=$1
	"$KVERBS_TOP/scripts/modules" "$KERNEL" >/dev/null 2>&1 || {
		echo "Bail out! the modules do not build"
		exit 1
	}
	exec "$KVERBS_TOP/selftests/vm/qemu" --icount --load "kverbs_sim kverbs_conformance" --timeout 250 \
		--log "$KVERBS_OUT/results/sim-cost-$KERNEL.log" -- bash -c "$(cat "$0")"
fi

# shellcheck source=selftests/ktap.sh
. "$KVERBS_TOP/selftests/ktap.sh"
debugfs=/sys/kernel/debug/kverbs_conformance
knobs=/sys/module/kverbs_sim/parameters

cost() { # CASE: "post N poll N"
	echo "cost/$1" >$debugfs/run
	grep '^#' $debugfs/result >&2
	grep '^post' $debugfs/result
}

costs_little() { # CASE ADDRESSES
	local found post poll limit=${limits[$1]}
	found=$(cost "$1")
	echo "# $1, $2: instructions a request: $found"
	read -r _ post _ poll <<<"$found"
	check "$1, $2: at most $limit in post_send and poll_cq" test $((post + poll)) -le "$limit"
	is "$1, $2: the same again" "$(cost "$1")" "$found"
}

modprobe dummy numdummies=0
ip link add dummy0 type dummy && ip addr add 10.9.0.1/24 dev dummy0 && ip link set dummy0 up
echo post >$knobs/context
printf sim0 >/sys/module/kverbs_conformance/parameters/device
for virtual in 0 1; do
	echo $virtual >$knobs/virtual_dma
	rdma link add sim0 type kverbs_sim netdev dummy0
	addresses=$([ $virtual = 1 ] && echo pointers || echo DMA addresses)
	for case in write write_chain inline inline_chain; do
		costs_little $case "$addresses"
	done
	rdma link del sim0
done
finish
