/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Connections between endpoints of this module, through the connection manager and a port
 * of the device to itself. Each has a client's and a server's side, with a thread on each
 * that sends, and a ledger of what became of it.
 */
#ifndef _KVERBS_EP_RIG_H
#define _KVERBS_EP_RIG_H

#include <linux/in.h>
#include <rdma/kverbs_ep.h>
#include <rdma/kverbs_pool.h>

#include "engine.h"

#define EP_MAX		4	/* connections of a rig */
#define EP_WAIT		(30 * HZ)
#define EP_SIZE		3000	/* bytes of a message at most */
#define EP_DEPTH	32

struct ep_rig;

/* Of a connection: the client's or the server's. */
struct ep_side {
	struct ep_rig *rig;
	struct ep_side *peer;
	struct kverbs_ep *ep;
	u32 index;
	struct kverbs_pool *pool;	/* messages to send */
	struct task_struct *task;
	struct sender *sender;
	atomic_t connected;
	atomic_t disconnected;
	int reason;
	char said[8];			/* the peer's private data */
	bool stop;
	u32 accepted;			/* groups */
	atomic_t succeeded;
	atomic_t flushed;
	atomic_t failed;
	u32 received;
	wait_queue_head_t wait;		/* for done, received and disconnected */
};

/**
 * struct ep_setup - what connections to make
 * @connections: how many
 * @mode: of their CQs
 * @srq: the servers share an SRQ and a CQ
 * @batch: receives that are posted together
 * @may_end: they may end while messages are sent
 */
struct ep_setup {
	u32 connections;
	enum kverbs_cq_mode mode;
	bool srq;
	u32 batch;
	bool may_end;
};

struct ep_rig {
	struct ep_setup setup;
	struct sockaddr_in addr;
	struct kverbs_listener *listener;
	struct ep_side client[EP_MAX];
	struct ep_side server[EP_MAX];
	/* what the servers share, once the device is known */
	struct ib_pd *pd;
	struct kverbs_cq *cq;
	struct kverbs_srq *srq;
	u32 accepted;
	int accept_error;
	/* how a request is answered, if not by accepting it */
	void (*answer)(struct ep_rig *rig, struct kverbs_ep *ep);
	struct completion answered;
	u32 fail_at;			/* allocation of the answer */
	bool struck;
};

int ep_find_address(struct sockaddr_in *addr);
struct ep_rig *ep_rig_create(const struct ep_setup *setup);
bool ep_rig_connect(struct ep_rig *rig);
void ep_rig_destroy(struct ep_rig *rig);
void ep_attr(const struct ep_side *side, struct kverbs_ep_attr *attr);
int ep_resolve(struct ep_side *side);
int ep_connect(struct ep_side *side);
int ep_get_pool(struct ep_side *side);
void ep_accept_one(struct ep_rig *rig, struct kverbs_ep *ep);
bool ep_is_disconnected(void *side);
void ep_side_destroy(struct ep_side *side);
bool ep_start(struct ep_rig *rig, u32 messages);
void ep_join(struct ep_rig *rig);
void ep_expect_settled(struct ep_rig *rig);
extern const struct kverbs_ep_ops ep_side_ops;

static inline enum kverbs_cq_mode ep_mode(enum rig_cq cq)
{
	return cq == RIG_POLL ? KVERBS_CQ_POLL :
	       cq == RIG_ADAPTIVE ? KVERBS_CQ_ADAPTIVE : KVERBS_CQ_INTERRUPT;
}

#endif /* _KVERBS_EP_RIG_H */
