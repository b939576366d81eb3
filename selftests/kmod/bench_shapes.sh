#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# bench_shapes.sh [COUNT [SEED]]: depths, batches, queues, threads, sizes and numbers of
# requests that nobody would choose, all cases in one run, verified. Whatever the shape, a
# run ends, and everything in it is right. SEED repeats a choice.
set -u
cd "$(dirname "$0")" || exit
# shellcheck source=selftests/ktap.sh
. ../ktap.sh
# shellcheck source=selftests/kmod/bench_lib.sh
. ./bench_lib.sh
count=${1:-5}
RANDOM=${2:-42}

# pick VARIABLE WORD...: sets it to one of the words.
pick() {
	local -n variable=$1
	shift
	local words=("$@")
	# shellcheck disable=SC2034 # it is the caller's
	variable=${words[RANDOM % $#]}
}

# Sets $shape and $iters. What is sent between threads that share a queue has 8 bytes.
choose() {
	local op size transport=rc depth=$((RANDOM % 40 + 7)) threads=$((RANDOM % 7 + 1))
	pick op write read send send
	[ "$op" != send ] || pick transport rc ud
	pick size 8 9 63 64 65 511 1000 4099
	[ "$transport" = rc ] || pick size 8 9 65 1000
	iters=$((RANDOM % 400 + 1))
	shape=(--op "$op" --transport "$transport" --size "$size" --depth "$depth"
		--queues $((RANDOM % 5 + 1)) --threads "$threads" --batch $((RANDOM % 50 + 1))
		--iters "$iters" --rounds $((RANDOM % 3 + 1)))
}

for ((i = 0; i < count; i++)); do
	choose
	for cqs in ib,interrupt,poll hybrid,adaptive; do
		bench "${shape[@]}" --verify --cq $cqs --context process,bh,completion
		clean "verified, CQ $cqs: ${shape[*]}" "$iters"
	done
	bench "${shape[@]}" --policy dynamic,each,four
	clean "checked at its end: ${shape[*]}" "$iters"
done

bench --op write --size 1048576 --depth 3 --iters 20 --rounds 1 --verify
clean "messages of 1 MiB" 20
bench --op send --size 1 --depth 17 --iters 100 --rounds 1 --verify
clean "messages of one byte" 100
bench --op read --size 4097 --depth 600 --iters 700 --rounds 1 --verify
clean "more memory than one region takes" 700
bench --seconds 0.5 --rounds 2 --engine kverbs
holds "by time: it ends, with requests done" \
	'.error == null and all(.results[]; .requests > 0 and ([.ledger[]] | add) == 0)'
finish
