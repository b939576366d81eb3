#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# devices with a Soft-RoCE device, with the module or without, and stat and hist on a
# device that nobody uses.
set -u
# shellcheck source=selftests/cli/common.sh
. "$(dirname "$0")/common.sh"

module=
[ ! -e /dev/kverbs ] || module=1

shaped "devices" "devices${module:+}$([ -n "$module" ] || echo -no-module)" --not-empty -- kverbs devices --json
is "name, driver and netdev" \
	"$(json '[(x["name"], x["driver"], x["ports"][0]["netdev"], x["ports"][0]["state"]) for x in d["devices"]]')" \
	"[('rxe0', 'rdma_rxe', 'eth0', 'ACTIVE')]"
run kverbs devices
check "for people" grep -qE '^rxe0 +CA +rdma_rxe +1 +ACTIVE +Ethernet +eth0 ' "$work/out"

if [ -n "$module" ]; then
	shaped "stat" stat -- kverbs stat rxe0 --json
	is "nothing was posted" "$(json 'd["devices"][0]["counters"]["post_calls"]')" 0
	shaped "hist" hist -- kverbs hist rxe0 --json
	is "no samples" "$(json '[h["count"] for h in d["histograms"]]')" "[0, 0]"
	refused "an unknown device" 5 "'rxe1'" "rxe0" -- kverbs stat rxe1
	(under_way; sleep 0.5; rdma link del rxe0) &
	refused "the device leaves while it is looked at" 6 "'rxe0'" -- kverbs stat rxe0 -i 0.2
	wait
	refused "no device any more" 5 "rdma link add" -- kverbs stat
else
	refused "stat without the module" 3 "modprobe kverbs" -- kverbs stat rxe0
fi
finish
