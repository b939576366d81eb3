// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Faults: which rule an event hits, and what goes wrong then.
 *
 * Each rule counts the events that match it, and whether one of them is hit depends on its
 * number and on the seed alone: a run is repeated by its rules. An event hits the first of
 * the rules that want it.
 */
#include <linux/module.h>
#include <linux/rculist.h>

#include "sim.h"

#define MILLION		1000000
#define POST_FAULTS	(BIT(SIM_FAULT_POST_FAIL) | BIT(SIM_FAULT_POST_BAD_HEAD) | \
			 BIT(SIM_FAULT_POST_BAD_UNSET) | BIT(SIM_FAULT_POST_BAD_WRONG))
#define CQE_FAULTS	(BIT(SIM_FAULT_CQE_LATE) | BIT(SIM_FAULT_CQE_LOST) | \
			 BIT(SIM_FAULT_CQE_TWICE))
#define ALL_OPS		(~0U)

DEFINE_STATIC_KEY_FALSE(sim_faults);

static LIST_HEAD(rules);	/* RCU */
static DEFINE_MUTEX(rules_lock);

/* What the rule that was hit asks for. */
struct sim_hit {
	u32 kind;
	u32 status;
	int errnum;
	u64 delay_ns;
};

/* The splitmix64 sequence: the number of an event leads to its draw, below a million. */
static u32 draw(u64 seed, u64 number)
{
	u64 x = seed + number * 0x9e3779b97f4a7c15ULL;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	x ^= x >> 31;
	return ((x >> 32) * MILLION) >> 32;
}

/* One more event matches. */
static bool rule_hit(struct sim_rule *rule)
{
	const struct sim_rule_attr *attr = &rule->attr;
	u64 number = atomic64_inc_return(&rule->seen);
	s64 hits;

	if (number <= attr->after_hits)
		return false;
	if (draw(attr->seed, number) >= attr->probability_ppm)
		return false;
	hits = atomic64_read(&rule->hits);
	do {
		if (attr->count_hits && hits >= attr->count_hits)
			return false;
	} while (!atomic64_try_cmpxchg(&rule->hits, &hits, hits + 1));
	return true;
}

static bool rule_wants(const struct sim_rule *rule, const struct sim_device *sim,
		       const struct sim_qp *qp, u32 kinds, u32 ops)
{
	const struct sim_rule_attr *attr = &rule->attr;

	/* ORDER: pairs with sim_rule_enable() */
	if (!smp_load_acquire(&rule->enabled) || !(BIT(attr->kind) & kinds))
		return false;
	if (attr->device[0] && strcmp(attr->device, dev_name(&sim->ib.dev)))
		return false;
	if (attr->qp_num && (!qp || attr->qp_num != qp->ib.qp_num))
		return false;
	return attr->opcode == SIM_OP_ANY || BIT(attr->opcode) & ops;
}

/* An event that faults of some kinds, and work requests of some opcodes, can come at. */
static bool event_hits(const struct sim_device *sim, const struct sim_qp *qp, u32 kinds, u32 ops,
		       struct sim_hit *hit)
{
	struct sim_rule *rule;
	bool found = false;

	rcu_read_lock();
	list_for_each_entry_rcu(rule, &rules, entry) {
		if (!rule_wants(rule, sim, qp, kinds, ops) || !rule_hit(rule))
			continue;
		*hit = (struct sim_hit) {
			.kind = rule->attr.kind,
			.status = rule->attr.status,
			.errnum = rule->attr.errnum,
			.delay_ns = rule->attr.delay_ns,
		};
		found = true;
		break;
	}
	rcu_read_unlock();
	return found;
}

static u32 op_of_wr(u32 opcode)
{
	static const u8 ops[] = {
		[IB_WR_SEND] = SIM_OP_SEND,
		[IB_WR_SEND_WITH_IMM] = SIM_OP_SEND_IMM,
		[IB_WR_SEND_WITH_INV] = SIM_OP_SEND_INV,
		[IB_WR_RDMA_WRITE] = SIM_OP_WRITE,
		[IB_WR_RDMA_WRITE_WITH_IMM] = SIM_OP_WRITE_IMM,
		[IB_WR_RDMA_READ] = SIM_OP_READ,
		[IB_WR_ATOMIC_CMP_AND_SWP] = SIM_OP_CAS,
		[IB_WR_ATOMIC_FETCH_AND_ADD] = SIM_OP_FADD,
		[IB_WR_REG_MR] = SIM_OP_REG_MR,
		[IB_WR_LOCAL_INV] = SIM_OP_LOCAL_INV,
	};

	return opcode < ARRAY_SIZE(ops) ? BIT(ops[opcode]) : 0;
}

