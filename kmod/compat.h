/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What older kernels lack or call otherwise, under the newest kernel's names. The
 * only file that asks for a kernel's version.
 */
#ifndef _KVERBS_COMPAT_H
#define _KVERBS_COMPAT_H

#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline void vm_flags_clear(struct vm_area_struct *vma, unsigned long flags)
{
	vma->vm_flags &= ~flags;
}
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*function)(struct hrtimer *),
				 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = function;
}
#endif

#ifndef kzalloc_obj
#define kzalloc_obj(p)	((typeof(p) *)kzalloc(sizeof(p), GFP_KERNEL))
#define kvzalloc_obj(p)	((typeof(p) *)kvzalloc(sizeof(p), GFP_KERNEL))
#endif

/* What is filled in before it is read need not be zeroed first. */
#ifndef __uninitialized
#define __uninitialized __attribute__((__uninitialized__))
#endif

/* A string of a trace event; it has the name of the argument that it is made from. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 10, 0)
#define kverbs_assign_str(field)	__assign_str(field, field)
#else
#define kverbs_assign_str(field)	__assign_str(field)
#endif

/*
 * Whether a function of which only the address is known can be watched by fprobe. Later
 * kernels ask for the address that ftrace has of it, and tell that to no module.
 */
#if IS_ENABLED(CONFIG_FPROBE) && LINUX_VERSION_CODE >= KERNEL_VERSION(6, 6, 0) && \
	LINUX_VERSION_CODE < KERNEL_VERSION(6, 14, 0)
#define KVERBS_FPROBE
#endif

/* User Mode Linux keeps its pending softirqs to itself. */
static inline u32 kverbs_softirq_pending(void)
{
#ifdef CONFIG_UML
	return 0;
#else
	return local_softirq_pending();
#endif
}

/*
 * The heads of operations of an RDMA device whose arguments have changed, for prototype
 * and definition.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
#define KVERBS_CREATE_CQ(name)								\
	int (name)(struct ib_cq *ib, const struct ib_cq_init_attr *init, struct ib_udata *attrs)
#else
#define KVERBS_CREATE_CQ(name)								\
	int (name)(struct ib_cq *ib, const struct ib_cq_init_attr *init,			\
		   struct uverbs_attr_bundle *attrs)
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 17, 0)
#define KVERBS_REG_USER_MR(name)							\
	struct ib_mr *(name)(struct ib_pd *pd, u64 start, u64 length, u64 address, int access, \
			     struct ib_udata *udata)
#else
#define KVERBS_REG_USER_MR(name)							\
	struct ib_mr *(name)(struct ib_pd *pd, u64 start, u64 length, u64 address, int access, \
			     struct ib_dmah *dmah, struct ib_udata *udata)
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 9, 0)
#define ib_mark_name_assigned_by_user(device)	((void)(device))
#endif

/* Whether the RDMA core tells of a port that goes with its netdev. */
#define KVERBS_CORE_HAS_PORT_EVENTS	(LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0))

/* Whether a device can have DMA operations of its own, by page. */
#if defined(CONFIG_X86_64) && !defined(CONFIG_UML) && \
	(defined(CONFIG_ARCH_HAS_DMA_OPS) || defined(CONFIG_DMA_OPS)) && \
	LINUX_VERSION_CODE < KERNEL_VERSION(6, 18, 0)
#define KVERBS_DEVICE_DMA_OPS
#endif

#endif /* _KVERBS_COMPAT_H */
