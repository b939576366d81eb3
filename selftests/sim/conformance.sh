#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# conformance.sh [--set PARAMETER=VALUE] DRIVER [PATTERN]...: the rules of kernel verbs, on
# a device of that driver (rxe, siw, kverbs_sim), by the module kverbs_conformance. Cases
# whose names match a pattern, or all. PARAMETER is one of the driver's module: context,
# where kverbs_sim executes requests, or virtual_dma.
#
# DRIVER.deviations, beside this file, lists what the driver is known to do otherwise. A
# listed case that fails is a skip with the reason that is given there; one that passes
# is a failure, so that the list stays true. A line of it: CASE KERNELS REASON, where
# KERNELS are those on which it fails, separated by commas, or "all"; with "!" before
# CASE it is not run there at all, as it takes the kernel down or makes it complain.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=selftests/ktap.sh
. "$here/../ktap.sh"
usage="usage: conformance.sh [--set PARAMETER=VALUE] DRIVER [PATTERN]..."
setting=
if [ "${1-}" = --set ] && [ $# -ge 2 ]; then
	setting=$2
	shift 2
fi
[ $# -ge 1 ] || { echo "Bail out! $usage"; exit 2; }
driver=$1
shift
kernel=$(uname -r | cut -d. -f1-2)
debugfs=/sys/kernel/debug/kverbs_conformance
parameters=/sys/module/kverbs_conformance/parameters
address=192.168.77.1
declare -A reasons=() unsafe=()

# The deviations that hold on this kernel.
read_deviations() {
	local name kernels reason
	while read -r name kernels reason; do
		case $name in '' | '#'*) continue ;; esac
		case ",$kernels," in *",$kernel,"* | ,all,) ;; *) continue ;; esac
		[ "$name" = "${name#!}" ] || unsafe[${name#!}]=1
		reasons[${name#!}]=$reason
	done <"$here/$driver.deviations"
}

# rxe0 is there; for others a device of their own takes its place, as the connection
# manager chooses by address.
prepare_device() {
	device=rxe0
	[ "$driver" != rxe ] || return 0
	device=${driver#kverbs_}0
	if [ -e /sys/class/infiniband/rxe0 ]; then rdma link delete rxe0; fi
	modprobe -q "$driver" 2>/dev/null || [ -e "/sys/module/$driver" ] || return 1
	[ -z "$setting" ] || echo "${setting#*=}" >"/sys/module/$driver/parameters/${setting%%=*}" || return
	if [ ! -e /sys/class/net/eth0 ]; then
		ip link add eth0 type dummy
	fi
	ip addr replace "$address/24" dev eth0
	ip link set eth0 up
	rdma link add "$device" type "$driver" netdev eth0
}

restore_device() {
	[ "$driver" != rxe ] || return 0
	rdma link delete "$device" || :
	modprobe -rq "$driver" 2>/dev/null || :
}

matches() { # NAME PATTERN...
	local name=$1 pattern
	shift
	[ $# -gt 0 ] || return 0
	for pattern in "$@"; do
		# shellcheck disable=SC2053 # it is a pattern
		[[ $name != $pattern ]] || return 0
	done
	return 1
}

judge() { # NAME VERDICT
	local reason=${reasons[$1]-}
	case $2 in
	pass)
		if [ -z "$reason" ]; then pass "$1"; else
			fail "$1" "deviation gone ($reason): take it off $driver.deviations"
		fi
		;;
	skip\ *) skip "$1" "${2#skip }" ;;
	*) if [ -z "$reason" ]; then fail "$1"; else skip "$1" "$driver: $reason"; fi ;;
	esac
}

run_case() {
	local lines verdict
	if [ -n "${unsafe[$1]-}" ]; then
		skip "$1" "$driver, not run: ${reasons[$1]}"
		return
	fi
	if ! echo "$1" >"$debugfs/run"; then
		echo "Bail out! '$1' could not be run on $device"
		exit 1
	fi
	mapfile -t lines <"$debugfs/result"
	verdict=${lines[-1]}
	unset 'lines[-1]'
	[ ${#lines[@]} -eq 0 ] || printf '%s\n' "${lines[@]}"
	judge "$1" "$verdict"
}

[ -w "$debugfs/run" ] || { echo "Bail out! the kverbs_conformance module is not loaded"; exit 1; }
[ ! -e "$here/$driver.deviations" ] || read_deviations
prepare_device || { echo "Bail out! there is no device of $driver"; exit 1; }
trap restore_device EXIT
# A string parameter keeps a new line.
printf %s "$device" >"$parameters/device"
printf %s "$address" >"$parameters/address"
mapfile -t cases <"$debugfs/cases"
for name in "${cases[@]}"; do
	if matches "$name" "$@"; then run_case "$name"; fi
done
# A list that names what is not there is not true either.
for name in "${!reasons[@]}"; do
	[[ " ${cases[*]} " == *" $name "* ]] || fail "$driver.deviations" "there is no case '$name'"
done
finish
