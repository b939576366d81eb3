#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# nvme.sh [SEED]: the kernel's own NVMe over RDMA, host and target, connected by the RDMA CM
# over a simulated HCA. What is written is what is read, also while the HCA does what a bad
# day brings: then a request may have to be tried again, and the connection be made anew.
#
# A finding, and why no interrupt is lost here: nvmet-rdma does not survive that. Its queues
# share CQs, and it drains them with ib_drain_sq(), which then waits for ever, as does every
# later connection.
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
echo "# seed $seed"

connections() { dmesg | grep -c 'nvmet: [Cc]reat.* controller'; }

# The connection breaks and is made again.
reconnects() {
	local before
	before=$(connections)
	survives "$@"
	check "$1: and the connection was made again" test "$(connections)" -gt "$before"
}

# The requests that are under way then fail, and nothing waits for ever.
leaves_under_load() {
	local fio
	(verified 1000000 --time_based --runtime=30 >/dev/null 2>&1) &
	fio=$!
	sleep 2
	rdma link del sim0 || return
	wait "$fio"
	[ $? -ne 137 ] # not killed
}

if ! command -v nvme >/dev/null; then
	skip "NVMe over a simulated HCA" "no nvme command"
	finish
fi
sim_up sim0 dummy0 10.9.0.1/24 || exit
if ! target=$(nvme_up 10.9.0.1 --reconnect-delay=1 --keep-alive-tmo=60); then
	fail "nvme-rdma connects"
	rdma link del sim0
	finish
fi
pass "nvme-rdma connects"
check "fio verifies what it wrote" verified 1000
is "no error" "$(sim_count sim0 send_errors)" 0

survives "late CQEs" kind=cqe_late probability_ppm=20000 count_hits=0 delay_ns=2000000
survives "RNR" kind=rnr probability_ppm=10000 count_hits=0
survives "no answer" kind=no_answer probability_ppm=10000 count_hits=0
survives "READs overtaken" kind=read_overtaken probability_ppm=300000 count_hits=0
survives "events in post_send" kind=event_in_post probability_ppm=50000 count_hits=0
reconnects "an error of a SEND" kind=error opcode=send status=retry_exc_err after_hits=300
reconnects "an error of a READ" kind=error opcode=read status=rem_access_err after_hits=10
reconnects "an error of a WRITE" kind=error opcode=write status=rem_access_err after_hits=100
reconnects "an error of a REG_MR" kind=error opcode=reg_mr status=loc_qp_op_err after_hits=100
check "fio verifies what it wrote after all that" verified 400
check "nvme-rdma disconnects" nvme_down
target=$(nvme_up 10.9.0.1) || fail "nvme-rdma connects again"
check "the device leaves under load" leaves_under_load
check "nvme-rdma has nothing left to disconnect" nvme_down
finish
