#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# reported.sh [RACES]: how queues and pollers like these have failed in public, each test
# named after what broke, on cases of the kverbs_engine module over Soft-RoCE or a simulated
# HCA. On one kind of CQ or two: on all kinds the cases run elsewhere. Other such tests: of a
# bench that never ended kmod/bench_shapes.sh, of a namespace that could not be deleted
# kmod/ep_unplug.sh.
# shellcheck disable=SC2317 # called by name
set -eu
cd "$(dirname "$0")"
# shellcheck source=selftests/ktap.sh
. ../ktap.sh
# shellcheck source=selftests/sim/common.sh
. ../sim/common.sh
sim_up sim0 dummy0 10.9.0.1/24

# cases DEVICE COUNT PATTERN...: they pass, and there are some that are not skipped.
cases() {
	local status=0 output
	printf %s "$1" >/sys/module/kverbs_engine/parameters/device
	shift
	output=$(../kmod/engine.sh "$@") || status=$?
	sed -n 's/^\(not ok\|Bail out\)/# &/p; s/^# /# /p' <<<"$output"
	[ "$status" = 0 ] && grep -q '^ok ' <<<"$output" && ! grep -q '# SKIP' <<<"$output"
}

broke() {
	local what=$1
	shift
	check "$what" cases "$@"
}

broke "registrations took places that nobody counted" rxe0 1000 'regress_regis*/[is]*' 'c3_all_kinds_count/[is]*'
broke "silent heartbeats filled an idle queue" rxe0 1000 'c4_heartbeats/[is]*'
broke "an operation was reckoned to have one completion" rxe0 1000 'c9_claims/[is]*' 'c9_all_flushed/[is]*'
broke "a caller slept for more credit than there can ever be" rxe0 1000 'c3_never_fits/[is]*'
broke "one errno stood for all reasons" rxe0 1000 'c11_reasons/[is]*'
broke "room that came before the sleep woke nobody" rxe0 1000 'c3_race_to_sleep/[is]*' 'c3_crowd/[is]*'
broke "odd depths and counts never came to an end" rxe0 2000 'c1_random/interrupt'
broke "inline carried something else than the payload" rxe0 2000 'c1_data/interrupt'
broke "and by a DMA address" sim0 2000 'c1_data/interrupt'
broke "a QP failed for more inline than there is" sim0 1 'ep_inline_refused/interrupt'
broke "inline was used that had not been asked for" rxe0 1000 'c7_no_grant/[is]*' 'c7_by_grant/[is]*'
broke "a completion before the arm was lost" rxe0 "${1:-1000000}" 'p1_arm_race/interrupt'
broke "an arm that failed was none" rxe0 1000 'regress_arm_refused/*'
broke "what the last poll left was never polled" rxe0 1000 'p1_bursts/[is]*' 'p1_eight_queues/[is]*'
broke "events were moderated though nobody asked" sim0 1000 'moderate_refused/interrupt'
broke "an event came after its CQ was destroyed" sim0 1000 'moderate_destroyed/interrupt' 'moderate_destroyed/adaptive'
broke "the event handler took a lock that its caller held" rxe0 1000 'c1_instant/[is]*'
broke "a chain of receives was taken in part" sim0 200 'ep_refused_chain/interrupt' 'ep_messages_single/interrupt'
broke "a drain left completions of a shared receive queue" rxe0 1000 'c10_drain_srq/[is]*'
broke "a drain took a write, which UD has not" rxe0 1000 'c10_drain_ud/[is]*'
broke "a drain waited for what nobody had flushed" rxe0 1000 'regress_drain_refused/[is]*'
broke "a disconnect during a transfer hung" sim0 100 'ep_parts_under_load/interrupt' 'c1_data_drain/interrupt'

printf rxe0 >/sys/module/kverbs_engine/parameters/device
rdma link del sim0
finish
