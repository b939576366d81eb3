#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# reboot.sh REBOOTS: a machine that went down while a CQ was polled crashed now and then.
# Under load, in each mode in turn: requests go on ending, no thread polls any more, and the
# machine is down.
# shellcheck disable=SC2317 # called by name
set -eu
# shellcheck source=selftests/ktap.sh
. "$KVERBS_TOP/selftests/ktap.sh"
results=$KVERBS_OUT/results/regress-reboot
mkdir -p "$results"
modes=(poll adaptive hybrid interrupt)

# inside: in the machine. The last line is the status that the vehicle waits for.
inside() {
	local i
	echo "life_reboot/$1" >/sys/kernel/debug/kverbs_engine/run &
	for ((i = 0; i < 600; i++)); do
		! dmesg | grep -q 'reboot the machine now' || break
		sleep 0.1
	done
	sleep "0.$((RANDOM % 10))"
	printf '#@exit 0\n'
	stty raw <&1 # waits until that has been read
	busybox halt -f
}

# goes_down MODE
goes_down() {
	local log=$results/kernel.log
	"$KVERBS_TOP/selftests/vm/uml" --timeout 120 --load kverbs,kverbs_engine --log "$log" -- \
		"$KVERBS_TOP/selftests/regress/reboot.sh" --inside "$1" || return
	grep -a -o 'kverbs_engine: reboot: .*' "$log" | sed 's/^/# /'
	grep -a -q 'reboot: requests go on ending, and no thread polls' "$log" &&
		grep -a -q 'reboot: System halted' "$log"
}

if [ "$1" = --inside ]; then
	inside "$2"
	exit
fi
for ((i = 0; i < $1; i++)); do
	check "down under load, number $((i + 1)): ${modes[i % 4]}" goes_down "${modes[i % 4]}"
done
finish
