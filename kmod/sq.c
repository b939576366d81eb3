// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A send queue comes and goes.
 *
 * It belongs to its creator, who owns the QP too. Its slots may outlive it: on a CQ of
 * ib_core a late CQE can still lead to them, or one that a driver delivers twice. The CQ
 * may outlive the device's object here, too, so after an end that was not clean they stay
 * until the module leaves. After a clean one nothing more is due, and the QP is gone: what
 * there may be is a second CQE that the CQ holds already. They stay for a while.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "path.h"

#define DEFAULT_CQE_TIMEOUT	60	/* seconds */

/* A queue is no power of two in size: a cache of their own wastes little. */
static struct kmem_cache *sq_cache;

int kverbs_sqs_init(void)
{
	sq_cache = KMEM_CACHE(kverbs_sq, SLAB_HWCACHE_ALIGN);
	return sq_cache ? 0 : -ENOMEM;
}

/* Slots of queues that are gone, linked by the reference in the first of each. */
static DEFINE_MUTEX(quarantine_lock);
static struct kverbs_slot *quarantined;
static struct kverbs_slot *resting, *aged;	/* of those that ended clean */

/* They rest for one to two of these: longer than any CQ that is polled is not polled. */
#define REST	(60 * HZ)

static void free_slots(struct kverbs_slot *slots)
{
	struct kverbs_slot *next;

	for (; slots; slots = next) {
		next = (struct kverbs_slot *)slots->ref;
		kvfree(slots);
	}
}

static void age(struct work_struct *work);
static DECLARE_DELAYED_WORK(ageing, age);

static void age(struct work_struct *work)
{
	mutex_lock(&quarantine_lock);
	free_slots(aged);
	aged = resting;
	resting = NULL;
	if (aged)
		queue_delayed_work(kverbs_wq, &ageing, REST);
	mutex_unlock(&quarantine_lock);
}

/* All users are gone, and their QPs with them: no CQE comes any more. */
void kverbs_sqs_exit(void)
{
	cancel_delayed_work_sync(&ageing);
	free_slots(quarantined);
	free_slots(resting);
	free_slots(aged);
	kverbs_kept_exit();
	kmem_cache_destroy(sq_cache);
}

/* The reason goes to the log with the value and the limit; the caller gets an errno. */
static __printf(2, 3) void refuse(const struct ib_qp *qp, const char *fmt, ...)
{
	struct va_format vaf = { .fmt = fmt };
	va_list args;

	va_start(args, fmt);
	vaf.va = &args;
	pr_warn("%s: QP %u: %pV\n", dev_name(&qp->device->dev), qp->qp_num, &vaf);
	va_end(args);
}

static u64 copy_size(const struct kverbs_sq_attr *attr)
{
	return attr->copy_sge ? ALIGN(sizeof(struct kverbs_copy) +
				      (u64)attr->copy_sge * sizeof(struct ib_sge),
				      KVERBS_SLOT_MASK + 1) : 0;
}

/* Bytes of the slots and of the copies, of which there are twice as many. */
static u64 slot_memory(const struct kverbs_sq_attr *attr)
{
	return roundup_pow_of_two(attr->init->cap.max_send_wr) *
	       (sizeof(struct kverbs_slot) + 2 * copy_size(attr));
}

/* Is this a QP that a queue can stand on? Says why not. */
static int check_qp(struct ib_qp *qp, const struct kverbs_sq_attr *attr)
{
	const struct ib_qp_init_attr *init = attr->init;

	if (!kverbs_qp_kind(qp->qp_type)) {
		refuse(qp, "type %d has no kverbs queue: RC, UC and UD have", qp->qp_type);
		return -EINVAL;
	}
	if (init->sq_sig_type != IB_SIGNAL_REQ_WR) {
		refuse(qp, "signals every work request: create it with IB_SIGNAL_REQ_WR");
		return -EINVAL;
	}
	if (!init->cap.max_send_wr || init->cap.max_send_wr > BIT(20)) {
		refuse(qp, "depth %u is not between 1 and %lu: pass what ib_create_qp() granted",
		       init->cap.max_send_wr, BIT(20));
		return -EINVAL;
	}
	if (attr->copy_sge > init->cap.max_send_sge) {
		refuse(qp, "copy_sge %u exceeds the %u SGEs of the QP", attr->copy_sge,
		       init->cap.max_send_sge);
		return -EINVAL;
	}
	if (slot_memory(attr) > INT_MAX) {
		refuse(qp, "depth %u with copy_sge %u needs more than 2 GiB: lower one of them",
		       init->cap.max_send_wr, attr->copy_sge);
		return -EINVAL;
	}
	return 0;
}

