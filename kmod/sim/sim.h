/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The simulated HCA: the map of its parts.
 *
 *  objects.h  the objects, and their limits
 *  main.c     link ops, netdevs that come and go, the module's life
 *  device.c   an ib_device: registration, attributes, protection domains, address handles
 *  port.c     the port: its state, its GIDs, and which device of this host has a GID
 *  dma.c      what a DMA address stands for
 *  mr.c       memory regions and their keys
 *  data.c     cursors over scatter/gather lists: check, then copy
 *  cq.c       completion queues: CQEs written by the HCA, polled by the consumer
 *  cqe.h      a CQE's way to its ring
 *  qp.c       queue pairs: creation, states, destruction
 *  post.c     the consumer's side: work requests are checked and built into the rings
 *  engine.c   who runs a queue pair, where and when
 *  cost.c     what it costs, in time and in PCIe transactions
 *  vector.c   completion vectors: handlers are called on their CPUs
 *  exec.c     the HCA's side: send WQEs executed in order, completed or flushed
 *  plain.h    plain requests, the shortest way that there is
 *  write.c    RDMA WRITE
 *  hint.h     what was found for one request, and serves the next
 *  recv.c     a message takes a receive, is scattered, and is reported
 *  rq.c       rings of receives
 *  srq.c      shared receive queues
 *  deliver.c  datagrams: found by GID and number, with the header they arrive behind
 *  stats.c    counters
 *  configfs.c what can be set and read
 *  cost_knobs.c  of what it costs
 *  knob.c     values of knobs, checked
 *  rule.c     rules of faults, as they are written
 *  fault.c    faults: what goes wrong where
 *  late.c     completions that come at another time
 *  judge.c    consumers' mistakes, as they happen
 *  sweep.c    those that only time shows
 *
 * Rings. A send queue, a receive queue and a completion queue are rings of slots in the
 * manner of hardware. Writers reserve a slot by an atomic, fill it, and publish it by
 * storing its index plus one in its @seq; readers take what is published, in order. So
 * nobody waits for anybody, interrupts stay on, and posting works from any context. A send
 * slot is free again when the CQE that retires it was polled, as with real drivers. Only
 * who posts a receive holds a lock: when the call has returned a message must find it, and
 * not a gap before it that another has reserved.
 *
 * Ownership. A queue pair is run by one context at a time: who raises @kicks from zero
 * owns it, and gives it up by taking @kicks back to zero. Others only raise @kicks. An
 * owner that has to wait leaves the ownership with the timer of the queue pair, one that
 * has done its share with the engine's thread.
 *
 * Lifetimes. What is found by number (a peer, a memory region) is used within the RCU
 * read side section of one run; who destroys erases first, ends the epoch of what is
 * remembered (hint.h), then waits for the runs.
 */
#ifndef _KVERBS_SIM_H
#define _KVERBS_SIM_H

#include <linux/configfs.h>
#include <linux/slab.h>

#include "../compat.h"
#include "objects.h"

/*
 * What an attempt to execute a WQE can end with besides an ib_wc_status: nothing to
 * report yet, it is tried again.
 */
enum sim_again {
	SIM_BUSY = 0x100,	/* another context is at what it needs */
	SIM_NO_ANSWER,		/* nobody there */
	SIM_RNR_NAK,		/* no receive posted */
};

/* main.c */
extern struct list_head sim_devices;	/* RCU */
extern struct mutex sim_devices_lock;

/* device.c */
int sim_device_create(const char *name, struct net_device *ndev);
extern u32 sim_default_context;
extern bool sim_default_virtual_dma;
extern const char * const sim_context_names[SIM_NR_CONTEXTS];

/* port.c */
enum ib_port_state sim_port_state(const struct net_device *ndev);
void sim_port_update(struct sim_device *sim, struct net_device *ndev);
int sim_query_port(struct ib_device *ib, u32 port, struct ib_port_attr *attr);
int sim_get_port_immutable(struct ib_device *ib, u32 port, struct ib_port_immutable *immutable);
int sim_query_pkey(struct ib_device *ib, u32 port, u16 index, u16 *pkey);
int sim_add_gid(const struct ib_gid_attr *attr, void **context);
int sim_del_gid(const struct ib_gid_attr *attr, void **context);
struct sim_device *sim_find_gid(struct sim_device *from, const union ib_gid *gid);

