#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# why: queues of the kverbs_engine module fail, each in a way of its own, and the cause is
# read from their records: of queues that are gone, of one that is there, and of one whose
# device has left.
set -u
# shellcheck source=selftests/cli/common.sh
. "$(dirname "$0")/common.sh"

debugfs=/sys/kernel/debug/kverbs_engine
held=/sys/module/kverbs_engine/parameters/hold

# fails PATTERN: the cases make queues fail; what they said is in $work/ktap.
fails() {
	echo "$1" >"$debugfs/run" && cp "$debugfs/ktap" "$work/ktap"
	if grep -q '^ok' "$work/ktap" && ! grep -q '^not ok' "$work/ktap"; then
		pass "the cases $1"
	else
		sed 's/^/# /' "$work/ktap"
		fail "the cases $1"
	fi
}

# qp_of NAME: number of the QP that a case noted.
qp_of() { sed -n "s/^# why $1 //p" "${2:-$work/ktap}" | tail -n 1; }

# cause NAME VALUE...: the record of the queue says that this failed first: kind, status or
# errno, position, opcode, payload, work requests in flight.
cause() {
	local name=$1
	run kverbs why "rxe0/$(qp_of "$name")" --json
	is "the cause of $name" "$(json "$first"'[str(c[k]) for k in ("kind", "status", "errno", "position", "opcode", "bytes", "in_flight") if c[k] is not None]')" \
		"['$(printf '%s' "${*:2}" | sed "s/ /', '/g")']"
}
first='(c := d["records"][0]["cause"]) and '

# told WHAT EXPRESSION VALUE: what the record that was read last says.
told() { is "$1" "$(json "(e := d['records'][0]['events']) is None or $2")" "$3"; }

causes_of() { # kind of CQ
	local status
	fails "why_[a-gi-z]*/$1"
	for status in rem_access_err loc_len_err rnr_retry_exc_err retry_exc_err; do
		cause $status cqe $status 4 read 16 4
	done
	cause wrapped cqe rem_op_err 100 write 8 1
	told "32 posts and 32 CQEs are kept, the last of them" \
		'[[x["position"] for x in e if x["type"] == t] == list(range(69, 101)) for t in ("flush", "cqe")]' "[True, True]"
	cause refused refused EINVAL 1 write 8 3
	told "the post that was refused is there, and nothing came later" \
		'([x["errno"] for x in e if x["type"] == "flush"][0], d["records"][0]["later"])' "('EINVAL', None)"
	cause later refused EINVAL 1 write 8 3
	told "what ended the service is told of, too" \
		'[d["records"][0]["later"][k] for k in ("kind", "status", "position")]' "['cqe', 'rem_access_err', 3]"
	cause in_doubt in_doubt EINVAL 1 write 24 3
	cause tail refused EINVAL 2 write 8 3
	told "a tail that could not be closed" \
		'[d["records"][0]["later"][k] for k in ("kind", "position", "in_flight")]' "['tail', 0, 3]"
	cause cqe_missing cqe_missing 1 write 8 2
	told "it was waited for" 'd["records"][0]["cause"]["age_ns"] >= 1e9' True
	cause drain drain 1 write 8 3
	cause flushed flushed wr_flush_err 0 write 8 3
	cause recovered cqe loc_prot_err 1 send 8 1
	told "what failed before it worked again is kept" '[r["cause"]["status"] for r in d["records"]]' \
		"['loc_prot_err', 'loc_len_err']"
}

# What else a record says of a queue.
details() {
	cause retry_exc_err cqe retry_exc_err 4 read 16 4
	told "vendor error, state of the QP, receives" \
		'[d["records"][0]["cause"][k] for k in ("vendor_err", "qp_state", "receives")]' "[66, 'err', 0]"
	told "ages are known" '(0 < (c := d["records"][0]["cause"])["age_ns"] <= c["oldest_ns"] < 600e9)' True
	told "the account names all of it" \
		'all(x in d["records"][0]["cause"]["account"] for x in ("read of 16 B", "position 4", "retry_exc_err", "0x42", "did not answer"))' True
	told "the posts" \
		'[(x["position"], x["work_requests"], x["signaled"], x["bytes"], x["opcode"], x["errno"]) for x in e if x["type"] == "flush"]' \
		"[(0, 1, 1, 8, 'write', None), (1, 1, 1, 8, 'write', None), (2, 1, 1, 8, 'write', None), (3, 3, 1, 32, 'write', None), (6, 1, 1, 8, 'write', None)]"
	told "the completions, that which failed last" \
		'[(x["position"], x["retired"], x["status"]) for x in e if x["type"] == "cqe"]' \
		"[(0, 1, 'success'), (1, 1, 'success'), (2, 1, 'success'), (4, 2, 'retry_exc_err')]"
	told "all in the order of time, up to the failure" \
		'[x["time_ns"] for x in e] == sorted(x["time_ns"] for x in e) and e[-1]["type"] == "cqe"' True
	told "on the clock that it names" '0 <= d["records"][0]["time_ns"] - e[0]["time_ns"] < 600e9' True
	told "the queue is gone" '(d["records"][0]["state"], d["records"][0]["gone_ns"] <= d["records"][0]["time_ns"])' "('gone', True)"
	run kverbs why rxe0 --json
	is "what ended clean is not kept" "$(json "[r['qp'] for r in d['records'] if r['qp'] == $(qp_of clean)]")" "[]"
}

