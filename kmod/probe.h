/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A probe of a function of another module: called when the function is entered and when it
 * returns, by fprobe where the kernel lets modules use it, by kretprobe elsewhere.
 */
#ifndef _KVERBS_PROBE_H
#define _KVERBS_PROBE_H

#include "compat.h"

#ifdef KVERBS_FPROBE
#include <linux/fprobe.h>
#define KVERBS_PROBE_KIND	"fprobe"
#else
#include <linux/kprobes.h>
#define KVERBS_PROBE_KIND	"kretprobe"
#endif

/* What is kept of a call until it returns. */
#define KVERBS_PROBE_DATA	64

/**
 * struct kverbs_probe - how a function is watched
 * @enter: it is entered, with its first two arguments. @data is the call's own; true: tell of
 *	the return, too. Preemption is off.
 * @leave: it returns @ret
 * @fp: the kernel's part
 * @rp: likewise
 */
struct kverbs_probe {
	bool (*enter)(unsigned long arg0, unsigned long arg1, void *data);
	void (*leave)(unsigned long ret, void *data);
#ifdef KVERBS_FPROBE
	struct fprobe fp;
#else
	struct kretprobe rp;
#endif
};

/*
 * Both may sleep, for a grace period or two. Nothing is called any more when the latter
 * returns; calls that were under way return without @leave.
 */
int kverbs_probe_add(struct kverbs_probe *probe, void *function);
void kverbs_probe_del(struct kverbs_probe *probe);

/* Calls, or returns, that were not told of since it was added. */
unsigned long kverbs_probe_missed(const struct kverbs_probe *probe);

#endif /* _KVERBS_PROBE_H */
