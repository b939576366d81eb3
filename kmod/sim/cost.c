// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Costs. The CPU's part, the doorbell, is spent where it is rung, by looking at the clock.
 * The HCA's part is a time that each WQE is due at: the owner of the queue pair reckons it
 * as it comes to the WQE, and waits. When its doorbell was rung the first WQE of a chain
 * tells; as WQEs are seen as soon as they are published, that is reckoned from the beginning
 * of the call.
 *
 * Reads of WQEs are counted by who posts, who alone knows what one doorbell was for. One
 * for each doorbell is not counted here, it is the number of doorbells.
 */
#include <linux/ktime.h>
#include <linux/percpu.h>

#include "sim.h"

DEFINE_STATIC_KEY_FALSE(sim_costs);

int sim_cost_init(struct sim_device *sim)
{
	sim->cost.pcie = alloc_percpu(struct sim_pcie);
	return sim->cost.pcie ? 0 : -ENOMEM;
}

/* No queue pair is left, and no knob. */
void sim_cost_destroy(struct sim_device *sim)
{
	struct kverbs_cost *model = rcu_dereference_protected(sim->cost.model, true);

	if (model)
		static_branch_dec(&sim_costs);
	kfree(model);
	free_percpu(sim->cost.pcie);
}

void sim_cost_get(struct sim_device *sim, struct kverbs_cost *cost)
{
	const struct kverbs_cost *model;

	rcu_read_lock();
	model = rcu_dereference(sim->cost.model);
	if (model)
		*cost = *model;
	else
		kverbs_cost_zero(cost);
	rcu_read_unlock();
}

static void replace_locked(struct sim_device *sim, struct kverbs_cost *model)
{
	struct kverbs_cost *old;

	old = rcu_replace_pointer(sim->cost.model, model, lockdep_is_held(&sim->cost.lock));
	if (model && !old)
		static_branch_inc(&sim_costs);
	else if (old && !model)
		static_branch_dec(&sim_costs);
	if (old) {
		synchronize_rcu();
		kfree(old);
	}
}

static int set_locked(struct sim_device *sim, const struct kverbs_cost *cost)
{
	struct kverbs_cost *model = NULL;

	if (!kverbs_cost_is_zero(cost)) {
		model = kmemdup(cost, sizeof(*cost), GFP_KERNEL);
		if (!model)
			return -ENOMEM;
	}
	replace_locked(sim, model);
	return 0;
}

int sim_cost_set(struct sim_device *sim, const struct kverbs_cost *cost)
{
	int ret;

	mutex_lock(&sim->cost.lock);
	ret = set_locked(sim, cost);
	mutex_unlock(&sim->cost.lock);
	return ret;
}

/* One of the constants, by where it is in struct kverbs_cost. */
int sim_cost_set_one(struct sim_device *sim, size_t offset, u32 value)
{
	struct kverbs_cost cost;
	int ret;

	mutex_lock(&sim->cost.lock);
	sim_cost_get(sim, &cost);
	*(u32 *)((void *)&cost + offset) = value;
	ret = set_locked(sim, &cost);
	mutex_unlock(&sim->cost.lock);
	return ret;
}

/* The sum of what the CPUs have counted. */
struct sim_pcie sim_cost_pcie(const struct sim_device *sim)
{
	struct sim_pcie sum = {};
	int cpu;

	for_each_possible_cpu(cpu) {
		const struct sim_pcie *pcie = per_cpu_ptr(sim->cost.pcie, cpu);

		sum.fetches += READ_ONCE(pcie->fetches);
		sum.blueflames += READ_ONCE(pcie->blueflames);
	}
	return sum;
}

/* A chain is going to be posted. */
void sim_cost_open(struct sim_qp *qp, const struct ib_send_wr *first, struct sim_ring *ring)
{
	struct sim_device *sim = sim_of_qp(qp);

	ring->alone = !first->next;
	ring->costly = rcu_access_pointer(sim->cost.model);
	ring->now = ring->costly ? ktime_get_ns() : 0;
	ring->run = (struct kverbs_cost_run) {};
	sim_cost_get(sim, &ring->cost);
}

static bool sends_data(const struct sim_wqe *wqe)
{
	switch (wqe->opcode) {
	case IB_WR_RDMA_READ:
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		return false;
	default:
		return true;
	}
}

