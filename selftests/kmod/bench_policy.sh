#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# bench_policy.sh COUNT: what a queue posts together, by its policy. With four, nothing is
# left unposted, whoever posts and however many are out. COUNT is a multiple of 16.
set -u
cd "$(dirname "$0")" || exit
# shellcheck source=selftests/ktap.sh
. ../ktap.sh
# shellcheck source=selftests/kmod/bench_lib.sh
. ./bench_lib.sh

count=$1
policies=(--engine kverbs --policy "dynamic,each,four" --iters "$count" --verify)

bench "${policies[@]}" --batch 16
clean "batches of 16: all requests are right" "$count"
holds "dynamic posts them at once" ".results[0].post_calls * 16 == $count"
holds "each posts them one by one" ".results[1].post_calls == $count"
holds "four posts them by fours" ".results[2].post_calls * 4 == $count"
holds "whatever is posted together asks for one CQE" \
	'all(.results[]; .cqes <= .post_calls)'

for depth in 1 3 8 33; do
	bench "${policies[@]}" --rounds 1 --depth $depth --batch 1 --cq ib,interrupt --context process,completion
	clean "depth $depth: all requests are right" "$count"
done
bench "${policies[@]}" --rounds 1 --threads 3 --depth 30 --context process,completion
clean "three threads on a queue: all requests are right" "$count"
finish
