#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# rnbd.sh [SEED]: a block device by rnbd, whose transport is rtrs, client and server, over a
# simulated HCA: what is written is what is read.
#
# A finding: rtrs signals one request of a queue's depth, and leaves the last ones of an idle
# queue silent. The peer's answers tell it that they are done, so nothing is lost.
# shellcheck disable=SC2317 # functions that check() calls
set -u
cd "$(dirname "$0")" || exit
# shellcheck source=selftests/ktap.sh
. ../ktap.sh
# shellcheck source=selftests/sim/common.sh
. ./common.sh
# shellcheck source=selftests/sim/fault_lib.sh
. ./fault_lib.sh
# shellcheck source=selftests/sim/fio_lib.sh
. ./fio_lib.sh
# shellcheck source=scripts/lib/nvme.sh
. ../../scripts/lib/nvme.sh

seed=${1-$RANDOM}
target=/dev/rnbd0
echo "# seed $seed"

rnbd_up() {
	local i
	nvme_disk_up || return
	echo "sessname=kverbs path=ip:10.9.0.1 device_path=/dev/nullb0" \
		>/sys/devices/virtual/rnbd-client/ctl/map_device || return
	for ((i = 0; i < 100; i++)); do
		[ ! -b "$target" ] || return 0
		sleep 0.1
	done
	return 1
}

rnbd_down() {
	echo normal >/sys/block/rnbd0/rnbd/unmap_device &&
		modprobe -r rnbd_client && modprobe -r rnbd_server && nvme_disk_down
}

if ! modprobe rtrs_server sess_queue_depth=64 2>/dev/null || ! modprobe -a rnbd_server rnbd_client; then
	skip "rnbd over a simulated HCA" "this kernel has no rnbd"
	finish
fi
sim_up sim0 dummy0 10.9.0.1/24 || exit
check "rnbd-client maps a device of rnbd-server" rnbd_up
check "fio verifies what it wrote" verified 300
is "no error" "$(sim_count sim0 send_errors)" 0
is "rtrs breaks no rule but that of the silent tail" "$(rules_broken | grep -v '^silent_tail:')" ""
survives "late CQEs" kind=cqe_late probability_ppm=20000 count_hits=0 delay_ns=2000000
check "rnbd-client unmaps it" rnbd_down
check "the device leaves" rdma link del sim0
finish
