#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# rate.sh SECONDS: how many 64-byte writes a second two threads make on a simulated HCA
# without costs or faults, each on a queue of its own, by each engine. The figures are for
# who reads them: a machine that does other things is slower. That nothing is lost is
# tested.
set -u
cd "$(dirname "$0")" || exit
# shellcheck source=selftests/ktap.sh
. ../ktap.sh
# shellcheck source=selftests/kmod/bench_lib.sh
. ../kmod/bench_lib.sh
# shellcheck source=selftests/sim/common.sh
. ./common.sh

seconds=$1
echo post >/sys/module/kverbs_sim/parameters/context
sim_up sim0 dummy0 10.9.0.1/24 || exit
for cq in ib poll; do
	bench --device sim0 --threads 2 --queues 2 --context bh --cq $cq --seconds "$seconds" --rounds 1
	jq -r '.results[] | "# \(.engine), CQ \(.cq): \(.requests_per_second | round) requests a second"' \
		"$work/json"
	holds "CQ $cq: each engine ran, and nothing was lost" \
		'.error == null and (.results | length == 3 and all(.requests > 0 and ([.ledger[]] | add) == 0))'
done
rdma link del sim0
finish
