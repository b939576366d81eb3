// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A ring of receives, of a queue pair or shared: consumers post at its head, whoever holds
 * @busy (or the queue pair's @rx_busy, where the ring is its own) takes from its end. A
 * slot is free again once its receive was taken and is not needed any more.
 */
#include <linux/log2.h>

#include "sim.h"

int sim_rq_init(struct sim_rq *rq, u32 depth, u32 max_sge, int node)
{
	raw_spin_lock_init(&rq->lock);
	rq->depth = depth;
	rq->max_sge = max_sge;
	if (!depth)
		return 0;
	rq->mask = roundup_pow_of_two(depth) - 1;
	rq->stride = struct_size((struct sim_rwqe *)NULL, sge, max_sge);
	rq->ring = kvzalloc_node(array_size(rq->mask + 1, rq->stride), GFP_KERNEL, node);
	return rq->ring ? 0 : -ENOMEM;
}

/* Nobody posts, nobody takes. */
void sim_rq_reset(struct sim_rq *rq)
{
	if (rq->ring)
		memset(rq->ring, 0, (size_t)(rq->mask + 1) * rq->stride);
	rq->head = 0;
	atomic_set(&rq->retired, 0);
	rq->next = 0;
}

void sim_rq_destroy(struct sim_rq *rq)
{
	kvfree(rq->ring);
}

static int rq_post_one(struct sim_rq *rq, const struct ib_recv_wr *wr)
{
	struct sim_rwqe *rwqe;
	int i;

	if (unlikely(wr->num_sge < 0 || wr->num_sge > rq->max_sge))
		return -EINVAL;
	if (unlikely(rq->head - (u32)atomic_read(&rq->retired) >= rq->depth))
		return -ENOMEM;
	rwqe = sim_rq_slot(rq, rq->head);
	rwqe->wr_id = wr->wr_id;
	rwqe->num_sge = wr->num_sge;
	for (i = 0; i < wr->num_sge; i++)
		rwqe->sge[i] = wr->sg_list[i];
	WRITE_ONCE(rq->head, rq->head + 1);
	/* ORDER: the receive before its number; pairs with sim_rq_peek() */
	smp_store_release(&rwqe->seq, rq->head);
	return 0;
}

int sim_rq_post(struct sim_rq *rq, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad_wr)
{
	unsigned long flags;
	int ret;

	for (; wr; wr = wr->next) {
		raw_spin_lock_irqsave(&rq->lock, flags);
		ret = rq_post_one(rq, wr);
		raw_spin_unlock_irqrestore(&rq->lock, flags);
		if (unlikely(ret)) {
			*bad_wr = wr;
			return ret;
		}
	}
	return 0;
}

/* The oldest receive, or NULL. */
const struct sim_rwqe *sim_rq_peek(struct sim_rq *rq)
{
	const struct sim_rwqe *rwqe;

	if (!rq->ring)
		return NULL;
	rwqe = sim_rq_slot(rq, rq->next);
	/* ORDER: pairs with rq_post_one() */
	return smp_load_acquire(&rwqe->seq) == rq->next + 1 ? rwqe : NULL;
}

/* Its slot may be written again. */
void sim_rq_consume(struct sim_rq *rq)
{
	rq->next++;
	atomic_inc(&rq->retired);
}