static u32 ops_of_wc(enum ib_wc_opcode opcode)
{
	switch (opcode) {
	case IB_WC_SEND:
		return BIT(SIM_OP_SEND) | BIT(SIM_OP_SEND_IMM) | BIT(SIM_OP_SEND_INV);
	case IB_WC_RDMA_WRITE:
		return BIT(SIM_OP_WRITE) | BIT(SIM_OP_WRITE_IMM);
	case IB_WC_RDMA_READ:
		return BIT(SIM_OP_READ);
	case IB_WC_COMP_SWAP:
		return BIT(SIM_OP_CAS);
	case IB_WC_FETCH_ADD:
		return BIT(SIM_OP_FADD);
	case IB_WC_REG_MR:
		return BIT(SIM_OP_REG_MR);
	case IB_WC_LOCAL_INV:
		return BIT(SIM_OP_LOCAL_INV);
	default:
		return opcode & IB_WC_RECV ? BIT(SIM_OP_RECV) : 0;
	}
}

static void port_set(struct sim_device *sim, bool up)
{
	struct ib_event event = {
		.device = &sim->ib,
		.element.port_num = 1,
		.event = up ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR,
	};

	if (xchg(&sim->up, up) == up)
		return;
	sim_epoch_end();
	ib_dispatch_event(&event);
}

/* A reference keeps the netdev. */
static void port_up(struct work_struct *work)
{
	struct sim_device *sim = container_of(work, struct sim_device, fault.port_up.work);

	if (!ib_device_try_get(&sim->ib))
		return;
	port_set(sim, sim_port_state(sim->ndev) == IB_PORT_ACTIVE);
	ib_device_put(&sim->ib);
}

static void port_down(struct sim_device *sim, u64 delay_ns)
{
	port_set(sim, false);
	if (delay_ns)
		schedule_delayed_work(&sim->fault.port_up, nsecs_to_jiffies(delay_ns) + 1);
}

static void device_remove(struct sim_device *sim)
{
	if (!ib_device_try_get(&sim->ib))
		return;
	ib_unregister_device_queued(&sim->ib);
	ib_device_put(&sim->ib);
}

/* What does not concern the post itself, but comes in the midst of posts. */
static void post_disturb(struct sim_qp *qp, u32 op)
{
	struct sim_device *sim = sim_of_qp(qp);
	struct sim_hit hit;

	if (!event_hits(sim, qp, BIT(SIM_FAULT_PORT_DOWN) | BIT(SIM_FAULT_REMOVE), op, &hit))
		return;
	if (hit.kind == SIM_FAULT_PORT_DOWN)
		port_down(sim, hit.delay_ns);
	else
		device_remove(sim);
}

static void refuse_at(struct sim_refusal *refusal, const struct ib_send_wr *wr,
		      const struct sim_hit *hit)
{
	refusal->at = wr;
	refusal->kind = hit->kind;
	refusal->errnum = hit->errnum;
}

/* Where the second half of a chain begins. */
static const struct ib_send_wr *middle(const struct ib_send_wr *wr)
{
	const struct ib_send_wr *end = wr->next;

	while (end) {
		wr = wr->next;
		end = end->next ? end->next->next : NULL;
	}
	return wr;
}

/* Which work request of a chain is to be refused, if any. */
void sim_fault_post(struct sim_qp *qp, const struct ib_send_wr *wr, struct sim_refusal *refusal)
{
	struct sim_device *sim = sim_of_qp(qp);
	struct sim_hit hit;

	refusal->at = NULL;
	if (wr->next &&
	    event_hits(sim, qp, BIT(SIM_FAULT_POST_HALF), op_of_wr(wr->opcode), &hit))
		refuse_at(refusal, middle(wr), &hit);
	for (; wr && wr != refusal->at; wr = wr->next) {
		post_disturb(qp, op_of_wr(wr->opcode));
		if (event_hits(sim, qp, POST_FAULTS, op_of_wr(wr->opcode), &hit))
			refuse_at(refusal, wr, &hit);
		if (wr == refusal->at)
			break;
	}
}

