#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Requests and receives are posted in hard interrupts, while the process that they interrupt
# posts on the same queues: wherever they are executed, each is done once.
set -u
cd "$(dirname "$0")" || exit
# shellcheck source=selftests/ktap.sh
. ../ktap.sh
# shellcheck source=selftests/sim/common.sh
. ./common.sh
# shellcheck source=selftests/sim/fault_lib.sh
. ./fault_lib.sh

# done_once NAME DONE RECEIVED
done_once() { saw "$1" "done=$2 .*" "twice=0 received=$3 .* state=3"; }

# mixed CONTEXT CQ
mixed() {
	consume cq="$2" op=write count=256 irq=128
	done_once "$1, $2: writes" 256 0
	consume cq="$2" op=read count=256 irq=128 signal=4
	done_once "$1, $2: reads, one of four signaled" 64 0
	consume cq="$2" op=send count=256 irq=128 recvs=256
	done_once "$1, $2: sends and receives" 256 256
	# All are there before: what finds no receive is dropped.
	consume cq="$2" type=ud op=send count=128 irq=64 recvs=256
	done_once "$1, $2: datagrams" 128 128
}

sim_net dummy0 10.9.0.1/24
for context in thread softirq hrtimer post; do
	echo $context >/sys/module/kverbs_sim/parameters/context
	sim_add sim0 dummy0 || { echo "Bail out! no sim0"; exit 1; }
	echo 1 >$config/sim0/strict
	for cq in softirq workqueue direct; do mixed $context $cq; done
	rdma link del sim0
done
finish
