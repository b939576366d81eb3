// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The scripted HCA. It takes work requests, executes them in order when it is told to,
 * and gives CQEs as a driver would: one for each that is signaled, one for each that
 * fails, and once it is in error one for each. It knows what really happened, so the
 * cases hold against it what the engine tells. And it judges what it is given: a send
 * queue that is overrun, a CQ that overflows, a CQ that two poll at once.
 *
 * The event handler is called with the locks of the HCA and of the CQ held, also from
 * inside post_send: drivers do either.
 */
#include <linux/errno.h>
#include <linux/slab.h>

#include "engine.h"

/* A place whose CQE is polled gives back all up to it. */
struct hca_cqe {
	struct ib_wc wc;
	struct hca *hca;
	u32 frees;
};

static const struct ib_send_wr no_wr;

static struct hca_wqe *wqe_at(struct hca *hca, u32 number)
{
	return &hca->ring[number % hca->size];
}

const struct hca_wqe *hca_wqe(struct hca *hca, u32 number)
{
	return wqe_at(hca, number);
}

static void event(struct rig *rig)
{
	rig->hca_cq.events++;
	rig->cq->comp_handler(rig->cq, rig->cq->cq_context);
}

/* A completion event that nobody armed the CQ for, or for nothing. */
void hca_event(struct rig *rig)
{
	unsigned long irq;

	if (rig->attr.cq == RIG_DIRECT)
		return;
	spin_lock_irqsave(&rig->hca_cq.lock, irq);
	event(rig);
	spin_unlock_irqrestore(&rig->hca_cq.lock, irq);
}

static void add(struct hca *hca, u32 number, enum ib_wc_status status, u32 frees)
{
	struct rig *rig = hca->queue->rig;
	struct hca_cq *cq = &rig->hca_cq;
	struct hca_cqe *cqe;

	if (cq->tail - cq->head == cq->size) {
		engine_fail("the CQ overflows");
		return;
	}
	cqe = &cq->ring[cq->tail++ % cq->size];
	*cqe = (struct hca_cqe){
		.wc = {
			.wr_cqe = wqe_at(hca, number)->cqe,
			.status = status,
			.vendor_err = status == IB_WC_SUCCESS ? 0 : 0x42,
			.qp = hca->queue->qp,
		},
		.hca = hca,
		.frees = frees,
	};
	if (cq->armed) {
		cq->armed = false;
		event(rig);
	}
}

static void complete_wqe(struct hca *hca, u32 number, enum ib_wc_status status, u32 frees)
{
	struct hca_cq *cq = &hca->queue->rig->hca_cq;
	unsigned long irq;

	spin_lock_irqsave(&cq->lock, irq);
	hca->reported = number + 1;
	if (cq->lose) {
		cq->lose--;
	} else {
		add(hca, number, status, frees);
		if (cq->twice) {
			cq->twice--;
			add(hca, number, status, frees);
		}
	}
	spin_unlock_irqrestore(&cq->lock, irq);
}

/* The CQE of a work request, once more or though it was not its turn. */
void hca_cqe_add(struct hca *hca, u32 number, enum ib_wc_status status)
{
	struct hca_cq *cq = &hca->queue->rig->hca_cq;
	unsigned long irq;

	spin_lock_irqsave(&cq->lock, irq);
	add(hca, number, status, hca->freed);
	spin_unlock_irqrestore(&cq->lock, irq);
}

static void execute(struct hca *hca, u32 number, u32 frees)
{
	const struct hca_wqe *wqe = wqe_at(hca, number);

	if (hca->error) {
		complete_wqe(hca, number, IB_WC_WR_FLUSH_ERR, frees);
	} else if (number == hca->fail_at) {
		hca->error = true;
		complete_wqe(hca, number, hca->fail_status, frees);
	} else {
		traffic_executed(hca->queue, wqe);
		if (wqe->signaled)
			complete_wqe(hca, number, IB_WC_SUCCESS, frees);
	}
}