int sim_fault_refuse(const struct sim_refusal *refusal, const struct ib_send_wr *first,
		     const struct ib_send_wr **bad_wr)
{
	static const struct ib_send_wr elsewhere;

	switch (refusal->kind) {
	case SIM_FAULT_POST_BAD_HEAD:
		*bad_wr = first;
		break;
	case SIM_FAULT_POST_BAD_UNSET:
		break;
	case SIM_FAULT_POST_BAD_WRONG:
		*bad_wr = &elsewhere;
		break;
	default:
		*bad_wr = refusal->at;
	}
	return refusal->errnum;
}

/* What post_send returns in the end. */
int sim_fault_posted(struct sim_qp *qp, const struct ib_send_wr *first, int ret)
{
	struct sim_device *sim = sim_of_qp(qp);
	u32 op = op_of_wr(first->opcode);
	struct sim_hit hit;

	if (event_hits(sim, qp, BIT(SIM_FAULT_EVENT_IN_POST), op, &hit))
		sim_cq_raise_here(to_sim_cq(qp->ib.send_cq));
	if (!ret && event_hits(sim, qp, BIT(SIM_FAULT_POST_TAKEN), op, &hit))
		return hit.errnum;
	return ret;
}

u32 __sim_fault_exec(struct sim_qp *qp, const struct sim_wqe *wqe)
{
	u32 kinds = BIT(SIM_FAULT_ERROR);
	struct sim_hit hit;

	if (qp->ib.qp_type == IB_QPT_RC)
		kinds |= BIT(SIM_FAULT_RNR) | BIT(SIM_FAULT_NO_ANSWER);
	else
		kinds |= BIT(SIM_FAULT_SQE);
	if (!event_hits(sim_of_qp(qp), qp, kinds, op_of_wr(wqe->opcode), &hit))
		return 0;
	switch (hit.kind) {
	case SIM_FAULT_RNR:
		qp->pause_ns = hit.delay_ns;
		return SIM_RNR_NAK;
	case SIM_FAULT_NO_ANSWER:
		return SIM_NO_ANSWER;
	default:
		return hit.status;
	}
}

/* The owner of the queue pair, before the next WQE ends with an error or nothing is left. */
void __sim_fault_flush(struct sim_qp *qp)
{
	struct sim_sq *sq = qp->sq;
	u32 silent = sq->silent, i;
	struct sim_hit hit;

	if (!silent || !event_hits(sim_of_qp(qp), qp, BIT(SIM_FAULT_FLUSH_EXECUTED), ALL_OPS, &hit))
		return;
	sq->silent = 0;
	for (i = sq->next - silent; i != sq->next; i++) {
		struct sim_cqe cqe = {
			.retires = 1,
			.sq = sq,
			.wc = {
				.wr_id = sim_sq_slot(sq, i)->wr_id,
				.status = IB_WC_WR_FLUSH_ERR,
				.qp = &qp->ib,
			},
		};

		sim_cqe_write(to_sim_cq(qp->ib.send_cq), &cqe, false);
	}
}

/* Polling later CQEs gives its slots back, as with real drivers. */
static void cqe_lose(const struct sim_cqe *cqe)
{
	if (cqe->sq)
		cqe->sq->silent += cqe->retires;
}

static void cqe_double(struct sim_cq *cq, const struct sim_cqe *cqe, bool solicited)
{
	struct sim_cqe again = *cqe;

	again.retires = 0;
	sim_cqe_put(cq, cqe, solicited);
	sim_cqe_put(cq, &again, solicited);
}

bool __sim_fault_cqe(struct sim_cq *cq, const struct sim_cqe *cqe, bool solicited)
{
	const struct sim_qp *qp = to_sim_qp(cqe->wc.qp);
	u32 ops = ops_of_wc(cqe->wc.opcode), kinds = CQE_FAULTS;
	struct sim_hit hit;

	if (sim_late_behind(cq, cqe, solicited))
		return true;
	if (cqe->wc.opcode == IB_WC_RDMA_READ && cqe->wc.status == IB_WC_SUCCESS)
		kinds |= BIT(SIM_FAULT_READ_OVERTAKEN);
	if (!event_hits(sim_of_cq(cq), qp, kinds, ops, &hit))
		return false;
	switch (hit.kind) {
	case SIM_FAULT_CQE_LOST:
		cqe_lose(cqe);
		return true;
	case SIM_FAULT_CQE_TWICE:
		cqe_double(cq, cqe, solicited);
		return true;
	default:
		return sim_late_hold(cq, cqe, solicited, hit.delay_ns,
				     hit.kind == SIM_FAULT_READ_OVERTAKEN);
	}
}

