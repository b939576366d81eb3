#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# storm.sh IDLE LOADED: simulated HCAs are created and removed so often, idle and with the
# bench running on them.
set -u
cd "$(dirname "$0")" || exit
# shellcheck source=selftests/ktap.sh
. ../ktap.sh
# shellcheck source=selftests/sim/common.sh
. ./common.sh

idle() {
	local i
	for ((i = 0; i < $1; i++)); do
		sim_add sim0 dummy0 && rdma link del sim0 || return
	done
}

# The bench ends with an error when its device leaves: 1, and no signal.
loaded() {
	local i pid status
	for ((i = 0; i < $1; i++)); do
		sim_add sim0 dummy0 || return
		kverbs bench --device sim0 --op "$2" --queues 4 --seconds 20 >/dev/null 2>&1 &
		pid=$!
		until [ "$(sim_count sim0 "${2}s")" -gt 1000 ] || ! kill -0 "$pid" 2>/dev/null; do :; done
		rdma link del sim0 || return
		status=0
		wait "$pid" || status=$?
		[ "$status" -gt 0 ] && [ "$status" -lt 128 ] || return
	done
}

sim_net dummy0 10.9.0.1/24
check "$1 devices come and go" idle "$1"
check "$2 go while written through" loaded "$2" write
check "$2 go while sent through" loaded "$2" send
finish
