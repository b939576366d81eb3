#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Each kind of fault as a plain consumer sees it: one that posts on an ib_alloc_cq CQ.
set -u
cd "$(dirname "$0")" || exit
# shellcheck source=selftests/ktap.sh
. ../ktap.sh
# shellcheck source=selftests/sim/common.sh
. ./common.sh
# shellcheck source=selftests/sim/fault_lib.sh
. ./fault_lib.sh

# until_is FILE WORD: waits until it is the last word in the file.
until_is() {
	local i word
	for ((i = 0; i < 200; i++)); do
		read -r word <"$1" && [ "${word##* }" = "$2" ] && return
		sleep 0.05
	done
	return 1
}

posts() {
	rule kind=post_fail errno=-5 after_hits=1
	consume count=4 chain=4 expect=1
	saw "post_fail: what is before it is taken" 'post=-5 bad=1' 'done=1 0'
	drop
	rule kind=post_fail errno=5
	consume count=4 chain=4 expect=0 wait_ms=50
	saw "post_fail: a positive errno" 'post=5 bad=0' 'done=0'
	drop
	rule kind=post_half
	consume count=9 chain=9 expect=4
	saw "post_half: the second half is refused" 'post=-12 bad=4' 'done=4 0 1 2 3'
	drop
	rule kind=post_bad_head after_hits=2
	consume count=4 chain=4 expect=2
	saw "post_bad_head: two are taken, the head is named" 'post=-12 bad=0' 'done=2 0 1'
	drop
	rule kind=post_bad_unset after_hits=2
	consume count=4 chain=4 expect=2
	saw "post_bad_unset" 'post=-12 bad=unset' 'done=2 0 1'
	drop
	rule kind=post_bad_wrong after_hits=2
	consume count=4 chain=4 expect=2
	saw "post_bad_wrong" 'post=-12 bad=elsewhere' 'done=2 0 1'
	drop
	rule kind=post_taken
	consume count=4 chain=4
	saw "post_taken: all is done nevertheless" 'post=-12 bad=unset' 'done=4 0 1 2 3'
	drop
}

# status NAME MESSAGE: the third request ends with it.
status() {
	rule kind=error status="$1" after_hits=2
	consume count=4 chain=4
	drop
	saw "error: $1" "status 2 $2" 'done=4 0 1 2 3' '.* state=6'
}

errors() {
	status loc_len_err "local length error"
	status loc_qp_op_err "local QP operation error"
	status loc_eec_op_err "local EE context operation error"
	status loc_prot_err "local protection error"
	status wr_flush_err "WR flushed"
	status mw_bind_err "memory bind operation error"
	status bad_resp_err "bad response error"
	status loc_access_err "local access error"
	status rem_inv_req_err "remote invalid request error"
	status rem_access_err "remote access error"
	status rem_op_err "remote operation error"
	status retry_exc_err "transport retry counter exceeded"
	status rnr_retry_exc_err "RNR retry counter exceeded"
	status loc_rdd_viol_err "local RDD violation error"
	status rem_inv_rd_req_err "remote invalid RD request"
	status rem_abort_err "operation aborted"
	status inv_eecn_err "invalid EE context number"
	status inv_eec_state_err "invalid EE context state"
	status fatal_err "fatal error"
	status resp_timeout_err "response timeout error"
	status general_err "general error"

	rule kind=error opcode=send
	consume op=write count=4
	saw "error: another opcode is left alone" 'done=4 0 1 2 3' '.* state=3'
	drop
	rule kind=sqe status=loc_prot_err
	consume type=ud op=send recvs=4 count=3 chain=3
	saw "sqe: UD goes to SQE, the rest is flushed" 'status 0 local protection error' \
		'status 1 WR flushed' 'status 2 WR flushed' '.* state=5'
	drop
	rule kind=sqe
	consume count=2
	saw "sqe: RC knows no such state" 'done=2 0 1' '.* state=3'
	drop
}

