#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# A driver that was built without BTF, as drivers from outside of the kernel are: the
# tracer falls back to kprobes, says why, and counts as exactly.
# shellcheck disable=SC2119,SC2317 # functions that check() calls
set -u
# shellcheck source=selftests/bpf/common.sh
. "$(dirname "$0")/common.sh"

check "the driver leaves" rxe_down
modprobe -a udp_tunnel ip6_udp_tunnel crc32_generic # as modprobe would
stripped=$work/rdma_rxe.ko
original=$(modinfo -F filename rdma_rxe)
case $original in
*.xz) xz -dc "$original" >"$stripped" ;;
*) cp "$original" "$stripped" ;;
esac
check "a driver without BTF" objcopy -R .BTF "$stripped"
check "it is loaded" insmod "$stripped"
check "it has a device" rxe_up
trace_start || exit
count_start rxe_post_send
check "traffic" kverbs bench --iters 1000 --rounds 1 --context process --engine raw,chain
calls=$(count_end)
trace_end
is "it attaches by kprobe" "$(from_trace '[.attached.functions[] | .function, .method] | join(" ")')" "rxe_post_send kprobe"
is "and says why" "$(from_trace '.attached.functions[0].reason')" "module rdma_rxe was built without BTF"
is "calls equal those of another kprobe" "$(sum posts) 0" "$calls"
is "work requests" "$(sum work_requests '.opcode == "write"')" 2000
is "bytes" "$(sum bytes '.opcode == "write"')" 128000
is "a time for each" "$(sum latency.count)" "$(sum posts)"
no_losses "nothing was missed or lost"
is "the consumer" "$(from_trace '[.posts[].consumer] | unique | join(" ")')" kverbs_perf
shapes_are_counted
rdma link del rxe0
check "the driver can be unloaded" rmmod rdma_rxe
finish
