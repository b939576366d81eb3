/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Faults on demand. A rule (a directory below faults/ in configfs) says which fault, of
 * which device, queue pair and opcode, and which of the events that match. Without any rule
 * a hook of the data path is a jump that is not taken.
 */
#ifndef _KVERBS_SIM_FAULT_H
#define _KVERBS_SIM_FAULT_H

#include <linux/hrtimer.h>
#include <linux/jump_label.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

struct sim_cq;
struct sim_cqe;
struct sim_device;
struct sim_qp;
struct sim_wqe;

/**
 * enum sim_fault - kinds of faults
 * @SIM_FAULT_NONE: none
 * @SIM_FAULT_POST_FAIL: a work request is refused with @errno; bad_wr says which
 * @SIM_FAULT_POST_HALF: of a chain the second half is refused; bad_wr says where it begins
 * @SIM_FAULT_POST_BAD_HEAD: as POST_FAIL, but bad_wr names the head of the chain
 * @SIM_FAULT_POST_BAD_UNSET: as POST_FAIL, but bad_wr is left alone
 * @SIM_FAULT_POST_BAD_WRONG: as POST_FAIL, but bad_wr names none of the chain
 * @SIM_FAULT_POST_TAKEN: all is taken, and @errno returned; bad_wr is left alone
 * @SIM_FAULT_ERROR: a work request is not executed and ends with @status
 * @SIM_FAULT_SQE: the same, on UC and UD queue pairs, which go to SQE
 * @SIM_FAULT_RNR: the peer answers that no receive is posted
 * @SIM_FAULT_NO_ANSWER: the peer does not answer
 * @SIM_FAULT_FLUSH_EXECUTED: an error flushes silent requests that had succeeded, too
 * @SIM_FAULT_READ_OVERTAKEN: the CQE of a READ comes after that of a later request
 * @SIM_FAULT_CQE_LATE: a CQE, and those behind it, come @delay_ns later
 * @SIM_FAULT_CQE_LOST: a CQE never comes
 * @SIM_FAULT_CQE_TWICE: a CQE comes twice
 * @SIM_FAULT_EVENT_LOST: an armed CQ is not told of a CQE
 * @SIM_FAULT_EVENT_LOCKED: the handler is called under the lock of poll and arm
 * @SIM_FAULT_EVENT_IN_POST: the handler is called inside post_send, armed or not
 * @SIM_FAULT_PORT_DOWN: the port goes down, for @delay_ns or until its netdev changes
 * @SIM_FAULT_REMOVE: the device is unregistered
 * @SIM_NR_FAULTS: how many there are
 */
enum sim_fault {
	SIM_FAULT_NONE,
	SIM_FAULT_POST_FAIL,
	SIM_FAULT_POST_HALF,
	SIM_FAULT_POST_BAD_HEAD,
	SIM_FAULT_POST_BAD_UNSET,
	SIM_FAULT_POST_BAD_WRONG,
	SIM_FAULT_POST_TAKEN,
	SIM_FAULT_ERROR,
	SIM_FAULT_SQE,
	SIM_FAULT_RNR,
	SIM_FAULT_NO_ANSWER,
	SIM_FAULT_FLUSH_EXECUTED,
	SIM_FAULT_READ_OVERTAKEN,
	SIM_FAULT_CQE_LATE,
	SIM_FAULT_CQE_LOST,
	SIM_FAULT_CQE_TWICE,
	SIM_FAULT_EVENT_LOST,
	SIM_FAULT_EVENT_LOCKED,
	SIM_FAULT_EVENT_IN_POST,
	SIM_FAULT_PORT_DOWN,
	SIM_FAULT_REMOVE,
	SIM_NR_FAULTS,
};

/* Opcodes as rules name them; those of a CQE cannot be told apart where verbs do not. */
enum sim_fault_opcode {
	SIM_OP_ANY,
	SIM_OP_SEND,
	SIM_OP_SEND_IMM,
	SIM_OP_SEND_INV,
	SIM_OP_WRITE,
	SIM_OP_WRITE_IMM,
	SIM_OP_READ,
	SIM_OP_CAS,
	SIM_OP_FADD,
	SIM_OP_REG_MR,
	SIM_OP_LOCAL_INV,
	SIM_OP_RECV,
	SIM_NR_OPS,
};

/**
 * struct sim_rule_attr - what a rule asks for
 * @device: its name; empty for any
 * @kind: of enum sim_fault
 * @opcode: of enum sim_fault_opcode
 * @status: of enum ib_wc_status
 * @errnum: what post_send returns; drivers were seen to return positive ones
 * @qp_num: 0 for any
 * @probability_ppm: of those events that match, how many of a million
 * @after_hits: how many of them pass first
 * @count_hits: how many faults at most; 0 for no end
 * @delay_ns: how late
 * @seed: of the choice by probability
 */
