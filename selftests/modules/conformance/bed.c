// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What a case stands on: pairs of queue pairs, each side with two CQs that nobody polls
 * but the case, and memory.
 */
#include <linux/delay.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "conformance.h"

#define DEPTH		16
#define TIMEOUT		19	/* 2 s: machines that emulate are slow */
#define FIRST_PSN	0x345678

static void completed(struct ib_cq *ib, void *context)
{
	struct conf_cq *cq = context;

	atomic_inc(&cq->wakeups);
}

static void cq_event(struct ib_event *event, void *context)
{
	struct conf_cq *cq = context;

	if (event->event < CONF_EVENTS)
		atomic_inc(&cq->events[event->event]);
}

static void qp_event(struct ib_event *event, void *context)
{
	struct side *side = context;

	if (event->event < CONF_EVENTS)
		atomic_inc(&side->events[event->event]);
}

static void srq_event(struct ib_event *event, void *context)
{
	struct bed *bed = context;

	if (event->event < CONF_EVENTS)
		atomic_inc(&bed->srq_events[event->event]);
}

bool event_seen(atomic_t *events, enum ib_event_type type)
{
	unsigned long end = conf_deadline();
	bool late;

	do {
		late = time_after(jiffies, end);
		if (atomic_read(&events[type]))
			return true;
		usleep_range(50, 100);
	} while (!late);
	return false;
}

int cq_create(struct ib_device *ib, struct conf_cq *cq, u32 nr_cqe)
{
	struct ib_cq_init_attr init = { .cqe = nr_cqe };

	cq->ib = ib_create_cq(ib, completed, cq_event, cq, &init);
	return PTR_ERR_OR_ZERO(cq->ib);
}

static void cq_destroy(struct conf_cq *cq)
{
	if (!IS_ERR_OR_NULL(cq->ib))
		ib_destroy_cq(cq->ib);
}

void side_init(struct side *side, struct ib_qp_init_attr *init)
{
	struct bed *bed = side->bed;

	*init = (struct ib_qp_init_attr){
		.event_handler = qp_event,
		.qp_context = side,
		.send_cq = side->scq->ib,
		.recv_cq = side->rcq->ib,
		.cap = {
			.max_send_wr = bed->attr.depth,
			.max_recv_wr = bed->attr.depth,
			.max_send_sge = bed->attr.sges,
			.max_recv_sge = bed->attr.sges,
			.max_inline_data = bed->attr.inline_data,
		},
		.sq_sig_type = bed->attr.sig_all ? IB_SIGNAL_ALL_WR : IB_SIGNAL_REQ_WR,
		.qp_type = bed->attr.type,
	};
	if (bed->srq && side > side->peer)
		init->srq = bed->srq;
}

static int side_cqs(struct side *side)
{
	struct bed *bed = side->bed;
	u32 nr_cqe = bed->attr.nr_cqe ?: 256;
	int err;

	if (bed->attr.one_cq && side != bed->side) {
		side->scq = &bed->side[0].cqs[0];
		side->rcq = side->scq;
		return 0;
	}
	side->scq = &side->cqs[0];
	side->rcq = bed->attr.one_cq ? side->scq : &side->cqs[1];
	err = cq_create(bed->ib, side->scq, nr_cqe);
	if (!err && !bed->attr.one_cq)
		err = cq_create(bed->ib, side->rcq, nr_cqe);
	return err;
}

/* On iWARP the QP comes with the connection. */
static int side_create(struct bed *bed, u32 index)
{
	struct side *side = &bed->side[index];
	int err;

	side->bed = bed;
	side->peer = &bed->side[index ^ 1];
	err = side_cqs(side);
	err = err ?: area_create(&side->area, bed->ib);
	if (err)
		return err;
	side_init(side, &side->init);
	if (bed->iwarp)
		return 0;
	side->qp = ib_create_qp(bed->pd, &side->init);
	return PTR_ERR_OR_ZERO(side->qp);
}

void side_destroy_qp(struct side *side)
{
	struct ib_qp *qp = side->qp;

	side->qp = NULL;
	if (!IS_ERR_OR_NULL(qp)) {
		if (side->id)
			rdma_destroy_qp(side->id);
		else
			ib_destroy_qp(qp);
	}
	if (side->id)
		rdma_destroy_id(side->id);
	side->id = NULL;
}

static int srq_create(struct bed *bed)
{
	struct ib_srq_init_attr init = {
		.event_handler = srq_event,
		.srq_context = bed,
		.attr = { .max_wr = bed->attr.depth, .max_sge = bed->attr.sges },
		.srq_type = IB_SRQT_BASIC,
	};

	bed->srq = ib_create_srq(bed->pd, &init);
	return PTR_ERR_OR_ZERO(bed->srq);
}

static int build(struct bed *bed)
{
	int err = 0;
	u32 i;

	bed->works = vzalloc(CONF_WORKS * sizeof(*bed->works));
	if (!bed->works)
		return -ENOMEM;
	bed->pd = ib_alloc_pd(bed->ib, 0);
	if (IS_ERR(bed->pd))
		return PTR_ERR(bed->pd);
	if (bed->attr.srq)
		err = srq_create(bed);
	for (i = 0; !err && i < 2 * bed->attr.pairs; i++)
		err = side_create(bed, i);
	if (err || bed->attr.raw)
		return err;
	return bed_connect(bed);
}

static bool type_missing(struct bed *bed, int err)
{
	if (bed->attr.type == IB_QPT_RC)
		return false;
	return bed->iwarp || err == -EOPNOTSUPP || err == -EINVAL;
}

/* NULL, and the case has failed or been skipped. */
struct bed *bed_create(struct ib_device *ib, const struct bed_attr *attr)
{
	struct bed *bed = kzalloc(sizeof(*bed), GFP_KERNEL);
	int err;

	if (!bed) {
		conf_fail("no memory for the test bed");
		return NULL;
	}
	bed->attr = *attr;
	bed->attr.type = attr->type ?: IB_QPT_RC;
	bed->attr.pairs = attr->pairs ?: 1;
	bed->attr.depth = attr->depth ?: DEPTH;
	bed->attr.sges = attr->sges ?: 2;
	bed->ib = ib;
	bed->timeout = TIMEOUT;
	bed->retry_cnt = 7;
	bed->rnr_retry = 7;
	bed->rd_atomic = min(4, ib->attrs.max_qp_rd_atom);
	bed->psn = FIRST_PSN;
	err = bed_path(bed);
	err = err ?: build(bed);
	if (!err)
		return bed;
	if (type_missing(bed, err))
		conf_skip("the device has no such QPs");
	else
		conf_fail("the test bed could not be built: error %d", err);
	bed_destroy(bed);
	return NULL;
}

void bed_destroy(struct bed *bed)
{
	struct side *side;

	for (side = bed->side; side < bed->side + CONF_SIDES; side++)
		side_destroy_qp(side);
	for (side = bed->side; side < bed->side + CONF_SIDES; side++) {
		area_destroy(&side->area);
		cq_destroy(&side->cqs[0]);
		cq_destroy(&side->cqs[1]);
	}
	if (!IS_ERR_OR_NULL(bed->srq))
		ib_destroy_srq(bed->srq);
	if (!IS_ERR_OR_NULL(bed->pd))
		ib_dealloc_pd(bed->pd);
	vfree(bed->works);
	kfree(bed);
}