static u32 execute_locked(struct hca *hca, u32 nr)
{
	u32 done = 0, number;

	while (done < nr && hca->executed != hca->posted) {
		number = hca->executed;
		if (number == hca->overtake_at && number + 1 != hca->posted) {
			hca->executed += 2;
			done += 2;
			execute(hca, number + 1, number);
			execute(hca, number, number + 2);
			continue;
		}
		hca->executed++;
		done++;
		execute(hca, number, number + 1);
	}
	return done;
}

/* Execute at most so many; returns how many there were. */
u32 hca_execute(struct hca *hca, u32 nr)
{
	unsigned long irq;
	u32 done;

	if (READ_ONCE(hca->executed) == READ_ONCE(hca->posted))
		return 0;
	spin_lock_irqsave(&hca->lock, irq);
	done = execute_locked(hca, nr);
	spin_unlock_irqrestore(&hca->lock, irq);
	return done;
}

/* The QP goes to ERR. */
void hca_error(struct hca *hca)
{
	unsigned long irq;
	u32 number;

	spin_lock_irqsave(&hca->lock, irq);
	if (!hca->error) {
		hca->error = true;
		/* Some flush what is silent, though it has been executed. */
		for (number = hca->reported; hca->flush_silent && number != hca->executed; number++)
			complete_wqe(hca, number, IB_WC_WR_FLUSH_ERR, number + 1);
	}
	execute_locked(hca, U32_MAX);
	spin_unlock_irqrestore(&hca->lock, irq);
}

static bool refuses(struct hca *hca, const struct ib_send_wr *wr)
{
	if (hca->refuse == HCA_TAKE)
		return false;
	/* Not the no-op, which is of no group: without it the queue could not go on. */
	if (hca->refuse_every)
		return wr->ex.imm_data && prandom_u32_state(&hca->rnd) % hca->refuse_every == 0;
	return hca->posted == hca->refuse_at;
}

/* What it says of a chain of which it did not take @at and what follows. */
static int refuse(struct hca *hca, const struct ib_send_wr *first, const struct ib_send_wr *at,
		  const struct ib_send_wr **bad)
{
	int err = hca->refuse_errno;

	switch (hca->refuse) {
	case HCA_REFUSE_POSITIVE:
		*bad = at;
		err = -err;
		break;
	case HCA_REFUSE_UNSET:
		break;
	case HCA_REFUSE_OUTSIDE:
		*bad = &no_wr;
		break;
	case HCA_REFUSE_HEAD:
		*bad = first;
		err = -ENOMEM;
		break;
	default:
		*bad = at;
	}
	if (!hca->refuse_every)
		hca->refuse = HCA_TAKE;
	return err;
}

static void take(struct hca *hca, const struct ib_send_wr *wr)
{
	struct hca_wqe *wqe = wqe_at(hca, hca->posted);
	u32 i;

	if (hca->posted - READ_ONCE(hca->freed) >= hca->size)
		engine_fail("the send queue is overrun: %u posted, %u given back, depth %u",
			    hca->posted, hca->freed, hca->size);
	*wqe = (struct hca_wqe){
		.cqe = wr->wr_cqe,
		.tag = (__force u32)wr->ex.imm_data,
		.opcode = wr->opcode,
		.signaled = wr->send_flags & IB_SEND_SIGNALED,
		.inlined = wr->send_flags & IB_SEND_INLINE,
		.addr = wr->num_sge ? wr->sg_list[0].addr : 0,
	};
	for (i = 0; i < wr->num_sge; i++)
		wqe->bytes += wr->sg_list[i].length;
	hca->signaled += wqe->signaled;
	hca->posted++;
}

