#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# The kernel's own NVMe over RDMA, host and target, connected by the RDMA CM over a
# simulated HCA: what is written is what is read.
set -u
cd "$(dirname "$0")" || exit
# shellcheck source=selftests/ktap.sh
. ../ktap.sh
# shellcheck source=selftests/sim/common.sh
. ./common.sh
# shellcheck source=scripts/lib/nvme.sh
. ../../scripts/lib/nvme.sh

if ! command -v nvme >/dev/null; then
	skip "NVMe over a simulated HCA" "no nvme command"
	finish
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

sim_up sim0 dummy0 10.9.0.1/24 || exit
if ! device=$(nvme_up 10.9.0.1); then
	fail "nvme-rdma connects"
	rdma link del sim0
	finish
fi
pass "nvme-rdma connects"
head -c 8M /dev/urandom >"$work/data"
check "8 MiB are written" dd if="$work/data" of="$device" bs=256k oflag=direct status=none
check "and read" dd if="$device" of="$work/back" bs=4k count=2048 iflag=direct status=none
check "and are the same" cmp "$work/data" "$work/back"
is "no error" "$(sim_count sim0 send_errors)" 0
check "nvme-rdma disconnects" nvme_down
check "the device leaves" rdma link del sim0
finish
