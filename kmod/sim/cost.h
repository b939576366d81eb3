/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the HCA costs (kverbs/core/cost.h), and what of it crosses PCIe. As long as nothing
 * costs anything no clock is read, and what is left of a doorbell is the sum of its WQEs.
 */
#ifndef _KVERBS_SIM_COST_H
#define _KVERBS_SIM_COST_H

#include <linux/jump_label.h>
#include <linux/mutex.h>
#include <linux/percpu-defs.h>
#include <rdma/ib_verbs.h>

#include <kverbs/core/cost.h>

struct config_item;
struct sim_device;
struct sim_qp;
struct sim_wqe;

/* Marks of a WQE, among its send flags, that say what its doorbell costs. */
#define SIM_WQE_RUNG		BIT(6)	/* the first of its doorbell; it says when that was */
#define SIM_WQE_BLUEFLAME	BIT(7)	/* and came with it */

/* A CPU is not taken for longer, whatever a doorbell costs. */
#define SIM_MAX_DOORBELL_NS	NSEC_PER_MSEC

/**
 * struct sim_pcie - what a CPU's doorbells have caused
 * @fetches: reads of WQEs, less one for each doorbell
 * @blueflames: WQEs that came with their doorbell
 */
struct sim_pcie {
	s64 fetches;
	u64 blueflames;
};

/**
 * struct sim_device_cost - of a device
 * @model: the constants; NULL: nothing costs anything
 * @lock: of who sets them
 * @pcie: counted by who posts, as queue pairs may be shared
 */
struct sim_device_cost {
	struct kverbs_cost __rcu *model;
	struct mutex lock;	/* of who sets them */
	struct sim_pcie __percpu *pcie;
};

/**
 * struct sim_qp_cost - of a queue pair, its owner's
 * @run: where the HCA is
 * @timed: the WQE that @due is of, its index plus one
 * @due: when it is to be executed
 */
struct sim_qp_cost {
	struct kverbs_cost_run run;
	u32 timed;
	u64 due;
};

/**
 * struct sim_ring - a doorbell that is going to be rung while something costs
 * @alone: it is for one work request
 * @costly: something costs on this device
 * @now: when the call began
 * @cost: the constants
 * @run: what it causes
 */
struct sim_ring {
	bool alone;
	bool costly;
	u64 now;
	struct kverbs_cost cost;
	struct kverbs_cost_run run;
};

DECLARE_STATIC_KEY_FALSE(sim_costs);	/* something costs on some device */

static inline bool sim_costly(void)
{
	return static_branch_unlikely(&sim_costs);
}

/* cost.c */
int sim_cost_init(struct sim_device *sim);
void sim_cost_destroy(struct sim_device *sim);
void sim_cost_get(struct sim_device *sim, struct kverbs_cost *cost);
int sim_cost_set(struct sim_device *sim, const struct kverbs_cost *cost);
int sim_cost_set_one(struct sim_device *sim, size_t offset, u32 value);
struct sim_pcie sim_cost_pcie(const struct sim_device *sim);
void sim_cost_open(struct sim_qp *qp, const struct ib_send_wr *first, struct sim_ring *ring);
void sim_cost_wqe(struct sim_ring *ring, struct sim_wqe *wqe, u32 bytes);
void sim_cost_ring(struct sim_qp *qp, const struct sim_ring *ring);
bool __sim_cost_early(struct sim_qp *qp, const struct sim_wqe *wqe);
u32 __sim_cost_interrupt_ns(struct sim_device *sim);

/*
 * A doorbell that costs nothing, for so many bytes of WQEs. They lie one behind the other:
 * each read but the last brings all that it can.
 */
static inline void sim_cost_free(const struct sim_device_cost *cost, u32 bytes)
{
	if (bytes > KVERBS_COST_FETCH_BYTES)
		this_cpu_add(cost->pcie->fetches, (bytes - 1) / KVERBS_COST_FETCH_BYTES);
}

/* Whether it is too early to execute a WQE: until when, @pause_ns of the queue pair says. */
static inline bool sim_cost_early(struct sim_qp *qp, const struct sim_wqe *wqe)
{
	return sim_costly() && __sim_cost_early(qp, wqe);
}

/* From a CQE to the handler. */
static inline u32 sim_cost_interrupt_ns(struct sim_device *sim)
{
	return sim_costly() ? __sim_cost_interrupt_ns(sim) : 0;
}

/* cost_knobs.c */
extern const struct config_item_type sim_cost_type;

#endif /* _KVERBS_SIM_COST_H */
