# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
#
# NVMe over RDMA from a machine to itself: the kernel's nvmet-rdma exports a null_blk disk
# at ADDRESS, the kernel's nvme-rdma connects to it. The disk is nvme_up's own and keeps
# what is written to it; nvme_down takes it away, so that the machine is as it was. Sourced
# inside a virtual machine only.

nvme_nqn=kverbs-test
nvme_target=/sys/kernel/config/nvmet
nvme_disk=/sys/kernel/config/nullb/nullb0

# A disk of 64 MiB, /dev/nullb0. Loaded without parameters the module makes one of that
# name, so it is loaded anew.
nvme_disk_up() {
	mountpoint -q /sys/kernel/config || mount -t configfs configfs /sys/kernel/config || return
	modprobe -r null_blk && modprobe null_blk nr_devices=0 || return
	mkdir "$nvme_disk" || return
	echo 64 >"$nvme_disk/size" && echo 1 >"$nvme_disk/memory_backed" && echo 1 >"$nvme_disk/power"
}

nvme_disk_down() {
	rmdir "$nvme_disk" && modprobe -r null_blk
}

# nvme_up ADDRESS [OPTION...]: prints the block device that nvme-rdma made; the options are
# those of "nvme connect".
nvme_up() {
	local subsystem=$nvme_target/subsystems/$nvme_nqn port=$nvme_target/ports/1 address=$1 i
	shift
	modprobe -a configfs nvmet_rdma nvme_rdma || return
	nvme_disk_up || return
	mkdir -p "$subsystem/namespaces/1" "$port" || return
	echo 1 >"$subsystem/attr_allow_any_host"
	echo /dev/nullb0 >"$subsystem/namespaces/1/device_path"
	echo 1 >"$subsystem/namespaces/1/enable" || return
	echo rdma >"$port/addr_trtype"
	echo ipv4 >"$port/addr_adrfam"
	echo "$address" >"$port/addr_traddr"
	echo 4420 >"$port/addr_trsvcid"
	ln -s "$subsystem" "$port/subsystems/$nvme_nqn" || return
	nvme connect -t rdma -a "$address" -s 4420 -n "$nvme_nqn" -i 2 "$@" >/dev/null || return
	for ((i = 0; i < 100; i++)); do
		[ ! -b /dev/nvme0n1 ] || break
		sleep 0.1
	done
	[ -b /dev/nvme0n1 ] && echo /dev/nvme0n1
}

nvme_down() {
	nvme disconnect -n "$nvme_nqn" >/dev/null
	rm -f "$nvme_target/ports/1/subsystems/$nvme_nqn"
	rmdir "$nvme_target/ports/1"
	echo 0 >"$nvme_target/subsystems/$nvme_nqn/namespaces/1/enable"
	rmdir "$nvme_target/subsystems/$nvme_nqn/namespaces/1" "$nvme_target/subsystems/$nvme_nqn"
	nvme_disk_down
}
