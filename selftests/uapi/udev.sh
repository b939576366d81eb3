#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# The udev rule gives /dev/kverbs to the group rdma, to read.
set -u
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/../ktap.sh"

name="the group rdma may read the device"
if ! command -v udevadm >/dev/null; then
	skip "$name" "no udevadm"
elif ! getent group rdma >/dev/null; then
	skip "$name" "no group rdma"
else
	mkdir -p /run/udev/rules.d
	cp "$KVERBS_TOP/scripts/70-kverbs.rules" /run/udev/rules.d/
	udevadm test --action=add /sys/class/misc/kverbs >/dev/null 2>&1
	is "$name" "$(stat -c '%U %G %a' /dev/kverbs)" "root rdma 640"
fi
finish