/* Only what the attributes say of each other; the queue's own are set up later. */
static int check_policy(struct ib_qp *qp, const struct kverbs_sq_attr *attr)
{
	struct kverbs_batch batch;

	if (kverbs_batch_init(&batch, attr->policy, 1, attr->hold_max_ns))
		return 0;
	if (attr->policy >= KVERBS_BATCH_NR_POLICIES)
		refuse(qp, "policy %u is not below %u", attr->policy, KVERBS_BATCH_NR_POLICIES);
	else
		refuse(qp, "hold_max_ns %llu has nothing to hold: policy %u posts each alone",
		       attr->hold_max_ns, attr->policy);
	return -EINVAL;
}

static u32 recv_claim(const struct ib_qp *qp, const struct kverbs_sq_attr *attr)
{
	return qp->recv_cq == qp->send_cq && !qp->srq ? attr->init->cap.max_recv_wr : 0;
}

/* Does the send CQ dispatch wr_cqe, and is there room on it? */
static int claim_cq(struct ib_qp *qp, const struct kverbs_sq_attr *attr)
{
	u32 depth = attr->init->cap.max_send_wr;

	if (attr->cq) {
		if (kverbs_cq_ib(attr->cq) != qp->send_cq) {
			refuse(qp, "the kverbs CQ given is not its send CQ");
			return -EINVAL;
		}
		return kverbs_cq_claim(attr->cq, depth, recv_claim(qp, attr));
	}
	if (!qp->send_cq->wc) {
		refuse(qp, "its send CQ does not dispatch: use ib_alloc_cq() or a kverbs CQ");
		return -EINVAL;
	}
	if (attr->cq_room < depth || attr->cq_room > qp->send_cq->cqe) {
		refuse(qp, "cq_room %u is not between the depth %u and the %d CQEs of its CQ",
		       attr->cq_room, depth, qp->send_cq->cqe);
		return -ENOSPC;
	}
	return 0;
}

static u32 message_limit(struct ib_qp *qp)
{
	struct ib_port_attr port;

	if (ib_query_port(qp->device, qp->port ?: 1, &port))
		return U32_MAX;
	if (qp->qp_type == IB_QPT_UD)
		return ib_mtu_enum_to_int(port.active_mtu);
	return port.max_msg_sz ?: U32_MAX;
}

static int alloc_slots(struct kverbs_sq *sq, const struct kverbs_sq_attr *attr)
{
	int node = ibdev_to_node(sq->qp->device);
	u32 i, size = roundup_pow_of_two(attr->init->cap.max_send_wr);

	sq->mask = size - 1;
	sq->slots = kvzalloc_node(array_size(size, sizeof(*sq->slots)), GFP_KERNEL, node);
	if (!sq->slots)
		return -ENOMEM;
	sq->last_slot = sq->slots + sq->mask;
	for (i = 0; i < size; i++) {
		sq->slots[i].cqe.done = kverbs_slot_done;
		sq->slots[i].ref = (unsigned long)sq | KVERBS_SLOT_FREE;
	}
	if (!attr->copy_sge)
		return 0;
	sq->copy_sge = attr->copy_sge;
	sq->copy_size = copy_size(attr);
	sq->copies = kvzalloc_node(array_size(2 * size, sq->copy_size), GFP_KERNEL, node);
	return sq->copies ? 0 : -ENOMEM;
}