int hca_post(struct hca *hca, const struct ib_send_wr *wr, const struct ib_send_wr **bad)
{
	const struct ib_send_wr *first = wr;
	unsigned long irq;
	int err = 0;
	u32 nr = 0;

	if (hca->on_post)
		hca->on_post(hca);
	spin_lock_irqsave(&hca->lock, irq);
	hca->calls++;
	for (; wr; wr = wr->next) {
		if (refuses(hca, wr)) {
			err = refuse(hca, first, wr, bad);
			break;
		}
		take(hca, wr);
		nr++;
	}
	hca->largest = max(hca->largest, nr);
	if (hca->error && !hca->by_hand)
		execute_locked(hca, U32_MAX);
	else if (hca->in_post)
		execute_locked(hca, hca->in_post);
	spin_unlock_irqrestore(&hca->lock, irq);
	wake_up(&hca->queue->rig->posted);
	return err;
}

int hca_poll(struct rig *rig, int nr, struct ib_wc *wc)
{
	struct hca_cq *cq = &rig->hca_cq;
	struct hca_cqe *cqe;
	unsigned long irq;
	int n = 0;

	if (atomic_inc_return(&cq->polling) != 1)
		engine_fail("two poll the CQ at once");
	spin_lock_irqsave(&cq->lock, irq);
	while (n < nr && cq->head != cq->tail) {
		cqe = &cq->ring[cq->head++ % cq->size];
		if ((s32)(cqe->frees - cqe->hca->freed) > 0)
			WRITE_ONCE(cqe->hca->freed, cqe->frees);
		wc[n++] = cqe->wc;
	}
	spin_unlock_irqrestore(&cq->lock, irq);
	atomic_dec(&cq->polling);
	return n;
}

/* A completion that comes before this is reported or lost; one that comes after is an event. */
int hca_arm(struct rig *rig, enum ib_cq_notify_flags flags)
{
	struct hca_cq *cq = &rig->hca_cq;
	unsigned long irq;
	bool missed;
	u32 i;

	for (i = 0; cq->race && i < rig->attr.queues; i++)
		if (hca_execute(rig->queue[i].hca, 1))
			cq->races++;
	spin_lock_irqsave(&cq->lock, irq);
	if (cq->deaf) {
		cq->deaf--;
		spin_unlock_irqrestore(&cq->lock, irq);
		return -EIO;
	}
	missed = cq->head != cq->tail;
	cq->armed = true;
	spin_unlock_irqrestore(&cq->lock, irq);
	return missed && flags & IB_CQ_REPORT_MISSED_EVENTS;
}

int hca_cq_create(struct rig *rig)
{
	struct hca_cq *cq = &rig->hca_cq;

	spin_lock_init(&cq->lock);
	cq->size = rig->attr.nr_cqe;
	/* Its owner arms it before the rig knows that it is there. */
	cq->armed = rig->attr.cq != RIG_DIRECT;
	cq->ring = kvcalloc(cq->size, sizeof(*cq->ring), GFP_KERNEL);
	return cq->ring ? 0 : -ENOMEM;
}

void hca_cq_destroy(struct rig *rig)
{
	kvfree(rig->hca_cq.ring);
}

int hca_create(struct rig_queue *queue)
{
	struct hca *hca = kzalloc(sizeof(*hca), GFP_KERNEL);

	if (!hca)
		return -ENOMEM;
	hca->size = queue->rig->attr.depth;
	hca->ring = kvcalloc(hca->size, sizeof(*hca->ring), GFP_KERNEL);
	if (!hca->ring) {
		kfree(hca);
		return -ENOMEM;
	}
	spin_lock_init(&hca->lock);
	prandom_seed_state(&hca->rnd, engine_random());
	hca->queue = queue;
	hca->fail_at = U32_MAX;
	hca->refuse_at = U32_MAX;
	hca->overtake_at = U32_MAX;
	hca->refuse_errno = -EINVAL;
	WRITE_ONCE(queue->hca, hca);
	return 0;
}

void hca_destroy(struct rig_queue *queue)
{
	if (queue->hca) {
		kvfree(queue->hca->ring);
		kfree(queue->hca);
	}
	queue->hca = NULL;
}
