#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# engine_modules.sh: the modules come and go, again and again, and not while they are used.
# shellcheck disable=SC2317 # called by name
set -eu
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/../ktap.sh"
modules=$KVERBS_OUT/$KVERBS_KERNEL/modules

fails() { ! "$@" 2>/dev/null; }
said() { dmesg | grep -q "$1"; }

used() {
	"$(dirname "$0")/engine.sh" 200 'c1_random/interrupt' 'c1_random/poll' >/dev/null &&
		rmmod kverbs_engine && rmmod kverbs
}

# once: load both, use them, unload both.
once() { insmod "$modules/kverbs.ko" && insmod "$modules/kverbs_engine.ko" && used; }

check "kverbs is not unloaded while its user is there" fails rmmod kverbs
"$(dirname "$0")/engine.sh" 100 'c12_lost/interrupt' >/dev/null &
until [ "$(cat /sys/module/kverbs_engine/refcnt)" -gt 0 ]; do sleep 0.1; done
check "nor its user while a case runs" fails rmmod kverbs_engine
wait $! || true
rmmod kverbs_engine
rmmod kverbs
for i in 1 2 3 4 5 6 7 8; do
	check "loaded, used and unloaded, time $i" once
done
rdma link del rxe0
check "loaded without any RDMA device" insmod "$modules/kverbs.ko"
check "which it says" said 'kverbs: loaded; there is no RDMA device yet'
rdma link add rxe0 type rxe netdev eth0
check "a device that comes later is served" insmod "$modules/kverbs_engine.ko"
check "and can be used, then unloaded" used
finish
