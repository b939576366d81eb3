#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# What the command says to bad input, and where there is neither module nor device:
# one line with the value, the limit and the remedy, and an exit code of its own.
set -u
# shellcheck source=selftests/cli/common.sh
. "$(dirname "$0")/common.sh"

for command in "" devices stat hist why trace "trace latency" "trace batch" "trace cost" bench sim "sim create" "sim list" "sim set" "sim counters" "sim remove" "sim fault" \
	"sim fault add" "sim fault preset" "sim fault list" "sim fault remove"; do
	# shellcheck disable=SC2086 # no argument if it is empty
	run kverbs $command --help
	check "kverbs $command --help" grep -q "^Usage: kverbs $command" "$work/out"
	is "kverbs $command --help succeeds, without errors" "$status:$(cat "$work/err")" 0:
	# shellcheck disable=SC2086
	refused "kverbs $command --help with no room for it" 1 "standard output: " -- onto_full kverbs $command --help
done
refused "--version with no room for it" 1 "standard output: " -- onto_full kverbs --version
run kverbs --help
check "--help tells the exit codes" grep -q '^Exit codes:' "$work/out"
run kverbs --version
is "--version" "$(cat "$work/out")" "kverbs $(cat "$KVERBS_TOP/lib/VERSION")"

refused "no command" 2 "subcommand" "--help" -- kverbs
refused "an unknown command" 2 "frobnicate" "--help" -- kverbs frobnicate
refused "an unknown option" 2 "--frob" "kverbs stat --help" -- kverbs stat --frob
refused "one argument too many" 2 "two" "--help" -- kverbs hist one two
refused "an interval of 0" 2 "--interval: 0 " "0.1 to 86400 seconds" -- kverbs stat -i 0
refused "a negative interval" 2 "-1" "0.1 to 86400 seconds" -- kverbs stat --interval=-1
refused "too long an interval" 2 "1e9" "0.1 to 86400 seconds" -- kverbs stat -i 1e9
refused "an interval that is no number" 2 "'soon'" "0.1 to 86400 seconds" -- kverbs stat -i soon
refused "an interval that is not a number" 2 "nan" "0.1 to 86400 seconds" -- kverbs stat -i nan
refused "an option without its value" 2 "--interval" -- kverbs stat -i
refused "a count of 0" 2 "--count: 0 " "1 to 1000000000 times" -- kverbs stat -i 1 -c 0
refused "a negative count" 2 "-5" "1 to 1000000000 times" -- kverbs stat -i 1 --count=-5
refused "a count without an interval" 2 "--count" "--interval" -- kverbs stat -c 3
refused "a QP number of 25 bits" 2 "16777216" "0 to 16777215" -- kverbs hist --qp 16777216
refused "a QP number that is none" 2 "'first'" "0 to 16777215" -- kverbs hist --qp first
refused "a QP to trace of 25 bits" 2 "--qp: 16777216 " "0 to 16777215" -- kverbs trace batch --qp 16777216
refused "a QP to trace that is none" 2 "--qp" "'first'" "0 to 16777215" -- kverbs trace cost --qp first
refused "a what-if of the cost" 2 "--what-if" "--help" -- kverbs trace cost --what-if
refused "a what-if of one opcode" 2 "--what-if" "--opcode" -- kverbs trace batch --what-if --opcode send
refused "an opcode that is none" 2 "'rite'" "write" -- kverbs trace batch --opcode rite
refused "why of what is no queue" 2 "'rxe0/first'" "DEV/QP" "16777215" -- kverbs why rxe0/first
refused "why of a QP number of 25 bits" 2 "'rxe0/16777216'" "16777215" -- kverbs why rxe0/16777216
refused "why without a device" 2 "'/17'" "DEV/QP" -- kverbs why /17
refused "an unknown kind" 2 "'hold'" "post or complete" -- kverbs hist --kind hold
refused "no command of sim" 2 "subcommand" "kverbs sim --help" -- kverbs sim
refused "an unknown command of sim" 2 "'frobnicate'" "kverbs sim --help" -- kverbs sim frobnicate
refused "an unknown command of sim fault" 2 "'frob'" "kverbs sim fault --help" -- kverbs sim fault frob
refused "a device without a name" 2 "NAME" "kverbs sim create --help" -- kverbs sim create
refused "nothing to set" 2 "KNOB=VALUE" "kverbs sim set --help" -- kverbs sim set sim0

if [ -e /sys/module/kverbs_sim ]; then
	skip "without the module kverbs_sim" "it is loaded"
else
	for command in "list" "create sim0" "set sim0 strict=1" "counters sim0" "remove sim0" "fault list" \
		"fault add sim0 error" "fault remove sim0-error"; do
		# shellcheck disable=SC2086 # words
		refused "sim $command without the module" 3 "modprobe kverbs_sim" -- kverbs sim $command
	done
fi
if [ -e /dev/kverbs ]; then
	skip "without the module" "the module is loaded"
else
	refused "stat without the module" 3 "/dev/kverbs" "modprobe kverbs" -- kverbs stat
	refused "why without the module" 3 "/dev/kverbs" "modprobe kverbs" -- kverbs why rxe0/17
	refused "hist without the module" 3 "/dev/kverbs" "modprobe kverbs" -- kverbs hist
fi
if ls /sys/class/infiniband/* >/dev/null 2>&1; then
	skip "without a device" "there is an RDMA device"
else
	refused "devices without a device" 5 "rdma link add" -- kverbs devices
	run kverbs devices --json
	is "in JSON it is an empty list" "$status $(tr -d ' \n' <"$work/out")" '5 {"devices":[]}'
fi
finish