answers() {
	rule kind=rnr delay_ns=1000000
	consume op=send recvs=2 count=2
	saw "rnr: tried again" 'done=2 0 1' '.* received=2 .* state=3'
	drop
	is "rnr: one NAK" "$hits" 1
	rule kind=rnr count_hits=0
	consume op=send recvs=2 count=1 rnr_retry=3
	saw "rnr: for good" 'status 0 RNR retry counter exceeded' '.* received=0 .* state=6'
	drop
	is "rnr: as often as agreed" "$hits" 4
	rule kind=no_answer
	consume count=1
	saw "no_answer: tried again" 'done=1 0' '.* state=3'
	drop
	rule kind=no_answer count_hits=0
	consume count=1 wait_ms=5000
	saw "no_answer: for good" 'status 0 transport retry counter exceeded' '.* state=6'
	drop
	is "no_answer: as often as agreed" "$hits" 3
}

completions() {
	consume count=3 chain=3 signal=0 fail=1
	saw "without a rule what succeeded silently is not flushed" 'done=0'
	rule kind=flush_executed
	consume count=3 chain=3 signal=0 fail=1
	saw "flush_executed: what had succeeded is flushed" 'done=3 0 1 2' 'status 0 WR flushed' \
		'status 2 WR flushed'
	drop
	rule kind=read_overtaken after_hits=1
	consume op=read count=4 chain=4
	saw "read_overtaken: a later one is done first" 'done=4 0 2 1 3' 'twice=0 .*'
	drop
	rule kind=read_overtaken delay_ns=50000000
	consume op=read count=1
	saw "read_overtaken: alone it comes by itself" 'done=1 0'
	drop
	rule kind=cqe_late delay_ns=100000000 after_hits=1
	consume count=4
	saw "cqe_late: those behind it stay behind it" 'done=4 0 1 2 3'
	drop
	rule kind=cqe_late delay_ns=60000000000 after_hits=1
	consume count=4 wait_ms=50
	saw "cqe_late: what is late is not there, and may never be" 'done=1 0'
	drop
	rule kind=cqe_late delay_ns=60000000000
	consume count=2 wait_ms=20000 &
	until_is $config/faults/test/hits 1
	drop
	wait
	cat $consumer/result >"$work/result"
	saw "cqe_late: without the rule it comes at once" 'done=2 0 1'
	rule kind=cqe_lost after_hits=1
	consume count=4 wait_ms=100
	saw "cqe_lost" 'done=3 0 2 3'
	drop
	rule kind=cqe_twice after_hits=1
	consume count=4
	saw "cqe_twice" 'done=5 0 1 1 2 3' 'twice=1 .*'
	drop
	rule kind=cqe_lost opcode=recv
	consume op=send recvs=2 count=2
	saw "cqe_lost: of a receive" 'done=2 0 1' '.* received=1 .*'
	drop
}

events() {
	rule kind=event_lost
	consume count=2 wait_ms=100
	saw "event_lost: nobody looks" 'done=0' '.* events=0 .*'
	drop
	rule kind=event_locked count_hits=0
	consume count=20
	saw "event_locked: the handler runs with interrupts off" 'done=20 .*' \
		'.* locked=[1-9][0-9]* .*'
	drop
	rule kind=event_in_post count_hits=0
	consume cq=workqueue count=3
	saw "event_in_post: whether armed or not" 'done=3 0 1 2' '.* in_post=[3-9] .*'
	drop
}

device() {
	local port=/sys/class/infiniband/sim0/ports/1/state
	rule kind=port_down delay_ns=3000000000
	consume count=4 chain=1 wait_ms=50 expect=9
	check "port_down: the port is down" until_is "$port" DOWN
	check "port_down: for a while" until_is "$port" ACTIVE
	drop
	rule kind=port_down delay_ns=0
	consume count=1 wait_ms=50
	check "port_down: for good" until_is "$port" DOWN
	drop
	ip link set dummy0 down
	ip link set dummy0 up
	check "port_down: until its netdev changes" until_is "$port" ACTIVE

	rule kind=remove after_hits=50
	consume count=200 wait_ms=100
	check "remove: the device is gone" sim_gone sim0
	drop
	check "remove: another of its name comes" sim_add sim0 dummy0
	consume count=2
	saw "remove: and works" 'done=2 0 1'
}

