#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# costs.sh REQUESTS [CONTEXT]...: what a simulated HCA costs, in each context or in those
# that are named. PCIe transactions are what the model says, exactly, whatever the costs;
# nothing is sooner than it costs; order and exactly-once hold; handlers run on the CPU of
# their vector. Then loads of so many requests. Times are only held against lower bounds: a
# machine may be slow.
set -u
cd "$(dirname "$0")" || exit
# shellcheck source=selftests/ktap.sh
. ../ktap.sh
# shellcheck source=selftests/sim/common.sh
. ./common.sh
# shellcheck source=selftests/sim/fault_lib.sh
. ./fault_lib.sh
# shellcheck source=selftests/sim/load_lib.sh
. ./load_lib.sh

requests=$1
shift
contexts=${*:-thread softirq hrtimer post}
cost=$config/sim0/cost
declare -A after
pcie="doorbells wqe_fetches blueflames payload_reads cqes events"

# set_cost KNOB=VALUE...
set_cost() {
	local setting
	for setting; do
		echo "${setting#*=}" >"$cost/${setting%%=*}" || return
	done
}

context() { echo "$1" >$config/sim0/context; }

# traffic KEY=VALUE...: what it adds to the counters of PCIe, in $transactions.
traffic() {
	local name value
	local -A before
	while read -r name value; do
		before[$name]=$value
	done <$config/sim0/counters
	consume "$@"
	while read -r name value; do
		after[$name]=$((value - before[$name]))
	done <$config/sim0/counters
	transactions=
	for name in $pcie; do
		transactions+="${after[$name]} "
	done
}

# in_order N: as saw() has it, requests 0 to N - 1 done once, in order.
in_order() {
	local i line="done=$1"
	for ((i = 0; i < $1 && i < 32; i++)); do
		line+=" $i"
	done
	echo "$line"
}

# at_least NAME FIELD NS: what the consumer has measured is not below.
at_least() {
	local value
	value=$(sed -n "s/^$2=//p" "$work/result")
	if [ "$value" -ge "$3" ]; then pass "$1"; else fail "$1" "$2 is $value, below $3"; fi
}

# costs NAME WANT KEY=VALUE...: 64 requests cross PCIe so often: doorbells, WQE fetches,
# BlueFlames, payload reads, CQEs, events. A WQE is 64 bytes long with one element, 128 with
# 64 bytes inline; a read brings 256.
costs() {
	local name=$1 want=$2
	shift 2
	traffic count=64 cq=direct "$@"
	saw "$name: all is done" "done=${done_want:-64} .*"
	is "$name" "$transactions" "$want "
}

test_counts() {
	costs "$1: one by one" "64 64 0 64 64 0"
	costs "$1: one by one, inline" "64 64 0 0 64 0" inline=1
	costs "$1: chains of 16" "4 16 0 64 64 0" chain=16
	costs "$1: chains of 16, inline" "4 32 0 0 64 0" chain=16 inline=1
	costs "$1: chains of 3" "22 22 0 64 64 0" chain=3
	done_want=4 costs "$1: one in 16 signaled" "4 16 0 64 4 0" chain=16 signal=16
	# With the receives' CQEs; a read sends nothing.
	costs "$1: messages" "64 64 0 64 128 0" op=send recvs=64
	costs "$1: reads" "64 64 0 0 64 0" op=read
}

# The same in short, and with BlueFlame.
test_counts_again() {
	costs "$1: one by one" "64 64 0 64 64 0"
	costs "$1: chains of 16, inline" "4 32 0 0 64 0" chain=16 inline=1
	set_cost blueflame_bytes=128
	costs "$1: BlueFlame" "64 0 64 0 64 0" inline=1
}

# A WQE of 64 bytes is short enough for a BlueFlame of as many, too.
test_blueflame() {
	set_cost blueflame_bytes=64
	costs "BlueFlame up to 64 bytes: its payload is read" "64 0 64 64 64 0"
	costs "BlueFlame up to 64 bytes: a WQE of 128" "64 64 0 0 64 0" inline=1
	costs "BlueFlame up to 64 bytes: not in a chain" "4 16 0 64 64 0" chain=16
	set_cost blueflame_bytes=128
	costs "BlueFlame up to 128 bytes: no DMA read at all" "64 0 64 0 64 0" inline=1
	set_cost fetch_bytes=128 blueflame_bytes=0
	costs "128 bytes a read" "4 32 0 64 64 0" chain=16
	set_cost preset=zero
}

# Each event is an interrupt, seen by a handler.
test_events() {
	traffic count=64 chain=4 cq=softirq
	is "$1: an interrupt for each time that the handler is called" "${after[events]}" \
		"$(sed -n 's/.* events=\([0-9]*\) .*/\1/p' "$work/result")"
}

