/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The functions that the devices of the host have as their post_send and poll_cq, hooked
 * while somebody wants the events of all consumers: kverbs:ib_post_send and so on.
 */
#ifndef _KVERBS_HOOKS_H
#define _KVERBS_HOOKS_H

#include <rdma/ib_verbs.h>

enum kverbs_hook_op {
	KVERBS_HOOK_POST,
	KVERBS_HOOK_POLL,
	KVERBS_NR_HOOKS,
};

struct kverbs_hook;

/* What a device has of them; NULL where it lacks the operation. */
struct kverbs_hooked {
	struct kverbs_hook *hook[KVERBS_NR_HOOKS];
};

#ifdef CONFIG_KRETPROBES
void kverbs_hooks_init(void);
void kverbs_hooks_exit(void);

/* A device comes and goes: after the latter none of its functions is hooked for it. */
int kverbs_hooks_add(struct kverbs_hooked *hooked, const struct ib_device *ib);
void kverbs_hooks_del(struct kverbs_hooked *hooked);

/* The first that wants an event of this kind, and the last, under tracepoints' locks. */
int kverbs_hook_posts(void);
void kverbs_unhook_posts(void);
int kverbs_hook_polls(void);
void kverbs_unhook_polls(void);
#else
static inline void kverbs_hooks_init(void) { }
static inline void kverbs_hooks_exit(void) { }
static inline int kverbs_hooks_add(struct kverbs_hooked *hooked, const struct ib_device *ib)
{
	return 0;
}

static inline void kverbs_hooks_del(struct kverbs_hooked *hooked) { }
#endif

#endif /* _KVERBS_HOOKS_H */
