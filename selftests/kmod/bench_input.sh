#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Bad input: one line that names the value, the limit and the remedy, and an exit code
# of its own. Nothing is started.
set -u
cd "$(dirname "$0")" || exit
# shellcheck source=selftests/ktap.sh
. ../ktap.sh
# shellcheck source=selftests/kmod/bench_lib.sh
. ./bench_lib.sh

# refused STATUS PATTERN ARGUMENT...: that exit status, and one line that matches.
refused() {
	local want=$1 pattern=$2
	shift 2
	bench "$@"
	if [ "$status" -eq "$want" ] && [ "$(wc -l <"$work/err")" -eq 1 ] && [ ! -s "$work/json" ] &&
		grep -qE -- "$pattern" "$work/err"; then
		pass "bench $*"
	else
		fail "bench $*" "status $status, want $want and /$pattern/: $(cat "$work/err" "$work/json")"
	fi
}

most=$(kverbs bench --depth 4000000000 2>&1 | grep -oE 'at most [0-9]+' | tr -dc 0-9)
check "the limit of the depth is told" test -n "$most"

refused 5 "no RDMA device 'nosuch'.*there is: rxe0" --device nosuch
refused 2 '--depth 0 .*at least 1' --depth 0
refused 2 "--depth $((most + 1)) .*rxe0 takes at most $most" --depth $((most + 1))
refused 2 '--queues 0 .*at least 1' --queues 0
refused 2 '--queues 100000 .*at most [0-9]+' --queues 100000
refused 2 '--threads 0 .*at least 1' --threads 0
refused 2 '--threads 9 .*at most 8' --threads 9 --depth 4 --queues 2
refused 2 '--batch 0 .*at least 1' --batch 0
refused 2 '--rounds 0 .*at least 1' --rounds 0
refused 2 '--rounds 1000000 .*at most 100' --rounds 1000000
refused 2 '--iters 0 .*at least 1, or --seconds' --iters 0
refused 2 '--size 0 .*at least 1' --size 0
refused 2 '--size 2000000 .*at most 1048576' --size 2000000
refused 2 '--size 9000 .*MTU of rxe0 is [0-9]+.*--transport rc' --op send --transport ud --size 9000
refused 2 '--size 4 .*at least 8' --op send --size 4 --threads 2
refused 2 '--queues 200 .*--depth 10000 .*256 MiB' --queues 200 --depth 10000 --size 1024
refused 2 '--transport ud has no write.*--op send' --op write --transport ud
refused 2 '--transport ud has no rpc.*--op send' --op rpc --transport ud
refused 2 '--op rpc is posted by the engine kverbs.*--cq interrupt' --op rpc --engine raw
refused 2 '--op rpc is posted by the engine kverbs.*--cq interrupt' --op rpc --cq ib
refused 2 '--op rpc is posted by the engine kverbs.*--policy dynamic' --op rpc --policy four
refused 2 "'fly' is not known; there is write, read, send, rpc" --op fly
refused 2 "'fast' is not known; there is raw, chain, kverbs" --engine raw,fast
refused 2 "'nmi' is not known" --context nmi
refused 2 "'five' is not known; there is dynamic, each, four" --policy five
refused 2 "'always' is not known" --cq always
refused 2 '--seconds: 0 is out of range' --seconds 0
refused 2 'excludes' --seconds 1 --iters 10

# An unprivileged caller is told so, whether the file or the capability stops him.
chmod 666 /dev/kverbs_perf
if setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set -all \
	kverbs bench --iters 10 2>"$work/err"; then
	fail "no capability" "it ran"
else
	is "no capability: exit code" $? 4
fi
check "no capability: it is named" grep -q CAP_NET_ADMIN "$work/err"
chmod 600 /dev/kverbs_perf
setpriv --reuid 65534 --regid 65534 --clear-groups kverbs bench --iters 10 2>"$work/err"
is "no permission: exit code" $? 4
check "no permission: root is named" grep -q 'run the bench as root' "$work/err"

ip link set eth0 down
refused 5 'no port of rxe0 is active.*ip link set' --iters 10
ip link set eth0 up
check "after that it runs" kverbs bench --iters 10

rdma link del rxe0
refused 5 'no RDMA device on this host.*rdma link add' --iters 10
rdma link add rxe0 type rxe netdev eth0
rmmod kverbs_perf
refused 3 'modprobe kverbs_perf' --iters 10
insmod "$KVERBS_OUT/$KVERBS_KERNEL/modules/kverbs_perf.ko"
check "all is as it was" kverbs bench --iters 10
finish
