#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# The bench on a device that claims to register memory, of few pages or of none.
set -u
cd "$(dirname "$0")" || exit
# shellcheck source=selftests/ktap.sh
. ../ktap.sh
# shellcheck source=selftests/kmod/bench_lib.sh
. ./bench_lib.sh
pages=/sys/module/kverbs_bad_hca/parameters/pages

echo 0 >$pages
bench --iters 100
check "no page can be registered: refused" test "$status" -ne 0
check "in one line that names the device" grep -q '^kverbs: .*rxe0' "$work/err"
bench --op send --iters 100
clean "who registers nothing does not mind" 100
echo 16 >$pages
bench --iters 100 --size 4096 --depth 64
clean "a region of few pages serves" 100
finish
