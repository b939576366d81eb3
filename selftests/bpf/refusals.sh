#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# What kverbs trace cannot do it says in a line, with an exit code of its own.
# shellcheck disable=SC2016,SC2119,SC2120 # jq's variables; refused() calls latency
set -u
# shellcheck source=selftests/bpf/common.sh
. "$(dirname "$0")/common.sh"

check "the driver leaves" rxe_down

latency() { kverbs trace latency --duration 1 "$@"; }

refused "no driver: exit code 5" 5 "no RDMA driver is loaded" -- latency
refused "no such device: exit code 5" 5 "mlx5_9" -- latency --device mlx5_9
refused "no such opcode: exit code 2" 2 "'rite'" "write" -- latency --opcode rite
refused "no such key: exit code 2" 2 "'qp'" "consumer" -- latency --by qp
refused "no time: exit code 2" 2 "--duration" "0" -- latency --duration 0
refused "an interval that is no number: exit code 2" 2 "'soon'" -- latency -i soon
refused "nothing said: exit code 2" 2 "" -- kverbs trace

# Drivers load without their hardware.
hardware=(mlx5_ib mlx4_ib irdma)
modprobe -a "${hardware[@]}"
refused "drivers, but no device: exit code 5" 5 "${hardware[@]}" "none has a device" -- latency

rxe_up
check "with a device it traces" latency --output "$result"
is "it attaches where the device posts" "$(from_trace '[.attached.functions[] | .function, .method] | join(" ")')" \
	"rxe_post_send fentry"
for module in "${hardware[@]}"; do
	holds "$module is a candidate, not attached" \
		"[.attached.candidates[] | select(.module == \"$module\")] | length > 0"
done
latency >"$work/out"
check "and says so" grep -q '^mlx5_ib_post_send_nodrain \[mlx5_ib\]: candidate, no device uses it$' "$work/out"
refused "a file that cannot be written: exit code 1" 1 "/nowhere/x" -- latency --output /nowhere/x
refused "no privilege: exit code 4" 4 "root" "CAP_BPF" -- \
	setpriv --reuid=65534 --clear-groups -- "$(command -v kverbs)" trace latency --duration 1

check "the driver leaves again" rxe_down
modprobe -r "${hardware[@]}"
refused "the driver gone again: exit code 5" 5 "no RDMA driver is loaded" -- latency
finish