static void init_limits(struct kverbs_sq *sq, const struct kverbs_sq_attr *attr)
{
	const struct ib_qp_cap *cap = &attr->init->cap;
	struct ib_qp *qp = sq->qp;
	u32 max_sge_rd = qp->device->attrs.max_sge_rd;

	sq->kind = kverbs_qp_kind(qp->qp_type);
	sq->max_sge = cap->max_send_sge;
	sq->max_read_sge = max_sge_rd ? min(max_sge_rd, sq->max_sge) : sq->max_sge;
	sq->max_inline = cap->max_inline_data;
	sq->max_bytes = message_limit(qp);
	kverbs_batch_init(&sq->batch, attr->policy, cap->max_send_wr, attr->hold_max_ns);
	sq->reads_overtake = rdma_protocol_iwarp(qp->device, qp->port ?: 1);
	sq->may_noop = qp->qp_type != IB_QPT_UD;
	sq->watch_limit = attr->cqe_timeout_ms ? DIV_ROUND_UP(attr->cqe_timeout_ms, MSEC_PER_SEC) :
						 DEFAULT_CQE_TIMEOUT;
	kverbs_stage_init(&sq->stage, cap->max_send_wr);
	kverbs_signal_init(&sq->signal, cap->max_send_wr);
	sq->run_limit = sq->max_sge ? min(sq->batch.limit, sq->signal.interval) : 0;
	sq->run_posted_at = KVERBS_NOT_POSTED;
	sq->bh_watch = KVERBS_BH_SAMPLES;
}

static void init_parts(struct kverbs_sq *sq)
{
	spin_lock_init(&sq->lock);
	INIT_LIST_HEAD(&sq->waiters);
	INIT_LIST_HEAD(&sq->pass_entry);
	INIT_LIST_HEAD(&sq->own_pass.touched);
	INIT_DELAYED_WORK(&sq->work, kverbs_sq_work);
	init_waitqueue_head(&sq->idle);
	kverbs_hold_init(sq);
}

static int add_row(struct kverbs_sq *sq, const struct kverbs_sq_attr *attr)
{
	struct kverbs_row id = {
		.type = KVERBS_ROW_QUEUE,
		.mode = KVERBS_CQ_FOREIGN,	/* unless there is a CQ to tell */
		.number = sq->qp->qp_num,
		.depth = sq->stage.depth,
		.memory = sizeof(*sq) + sizeof(struct kverbs_row) + kverbs_recorder_memory(),
		.slot_memory = slot_memory(attr),
	};

	strscpy(id.name, attr->name ?: "?", sizeof(id.name));
	sq->obj.ibdev = sq->qp->device;
	sq->obj.hists = &sq->hists;
	sq->obj.recorder = sq->recorder;
	sq->obj.parent = &sq->dev->obj;
	sq->obj.cq = sq->cq ? kverbs_cq_object(sq->cq) : NULL;
	return kverbs_object_add(&sq->obj, &id);
}

static int join_device(struct kverbs_sq *sq)
{
	struct kverbs_device *dev = sq->dev;
	int err = 0;

	mutex_lock(&dev->lock);
	if (dev->gone)
		err = -ENODEV;
	else
		list_add_tail(&sq->entry, &dev->sqs);
	mutex_unlock(&dev->lock);
	return err;
}

static void leave_device(struct kverbs_sq *sq)
{
	mutex_lock(&sq->dev->lock);
	kverbs_fit_feed(sq);
	list_del(&sq->entry);
	mutex_unlock(&sq->dev->lock);
}

static void free_sq(struct kverbs_sq *sq)
{
	kverbs_recorder_free(sq->recorder);
	kvfree(sq->copies);
	kvfree(sq->slots);
	kmem_cache_free(sq_cache, sq);
}

struct kverbs_sq *kverbs_sq_create(struct ib_qp *qp, const struct kverbs_sq_attr *attr)
{
	struct kverbs_device *dev;
	struct kverbs_sq *sq;
	int err;

