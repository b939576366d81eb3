#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Who posts: NVMe over RDMA, both ends of it, the bench and a user's program are told
# apart in one trace.
# shellcheck disable=SC2016,SC2119,SC2317 # jq's variables; functions that check() calls
set -u
# shellcheck source=selftests/bpf/common.sh
. "$(dirname "$0")/common.sh"
# shellcheck source=scripts/lib/nvme.sh
. "$KVERBS_TOP/scripts/lib/nvme.sh"

writes=500
iterations=300

fio_write() {
	fio --name=t --filename="$1" --rw=write --bs=4k --iodepth=8 --ioengine=libaio --direct=1 \
		--number_ios="$writes" --size=64m >"$work/fio.out" 2>&1
}

posts_now() { awk '$1 == "calls" { print $2 }' "$tracefs/kprobe_profile"; }

# Until nobody posts any more.
settle() {
	local before
	count_start rxe_post_send
	while before=$(posts_now) && sleep 1 && [ "$before" != "$(posts_now)" ]; do :; done
	count_end >/dev/null
}

# No keep-alive may fall between the beginning of one count and that of the other.
disk=$(nvme_up 192.168.77.1 --keep-alive-tmo=3600) || { fail "NVMe over RDMA comes up" "$(dmesg | tail -n 3)" && finish; }
settle
trace_start || exit
count_start rxe_post_send
check "fio writes" fio_write "$disk"
check "a user's program posts" perftest ib_send_bw $iterations
check "the bench posts" kverbs bench --engine raw --iters 200 --rounds 1 --json
calls=$(count_end)
trace_end
nvme_down

is "calls equal those of a kprobe in the same window" "$(sum posts) 0" "$calls"
no_losses "nothing was missed or lost"
for consumer in nvme_rdma nvmet_rdma kverbs_perf; do
	holds "$consumer is a kernel caller" "[.posts[] | select(.consumer == \"$consumer\") |
		.caller == \"kernel\" and .pid == null] | length > 0 and all"
done
holds "ib_send_bw is a user" '[.posts[] | select(.consumer == "ib_send_bw") |
	.caller == "user" and .pid > 1 and .opcode == "unknown" and .work_requests == 0] | length > 0 and all'
is "each of its posts is a call" "$(sum posts '.consumer == "ib_send_bw"')" $iterations
# Each post sends one command of 64 bytes. The data of a small write rides with it, behind
# a second SGE.
is "bytes behind the first SGE are counted" "$(from_trace '[.posts[] | select(.consumer == "nvme_rdma") |
	select(.opcode == "send" or .opcode == "reg_mr") | .bytes - 64 * .posts] | add')" $((writes * 4096))
holds "nvmet_rdma answers as many" "[.posts[] | select(.consumer == \"nvmet_rdma\") |
	select(.opcode | startswith(\"send\")) | .posts] | add >= $writes"

trace_start --consumer nvme-rdma --by consumer || exit
disk=$(nvme_up 192.168.77.1)
nvme_down
trace_end
is "--consumer takes the name as people write it" "$(from_trace '[.posts[].consumer] | join(" ")')" nvme_rdma
holds "--by leaves the other keys out" '.posts[0] | (has("device") or has("opcode") or has("caller")) | not'
finish
