#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# cost.sh KERNEL: what the engine takes for a request over Soft-RoCE, from the post to its
# end, in instructions and in operations that lock the bus: a plugin of the machine counts
# every one, in batches of 16 and one by one. The counts repeat exactly, so that what is
# allowed has no slack: one more instruction in the post path is too many. "make bench"
# says where they are.
set -u
# shellcheck source=selftests/ktap.sh
. "$KVERBS_TOP/selftests/ktap.sh"

export KERNEL=$1
results=$KVERBS_OUT/results/engine-cost-$KERNEL
# As Debian 12's compiler makes it; what another makes may have a twentieth more.
compiler=12.2.0

# profile BATCH OPTION...: what selftests/bench_profile makes of it, in $results/BATCH.
profile() {
	local base requests name=$1
	shift
	"$KVERBS_TOP/selftests/vm/qemu" --icount --timeout 250 --load "kverbs kverbs_perf" \
		"--plugin=$results/insn_count.so,from=0xffffffffc0000000,to=0xffffffffc0800000,out=$results/counts" \
		--log "$results/kernel-$name.log" -- "$KVERBS_TOP/selftests/bench" --profile "$@" \
		>"$results/ran" 2>"$results/vehicle.log" && read -r base requests <"$results/ran" &&
		"$KVERBS_TOP/selftests/bench_profile" "$results/counts" \
			"$KVERBS_OUT/$KERNEL/modules/kverbs.ko" "$base" "$requests" >"$results/$name"
}

# at_most WHAT FOUND LIMIT
at_most() { check "$1: at most $3" awk "BEGIN { exit !($2 <= $3) }"; }

# costs BATCH INSTRUCTIONS LOCKED
costs() {
	local instructions locked
	read -r instructions locked < <(sed -n 's/^weighted.*: \([0-9.]*\) ins.* x \([0-9.]*\) lock.*/\1 \2/p' "$results/$1")
	echo "# batches of $1, a request: $instructions instructions, $locked locked operations"
	at_most "batches of $1, instructions" "${instructions:-inf}" "$(awk "BEGIN { print $2 * $slack }")"
	at_most "batches of $1, locked operations" "${locked:-inf}" "$3"
}

mkdir -p "$results"
"$KVERBS_TOP/scripts/modules" "$KERNEL" >/dev/null 2>&1 || {
	echo "Bail out! the modules do not build"
	exit 1
}
gcc -O2 -Wall -shared -fPIC -o "$results/insn_count.so" "$KVERBS_TOP/selftests/vm/insn_count.c" || exit
slack=1
[ "$(gcc -dumpfullversion)" = $compiler ] || slack=1.05
check "batches of 16 are counted" profile 16
check "batches of one are counted" profile 1 --depth 1
costs 16 113.8 0.125
costs 1 752.3 2
finish
