# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
#
# For tests of the tracer: starts it, ends it, and looks at what it found. Sourced.
# shellcheck source=selftests/cli/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/common.sh"
# shellcheck disable=SC2034 # for shaped() of that file
shapes=$KVERBS_TOP/selftests/bpf/shapes

tracefs=/sys/kernel/tracing
mode=latency
result=$work/trace.json

# until_true COMMAND...: for up to a minute.
until_true() {
	local i
	for ((i = 0; i < 600; i++)); do
		if "$@" >/dev/null 2>&1; then return 0; fi
		sleep 0.1
	done
	echo "# not within a minute: $*"
	return 1
}

# shellcheck disable=SC2120 # the options are for those that need them
# trace_start [OPTION...]: returns when all programs are in place.
trace_start() {
	rm -f "$result"
	kverbs trace "$mode" --output "$result" "$@" >"$work/trace.out" 2>"$work/trace.err" &
	tracer=$!
	until_true grep -q . "$work/trace.out" || { cat "$work/trace.err" && return 1; }
}

# trace_end: as Ctrl-C; the status is that of the command.
trace_end() {
	kill -INT "$tracer"
	wait "$tracer"
}

# from_trace FILTER: of jq, on what the tracer wrote.
from_trace() { jq -r "$1" "$result"; }

# holds NAME FILTER: one case: a filter of jq is true of what the tracer wrote.
holds() { is "$1" "$(from_trace "$2")" true; }

# sum FIELD [CONDITION]: over the rows of the result that meet the condition.
sum() { from_trace "[.posts[] | select(${2-true}) | .$1] | add // 0"; }

# A kprobe of the kernel's own counts the calls of a function, in the same window.
count_start() { # FUNCTION
	echo "p:kverbs_test/calls $1" >>"$tracefs/kprobe_events"
	echo 1 >"$tracefs/events/kverbs_test/calls/enable"
}

# Prints "hits misses".
count_end() {
	awk '$1 == "calls" { print $2, $3 }' "$tracefs/kprobe_profile"
	echo 0 >"$tracefs/events/kverbs_test/calls/enable"
	echo "-:kverbs_test/calls" >>"$tracefs/kprobe_events"
}

# Without Soft-RoCE, as it is on a host whose driver is not loaded.
rxe_down() { rdma link del rxe0 && modprobe -r rdma_rxe; }

# A device rxe0 where the machine has none.
rxe_up() {
	modprobe -a virtio_net ib_uverbs
	ip addr replace 192.168.77.1/24 dev eth0
	ip link set eth0 up
	rdma link add rxe0 type rxe netdev eth0
}

# no_losses NAME: the tracer says that it saw everything.
no_losses() {
	is "$1" "$(from_trace '.lost | [.calls, .returns, .unmatched, .keys] | map(tostring) | join(" ")')" "0 0 0 0"
}

listening() { ss -ltnH "sport = $1" | grep -q .; }

# perftest PROGRAM ITERATIONS: a user's process on each end.
perftest() {
	local server
	"$1" -d rxe0 -x 1 -n "$2" -s 64 >"$work/server.out" 2>&1 &
	server=$!
	until_true listening 18515
	if ! timeout 60 "$1" -d rxe0 -x 1 -n "$2" -s 64 127.0.0.1 >"$work/client.out" 2>&1; then
		sed 's/^/# | /' "$work/server.out" "$work/client.out"
		kill "$server"
	fi
	wait "$server"
}

# posts OPTION...: the module kverbs_posts posts; what it says goes to $work/posts.
posts() {
	dmesg -C
	insmod "$KVERBS_OUT/$KVERBS_KERNEL/modules/kverbs_posts.ko" "$@" && rmmod kverbs_posts || return
	dmesg | sed -n 's/.*kverbs_posts: //p' >"$work/posts"
}

# In the tracer's result: posts, work requests, signaled, inline, bytes of an opcode.
by_opcode() {
	from_trace "[.posts[] | select(.consumer == \"kverbs_posts\" and .opcode == \"$1\") |
		[.posts, .work_requests, .signaled, .inline, .bytes]] | transpose | map(add | tostring) | join(\" \")"
}

# Posts of every shape, in numbers that only a tracer that looks at each gets right.
shapes_are_counted() {
	local op numbers
	# shellcheck disable=SC2119
	trace_start || return
	check "posts of every shape" posts rounds=20
	trace_end
	while read -r op numbers; do
		case $op in
		tso | masked_cmp_swp) # chain or SGL longer than is looked at
			is "$op: what was not looked at is told" "$(sum truncated ".opcode == \"$op\"")" "${numbers%% *}"
			is "$op: calls" "$(sum posts ".opcode == \"$op\"")" "${numbers%% *}"
			;;
		*) is "$op: calls, work requests, signaled, inline, bytes" "$(by_opcode "$op")" "$numbers" ;;
		esac
	done <"$work/posts"
	is "nothing else is truncated" "$(sum truncated '.opcode != "tso" and .opcode != "masked_cmp_swp"')" 0
	no_losses "posts of every shape: nothing was missed or lost"
}

# What BPF left in the kernel: programs, maps, links.
bpf_objects() {
	echo "$(bpftool -j prog | jq length) $(bpftool -j map | jq length) $(bpftool -j link | jq length)"
}
