#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# What stat and hist show, against objects that kverbs_rows.ko makes up, so that
# every figure is known.
set -u
# shellcheck source=selftests/cli/common.sh
. "$(dirname "$0")/common.sh"

rows() { echo "$*" >/sys/module/kverbs_rows/parameters/command; }
# shellcheck disable=SC2317 # called by refused
as_nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }

refused "stat without a device" 5 "rdma link add" -- kverbs stat
refused "hist without a device" 5 "rdma link add" -- kverbs hist

rows device one
rows cq one
rows queue one
rows post one 1000
rows pop one
rows queue one
rows post one 24

shaped "stat" stat --not-empty -- kverbs stat --json
is "totals have the living and the departed" "$(json 'd["devices"][0]["counters"]["post_calls"]')" 1024
is "work requests" "$(json 'd["devices"][0]["counters"]["work_requests"]')" 16384
is "refusals" "$(json 'd["devices"][0]["counters"]["refused_full"]')" 1024
is "work requests per post call" "$(json 'd["devices"][0]["derived"]["requests_per_post"]')" 16.0
is "share that is signaled" "$(json 'd["devices"][0]["derived"]["signaled_share"]')" 0.0625
is "CQEs per request" "$(json 'd["devices"][0]["derived"]["cqes_per_request"]')" 0.0625
is "what cannot be derived is null" "$(json 'd["devices"][0]["derived"]["empty_poll_share"]')" None
is "a device that is not simulated" "$(json 'd["devices"][0]["simulated"]')" False

run kverbs stat --cqs
check "a completion queue's line" grep -qE '^one +3 +- +a cq +interrupt +512 +0 +- ' "$work/out"

shaped "stat --verbose" stat-verbose --not-empty -- kverbs stat one --verbose --json
is "counters of a queue" "$(json 'd["queues"][0]["counters"]["post_calls"]')" 24
is "its CQ" "$(json 'd["queues"][0]["cq"] == d["cqs"][0]["id"]')" True
is "its memory" "$(json 'd["queues"][0]["memory_bytes"], d["queues"][0]["slot_memory_bytes"]')" "(900, 4096)"
is "what its posts cost" "$(json 'd["queues"][0]["post_fixed_ns"], d["queues"][0]["post_request_ns"]')" "(120, 45.5)"
is "what is not known of its device" "$(json 'd["devices"][0]["post_fixed_ns"]')" None
run kverbs stat --verbose
check "cost of a post for people" grep -qE '^one +2 .* 120\+45\.5/WR +900 B' "$work/out"
check "memory for people" grep -qE '^one +2 .* 900 B +4\.00 KiB +16 B$' "$work/out"
check "the device's line" grep -qE '^one +1 +1 +1024 +16384 +16\.00 +6\.2% ' "$work/out"
check "no colour without a terminal" test -z "$(grep $'\033' "$work/out")"
run kverbs stat --queues
check "only queues if only they are wanted" test "$(grep -cE '^DEVICE' "$work/out")" -eq 2

shaped "stat that repeats" stat-rates --not-empty -- kverbs stat -i 0.3 -c 3 --json
is "one document a line" "$(wc -l <"$work/out")" 3
is "the interval" "$(json 'all(0.2 < x["interval_s"] < 30 for x in d)')" True
is "nothing happened" "$(json 'sum(x["devices"][0]["counters"]["post_calls"] for x in d)')" 0
(under_way; sleep 0.5; rows post one 500) &
run kverbs stat one -i 1 -c 3 --json
wait
is "what happened meanwhile, once" "$(json 'sum(x["devices"][0]["counters"]["post_calls"] for x in d)')" 500
is "rates are counts over time" \
	"$(json 'all(abs(x["devices"][0]["rates"]["bytes"] * x["interval_s"] - x["devices"][0]["counters"]["bytes"]) < 1 for x in d)')" True

run interrupted INT 1 kverbs stat -i 0.5
is "Ctrl-C ends it with success" "$status:$(cat "$work/err")" 0:
check "and what it had was printed" grep -q '^one ' "$work/out"
run interrupted TERM 0 kverbs stat -i 60
is "so does SIGTERM, at once" "$status" 0

shaped "hist" hist --not-empty -- kverbs hist --json
is "of both kinds" "$(json '[h["kind"] for h in d["histograms"]]')" "['post', 'complete']"
is "samples" "$(json '[h["count"] for h in d["histograms"]]')" "[1524, 24384]"
is "a median within 1/16" "$(json 'abs(d["histograms"][1]["p50_ns"] - 10000) <= 10000 / 16')" True
shaped "hist of a queue, of a kind" hist --not-empty -- kverbs hist one --qp 2 --kind post --json
is "its samples" "$(json 'd["histograms"][0]["count"], d["histograms"][0]["qp"], len(d["histograms"])')" "(524, 2, 1)"
run kverbs hist one --kind complete
check "hist for people" grep -qE '^one, post to completion: 24384 samples, p50 (9|10)\.[0-9]+ us' "$work/out"
check "with bars" grep -qE '^ +[0-9.]+ us \.\. +[0-9.]+ us +24384 \|@{50}\|$' "$work/out"

rows device two
run kverbs stat two --verbose
check "no queue is said to be none" grep -q '^No send queue of kverbs' "$work/out"
check "so is no completion queue" grep -q '^No completion queue of kverbs' "$work/out"
refused "an unknown device names the known" 5 "'three'" "one, two" -- kverbs stat three
refused "also in hist" 5 "'three'" "one, two" -- kverbs hist three
refused "a QP number that no queue has" 2 "77" "kverbs stat --queues" -- kverbs hist --qp 77
rows queue two
rows queue two
refused "a QP number of two queues" 2 "2" "one, two" -- kverbs hist --qp 2
shaped "unless the device is named" hist -- kverbs hist two --qp 2 --json
run kverbs stat --json
is "all devices without a name" "$(json '[x["name"] for x in d["devices"]]')" "['one', 'two']"
refused "no privilege" 4 "/dev/kverbs" "group rdma" -- as_nobody kverbs stat
chgrp 54321 /dev/kverbs
shaped "the group may look" stat -- setpriv --reuid=65534 --regid=54321 --clear-groups kverbs stat --json
chgrp 0 /dev/kverbs
run unshare --net kverbs stat -i 0.2 -c 1 --json
is "without the mapping it is the same" "$status $(json 'd["devices"][0]["name"]')" "0 one"

rows churn two
run kverbs stat two -i 0.5 -c 2 --json
is "queues that come and go count on" "$(json 'all(x["devices"][0]["counters"]["post_calls"] > 0 for x in d)')" True
rows rest
(under_way; sleep 0.5; rows hide two) &
refused "a device that leaves meanwhile" 6 "'two'" "kverbs devices" -- kverbs stat two -i 2 -c 1
wait
finish