/* dma.c */
int sim_dma_create(struct sim_device *sim, int node);
void sim_dma_destroy(struct sim_device *sim);
void *sim_dma_va(struct sim_device *sim, u64 addr, u32 length, bool write);
void *sim_dma_window(struct sim_device *sim, struct sim_window *window, u64 addr, u32 length,
		     bool write);

/* mr.c */
struct ib_mr *sim_get_dma_mr(struct ib_pd *pd, int access);
struct ib_mr *sim_alloc_mr(struct ib_pd *pd, enum ib_mr_type type, u32 max_num_sg);
int sim_map_mr_sg(struct ib_mr *ib, struct scatterlist *sg, int nents, unsigned int *offset);
int sim_dereg_mr(struct ib_mr *ib, struct ib_udata *udata);
KVERBS_REG_USER_MR(sim_reg_user_mr);
struct sim_mr *sim_mr_get(struct sim_device *sim, struct ib_pd *pd, const struct ib_sge *sge,
			  u32 access, s64 *registration);
void sim_mr_idle(struct sim_mr *mr);
u64 sim_mr_dma(const struct sim_mr *mr, u64 addr, u32 *length);
void *sim_mr_window(const struct sim_mr *mr, struct sim_window *window, u64 addr, u32 length,
		    bool write);
u32 sim_mr_register(struct sim_qp *qp, const struct sim_wqe *wqe);
u32 sim_mr_invalidate(struct sim_qp *qp, u32 key);

/**
 * struct sim_cursor - a place in a list of memory
 * @sim: the device whose DMA addresses these are
 * @pd: what keys must belong to
 * @access: what is done there, of enum ib_access_flags; 0 is a local read
 * @remote: keys are rkeys
 * @nr: elements that were not begun
 * @sge: the next of them
 * @mr: of the element that was begun
 * @addr: what follows the current piece
 * @left: bytes of the element beyond the current piece
 * @va: the current piece
 * @length: bytes of it that are left
 */
struct sim_cursor {
	struct sim_device *sim;
	struct ib_pd *pd;
	u32 access;
	bool remote;
	u32 nr;
	const struct ib_sge *sge;
	struct sim_mr *mr;
	u64 addr;
	u32 left;
	void *va;
	u32 length;
};

/* data.c */
enum sim_copied {
	SIM_COPIED,
	SIM_BAD_SOURCE,
	SIM_BAD_TARGET,
};

void sim_cursor_sgl(struct sim_cursor *cursor, struct sim_qp *qp, const struct ib_sge *sge, u32 nr,
		    u32 access);
void sim_cursor_remote(struct sim_cursor *cursor, struct sim_qp *peer, struct ib_sge *sge,
		       u32 access);
void sim_cursor_buffer(struct sim_cursor *cursor, void *buffer, u32 length);
void sim_cursor_payload(struct sim_cursor *cursor, struct sim_qp *qp, struct sim_wqe *wqe);
bool sim_cursor_fill(struct sim_cursor *cursor);
void sim_cursor_end(struct sim_cursor *cursor);
bool sim_sgl_ok(struct sim_qp *qp, const struct ib_sge *sge, u32 nr);
enum sim_copied sim_copy(struct sim_cursor *to, struct sim_cursor *from, u32 length);

/* cq.c */
KVERBS_CREATE_CQ(sim_create_cq);
int sim_modify_cq(struct ib_cq *ib, u16 count, u16 usecs);
int sim_destroy_cq(struct ib_cq *ib, struct ib_udata *udata);
int sim_poll_cq(struct ib_cq *ib, int nr, struct ib_wc *wc);
int sim_req_notify_cq(struct ib_cq *ib, enum ib_cq_notify_flags flags);
void sim_cqe_write(struct sim_cq *cq, const struct sim_cqe *from, bool solicited);
void sim_cqe_put(struct sim_cq *cq, const struct sim_cqe *from, bool solicited);
void sim_cqe_sent_faulty(struct sim_qp *qp, const struct sim_wqe *wqe, u32 status,
			 enum ib_wc_opcode opcode, u32 retires);