/* As the model sees a WQE; whatever has no data has no list either. */
static struct kverbs_cost_wqe shape_of(const struct sim_wqe *wqe)
{
	u32 inline_bytes = wqe->flags & IB_SEND_INLINE ? wqe->length : 0;

	return (struct kverbs_cost_wqe) {
		.bytes = kverbs_cost_wqe_bytes(wqe->num_sge, inline_bytes),
		.reads = sends_data(wqe) ? wqe->num_sge : 0,
		.length = wqe->length,
	};
}

/* A WQE of so many bytes, which nobody else sees yet. */
void sim_cost_wqe(struct sim_ring *ring, struct sim_wqe *wqe, u32 bytes)
{
	if (!ring->run.doorbells) {
		kverbs_cost_ring(&ring->cost, &ring->run, 0, bytes, ring->alone);
		if (ring->costly) {
			wqe->flags |= SIM_WQE_RUNG;
			if (ring->run.blueflames)
				wqe->flags |= SIM_WQE_BLUEFLAME;
			wqe->rung_ns = ring->now + ring->cost.doorbell_ns;
		}
	}
	kverbs_cost_fetch(&ring->cost, &ring->run, bytes);
}

/* As an MMIO write holds a CPU up: nothing else runs on it that could not interrupt it. */
static void spin(u32 ns)
{
	u64 end = ktime_get_ns() + min_t(u32, ns, SIM_MAX_DOORBELL_NS);

	while (ktime_get_ns() < end)
		cpu_relax();
}

/* The doorbell: the CPU's part. */
void sim_cost_ring(struct sim_qp *qp, const struct sim_ring *ring)
{
	struct sim_pcie __percpu *pcie = sim_of_qp(qp)->cost.pcie;
	s64 fetches = (s64)ring->run.wqe_fetches - 1;

	if (fetches)
		this_cpu_add(pcie->fetches, fetches);
	if (ring->run.blueflames)
		this_cpu_inc(pcie->blueflames);
	if (ring->cost.doorbell_ns)
		spin(ring->cost.doorbell_ns);
}

/* Of its own, or of the receive that it takes. */
static bool has_cqe(const struct sim_wqe *wqe)
{
	switch (wqe->opcode) {
	case IB_WR_SEND:
	case IB_WR_SEND_WITH_IMM:
	case IB_WR_SEND_WITH_INV:
	case IB_WR_RDMA_WRITE_WITH_IMM:
		return true;
	default:
		return wqe->flags & IB_SEND_SIGNALED;
	}
}

/* The owner comes to a WQE for the first time. */
static void reckon(struct sim_qp *qp, const struct sim_wqe *wqe, const struct kverbs_cost *cost)
{
	struct kverbs_cost_run *run = &qp->cost.run;
	struct kverbs_cost_wqe shape = shape_of(wqe);

	if (wqe->flags & SIM_WQE_RUNG) {
		struct kverbs_cost as_rung = *cost;

		/* It came with its doorbell or not, whatever was set since. */
		as_rung.blueflame_bytes = wqe->flags & SIM_WQE_BLUEFLAME ? U32_MAX : 0;
		kverbs_cost_ring(&as_rung, run, wqe->rung_ns, shape.bytes, true);
	}
	qp->cost.due = kverbs_cost_execute(cost, run, &shape);
	if (has_cqe(wqe))
		qp->cost.due += cost->cqe_ns;
	qp->cost.timed = qp->sq->next + 1;
}

bool __sim_cost_early(struct sim_qp *qp, const struct sim_wqe *wqe)
{
	const struct kverbs_cost *cost;
	u64 now;

	/* A run is a read side section of either kind. */
	cost = rcu_dereference_check(sim_of_qp(qp)->cost.model, rcu_read_lock_bh_held());
	if (!cost)
		return false;
	if (qp->cost.timed != qp->sq->next + 1)
		reckon(qp, wqe, cost);
	now = ktime_get_ns();
	if (now >= qp->cost.due)
		return false;
	qp->pause_ns = qp->cost.due - now;
	return true;
}

u32 __sim_cost_interrupt_ns(struct sim_device *sim)
{
	const struct kverbs_cost *model;
	u32 ns = 0;

	rcu_read_lock();
	model = rcu_dereference(sim->cost.model);
	if (model)
		ns = model->interrupt_ns;
	rcu_read_unlock();
	return ns;
}
