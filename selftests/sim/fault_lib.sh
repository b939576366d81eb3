# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
#
# What the tests of faults and of the judge share: a device sim0, rules, and the consumer of
# the kverbs_simfault module. Sourced, after ktap.sh and common.sh, inside a virtual machine
# only.

config=/sys/kernel/config/kverbs_sim
consumer=/sys/kernel/debug/kverbs_simfault

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mountpoint -q /sys/kernel/config || mount -t configfs configfs /sys/kernel/config

# rule KEY=VALUE...: makes the rule "test", and enables it.
rule() {
	local setting
	mkdir $config/faults/test || return
	for setting; do
		echo "${setting#*=}" >"$config/faults/test/${setting%%=*}" || return
	done
	echo 1 >$config/faults/test/enabled
}

# drop: takes the rule away; $hits is how many faults it has made.
drop() {
	# shellcheck disable=SC2034 # the test's
	hits=$(cat $config/faults/test/hits)
	rmdir $config/faults/test
}

# consume KEY=VALUE...: the consumer does it; what it saw is in $work/result.
consume() {
	echo "$*" >$consumer/run
	cat $consumer/result >"$work/result"
}

# saw NAME LINE...: one case: each line (a pattern of grep) is in the result.
saw() {
	local name=$1 line
	shift
	for line; do
		grep -q -x -e "$line" "$work/result" && continue
		sed 's/^/# /' "$work/result"
		fail "$name" "no line '$line'"
		return
	done
	pass "$name"
}

# Rules that were broken on sim0, with how often. A CQ that is too small for the worst case is
# a risk that a consumer may take.
rules_broken() { grep -H -v '^0$' $config/sim0/judge/* | grep -v '_ms:\|/cq_undersized:' | sed 's/.*judge.//'; }

# refused FILE VALUE: the kernel does not take it, and the last line of its log says what
# it would take.
refused() {
	local said
	if echo "$2" >"$config/$1" 2>/dev/null; then
		fail "$1 takes no '$2'"
		return
	fi
	said=$(dmesg | tail -n 1)
	case $said in
	*kverbs_sim:*': write '*) pass "$1 takes no '$2', and says what it takes" ;;
	*) fail "$1 takes no '$2', and says what it takes" "$said" ;;
	esac
}
