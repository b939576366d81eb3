#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# ep.sh DRIVER COUNT PATTERN...: cases of the kverbs_engine module on a device of that
# driver (rxe, kverbs_sim): pools of buffers (buf_*), endpoints (ep_*), moderated events
# (moderate_*), calls of the driver that fail (driver_*), many queues (many_*). Each
# allocation that a case asks for can be made to fail.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=selftests/sim/common.sh
. "$here/../sim/common.sh"
[ $# -ge 3 ] || { echo "Bail out! usage: ep.sh DRIVER COUNT PATTERN..."; exit 2; }
parameters=/sys/module/kverbs_engine/parameters

for knob in failslab fail_page_alloc; do
	[ -d "/sys/kernel/debug/$knob" ] || continue
	echo N >"/sys/kernel/debug/$knob/ignore-gfp-wait"
	echo 0 >"/sys/kernel/debug/$knob/verbose"
done
case $1 in
rxe) device=rxe0 ;;
kverbs_sim) device=sim0 && sim_up sim0 dummy0 10.9.0.1/24 ;;
*) echo "Bail out! no such driver: '$1' (there are rxe, kverbs_sim)" && exit 2 ;;
esac
# A string parameter keeps a new line.
printf %s "$device" >"$parameters/device"
shift
status=0
"$here/engine.sh" "$@" || status=$?
printf rxe0 >"$parameters/device"
[ "$device" = rxe0 ] || rdma link del "$device"
exit "$status"