test_knobs() {
	local knob
	is "nothing costs anything at first" "$(cat $cost/preset)" zero
	set_cost preset=articles
	is "the articles' preset" "$(cat $cost/preset)" articles
	is "the articles' doorbell" "$(cat $cost/doorbell_ns)" 80
	is "the articles' payload" "$(cat $cost/payload_ns)" 1200
	for knob in "$cost"/*_ns "$cost/wire_ns_per_kib" "$cost/fetch_bytes" "$cost/blueflame_bytes"; do
		echo 77 >"$knob"
		is "${knob##*/} is set" "$(cat "$knob")" 77
	done
	is "no preset any more" "$(cat $cost/preset)" none
	refused sim0/cost/doorbell_ns 1000001
	refused sim0/cost/wire_ns -1
	refused sim0/cost/fetch_bytes 63
	refused sim0/cost/blueflame_bytes 2049
	refused sim0/cost/preset free
	set_cost preset=zero
	is "nothing costs anything again" "$(cat $cost/preset)" zero
}

# The CPU that posts is at the doorbell so long, and the HCA needs its time, too.
test_times() {
	local context=$1
	set_cost preset=zero doorbell_ns=100000
	consume count=64 cq=direct
	saw "$context: a doorbell of 100 us: in order, once" "$(in_order 64)" 'twice=0 .*'
	at_least "$context: a doorbell of 100 us" fastest_post_ns 100000
	at_least "$context: nothing is done before it is rung" soonest_done_ns 100000
	consume count=64 chain=16 cq=direct
	saw "$context: a doorbell for 16" "$(in_order 64)" 'twice=0 .*'
	at_least "$context: a doorbell for 16" fastest_post_ns 100000
	set_cost preset=zero notice_ns=1000000 parse_ns=100000 payload_ns=1000000 wire_ns=1000000 cqe_ns=1000000
	consume count=64 chain=16 cq=softirq
	saw "$context: 4 ms: in order, once" "$(in_order 64)" 'twice=0 .*'
	at_least "$context: 4 ms" soonest_done_ns 4100000
	consume count=64 chain=16 cq=softirq inline=1
	at_least "$context: 3 ms, inline" soonest_done_ns 3100000
	consume count=16 op=send recvs=16 cq=softirq
	saw "$context: messages" "$(in_order 16)" '.* received=16 .*'
	set_cost preset=zero interrupt_ns=3000000
	consume count=64 chain=16 cq=softirq
	saw "$context: an interrupt of 3 ms: in order, once" "$(in_order 64)" 'twice=0 .*'
	consume count=16 chain=16 cq=softirq
	at_least "$context: an interrupt of 3 ms" soonest_done_ns 3000000
	# A KiB takes a second, so that 64 bytes take 62 ms, one after the other. The device goes on
	# once it is free of charge.
	set_cost preset=zero wire_ns_per_kib=1000000000
	consume count=4 cq=direct
	saw "$context: 62 ms on the wire" "$(in_order 4)"
	at_least "$context: 62 ms on the wire" soonest_done_ns 62500000
	set_cost preset=zero
	consume count=64 cq=direct
	saw "$context: nothing costs anything again" "$(in_order 64)"
	# To the error state while it waits: flushed, once.
	set_cost preset=zero wire_ns=1000000000
	consume count=64 chain=16 cq=softirq expect=0 wait_ms=1 fail=1
	saw "$context: flushed while it waits" "$(in_order 64)" 'status 0 WR flushed' 'twice=0 .*'
	set_cost preset=zero
}

# Vector N is on the CPU N, once around.
test_vectors() {
	local vector cpus
	cpus=$(nproc)
	for ((vector = 0; vector < 2 * cpus; vector++)); do
		consume count=64 chain=4 cq=softirq vector=$vector
		saw "$1: vector $vector of $((2 * cpus)): its handler runs on one CPU" "$(in_order 64)" \
			"event_cpus=$((vector % cpus))"
	done
}

sim_net dummy0 10.9.0.1/24 || exit
load_prepare 2
echo $((2 * $(nproc))) >$config/defaults/caps/comp_vectors
sim_add sim0 dummy0 || exit
is "there is a vector for each CPU, twice" "$(cat $config/defaults/caps/comp_vectors)" $((2 * $(nproc)))
test_knobs
for context in $contexts; do
	context "$context"
	test_vectors "$context"
	test_events "$context"
	test_counts "$context"
	set_cost preset=articles
	test_counts_again "$context, the articles' costs"
	test_times "$context"
done
test_blueflame
seed=1
for context in $contexts; do
	context "$context"
	for preset in zero articles; do
		set_cost preset=$preset
		load_run "load/own in context $context, costs $preset" load/own "$requests" $((seed++))
		load_run "load/shared in context $context, costs $preset" load/shared "$requests" $((seed++))
	done
done
rdma link del sim0
nproc >$config/defaults/caps/comp_vectors
finish
