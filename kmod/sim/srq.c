// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Shared receive queues. A queue pair that takes a receive copies it and keeps it until a
 * message has used it.
 */
#include "sim.h"

int sim_create_srq(struct ib_srq *ib, struct ib_srq_init_attr *init, struct ib_udata *udata)
{
	struct sim_srq *srq = to_sim_srq(ib);

	if (init->srq_type != IB_SRQT_BASIC)
		return -EOPNOTSUPP;
	if (!init->attr.max_wr || init->attr.max_wr > SIM_MAX_SRQ_WR ||
	    init->attr.max_sge > SIM_MAX_SGE)
		return -EINVAL;
	return sim_rq_init(&srq->rq, init->attr.max_wr, init->attr.max_sge, NUMA_NO_NODE);
}

int sim_modify_srq(struct ib_srq *ib, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask,
		   struct ib_udata *udata)
{
	struct sim_srq *srq = to_sim_srq(ib);

	if (mask & ~IB_SRQ_LIMIT)
		return -EOPNOTSUPP;
	if (mask & IB_SRQ_LIMIT) {
		if (attr->srq_limit > srq->rq.depth)
			return -EINVAL;
		WRITE_ONCE(srq->limit, attr->srq_limit);
	}
	return 0;
}

int sim_query_srq(struct ib_srq *ib, struct ib_srq_attr *attr)
{
	const struct sim_srq *srq = to_sim_srq(ib);

	attr->max_wr = srq->rq.depth;
	attr->max_sge = srq->rq.max_sge;
	attr->srq_limit = READ_ONCE(srq->limit);
	return 0;
}

int sim_destroy_srq(struct ib_srq *ib, struct ib_udata *udata)
{
	sim_rq_destroy(&to_sim_srq(ib)->rq);
	return 0;
}

int sim_post_srq_recv(struct ib_srq *ib, const struct ib_recv_wr *wr,
		      const struct ib_recv_wr **bad_wr)
{
	return sim_rq_post(&to_sim_srq(ib)->rq, wr, bad_wr);
}

static void limit_check(struct sim_srq *srq)
{
	u32 limit = READ_ONCE(srq->limit);
	struct ib_event event = {
		.device = srq->ib.device,
		.element.srq = &srq->ib,
		.event = IB_EVENT_SRQ_LIMIT_REACHED,
	};

	if (!limit || READ_ONCE(srq->rq.head) - srq->rq.next >= limit)
		return;
	/* One event for each time that it was set. */
	if (cmpxchg(&srq->limit, limit, 0) == limit && srq->ib.event_handler)
		srq->ib.event_handler(&event, srq->ib.srq_context);
}

/* Copy the oldest receive to @rwqe, which has room for it. */
u32 sim_srq_take(struct sim_srq *srq, struct sim_rwqe *rwqe)
{
	const struct sim_rwqe *from;

	if (test_and_set_bit_lock(0, &srq->rq.busy))
		return SIM_BUSY;
	from = sim_rq_peek(&srq->rq);
	if (from) {
		memcpy(rwqe, from, struct_size(from, sge, from->num_sge));
		sim_rq_consume(&srq->rq);
		limit_check(srq);
	}
	clear_bit_unlock(0, &srq->rq.busy);
	return from ? IB_WC_SUCCESS : SIM_RNR_NAK;
}
