// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Posts of every shape, for tracers to count: loading the module makes them, on a QP
 * that was never connected, so that the driver refuses each and nothing is sent. What
 * was posted is in the kernel's log, a line an opcode:
 *
 *   kverbs_posts: OPCODE POSTS WORK-REQUESTS SIGNALED INLINE BYTES
 *
 * With interrupt_us a timer posts as well, in hard interrupts, so that it meets the
 * others in the middle of the call and of whatever watches it.
 */
#include <linux/hrtimer.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>

#include "../../kmod/compat.h"

#define POSTS_MAX_CHAIN	2048
#define POSTS_MAX_SGES	40

static char *device = "rxe0";
module_param(device, charp, 0444);
MODULE_PARM_DESC(device, "RDMA device to post on");

static uint rounds = 10;
module_param(rounds, uint, 0444);
MODULE_PARM_DESC(rounds, "times that each shape is posted");

static uint interrupt_us;
module_param(interrupt_us, uint, 0444);
MODULE_PARM_DESC(interrupt_us, "microseconds between posts in hard interrupts; 0: none");

static bool shapes = true;
module_param(shapes, bool, 0444);
MODULE_PARM_DESC(shapes, "post all shapes, not only writes");

struct posts_shape {
	const char *name;
	u32 opcode;
	int flags;
	u32 chain;
	u32 sges;
};

/* The first is the one that is posted without shapes, the last that of interrupts. */
static const struct posts_shape posts_shapes[] = {
	{ "write", IB_WR_RDMA_WRITE, IB_SEND_SIGNALED, 1, 1 },
	{ "write", IB_WR_RDMA_WRITE, 0, 16, 2 },
	{ "write_imm", IB_WR_RDMA_WRITE_WITH_IMM, IB_SEND_SIGNALED | IB_SEND_FENCE, 3, 1 },
	{ "send", IB_WR_SEND, IB_SEND_INLINE, 1, 3 },
	{ "send", IB_WR_SEND, IB_SEND_INLINE | IB_SEND_SIGNALED, 7, 32 },
	{ "send_imm", IB_WR_SEND_WITH_IMM, IB_SEND_SOLICITED, 1, 0 },
	{ "send_inv", IB_WR_SEND_WITH_INV, IB_SEND_SIGNALED | IB_SEND_SOLICITED, 2, 1 },
	{ "read", IB_WR_RDMA_READ, IB_SEND_SIGNALED | IB_SEND_IP_CSUM, 64, 4 },
	{ "read_inv", IB_WR_RDMA_READ_WITH_INV, 0, 1, 1 },
	{ "cmp_swp", IB_WR_ATOMIC_CMP_AND_SWP, IB_SEND_SIGNALED, 1, 1 },
	{ "local_inv", IB_WR_LOCAL_INV, 0, 1, 0 },
	{ "reg_mr", IB_WR_REG_MR, 0, 2, 0 },
	{ "reg_mr_integrity", IB_WR_REG_MR_INTEGRITY, 0, 1, 0 },
	{ "other", IB_WR_RESERVED1, IB_SEND_SIGNALED, 1, 1 },
	{ "flush", 14, 0, 1024, 1 },
	/* Longer than a tracer need follow. */
	{ "tso", IB_WR_LSO, 0, POSTS_MAX_CHAIN, 1 },
	{ "masked_cmp_swp", IB_WR_MASKED_ATOMIC_CMP_AND_SWP, 0, 1, POSTS_MAX_SGES },
	{ "fetch_add", IB_WR_ATOMIC_FETCH_AND_ADD, IB_SEND_SIGNALED, 1, 1 },
};

struct posts_rig {
	struct ib_device *dev;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp;
	struct ib_qp *irq_qp;
	struct ib_rdma_wr *wr;
	struct ib_sge *sge;
	struct ib_rdma_wr irq_wr;
	struct ib_sge irq_sge;
	struct hrtimer timer;
	u64 count[ARRAY_SIZE(posts_shapes)];
};

static const struct posts_shape *const irq_shape = &posts_shapes[ARRAY_SIZE(posts_shapes) - 1];

/* Lengths differ, or a sum of them proves little. */
static u32 sge_length(u32 i)
{
	return 8 + 3 * i;
}

static void fill_chain(struct ib_rdma_wr *wr, struct ib_sge *sge, const struct posts_shape *shape)
{
	u32 i;

	for (i = 0; i < shape->sges; i++)
		sge[i] = (struct ib_sge){ .length = sge_length(i) };
	for (i = 0; i < shape->chain; i++) {
		wr[i] = (struct ib_rdma_wr){
			.wr = {
				.next = i + 1 < shape->chain ? &wr[i + 1].wr : NULL,
				.opcode = shape->opcode,
				.send_flags = shape->flags,
				.num_sge = shape->sges,
				/* Without SGEs, a pointer that nobody must follow. */
				.sg_list = sge,
			},
		};
	}
}

static void post(struct posts_rig *rig, struct ib_qp *qp, struct ib_rdma_wr *wr, size_t which)
{
	const struct ib_send_wr *bad;

	if (!ib_post_send(qp, &wr->wr, &bad))
		pr_err_once("kverbs_posts: a QP that is not connected took a work request\n");
	rig->count[which]++;
}