struct sim_rule_attr {
	char device[IB_DEVICE_NAME_MAX];
	u32 kind;
	u32 opcode;
	u32 status;
	s32 errnum;
	u64 qp_num;
	u64 probability_ppm;
	u64 after_hits;
	u64 count_hits;
	u64 delay_ns;
	u64 seed;
};

/* @entry: of the list of rules; RCU. @enabled: @attr does not change while it is. */
struct sim_rule {
	struct list_head entry;
	struct sim_rule_attr attr;
	bool enabled;
	atomic64_t seen;
	atomic64_t hits;
};

/* A post_send that is to be refused at a work request. */
struct sim_refusal {
	const struct ib_send_wr *at;
	u32 kind;
	int errnum;
};

/* Of a device. */
struct sim_device_fault {
	struct delayed_work port_up;
};

/**
 * struct sim_cq_fault - of a completion queue
 * @lock: guards @late
 * @late: CQEs that are held back, in order
 * @timer: when the next of them is due
 * @handler_lock: as that of a driver that calls handlers with its lock held
 * @handler_cpu: plus one, of who holds it in a handler
 */
struct sim_cq_fault {
	spinlock_t lock;	/* guards @late */
	struct list_head late;
	struct hrtimer timer;
	spinlock_t handler_lock;	/* around handler, poll and arm */
	int handler_cpu;
};

DECLARE_STATIC_KEY_FALSE(sim_faults);	/* there are rules */

static inline bool sim_faulty(void)
{
	return static_branch_unlikely(&sim_faults);
}

/* fault.c: what goes wrong where */
void sim_rule_add(struct sim_rule *rule);
void sim_rule_remove(struct sim_rule *rule);
void sim_rule_enable(struct sim_rule *rule, bool enabled);
void sim_fault_init(struct sim_device *sim);
void sim_fault_destroy(struct sim_device *sim);
void sim_fault_post(struct sim_qp *qp, const struct ib_send_wr *wr, struct sim_refusal *refusal);
int sim_fault_refuse(const struct sim_refusal *refusal, const struct ib_send_wr *first,
		     const struct ib_send_wr **bad_wr);
int sim_fault_posted(struct sim_qp *qp, const struct ib_send_wr *first, int ret);
u32 __sim_fault_exec(struct sim_qp *qp, const struct sim_wqe *wqe);
void __sim_fault_flush(struct sim_qp *qp);
bool __sim_fault_raise(struct sim_cq *cq);
bool __sim_fault_cqe(struct sim_cq *cq, const struct sim_cqe *cqe, bool solicited);
bool __sim_fault_enter(struct sim_cq *cq, unsigned long *flags);
void sim_fault_leave(struct sim_cq *cq, bool locked, unsigned long flags);

/* late.c: completions that come at another time */
void sim_late_init(struct sim_cq *cq);
void sim_late_destroy(struct sim_cq *cq);
void sim_late_forget(struct sim_cq *cq, const struct sim_qp *qp);
void sim_late_end(struct sim_cq *cq);
bool sim_late_hold(struct sim_cq *cq, const struct sim_cqe *cqe, bool solicited, u64 delay_ns,
		   bool passed);
bool sim_late_behind(struct sim_cq *cq, const struct sim_cqe *cqe, bool solicited);

/* What a work request ends with instead of being executed; 0: it is executed. */
static inline u32 sim_fault_exec(struct sim_qp *qp, const struct sim_wqe *wqe)
{
	return sim_faulty() ? __sim_fault_exec(qp, wqe) : 0;
}

/* The queue pair has failed: what was silent may be flushed though it had succeeded. */
static inline void sim_fault_flush(struct sim_qp *qp)
{
	if (sim_faulty())
		__sim_fault_flush(qp);
}

/* True: the CQE is not to be written now. */
static inline bool sim_fault_cqe(struct sim_cq *cq, const struct sim_cqe *cqe, bool solicited)
{
	return sim_faulty() && __sim_fault_cqe(cq, cqe, solicited);
}

/* True: the handler is not to be called, or has been. */
static inline bool sim_fault_raise(struct sim_cq *cq)
{
	return sim_faulty() && __sim_fault_raise(cq);
}

/* Around poll and arm: true, it is locked. */
static inline bool sim_fault_enter(struct sim_cq *cq, unsigned long *flags)
{
	return sim_faulty() && __sim_fault_enter(cq, flags);
}

#endif /* _KVERBS_SIM_FAULT_H */