void sim_cq_overflow(struct sim_cq *cq);
void sim_cq_notify(struct sim_cq *cq, bool solicited);
void sim_cq_raise(struct sim_cq *cq);
void sim_cq_raise_here(struct sim_cq *cq);
void sim_cq_forget(struct sim_cq *cq, const struct sim_qp *qp);

/* configfs.c, rule.c */
extern struct sim_caps sim_default_caps;
extern struct config_group sim_faults_group;
extern const struct config_item_type sim_faults_type;
int sim_cfs_init(void);
void sim_cfs_exit(void);
int sim_cfs_add(struct sim_device *sim, const char *name);
void sim_cfs_remove(struct sim_device *sim);
struct sim_device *sim_of_cost_item(struct config_item *item);
void sim_cost_item_release(struct config_item *item);
void sim_cfs_rename(struct sim_device *sim);

/* qp.c */
struct sim_qp *sim_qp_find(u32 qpn);
int sim_create_qp(struct ib_qp *ib, struct ib_qp_init_attr *init, struct ib_udata *udata);
int sim_modify_qp(struct ib_qp *ib, struct ib_qp_attr *attr, int mask, struct ib_udata *udata);
int sim_query_qp(struct ib_qp *ib, struct ib_qp_attr *attr, int mask, struct ib_qp_init_attr *init);
int sim_destroy_qp(struct ib_qp *ib, struct ib_udata *udata);
void sim_qp_fail(struct sim_qp *qp, u32 state);
void sim_qp_event(struct sim_qp *qp, enum ib_event_type type);
u64 sim_rnr_ns(u8 timer);
void sim_qps_cleanup(void);

/* post.c */
u8 sim_sq_ops(enum ib_qp_type type);
int sim_post_send(struct ib_qp *ib, const struct ib_send_wr *wr, const struct ib_send_wr **bad_wr);
int sim_post_recv(struct ib_qp *ib, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad_wr);
int sim_rq_post(struct sim_rq *rq, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad_wr);

/* engine.c */
#define SIM_KICK_DOORBELL	1
#define SIM_KICK_STATE		0x10000	/* and above: not a doorbell */

int sim_engine_init(struct sim_device *sim);
void sim_engine_destroy(struct sim_device *sim);
void sim_engine_start(struct sim_qp *qp);
void sim_kick(struct sim_qp *qp);
void sim_qp_wait_idle(struct sim_qp *qp);
enum hrtimer_restart sim_qp_timer(struct hrtimer *timer);
enum hrtimer_restart sim_qp_starter(struct hrtimer *timer);

/* vector.c */
int sim_vectors_init(struct sim_device *sim, int node);
void sim_vectors_destroy(struct sim_device *sim);
void sim_vector_init_cq(struct sim_cq *cq, u32 vector);
void sim_vector_raise(struct sim_cq *cq);
void sim_vector_flush(struct sim_cq *cq);

/* exec.c */
enum sim_verdict {
	SIM_IDLE,	/* nothing to do until the next kick */
	SIM_AGAIN,	/* it goes on, but others are to have their turn */
	SIM_PAUSE,	/* nothing to do for @pause_ns */
};

enum sim_verdict sim_qp_exec(struct sim_qp *qp, u32 budget);

/* write.c */
u32 sim_write(struct sim_qp *qp, struct sim_wqe *wqe, struct sim_qp *peer);

/* recv.c */
struct sim_arrival {
	enum ib_wc_opcode opcode;
	int wc_flags;
	u32 ex;
	u32 src_qpn;
	u32 length;
	bool solicited;
	u8 network_hdr_type;
};