static enum hrtimer_restart post_in_interrupt(struct hrtimer *timer)
{
	struct posts_rig *rig = container_of(timer, struct posts_rig, timer);

	post(rig, rig->irq_qp, &rig->irq_wr, irq_shape - posts_shapes);
	hrtimer_forward_now(timer, ns_to_ktime(interrupt_us * 1000ULL));
	return HRTIMER_RESTART;
}

static void post_all(struct posts_rig *rig)
{
	size_t last = shapes ? ARRAY_SIZE(posts_shapes) - !!interrupt_us : 1, i;
	u32 n;

	for (i = 0; i < last; i++) {
		fill_chain(rig->wr, rig->sge, &posts_shapes[i]);
		for (n = 0; n < rounds; n++) {
			post(rig, rig->qp, rig->wr, i);
			cond_resched();
		}
	}
}

static void run(struct posts_rig *rig)
{
	if (interrupt_us) {
		fill_chain(&rig->irq_wr, &rig->irq_sge, irq_shape);
		hrtimer_start(&rig->timer, ns_to_ktime(interrupt_us * 1000ULL),
			      HRTIMER_MODE_REL_HARD);
	}
	post_all(rig);
	if (interrupt_us)
		hrtimer_cancel(&rig->timer);
}

/* A line for each opcode: shapes of the same one stand behind each other. */
static void report(const struct posts_rig *rig)
{
	u64 posts = 0, wrs = 0, signaled = 0, inlined = 0, bytes = 0, n;
	const struct posts_shape *shape = posts_shapes;
	size_t i;
	u32 sge;

	for (i = 0; i < ARRAY_SIZE(posts_shapes); i++, shape++) {
		posts += rig->count[i];
		n = rig->count[i] * shape->chain;
		wrs += n;
		signaled += shape->flags & IB_SEND_SIGNALED ? n : 0;
		inlined += shape->flags & IB_SEND_INLINE ? n : 0;
		for (sge = 0; sge < shape->sges; sge++)
			bytes += n * sge_length(sge);
		if (shape + 1 < posts_shapes + ARRAY_SIZE(posts_shapes) &&
		    shape[1].opcode == shape->opcode)
			continue;
		if (posts)
			pr_info("kverbs_posts: %s %llu %llu %llu %llu %llu\n", shape->name, posts,
				wrs, signaled, inlined, bytes);
		posts = 0;
		wrs = 0;
		signaled = 0;
		inlined = 0;
		bytes = 0;
	}
}

static struct ib_qp *create_qp(struct posts_rig *rig)
{
	struct ib_qp_init_attr attr = {
		.send_cq = rig->cq,
		.recv_cq = rig->cq,
		.cap = {
			.max_send_wr = 1,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
	};

	return ib_create_qp(rig->pd, &attr);
}

static int run_on_qps(struct posts_rig *rig)
{
	rig->qp = create_qp(rig);
	if (IS_ERR(rig->qp))
		return PTR_ERR(rig->qp);
	rig->irq_qp = create_qp(rig);
	if (IS_ERR(rig->irq_qp)) {
		ib_destroy_qp(rig->qp);
		return PTR_ERR(rig->irq_qp);
	}
	run(rig);
	report(rig);
	ib_destroy_qp(rig->irq_qp);
	ib_destroy_qp(rig->qp);
	return 0;
}

static int run_on_device(struct posts_rig *rig)
{
	int ret;

	rig->pd = ib_alloc_pd(rig->dev, 0);
	if (IS_ERR(rig->pd))
		return PTR_ERR(rig->pd);
	rig->cq = ib_alloc_cq(rig->dev, rig, 16, 0, IB_POLL_DIRECT);
	if (IS_ERR(rig->cq)) {
		ret = PTR_ERR(rig->cq);
		goto out_pd;
	}
	ret = run_on_qps(rig);
	ib_free_cq(rig->cq);
out_pd:
	ib_dealloc_pd(rig->pd);
	return ret;
}

static int __init kverbs_posts_init(void)
{
	struct posts_rig *rig;
	int ret = -ENOMEM;

	rig = kzalloc(sizeof(*rig), GFP_KERNEL);
	if (!rig)
		return -ENOMEM;
	hrtimer_setup(&rig->timer, post_in_interrupt, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
	rig->wr = kvcalloc(POSTS_MAX_CHAIN, sizeof(*rig->wr), GFP_KERNEL);
	rig->sge = kcalloc(POSTS_MAX_SGES, sizeof(*rig->sge), GFP_KERNEL);
	if (!rig->wr || !rig->sge)
		goto out;
	rig->dev = ib_device_get_by_name(device, RDMA_DRIVER_UNKNOWN);
	if (!rig->dev) {
		ret = -ENODEV;
		goto out;
	}
	ret = run_on_device(rig);
	ib_device_put(rig->dev);
out:
	kfree(rig->sge);
	kvfree(rig->wr);
	kfree(rig);
	return ret;
}
module_init(kverbs_posts_init);

static void __exit kverbs_posts_exit(void)
{
}
module_exit(kverbs_posts_exit);

MODULE_DESCRIPTION("kverbs: posts of every shape, for tests of tracers");
MODULE_LICENSE("Dual BSD/GPL");
