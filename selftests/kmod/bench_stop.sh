#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# What ends a run early: Ctrl-C, death of the command, the module, the device. Each time
# what was in flight completes, nothing is lost, and all is given back.
set -u
cd "$(dirname "$0")" || exit
# shellcheck source=selftests/ktap.sh
. ../ktap.sh
# shellcheck source=selftests/kmod/bench_lib.sh
. ./bench_lib.sh

# start ARGUMENT...: a run of a minute, as a process of its own that heeds Ctrl-C, which
# jobs of a script do not; returns when requests have ended.
start() {
	env --default-signal=INT,TERM kverbs bench --seconds 60 --rounds 1 --json "$@" \
		>"$work/json" 2>"$work/err" &
	pid=$!
	for ((i = 0; i < 600; i++)); do
		! grep -q ', [1-9][0-9]* requests' "$work/err" || break
		sleep 0.1
	done
	check "$*: a run has begun" grep -q ', [1-9][0-9]* requests' "$work/err"
}

# ended STATUS: it has ended with that exit status.
ended() {
	status=0
	wait "$pid" || status=$?
	is "$what: exit status" "$status" "$1"
}

ledger() {
	holds "$what: results are there, nothing was lost" \
		'(.results | length > 0) and any(.results[]; .requests > 0) and
		all(.results[]; ([.ledger[]] | add) == 0)'
}

for cq in ib interrupt poll; do
	what="Ctrl-C, CQ $cq"
	start --engine kverbs --cq $cq --queues 2 --threads 2
	kill -INT "$pid"
	ended 0
	ledger
	holds "$what: it says so" '.error == "the run was stopped"'
done

what="Ctrl-C, raw"
start --engine raw --context completion
kill -TERM "$pid"
ended 0
ledger

# Closing the file stops the run: what the command leaves behind is waited for.
start --engine kverbs,raw
kill -KILL "$pid"
wait "$pid"
check "the command is killed: no thread stays" bash -c '! pgrep kverbs_perf'
bench --iters 100
clean "the command is killed: the next one runs" 100

what="unload"
start --engine kverbs
check "$what: refused to kverbs_perf in use" bash -c '! rmmod kverbs_perf 2>/dev/null'
check "$what: refused to kverbs in use" bash -c '! rmmod kverbs 2>/dev/null'
kill -INT "$pid"
ended 0
ledger
check "$what: kverbs_perf leaves when nobody uses it" rmmod kverbs_perf
insmod "$KVERBS_OUT/$KVERBS_KERNEL/modules/kverbs_perf.ko"

for engine in raw chain kverbs; do
	for cq in ib interrupt poll; do
		what="the device leaves: $engine, CQ $cq"
		start --engine $engine --cq $cq --queues 2
		check "$what: it is let go" timeout 60 rdma link del rxe0
		ended 6
		check "$what: it is named" grep -q 'device rxe0 has left' "$work/err"
		ledger
		rdma link add rxe0 type rxe netdev eth0
	done
done
bench --iters 100
clean "a device of that name can be used again" 100
finish
