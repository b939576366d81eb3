#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# The judge, strict: the kernel's own NVMe over RDMA and the engines of the bench break none
# of its rules.
# shellcheck disable=SC2317 # functions that check() calls
set -u
cd "$(dirname "$0")" || exit
# shellcheck source=selftests/ktap.sh
. ../ktap.sh
# shellcheck source=selftests/sim/common.sh
. ./common.sh
# shellcheck source=selftests/sim/fault_lib.sh
. ./fault_lib.sh
# shellcheck source=selftests/kmod/bench_lib.sh
. ../kmod/bench_lib.sh
# shellcheck source=scripts/lib/nvme.sh
. ../../scripts/lib/nvme.sh

traffic() {
	local disk
	disk=$(nvme_up 10.9.0.1) || return
	dd if=/dev/zero of="$disk" bs=64k count=200 oflag=direct status=none &&
		dd if="$disk" of=/dev/null bs=4k count=500 iflag=direct status=none
	nvme_down
}

sim_up sim0 dummy0 10.9.0.1/24 || { echo "Bail out! no sim0"; exit 1; }
echo 1 >$config/sim0/strict
echo 2000 >$config/sim0/judge/silent_tail_ms
for op in write read send; do
	bench --device sim0 --op $op --iters 8000 --engine raw,chain,kverbs
	clean "bench, $op: all requests are right" 8000
done
is "the bench breaks no rule" "$(rules_broken)" ""
if command -v nvme >/dev/null; then
	check "nvme-rdma writes and reads" traffic
	is "nvme-rdma and nvmet-rdma break no rule" "$(rules_broken)" ""
else
	skip "nvme-rdma and nvmet-rdma break no rule" "no nvme command"
fi
rdma link del sim0
finish
