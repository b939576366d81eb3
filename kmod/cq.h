/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* A completion queue, between cq.c, which dispatches, and poller.c, whose threads poll. */
#ifndef _KVERBS_CQ_H
#define _KVERBS_CQ_H

#include <kverbs/core/pollmode.h>

#include "path.h"

#define KVERBS_POLL_BATCH	32	/* CQEs in a call of ib_poll_cq(): 2 KB of ib_wc */
#define KVERBS_POLL_BUDGET	256	/* CQEs in a pass, as for ib_core's softirq CQs */

struct kverbs_poller;

struct kverbs_cq {
	struct ib_cq *ib;
	struct kverbs_pass pass;
	enum kverbs_cq_mode mode;	/* as it is served */
	enum kverbs_cq_mode wanted;	/* as its owner wants it to be */
	u32 dev_index;
	bool spinning;			/* the thread dispatches, irq_poll does not */
	u64 found_at;			/* the last pass that found something; kverbs_clock() */
	u64 event_at;			/* an event whose pass is to come, 0: none */
	struct kverbs_pollmode pollmode;
	struct irq_poll iop;
	struct kverbs_poller *poller;
	struct list_head poller_entry;
	struct ib_wc wc[KVERBS_POLL_BATCH];
	u32 vector;
	u32 spin_ns;			/* of hybrid mode */
	struct mutex lock;		/* mode, claims, who dispatches */
	u64 claimed;
	unsigned int cpu;
	struct kverbs_device *dev;
	struct list_head entry;
	struct kverbs_object obj;
	struct kverbs_hists hists;	/* of queues that are gone */
};

/* cq.c: bottom halves are off. */
int kverbs_cq_pass(struct kverbs_cq *cq, int budget);
void kverbs_cq_spin(struct kverbs_cq *cq);

/* poller.c: under cq->lock, but for kverbs_poller_wake(). */
int kverbs_poller_attach(struct kverbs_cq *cq);
void kverbs_poller_detach(struct kverbs_cq *cq);
struct kverbs_poller *kverbs_poller_hold(struct kverbs_cq *cq);
void kverbs_poller_unhold(struct kverbs_poller *poller);
void kverbs_poller_wake(struct kverbs_cq *cq);
void kverbs_pollers_close(void);

#endif /* _KVERBS_CQ_H */
