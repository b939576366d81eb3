#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# many.sh QUEUES: so many queues on a simulated HCA, a thousand on each CQ.
set -eu
# Each queue that ends waits for what may still run in a softirq.
echo 1 >/sys/kernel/rcu_expedited
exec "$(dirname "$0")/ep.sh" kverbs_sim "$1" 'many_queues/*'
