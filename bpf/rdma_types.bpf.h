/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The little that these programs know of the kernel's types.
 *
 * Each structure names only the members that are read. libbpf finds where they
 * really are in the BTF of the kernel that runs (CO-RE), so that one object
 * serves all of them and the build needs no kernel, no vmlinux.h.
 */
#ifndef _KVERBS_RDMA_TYPES_BPF_H
#define _KVERBS_RDMA_TYPES_BPF_H

#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>

#include <asm/ptrace.h>

#include <bpf/bpf_helpers.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

/*
 * The pure core asks by this name whether it is compiled for BPF. It comes after
 * libbpf's headers, which would take the registers' names from vmlinux.h.
 */
#define __VMLINUX_H__

#define __kernel_type __attribute__((preserve_access_index))

struct ib_qp;
struct ib_send_wr;
struct irq_poll;
struct work_struct;

struct ib_device_ops {
	int (*post_send)(struct ib_qp *qp, const struct ib_send_wr *wr,
			 const struct ib_send_wr **bad_wr);
} __kernel_type;

struct ib_device {
	struct ib_device_ops ops;
	char name[64];
	__u32 index;
} __kernel_type;

struct rdma_restrack_entry {
	const char *kern_name;
} __kernel_type;

struct ib_pd {
	struct rdma_restrack_entry res;
} __kernel_type;

/* Only where they are matters. */
struct irq_poll {
	int weight;
} __kernel_type;

struct work_struct {
	void *func;
} __kernel_type;

struct ib_cq {
	struct irq_poll iop;
	struct work_struct work;
} __kernel_type;

struct ib_qp {
	struct ib_device *device;
	struct ib_pd *pd;
	struct ib_cq *send_cq;
	__u32 qp_num;
} __kernel_type;

struct ib_sge {
	__u64 addr;
	__u32 length;
	__u32 lkey;
} __kernel_type;

/* Its values up to 16 are the ABI of uverbs. */
enum ib_wr_opcode {
	IB_WR_REG_MR = 0x20,
	IB_WR_REG_MR_INTEGRITY,
};

struct ib_send_wr {
	struct ib_send_wr *next;
	struct ib_sge *sg_list;
	int num_sge;
	enum ib_wr_opcode opcode;
	int send_flags;
} __kernel_type;

#endif /* _KVERBS_RDMA_TYPES_BPF_H */
