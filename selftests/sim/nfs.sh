#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# nfs.sh [SEED]: NFS over RDMA, the kernel's server and its client, over a simulated HCA
# whose judge is strict. What is written is what is read, also while the HCA does what a bad
# day brings.
#
# A finding: an idle xprtrdma client does leave its last requests silent. It signals one SEND
# of a batch, or one that has pages to unmap, and has made room for the batch that may stay:
# nothing is lost, but what those requests pin is given back only by the next ones, or when
# the connection ends. So the rule silent_tail is not for it, and is asked about apart.
# shellcheck disable=SC2317 # functions that check() calls
set -u
cd "$(dirname "$0")" || exit
# shellcheck source=selftests/ktap.sh
. ../ktap.sh
# shellcheck source=selftests/sim/common.sh
. ./common.sh
# shellcheck source=selftests/sim/fault_lib.sh
. ./fault_lib.sh
# shellcheck source=selftests/sim/fio_lib.sh
. ./fio_lib.sh

seed=${1-$RANDOM}
address=10.9.0.1
judge=$config/sim0/judge
export_dir=$work/export
mount_dir=$work/mount
target=$mount_dir/data
echo "# seed $seed"

# answer CACHE LINE: what rpc.mountd would answer when the kernel asks.
answer() { printf '%s\n' "$2" >"/proc/net/rpc/$1/channel"; }

# A tmpfs is the root of what is exported: to one client, from any port, with root as root.
server_up() {
	local until insecure=0x4 async=0x10 no_subtree_check=0x400 fsid=0x2000
	mkdir -p "$export_dir" "$mount_dir"
	mount -t tmpfs -o size=160m tmpfs "$export_dir" || return
	mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd || return
	until=$(($(date +%s) + 3600))
	answer auth.unix.ip "nfsd $address $until kverbs"
	answer auth.unix.gid "0 $until 0"
	answer nfsd.export "kverbs $export_dir $until $((insecure | async | no_subtree_check | fsid)) 65534 65534 0"
	answer nfsd.fh "kverbs 1 \\x00000000 $until $export_dir"
	echo "-3 +4" >/proc/fs/nfsd/versions
	# Nobody has files to reclaim; a kernel that does not track clients waits all the same.
	echo 10 >/proc/fs/nfsd/nfsv4gracetime
	echo "rdma 20049" >/proc/fs/nfsd/portlist || return
	echo 4 >/proc/fs/nfsd/threads || return
	echo Y 2>/dev/null >/proc/fs/nfsd/v4_end_grace || :
}

server_down() {
	local cache i
	echo 0 >/proc/fs/nfsd/threads
	for cache in auth.unix.ip auth.unix.gid nfsd.fh nfsd.export; do
		date +%s >/proc/net/rpc/"$cache"/flush
	done
	# What the server had open is closed in its own time.
	for ((i = 0; i < 50; i++)); do
		umount "$export_dir" 2>/dev/null && break
		sleep 0.1
	done
	! mountpoint -q "$export_dir" && umount /proc/fs/nfsd
}

# Not by mount.nfs, which is in a package of its own.
client_up() {
	mount -i -t nfs4 -o "vers=4.2,proto=rdma,port=20049,addr=$address,clientaddr=$address" \
		"$address:/" "$mount_dir"
}

# Through the page cache in the large sizes that NFS makes of it, and by names: long replies.
files_are_the_same() {
	head -c 16M /dev/urandom >"$work/random"
	cp "$work/random" "$mount_dir/random" && sync "$mount_dir/random" || return
	umount "$mount_dir" && client_up || return
	cmp "$work/random" "$mount_dir/random" && cmp "$work/random" "$export_dir/random"
}

names_are_the_same() {
	local i
	mkdir "$mount_dir/names"
	for ((i = 0; i < 300; i++)); do : >"$mount_dir/names/a-rather-long-name-of-a-file-$i"; done
	ln -s "$(printf '%04000d' 0)" "$mount_dir/names/link" || return
	umount "$mount_dir" && client_up || return
	[ "$(ls "$mount_dir/names")" = "$(ls "$export_dir/names")" ] &&
		[ "$(readlink "$mount_dir/names/link")" = "$(readlink "$export_dir/names/link")" ]
}

# An idle client ends with a silent request sooner or later.
tail_is_silent() {
	local i
	for ((i = 0; i < 50; i++)); do
		stat -f "$mount_dir" >/dev/null
		sleep 0.1
		[ "$(cat "$judge/silent_tail")" = 0 ] || return 0
	done
	return 1
}

if ! modprobe -a nfsd nfsv4 rpcrdma 2>/dev/null; then
	skip "NFS over a simulated HCA" "this kernel has no NFS over RDMA"
	finish
fi
sim_up sim0 dummy0 $address/24 || exit
echo 1 >$config/sim0/strict
echo 3600000 >"$judge/silent_tail_ms"
check "the server comes up" server_up
check "the client mounts" client_up
check "over RDMA" grep -q " $mount_dir nfs4 .*proto=rdma" /proc/mounts
check "fio verifies what it wrote" verified 300
check "files are the same" files_are_the_same
check "names are the same" names_are_the_same
is "no error" "$(sim_count sim0 send_errors)" 0
is "svcrdma and xprtrdma break no rule" "$(rules_broken)" ""
echo 0 >$config/sim0/strict
echo 50 >"$judge/silent_tail_ms"
check "but that xprtrdma leaves a silent tail" tail_is_silent
echo 3600000 >"$judge/silent_tail_ms"

survives "late CQEs" kind=cqe_late probability_ppm=20000 count_hits=0 delay_ns=2000000
survives "RNR" kind=rnr probability_ppm=10000 count_hits=0
survives "READs overtaken" kind=read_overtaken probability_ppm=300000 count_hits=0
survives "an error of a SEND" kind=error opcode=send status=retry_exc_err after_hits=300
survives "an error of a READ" kind=error opcode=read status=rem_access_err after_hits=10
survives "an error of a WRITE" kind=error opcode=write status=rem_access_err after_hits=100
survives "an error of a REG_MR" kind=error opcode=reg_mr status=loc_qp_op_err after_hits=100
check "fio verifies what it wrote after all that" verified 400

check "the client unmounts" umount "$mount_dir"
check "the server goes down" server_down
check "the device leaves" rdma link del sim0
finish