bool sim_rx_trylock(struct sim_qp *qp);
void sim_rx_unlock(struct sim_qp *qp);
u32 sim_recv_take(struct sim_qp *qp);
void sim_recv_done(struct sim_qp *qp, u32 status, const struct sim_arrival *arrival);
u32 sim_recv_scatter(struct sim_qp *qp, struct sim_cursor *from, u32 length, void *header);
bool sim_recv_flush(struct sim_qp *qp);

/* srq.c */
int sim_create_srq(struct ib_srq *ib, struct ib_srq_init_attr *init, struct ib_udata *udata);
int sim_modify_srq(struct ib_srq *ib, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask,
		   struct ib_udata *udata);
int sim_query_srq(struct ib_srq *ib, struct ib_srq_attr *attr);
int sim_destroy_srq(struct ib_srq *ib, struct ib_udata *udata);
int sim_post_srq_recv(struct ib_srq *ib, const struct ib_recv_wr *wr,
		      const struct ib_recv_wr **bad_wr);
u32 sim_srq_take(struct sim_srq *srq, struct sim_rwqe *rwqe);

/* rq.c: rings of receives */
int sim_rq_init(struct sim_rq *rq, u32 depth, u32 max_sge, int node);
void sim_rq_reset(struct sim_rq *rq);
void sim_rq_destroy(struct sim_rq *rq);
const struct sim_rwqe *sim_rq_peek(struct sim_rq *rq);
void sim_rq_consume(struct sim_rq *rq);

/* deliver.c */
u32 sim_deliver_datagram(struct sim_qp *qp, struct sim_wqe *wqe);

/* stats.c */
struct rdma_hw_stats *sim_alloc_hw_port_stats(struct ib_device *ib, u32 port);
int sim_get_hw_stats(struct ib_device *ib, struct rdma_hw_stats *stats, u32 port, int index);
void sim_stats_fold_qp(struct sim_device *sim, struct sim_qp *qp);
void sim_stats_fold_cq(struct sim_device *sim, struct sim_cq *cq);

static inline void sim_count(struct sim_qp *qp, enum sim_counter counter, u64 n)
{
	local64_add(n, &qp->count[counter]);
}

#define SIM_SHORT	256
#define SIM_LINE	64

static inline void sim_move_short(void *to, const void *from, u32 length)
{
	for (; length >= sizeof(u64); length -= sizeof(u64)) {
		memcpy(to, from, sizeof(u64));
		to += sizeof(u64);
		from += sizeof(u64);
	}
	if (length)
		memcpy(to, from, length);
}

/* Few bytes are moved by registers: a string instruction takes longer to start. */
static __always_inline void sim_move(void *to, const void *from, u32 length)
{
	if (likely(length == SIM_LINE))
		memcpy(to, from, SIM_LINE);
	else if (length <= SIM_SHORT)
		sim_move_short(to, from, length);
	else
		memcpy(to, from, length);
}

static inline struct sim_wqe *sim_sq_slot(const struct sim_sq *sq, u32 index)
{
	return sq->ring + (size_t)(index & sq->mask) * sq->stride;
}

static inline struct sim_rwqe *sim_rq_slot(const struct sim_rq *rq, u32 index)
{
	return rq->ring + (size_t)(index & rq->mask) * rq->stride;
}

/* Odd: it is registered. What it is then stays so while it is held and this is the same. */
static inline s64 sim_mr_registration(const struct sim_mr *mr)
{
	return atomic64_read(&mr->registration);
}

static inline void sim_mr_hold(struct sim_mr *mr)
{
	atomic_inc(&mr->users);
	/* ORDER: the users before the registration; pairs with mr_unregister() */
	smp_mb__after_atomic();
}

static inline void sim_mr_put(struct sim_mr *mr)
{
	if (atomic_dec_and_test(&mr->users) && unlikely(READ_ONCE(mr->dying)))
		sim_mr_idle(mr);
}

/* One more of what a device has a limited number of. */
static inline bool sim_take_one(atomic_t *nr, u32 limit)
{
	if ((u32)atomic_inc_return(nr) <= limit)
		return true;
	atomic_dec(nr);
	return false;
}

#endif /* _KVERBS_SIM_H */
