#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# engine_faults.sh: each allocation in the creation of a CQ and of a queue fails in turn.
set -eu
for knob in failslab fail_page_alloc; do
	[ -d "/sys/kernel/debug/$knob" ] || continue
	echo N >"/sys/kernel/debug/$knob/ignore-gfp-wait"
	echo 0 >"/sys/kernel/debug/$knob/verbose"
done
exec "$(dirname "$0")/engine.sh" 1000 'life_no_memory/*'