	err = check_qp(qp, attr) ?: check_policy(qp, attr);
	if (err)
		return ERR_PTR(err);
	dev = kverbs_device_get(qp->device);
	if (!dev)
		return ERR_PTR(-ENODEV);
	err = claim_cq(qp, attr);
	if (err)
		goto put_device;
	sq = kmem_cache_alloc_node(sq_cache, GFP_KERNEL | __GFP_ZERO, ibdev_to_node(qp->device));
	err = -ENOMEM;
	if (!sq)
		goto unclaim;
	sq->qp = qp;
	sq->qpn = qp->qp_num;
	sq->dev_index = qp->device->index;
	sq->recv_claim = recv_claim(qp, attr);
	sq->ibcq = qp->send_cq;
	sq->dev = dev;
	sq->cq = attr->cq;
	sq->pass = sq->cq ? kverbs_cq_pass_of(sq->cq) : &sq->own_pass;
	err = alloc_slots(sq, attr);
	if (err)
		goto free_sq;
	init_limits(sq, attr);
	init_parts(sq);
	err = kverbs_recorder_create(sq, attr->name ?: "?");
	if (err)
		goto free_sq;
	err = add_row(sq, attr);
	if (err)
		goto free_sq;
	err = join_device(sq);
	if (err)
		goto del_row;
	return sq;

del_row:
	kverbs_object_del(&sq->obj);
free_sq:
	free_sq(sq);
unclaim:
	if (attr->cq)
		kverbs_cq_unclaim(attr->cq, attr->init->cap.max_send_wr, recv_claim(qp, attr));
put_device:
	kverbs_device_put(dev);
	return ERR_PTR(err);
}
EXPORT_SYMBOL_GPL(kverbs_sq_create);

/*
 * After this no dispatcher is about and none comes. A kverbs CQ is polled empty, and the
 * QP is gone; on a CQ of ib_core there may be CQEs of it that nobody has polled yet.
 */
static void detach_slots(struct kverbs_sq *sq)
{
	u32 i;

	if (sq->cq) {
		kverbs_cq_sync(sq->cq);
		return;
	}
	for (i = 0; i <= sq->mask; i++)
		WRITE_ONCE(sq->slots[i].cqe.done, kverbs_slot_late);
	if (sq->ibcq->poll_ctx == IB_POLL_WORKQUEUE ||
	    sq->ibcq->poll_ctx == IB_POLL_UNBOUND_WORKQUEUE)
		flush_work(&sq->ibcq->work);
	synchronize_rcu();
}

/* Of a queue on a foreign CQ the slots stay, for a while or for good: late CQEs find them. */
static void quarantine(struct kverbs_sq *sq, bool clean)
{
	struct kverbs_slot **list = clean ? &resting : &quarantined;

	mutex_lock(&quarantine_lock);
	sq->slots->ref = (unsigned long)*list;
	*list = sq->slots;
	if (clean)
		queue_delayed_work(kverbs_wq, &ageing, REST);
	mutex_unlock(&quarantine_lock);
	sq->slots = NULL;
}

void kverbs_sq_destroy(struct kverbs_sq *sq)
{
	struct kverbs_device *dev = sq->dev;
	bool clean;

	might_sleep();
	leave_device(sq);
	kverbs_sq_stop(sq);
	detach_slots(sq);
	clean = !kverbs_in_flight(sq) && !kverbs_sq_counter(sq, KVERBS_CQE_STALE);
	kverbs_retire_all(sq);
	kverbs_sq_end_wait(sq);
	kverbs_object_del(&sq->obj);
	if (sq->cq)
		kverbs_cq_unclaim(sq->cq, sq->stage.depth, sq->recv_claim);
	kverbs_recorder_keep(sq);
	if (!sq->cq)
		quarantine(sq, clean);
	free_sq(sq);
	kverbs_device_put(dev);
}
EXPORT_SYMBOL_GPL(kverbs_sq_destroy);

void kverbs_sq_query(struct kverbs_sq *sq, struct kverbs_sq_info *info)
{
	info->depth = sq->stage.depth;
	info->credits = kverbs_stage_room(&sq->stage, &sq->head);
	info->max_sge = sq->max_sge;
	info->max_inline = sq->max_inline;
}
EXPORT_SYMBOL_GPL(kverbs_sq_query);

u64 kverbs_sq_counter(struct kverbs_sq *sq, enum kverbs_counter counter)
{
	return READ_ONCE(sq->obj.row->counter[counter]);
}
EXPORT_SYMBOL_GPL(kverbs_sq_counter);
