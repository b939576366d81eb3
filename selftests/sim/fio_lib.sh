# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
#
# What the tests of storage over a simulated HCA share: fio that verifies, also while a rule
# makes the HCA go wrong. Sourced, after ktap.sh, common.sh and fault_lib.sh. The caller has
# set $seed, from which all that is random comes, and $target, what fio writes to.

# verified IOS [OPTION...]: fio reads and writes in a random order and in several sizes, and
# in the end reads back all that it wrote.
verified() {
	local ios=$1 status=0
	shift
	# shellcheck disable=SC2154 # the caller's
	timeout -s KILL 200 fio --name=verified --filename="$target" --rw=randrw --number_ios="$ios" \
		--size=48m --bssplit=512/20:4k/40:16k/20:128k/20 --iodepth=16 --ioengine=libaio --direct=1 \
		--randseed=$((seed++)) --verify=crc32c --verify_fatal=1 "$@" >"$work/fio" 2>&1 || status=$?
	[ "$status" = 0 ] || sed 's/^/# | /' "$work/fio"
	return "$status"
}

# survives NAME KEY=VALUE...: a rule strikes, and no request fails for good.
survives() {
	local name=$1
	shift
	rule "$@" seed="$seed" || { fail "$name: the rule is taken" && return; }
	check "$name: what is read is what was written" verified 300
	drop
	# shellcheck disable=SC2154 # of drop
	check "$name: it happened ($hits times)" test "$hits" -gt 0
}
