#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# The judge: a consumer that breaks a rule is found, by a counter, an event and a line of the
# kernel log; one that breaks none is not.
set -u
cd "$(dirname "$0")" || exit
# shellcheck source=selftests/ktap.sh
. ../ktap.sh
# shellcheck source=selftests/sim/common.sh
. ./common.sh
# shellcheck source=selftests/sim/fault_lib.sh
. ./fault_lib.sh
tracing=/sys/kernel/tracing

# broken: the rules that were broken, with how often, but for the knobs.
broken() {
	local file count
	for file in "$config"/sim0/judge/*; do
		read -r count <"$file"
		case $file in
		*_ms) ;;
		*) [ "$count" = 0 ] || echo "${file##*/}=$count" ;;
		esac
	done | paste -s -d ' '
}

# A device that has seen nothing yet.
fresh() {
	! sim_there sim0 || rdma link del sim0
	sim_up sim0 dummy0 10.9.0.1/24
	echo >$tracing/trace
}

# impatient: what waits at all waits too long.
impatient() {
	echo 50 >$config/sim0/judge/silent_tail_ms
	echo 50 >$config/sim0/judge/lost_arm_ms
}

said() { dmesg | tail -n 8 | grep -q "kverbs_sim: sim0: .*: $1: consumer "; }

# breaks HOW COUNTS RULE PATTERN: exactly these counters move, and the rule is traced.
breaks() {
	fresh
	case $3 in
	silent_tail | lost_arm) impatient ;;
	esac
	consume break="$1"
	is "$1: counted" "$(broken)" "$2"
	check "$1: traced" grep -q "judge: dev=[0-9]* rule=$3 $4\$" $tracing/trace
	check "$1: said" said "$3"
}

# What is mapped is known where a device can have DMA operations of its own. A mapping that
# is left behind is found when the device leaves, and its counters have left by then.
dma_rules() {
	fresh
	consume break=dma_leaked
	if grep -q physical "$work/result"; then
		skip "missing unmaps are found" "on this kernel a DMA address is the physical one"
		return
	fi
	rdma link del sim0
	check "dma_leaked: traced" grep -q 'judge: dev=[0-9]* rule=dma_leaked qp=0 wqe=0 cq=0$' $tracing/trace
	check "dma_leaked: said" said dma_leaked
	is "dma_leaked: once" "$(grep -c rule=dma_leaked $tracing/trace)" 1
	breaks dma_unmap dma_unmap=3 dma_unmap 'qp=0 wqe=0 cq=0'
	breaks dma_unmapped dma_address=1 dma_address 'qp=0 wqe=0 cq=0'
	breaks dma_direction dma_address=1 dma_address 'qp=0 wqe=0 cq=0'
}

# clean NAME: no rule was broken.
clean() { is "$1" "$(broken)" ""; }

echo 1 >$tracing/events/kverbs_sim/judge/enable
breaks sq_overrun sq_overrun=1 sq_overrun 'qp=[0-9]* wqe=8 cq=0'
breaks sq_silent sq_silent=1 sq_silent 'qp=[0-9]* wqe=8 cq=0'
breaks silent_tail silent_tail=1 silent_tail 'qp=[0-9]* wqe=2 cq=0'
breaks cq_overflow 'cq_overflow=4 cq_undersized=1' cq_overflow 'qp=0 wqe=0 cq=[0-9]*'
check "cq_overflow: the CQ was too small from the beginning" \
	grep -q 'rule=cq_undersized qp=0 wqe=0 cq=[0-9]*' $tracing/trace
breaks lost_arm lost_arm=1 lost_arm 'qp=0 wqe=0 cq=[0-9]*'
breaks armed_late lost_arm=1 lost_arm 'qp=0 wqe=0 cq=[0-9]*'
breaks missed_ignored missed_ignored=1 missed_ignored 'qp=0 wqe=0 cq=[0-9]*'
breaks inline_dma inline_dma=1 inline_dma 'qp=[0-9]* wqe=0 cq=0'
breaks mr_in_use mr_in_use=1 mr_in_use 'qp=[0-9]* wqe=1 cq=0'
breaks mr_in_receive mr_in_use=1 mr_in_use 'qp=[0-9]* wqe=0 cq=0'
dma_rules
rule kind=event_locked
breaks poll_in_handler poll_in_handler=1 poll_in_handler 'qp=0 wqe=0 cq=[0-9]*'
drop

# Here everything that is said would fail the test, too.
fresh
echo 1 >$config/sim0/strict
for cq in softirq workqueue direct; do
	for op in write read send; do consume cq=$cq op=$op count=200 recvs=200 chain=16; done
	consume cq=$cq count=192 chain=16 signal=16
	consume cq=$cq count=8 chain=8 signal=0 fail=1
done
clean "a healthy consumer breaks no rule"
# What the HCA does wrong is not the consumer's fault.
for kind in cqe_lost cqe_late cqe_twice event_lost read_overtaken post_half flush_executed; do
	rule kind=$kind delay_ns=200000000
	consume op=read count=4 chain=4 wait_ms=300
	drop
	clean "$kind is not the consumer's fault"
done
rdma link del sim0
echo 0 >$tracing/events/kverbs_sim/judge/enable
finish