matching() {
	local first
	rule kind=cqe_lost device=sim1
	consume count=2
	drop
	is "a rule for another device" "$hits" 0
	rule kind=cqe_lost device=sim0
	consume count=2 expect=1
	drop
	is "a rule for the device" "$hits" 1
	rule kind=cqe_lost qp_num=16777215
	consume count=2
	drop
	is "a rule for another queue pair" "$hits" 0

	rule kind=cqe_twice probability_ppm=200000 seed=42 count_hits=0
	consume count=200
	first=$(cat "$work/result")
	echo 0 >$config/faults/test/enabled
	echo 1 >$config/faults/test/enabled
	consume count=200
	is "a seed repeats" "$(grep ^done= "$work/result")" "$(grep ^done= <<<"$first")"
	drop
	check "about so many of a million" test "$hits" -gt 20 -a "$hits" -lt 60
	rule kind=cqe_twice probability_ppm=200000 seed=43 count_hits=0
	consume count=200
	drop
	check "another seed does not" test "$(grep ^done= "$work/result")" != "$(grep ^done= <<<"$first")"
}

presets() {
	rule preset=irdma
	consume count=2 chain=2 signal=0 fail=1
	saw "preset irdma" 'done=2 0 1' 'status 1 WR flushed'
	drop
	rule preset=erdma after_hits=1
	consume count=3 chain=3 expect=1
	saw "preset erdma" 'post=-12 bad=0' 'done=1 0'
	drop
	rule preset=siw
	consume count=2 chain=2
	saw "preset siw" 'post=-22 bad=unset' 'done=2 0 1'
	drop
	rule preset=mlx5
	consume count=1
	saw "preset mlx5" 'done=1 0' '.* in_post=1 .*'
	drop
	rule preset=iwarp
	consume op=read count=2 chain=2
	saw "preset iwarp" 'done=2 1 0'
	drop
}

knobs() {
	mkdir $config/faults/test
	refused faults/test/enabled 1
	refused faults/test/kind nonsense
	refused faults/test/opcode bind
	refused faults/test/status success
	refused faults/test/errno 0
	refused faults/test/errno -4096
	refused faults/test/probability_ppm 1000001
	refused faults/test/delay_ns -1
	refused faults/test/delay_ns 1h
	refused faults/test/qp_num 16777216
	refused faults/test/preset mlx9
	refused faults/test/device a-name-that-is-longer-than-any-device-can-have-in-this-kernel-and-more
	echo event_lost >$config/faults/test/kind
	echo write >$config/faults/test/opcode
	refused faults/test/enabled 1
	echo any >$config/faults/test/opcode
	echo 1 >$config/faults/test/enabled
	refused faults/test/kind cqe_lost
	rmdir $config/faults/test
	refused defaults/context inside
	refused defaults/caps/qp_wr 0
	refused defaults/caps/inline_bytes 4096
	refused defaults/caps/numa_node 63
	refused sim0/strict 2
	refused sim0/judge/lost_arm_ms 0
}

# again KNOB=VALUE...: sim0 with other capabilities.
again() {
	local knob
	for knob; do echo "${knob#*=}" >"$config/defaults/caps/${knob%=*}"; done
	rdma link del sim0
	sim_add sim0 dummy0
}

caps() {
	again qp_wr=1024 inline_bytes=0
	consume depth=16
	saw "caps: no inline data, none to be had" 'rig=-22'
	again inline_bytes=101
	consume depth=1024 count=4
	saw "caps: as deep as the device allows" 'done=4 0 1 2 3'
	consume depth=1025
	saw "caps: no deeper" 'rig=-22'
	# One is that of the management.
	again qps=2
	consume
	saw "caps: no more queue pairs than there are" 'rig=-12'
	again qps=3 comp_vectors=3
	consume
	saw "caps: as many queue pairs as there are" 'done=1 0'
	again qp_wr=16384 inline_bytes=1024 qps=16777199
}

sim_up sim0 dummy0 10.9.0.1/24 || { echo "Bail out! no sim0"; exit 1; }
for context in thread softirq post; do
	echo "# context $context"
	echo $context >$config/sim0/context
	posts
	answers
	completions
	events
done
echo thread >$config/sim0/context
errors
device
matching
presets
knobs
caps
rdma link del sim0
finish
