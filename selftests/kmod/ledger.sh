#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# ledger.sh REQUESTS [SEED [LIVES]]: exactly once, by count. Life after life on a simulated
# HCA that fails at random: in each some rules of faults and up to ten rigs of queues of the
# module kverbs_engine (case_ledger.c), until so many work requests were accepted. All that
# was accepted has ended, once and in order, with what it says having happened.
#
# All choices derive from SEED, which is printed, and from the number of the life: a life that
# failed is run alone with that number as LIVES; a word there is a kind of life: good, refused,
# failed, unsure, twice, lost or gone. In full, with 100 million: "make test-ledger".
# shellcheck disable=SC2317 # functions that check() calls
set -u
cd "$(dirname "$0")" || exit
# shellcheck source=selftests/ktap.sh
. ../ktap.sh
# shellcheck source=selftests/sim/common.sh
. ../sim/common.sh
# shellcheck source=selftests/sim/fault_lib.sh
. ../sim/fault_lib.sh

requests=$1
seed=${2:-${SEED:-$((RANDOM * 32768 + RANDOM))}}
only=${3-}
parameters=/sys/module/kverbs_engine/parameters
debugfs=/sys/kernel/debug/kverbs_engine
kverbs_cqs=(interrupt poll hybrid adaptive)
cqs=("${kverbs_cqs[@]}" softirq workqueue direct)
contexts=(thread softirq hrtimer post)
statuses=(loc_len_err loc_qp_op_err loc_eec_op_err loc_prot_err wr_flush_err mw_bind_err bad_resp_err
	loc_access_err rem_inv_req_err rem_access_err rem_op_err retry_exc_err rnr_retry_exc_err
	loc_rdd_viol_err rem_inv_rd_req_err rem_abort_err inv_eecn_err inv_eec_state_err fatal_err
	resp_timeout_err general_err)

declare -A total hits_of
rules=()

# draw BELOW: $drawn is the life's next random number.
state=0
draw() {
	state=$(((state * 6364136223846793005 + 1442695040888963407) & 0x7fffffffffffffff))
	drawn=$(((state >> 33) % $1))
}

pick() { # WORD...: $picked is one of them
	draw $#
	shift "$drawn"
	picked=$1
}

# fault KIND KEY=VALUE...: one more rule of the life.
fault() {
	local dir=$config/faults/ledger${#rules[@]} setting
	draw 1000000000
	rules+=("kind=$* seed=$drawn")
	mkdir "$dir" || return
	for setting in "kind=$1" "seed=$drawn" count_hits=0 "${@:2}"; do
		echo "${setting#*=}" >"$dir/${setting%%=*}" || return
	done
	echo 1 >"$dir/enabled"
}

# What changes nothing for a consumer that does as it should.
disturb() {
	local nr=$drawn i
	for ((i = 0; i < nr; i++)); do
		pick cqe_late event_locked event_in_post rnr no_answer read_overtaken
		case $picked in
		cqe_late) draw 500000 && fault cqe_late delay_ns="$drawn" probability_ppm=300 ;;
		event_locked) fault event_locked probability_ppm=200000 ;;
		# A CQ that its owner polls is told of nothing.
		event_in_post) [ "$cq" = direct ] || fault event_in_post probability_ppm=20000 ;;
		rnr) fault rnr delay_ns=20000 probability_ppm=100 ;;
		no_answer) fault no_answer probability_ppm=30 ;;
		read_overtaken) fault read_overtaken opcode=read delay_ns=100000 probability_ppm=2000 ;;
		esac
	done
}

# It says which; not of what closes a silent tail, which is a write alone.
refuse() {
	local i err
	for i in 1 2; do
		pick -22 22 -5 5 -11
		err=$picked
		pick "post_fail opcode="{send,send_imm,write_imm,read,cas,fadd} post_half
		# shellcheck disable=SC2086 # two words
		fault $picked errno="$err" probability_ppm=2000
	done
}

# A request fails, and the queue with it.
upset() {
	local kind
	pick error error sqe port_down
	kind=$picked
	if [ "$kind" = port_down ]; then
		fault port_down delay_ns=3000000 probability_ppm=20
		return
	fi
	pick "${statuses[@]}"
	fault "$kind" status="$picked" probability_ppm=100
	draw 2
	[ "$drawn" = 0 ] || fault flush_executed
}

# It is not known what was taken: the head or nothing is named, or none of the chain.
confuse() {
	local kind
	pick post_fail post_half post_bad_head post_bad_unset post_bad_wrong post_taken
	kind=$picked
	case $kind in
	post_bad_head) pick -12 12 ;;
	*) pick -22 22 -12 12 ;;
	esac
	fault "$kind" errno="$picked" probability_ppm=100
}

