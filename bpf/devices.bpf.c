// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Which functions the registered RDMA devices post with.
 *
 * The kernel tells nobody. But when a device is asked for by its index over RDMA
 * netlink, ib_device_get_by_index() returns it, and a program on that return sees
 * the device's operations. The loader asks for one device after the other.
 */
#include "rdma_types.bpf.h"

#include "devices.h"

char LICENSE[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, KVERBS_DEVICES_MAX);
	__type(key, __u32);
	__type(value, struct kverbs_device_ops);
} devices SEC(".maps");

/* Too large for the stack. */
static struct kverbs_device_ops blank;

static __always_inline int record(struct ib_device *device)
{
	struct kverbs_device_ops *ops;
	__u64 post_send;
	__u32 index;

	if (!device)
		return 0;
	index = BPF_CORE_READ(device, index);
	bpf_map_update_elem(&devices, &index, &blank, BPF_ANY);
	ops = bpf_map_lookup_elem(&devices, &index);
	if (!ops)
		return 0;
	BPF_CORE_READ_STR_INTO(&ops->name, device, name);
	/* Not through /proc/kallsyms, which may hide addresses even from root. */
	post_send = (__u64)BPF_CORE_READ(device, ops.post_send);
	BPF_SNPRINTF(ops->post_send, sizeof(ops->post_send), "%ps", (void *)post_send);
	return 0;
}

SEC("fexit/ib_device_get_by_index")
int BPF_PROG(fexit_get_device, const void *net, __u32 index, struct ib_device *device)
{
	return record(device);
}

SEC("kretprobe/ib_device_get_by_index")
int BPF_KRETPROBE(kretprobe_get_device, struct ib_device *device)
{
	return record(device);
}