/* Some drivers call the handler with the lock held that poll and arm take. */
static void raise_locked(struct sim_cq *cq)
{
	struct sim_cq_fault *fault = &cq->fault;
	unsigned long flags;

	spin_lock_irqsave(&fault->handler_lock, flags);
	WRITE_ONCE(fault->handler_cpu, smp_processor_id() + 1);
	cq->ib.comp_handler(&cq->ib, cq->ib.cq_context);
	WRITE_ONCE(fault->handler_cpu, 0);
	spin_unlock_irqrestore(&fault->handler_lock, flags);
}

/* On this CPU: interrupts have been off since it took the lock. */
static bool in_handler(const struct sim_cq *cq)
{
	bool inside = READ_ONCE(cq->fault.handler_cpu) == get_cpu() + 1;

	put_cpu();
	return inside;
}

bool __sim_fault_raise(struct sim_cq *cq)
{
	u32 kinds = BIT(SIM_FAULT_EVENT_LOST) | BIT(SIM_FAULT_EVENT_LOCKED);
	struct sim_hit hit;

	if (in_handler(cq) || !event_hits(sim_of_cq(cq), NULL, kinds, 0, &hit))
		return false;
	if (hit.kind == SIM_FAULT_EVENT_LOCKED)
		raise_locked(cq);
	return true;
}

/* Where a driver would deadlock the consumer is told, and goes on. */
bool __sim_fault_enter(struct sim_cq *cq, unsigned long *flags)
{
	if (in_handler(cq)) {
		sim_judge_cq(cq, SIM_JUDGE_POLL_IN_HANDLER);
		return false;
	}
	spin_lock_irqsave(&cq->fault.handler_lock, *flags);
	__release(&cq->fault.handler_lock);	/* for sparse: held where it is true */
	return true;
}

void sim_fault_leave(struct sim_cq *cq, bool locked, unsigned long flags)
{
	if (!locked)
		return;
	__acquire(&cq->fault.handler_lock);	/* for sparse, see above */
	spin_unlock_irqrestore(&cq->fault.handler_lock, flags);
}

void sim_fault_init(struct sim_device *sim)
{
	INIT_DELAYED_WORK(&sim->fault.port_up, port_up);
}

void sim_fault_destroy(struct sim_device *sim)
{
	cancel_delayed_work_sync(&sim->fault.port_up);
}

void sim_rule_add(struct sim_rule *rule)
{
	mutex_lock(&rules_lock);
	list_add_tail_rcu(&rule->entry, &rules);
	mutex_unlock(&rules_lock);
	static_branch_inc(&sim_faults);
}

/* What is late comes now: without rules nobody would look for it. */
static void late_end(void)
{
	struct sim_device *sim;
	struct sim_cq *cq;

	mutex_lock(&sim_devices_lock);
	list_for_each_entry(sim, &sim_devices, entry) {
		mutex_lock(&sim->lock);
		list_for_each_entry(cq, &sim->cqs, entry)
			sim_late_end(cq);
		mutex_unlock(&sim->lock);
	}
	mutex_unlock(&sim_devices_lock);
}

void sim_rule_remove(struct sim_rule *rule)
{
	sim_rule_enable(rule, false);
	mutex_lock(&rules_lock);
	list_del_rcu(&rule->entry);
	mutex_unlock(&rules_lock);
	synchronize_rcu();
	late_end();
	static_branch_dec(&sim_faults);
}

/* It begins to count anew; once it is disabled nobody looks at what it asks for. */
void sim_rule_enable(struct sim_rule *rule, bool enabled)
{
	if (rule->enabled == enabled)
		return;
	if (!enabled) {
		WRITE_ONCE(rule->enabled, false);
		synchronize_rcu();
		return;
	}
	atomic64_set(&rule->seen, 0);
	atomic64_set(&rule->hits, 0);
	/* ORDER: the rule before that it counts; pairs with rule_wants() */
	smp_store_release(&rule->enabled, true);
}