# said PATTERN: waits until the case that runs has said that.
said() {
	local tries=0
	until grep -q "$1" "$debugfs/ktap" || [ "$tries" -gt 300 ]; do
		tries=$((tries + 1))
		sleep 0.1
	done
}

while_it_is_there() {
	local case qp
	echo 1 >"$held"
	echo why_held/interrupt >"$debugfs/run" &
	case=$!
	said '^# why held '
	qp=$(qp_of held "$debugfs/ktap")
	shaped "why of a queue that works" why -- kverbs why "rxe0/$qp" --json
	is "nothing has failed" "$(json 'd["records"][0]["cause"], d["records"][0]["state"], d["records"][0]["depth"]')" \
		"(None, 'live', 8)"
	is "what it did is there" "$(json '[(e["type"], e["position"]) for e in d["records"][0]["events"]]')" \
		"[('flush', 0), ('flush', 1), ('flush', 2)]"
	run kverbs why "rxe0/$qp"
	check "for people" grep -q '^nothing has failed' "$work/out"
	echo 2 >"$held"
	said '^# why failed '
	shaped "why of a queue that failed" why --not-empty -- kverbs why "rxe0/$qp" --json
	is "its cause" "$(json 'd["records"][0]["cause"]["status"], d["records"][0]["state"]')" "('rem_access_err', 'failed')"
	run kverbs why "rxe0/$qp"
	check "one sentence first" grep -qE '^the write of 8 B at position 3 failed with rem_access_err \(vendor error 0x42\), [0-9.]+ [a-z]+ after its post: .*, [0-9.]+ [a-z]+ ago\.$' "$work/out"
	check "then how it was" grep -qE '^In flight: 1 of 8 work requests, the oldest for .* Receives claimed: 0\. QP state: not asked\.$' "$work/out"
	tail -n 1 "$work/out" >"$work/last"
	check "then what was done, the newest last" grep -qE ' cqe +3 +write .* rem_access_err 0x42$' "$work/last"
	echo 0 >"$held"
	wait "$case"
}

[ -w "$debugfs/run" ] || { echo "Bail out! the kverbs_engine module is not loaded"; exit 1; }
shaped "why where nothing was" why-list -- kverbs why --json
is "lists nothing" "$(json 'd["records"]')" "[]"
causes_of interrupt
details
while_it_is_there
causes_of softirq

shaped "why of a device" why-list --not-empty -- kverbs why rxe0 --json
is "the last 16 are kept" "$(json 'len(d["records"])')" 16
is "the newest first" "$(json 'd["records"][0]["qp"]')" "$(qp_of recovered)"
run kverbs why rxe0
check "a line for each" grep -qE "^rxe0/$(qp_of retry_exc_err) +kverbs_engine +gone +[0-9.]+ [a-z]+ ago +the read of 16 B at position 4 failed with retry_exc_err" "$work/out"

refused "a queue that never was" 2 "77777" "kverbs why rxe0" -- kverbs why rxe0/77777
refused "an unknown device" 5 "'rxe1'" "rxe0" -- kverbs why rxe1
refused "also with a queue" 5 "'rxe1'" "rxe0" -- kverbs why rxe1/17

rdma dev set rxe0 name another
run kverbs why another --json
is "the records of a device that is renamed go with it" "$(json 'len(d["records"])')" 16
rdma dev set another name rxe0

# The device leaves with work in flight; the record stays.
echo life_unplug_late/softirq >"$debugfs/run" &
case=$!
said 'unplug the device now'
rdma link del rxe0
wait "$case"
run kverbs why rxe0 --json
is "a device that left" "$(json '[d["records"][0]["cause"][k] for k in ("kind", "position", "in_flight")]')" "['device_gone', 0, 5]"
is "is known by its records" "$(json 'len(d["records"])')" 16
run unshare --net kverbs why --json
is "but not in another network namespace" "$(json 'd["records"]')" "[]"
finish