lose() {
	pick cqe_lost cqe_lost event_lost
	case $picked in
	cqe_lost) draw 40 && fault cqe_lost opcode=write after_hits="$drawn" count_hits=1 ;;
	event_lost) draw 20 && fault event_lost after_hits="$drawn" count_hits=1 ;;
	esac
}

# life NUMBER: what it is to be; $what is the case, $cq where it completes.
life() {
	state=$(((seed * 1000003 + $1) * 2654435761 & 0x7fffffffffffffff))
	draw 2 # the first few are alike for seeds that are
	draw 2
	pick "${cqs[@]}" && cq=$picked
	pick "${contexts[@]}" && context=$picked
	draw 100
	case $drawn in
	[0-4]? | ?) what=good ;;
	5? | 6[0-4]) what=refused ;;
	6? | 7? | 8[0-2]) what=failed ;;
	8?) what=unsure ;;
	9[0-3]) what=twice ;;
	9[4-7]) what=lost ;;
	*) what=gone ;;
	esac
}

# The rules of the life.
arrange() {
	rules=()
	draw 3
	case $what in
	good) disturb ;;
	refused) disturb && refuse ;;
	failed) disturb && upset ;;
	unsure) confuse ;;
	twice) fault cqe_twice opcode=write probability_ppm=20000 ;;
	lost) lose ;;
	esac
}

# Takes the rules away; what they hit is added up, and $hits is what the last one did.
unrule() {
	local i kind
	hits=0
	for i in "${!rules[@]}"; do
		hits=$(<"$config/faults/ledger$i/hits")
		kind=$(<"$config/faults/ledger$i/kind")
		hits_of[$kind]=$((${hits_of[$kind]:-0} + hits))
		rmdir "$config/faults/ledger$i"
	done
}

device_up() { sim_there sim0 || sim_add sim0 dummy0; }

# The device leaves by itself in the midst of traffic.
gone() {
	draw 3000
	fault remove after_hits=$((drawn + 200)) count_hits=1
	echo "life_unplug_data/$cq" >"$debugfs/run"
	sim_gone sim0
}

# run_life NUMBER: the one that life() chose; true if it was as it should be. Its words are in
# $work/said.
run_life() {
	local key value ended
	device_up || return
	echo "$context" >"$config/sim0/context"
	arrange
	draw 1000000000
	echo "$drawn" >"$parameters"/seed
	if [ "$what" = gone ]; then
		gone
	else
		echo "ledger_$what/$cq" >"$debugfs/run"
	fi
	cat "$debugfs/ktap" >"$work/said"
	unrule
	[ -z "${VERBOSE-}" ] || echo "# $1: $what on $cq, $context: $(sed -n 's/.* took //p' "$work/said") ${rules[*]/%/;}"
	ended=$(sed -n 's/^# ledger: //p' "$work/said")
	for value in $ended; do
		key=${value%%=*} value=${value#*=}
		total[$key]=$((${total[$key]:-0} + value))
		eval "local $key=$value"
	done
	grep -q '^ok 1 ' "$work/said" || return
	case $what:${rules[*]} in
	# The last one of a queue may still come when its account is closed.
	twice:*) [ "$hits" -ge "${stale:?}" ] && [ "$hits" -le $((stale + 3 * ${rounds:?})) ] ;;
	lost:*cqe_lost*) [ "${missing:?}" -ge "$hits" ] ;;
	esac
}

tell() { # NUMBER
	echo "# life $1: $what on $cq, context $context${rules[*]:+, ${rules[*]/%/;}}"
	grep '^#' "$work/said"
	echo "# again: ledger.sh $requests $seed $1"
}

lives() {
	local number
	for ((number = 1; ${total[work_requests]:-0} < requests; number++)); do
		life "$number"
		case $only in
		"" | "$number" | "$what") ;;
		*) continue ;;
		esac
		run_life "$number" || { tell "$number" && return 1; }
		lived=$((lived + 1))
		[ "$only" != "$number" ] || { tell "$number" && return; }
	done
}

[ -w "$debugfs/run" ] || { echo "Bail out! the kverbs_engine module is not loaded"; exit 1; }
echo "# seed $seed"
sim_net dummy0 10.9.0.1/24
device_up || { echo "Bail out! no simulated HCA"; exit 1; }
printf sim0 >"$parameters"/device
each=$((requests / 100))
echo $((each < 5000 ? 5000 : each > 100000 ? 100000 : each)) >"$parameters"/count
lived=0
check "each request that is accepted ends exactly once" lives
for key in "${!total[@]}"; do echo "$key ${total[$key]}"; done | sort | paste -sd, | sed "s/^/# $lived lives: /; s/,/, /g"
for key in "${!hits_of[@]}"; do echo "$key ${hits_of[$key]}"; done | sort | paste -sd, | sed 's/^/# faults: /; s/,/, /g'
is "the device has nothing to say against it" "$(device_up && rules_broken)" ""
finish
