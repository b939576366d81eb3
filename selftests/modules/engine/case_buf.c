// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Pools of buffers: what is taken is nobody else's, what is wrong is refused, and a key
 * opens its element to the peer as long as it lives and no longer.
 */
#include <linux/cache.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <rdma/kverbs_pool.h>

#include "../../../kmod/compat.h"
#include "engine.h"

#define KEY_BYTES	5000	/* an element of it lies in two pages or three */
#define CROWD		4
#define CROWD_TURNS	20000
#define CROWD_HOLDS	5
#define FAULTS_MAX	400
#define WAIT		(30 * HZ)

static struct kverbs_pool *make(struct ib_pd *pd, u32 size, u32 nr)
{
	struct kverbs_pool_attr attr = { .size = size, .nr = nr, .name = KBUILD_MODNAME };

	return kverbs_pool_create(pd, &attr);
}

/* On a PD of its own. */
static struct kverbs_pool *make_alone(struct ib_pd **pd, u32 size, u32 nr)
{
	struct kverbs_pool *pool;

	*pd = ib_alloc_pd(engine_device(), 0);
	if (!expect(!IS_ERR(*pd)))
		return NULL;
	pool = make(*pd, size, nr);
	if (expect(!IS_ERR(pool)))
		return pool;
	ib_dealloc_pd(*pd);
	return NULL;
}

static void unmake(struct kverbs_pool *pool, struct ib_pd *pd)
{
	if (expect_is(kverbs_pool_destroy(pool), 0))
		ib_dealloc_pd(pd);
}

static u32 take_all(struct kverbs_pool *pool, struct kverbs_buf **bufs, u32 max)
{
	u32 nr = 0;

	while (nr < max && (bufs[nr] = kverbs_pool_alloc(pool)))
		nr++;
	return nr;
}

static void give_all(struct kverbs_pool *pool, struct kverbs_buf **bufs, u32 nr)
{
	while (nr--)
		expect_is(kverbs_pool_free(pool, bufs[nr]), 0);
}

/* As many as there are, then none; what comes back is given out again. */
static void buf_exhausted(enum rig_cq cq)
{
	struct kverbs_buf *bufs[101];
	struct kverbs_pool *pool;
	struct ib_pd *pd;
	u32 i;

	pool = make_alone(&pd, 100, 100);
	if (!pool)
		return;
	for (i = 0; i < 3; i++) {
		expect_is(take_all(pool, bufs, 101), 100);
		expect(!kverbs_pool_alloc(pool));
		expect_is(kverbs_pool_free_elements(pool), 0);
		expect_is(kverbs_pool_free(pool, bufs[42]), 0);
		expect(kverbs_pool_alloc(pool) == bufs[42]);
		give_all(pool, bufs, 100);
		expect_is(kverbs_pool_free_elements(pool), 100);
	}
	unmake(pool, pd);
}

/* A pointer that is none of the pool's, an element that is free, a pool that is in use. */
static void buf_refused(enum rig_cq cq)
{
	struct kverbs_pool *pool, *other;
	struct kverbs_buf *buf, *stranger;
	struct ib_pd *pd;

	pool = make_alone(&pd, 64, 4);
	if (!pool)
		return;
	other = make(pd, 64, 4);
	if (expect(!IS_ERR(other))) {
		buf = kverbs_pool_alloc(pool);
		stranger = kverbs_pool_alloc(other);
		expect_is(kverbs_pool_free(pool, stranger), -EINVAL);
		expect_is(kverbs_pool_free(pool, NULL), -EINVAL);
		expect_is(kverbs_pool_free(pool, (void *)buf + 4), -EINVAL);
		expect_is(kverbs_pool_free_elements(pool), 3);
		expect_is(kverbs_pool_destroy(pool), -EBUSY);
		expect_is(kverbs_pool_free(pool, buf), 0);
		expect_is(kverbs_pool_free(pool, buf), -EINVAL);
		expect_is(kverbs_pool_free_elements(pool), 4);
		expect_is(kverbs_pool_free(other, stranger), 0);
		expect_is(kverbs_pool_destroy(other), 0);
	}
	unmake(pool, pd);
}

static void expect_shape(struct ib_pd *pd, u32 size, u32 nr)
{
	struct kverbs_pool *pool = make(pd, size, nr);
	struct kverbs_buf *bufs[40];
	u32 i;

	if (!expect(!IS_ERR(pool)))
		return;
	expect_is(take_all(pool, bufs, ARRAY_SIZE(bufs)), nr);
	for (i = 0; i < nr; i++) {
		expect(IS_ALIGNED((uintptr_t)bufs[i]->va, cache_line_size()));
		expect(bufs[i]->dma && !memchr_inv(bufs[i]->va, 0, size));
		memset(bufs[i]->va, i + 1, size);
	}
	for (i = 0; i < nr; i++)
		expect(!memchr_inv(bufs[i]->va, i + 1, size));
	expect(kverbs_pool_lkey(pool) == pd->local_dma_lkey);
	give_all(pool, bufs, nr);
	expect_is(kverbs_pool_destroy(pool), 0);
}

/* Elements of any size begin as zeros and do not lie on each other. */
static void buf_shapes(enum rig_cq cq)
{
	static const u32 sizes[] = {
		1, 64, 65, 4000, PAGE_SIZE, PAGE_SIZE + 1, SZ_64K, 70000, SZ_1M,
	};
	struct ib_pd *pd = ib_alloc_pd(engine_device(), 0);
	u32 i;

	if (!expect(!IS_ERR(pd)))
		return;
	for (i = 0; i < ARRAY_SIZE(sizes); i++)
		expect_shape(pd, sizes[i], sizes[i] > SZ_64K ? 3 : 40);
	expect_is(PTR_ERR(make(pd, 0, 1)), -EINVAL);
	expect_is(PTR_ERR(make(pd, SZ_1M + 1, 1)), -EINVAL);
	expect_is(PTR_ERR(make(pd, 64, 0)), -EINVAL);
	expect_is(PTR_ERR(make(pd, 64, BIT(20) + 1)), -EINVAL);
	ib_dealloc_pd(pd);
}

/* Threads, a soft and a hard interrupt take and give back. */
struct crowd_timer {
	struct hrtimer timer;
	struct crowd *crowd;
};

struct crowd {
	struct kverbs_pool *pool;
	struct crowd_timer timer[2];
	atomic_t running;
	atomic_t wrong;
	atomic_t turns;
	atomic_t in_timers;
	struct completion over;
};

/* An element is held by one: what its holder wrote is there when it gives it back. */
static void crowd_turn(struct crowd *crowd, unsigned long who)
{
	struct kverbs_buf *held[CROWD_HOLDS];
	u32 i, nr = take_all(crowd->pool, held, CROWD_HOLDS);

	for (i = 0; i < nr; i++)
		WRITE_ONCE(*(unsigned long *)held[i]->va, who + i);
	for (i = 0; i < nr; i++) {
		if (READ_ONCE(*(unsigned long *)held[i]->va) != who + i ||
		    kverbs_pool_free(crowd->pool, held[i]))
			atomic_inc(&crowd->wrong);
	}
	atomic_inc(&crowd->turns);
}

static int crowd_thread(void *data)
{
	struct crowd *crowd = data;
	u32 i;

	for (i = 0; i < CROWD_TURNS; i++) {
		crowd_turn(crowd, (unsigned long)current);
		cond_resched();
	}
	if (atomic_dec_and_test(&crowd->running))
		complete(&crowd->over);
	return 0;
}

static enum hrtimer_restart crowd_interrupt(struct hrtimer *timer)
{
	struct crowd *crowd = container_of(timer, struct crowd_timer, timer)->crowd;

	crowd_turn(crowd, (unsigned long)timer);
	atomic_inc(&crowd->in_timers);
	hrtimer_forward_now(timer, ns_to_ktime(50000));
	return HRTIMER_RESTART;
}

static void crowd_run(struct crowd *crowd)
{
	struct task_struct *task;
	u32 i;

	atomic_set(&crowd->running, 1);
	init_completion(&crowd->over);
	for (i = 0; i < CROWD; i++) {
		atomic_inc(&crowd->running);
		task = kthread_run(crowd_thread, crowd, "engine_crowd/%u", i);
		if (!expect(!IS_ERR(task)))
			atomic_dec(&crowd->running);
	}
	if (!atomic_dec_and_test(&crowd->running))
		expect(wait_for_completion_timeout(&crowd->over, WAIT));
}

static void buf_crowd(enum rig_cq cq)
{
	static const enum hrtimer_mode modes[] = { HRTIMER_MODE_REL_SOFT, HRTIMER_MODE_REL_HARD };
	struct crowd *crowd = kzalloc(sizeof(*crowd), GFP_KERNEL);
	struct ib_pd *pd;
	u32 i;

	if (!expect(crowd))
		return;
	crowd->pool = make_alone(&pd, sizeof(long), 12);
	if (crowd->pool) {
		for (i = 0; i < ARRAY_SIZE(modes); i++) {
			crowd->timer[i].crowd = crowd;
			hrtimer_setup(&crowd->timer[i].timer, crowd_interrupt, CLOCK_MONOTONIC,
				      modes[i]);
			hrtimer_start(&crowd->timer[i].timer, ns_to_ktime(50000), modes[i]);
		}
		crowd_run(crowd);
		for (i = 0; i < ARRAY_SIZE(modes); i++)
			hrtimer_cancel(&crowd->timer[i].timer);
		expect_is(atomic_read(&crowd->wrong), 0);
		expect(atomic_read(&crowd->in_timers) > 0);
		expect_is(kverbs_pool_free_elements(crowd->pool), 12);
		engine_note("%d turns, %d of them in interrupts", atomic_read(&crowd->turns),
			    atomic_read(&crowd->in_timers));
		unmake(crowd->pool, pd);
	}
	kfree(crowd);
}

/* A pool with keys, and memory of our own to reach it from. */
struct keys {
	struct rig *rig;
	struct rig_queue *queue;
	struct kverbs_pool *pool;
	struct kverbs_pool *own;
	struct kverbs_buf *buf;
	struct kverbs_buf *local;
	struct kverbs_req req;
	struct ib_rdma_wr wr;
	struct ib_sge sge;
	enum ib_wc_status status;
	struct completion done;
};

static void keys_destroy(struct keys *keys)
{
	expect_is(rig_drain(keys->queue), 0);
	rig_queue_destroy(keys->queue);
	if (keys->buf)
		kverbs_pool_free(keys->pool, keys->buf);
	if (keys->local)
		kverbs_pool_free(keys->own, keys->local);
	if (!IS_ERR_OR_NULL(keys->pool))
		expect_is(kverbs_pool_destroy(keys->pool), 0);
	if (!IS_ERR_OR_NULL(keys->own))
		expect_is(kverbs_pool_destroy(keys->own), 0);
	rig_destroy(keys->rig);
	kfree(keys);
}

static struct keys *keys_create(enum rig_cq cq, int access)
{
	struct rig_attr attr = { .cq = cq, .depth = 4 };
	struct keys *keys = kzalloc(sizeof(*keys), GFP_KERNEL);

	if (!expect(keys))
		return NULL;
	keys->rig = rig_create(&attr);
	if (!keys->rig) {
		kfree(keys);
		return NULL;
	}
	keys->queue = &keys->rig->queue[0];
	keys->pool = make(keys->rig->pd, KEY_BYTES, 9);
	keys->own = make(keys->rig->pd, KEY_BYTES + 1, 1);
	if (expect(!IS_ERR(keys->pool) && !IS_ERR(keys->own)) &&
	    expect_is(kverbs_pool_open(keys->pool, keys->queue->sq, access, WAIT), 0)) {
		keys->buf = kverbs_pool_alloc(keys->pool);
		keys->local = kverbs_pool_alloc(keys->own);
		if (expect(keys->buf && keys->local))
			return keys;
	}
	keys_destroy(keys);
	return NULL;
}

static void keys_done(struct kverbs_req *req, enum ib_wc_status status)
{
	struct keys *keys = container_of(req, struct keys, req);

	keys->status = status;
	complete(&keys->done);
}

/* Reach the element as a peer does. */
static enum ib_wc_status reach(struct keys *keys, enum ib_wr_opcode opcode, u32 rkey, u32 bytes)
{
	keys->sge = (struct ib_sge){ .addr = keys->local->dma, .length = bytes,
				     .lkey = kverbs_pool_lkey(keys->own) };
	keys->wr = (struct ib_rdma_wr){
		.wr = { .opcode = opcode, .sg_list = &keys->sge, .num_sge = 1 },
		.remote_addr = keys->buf->remote,
		.rkey = rkey,
	};
	keys->req = (struct kverbs_req){ .wr = &keys->wr.wr, .done = keys_done };
	init_completion(&keys->done);
	kverbs_pool_for_hca(keys->own, keys->local, bytes);
	if (kverbs_post(keys->queue->sq, &keys->req, 0) ||
	    !wait_for_completion_timeout(&keys->done, WAIT))
		return IB_WC_GENERAL_ERR;
	kverbs_pool_for_cpu(keys->own, keys->local, bytes);
	return keys->status;
}

static bool refused(enum ib_wc_status status)
{
	return status != IB_WC_SUCCESS && status != IB_WC_GENERAL_ERR;
}

static void renewed(struct kverbs_buf *buf, enum ib_wc_status status)
{
	struct keys *keys = buf->context;

	keys->status = status;
	complete(&keys->done);
}

static bool renew(struct keys *keys)
{
	u32 old = keys->buf->rkey;

	keys->buf->context = keys;
	init_completion(&keys->done);
	return expect_is(kverbs_pool_renew(keys->pool, keys->buf, keys->queue->sq, renewed), 0) &&
	       expect(wait_for_completion_timeout(&keys->done, WAIT)) &&
	       expect_is(keys->status, IB_WC_SUCCESS) && expect(keys->buf->rkey != old);
}

/* Written and read by the peer, also with each new key. */
static void buf_reached(enum rig_cq cq)
{
	struct keys *keys = keys_create(cq, IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE);
	u32 i;

	if (!keys)
		return;
	for (i = 0; i < 300 && !engine_failed(); i++) {
		memset(keys->local->va, i, KEY_BYTES);
		expect_is(reach(keys, IB_WR_RDMA_WRITE, keys->buf->rkey, KEY_BYTES), IB_WC_SUCCESS);
		kverbs_pool_for_cpu(keys->pool, keys->buf, KEY_BYTES);
		expect(!memchr_inv(keys->buf->va, i, KEY_BYTES));
		memset(keys->buf->va, ~i, KEY_BYTES);
		kverbs_pool_for_hca(keys->pool, keys->buf, KEY_BYTES);
		expect_is(reach(keys, IB_WR_RDMA_READ, keys->buf->rkey, KEY_BYTES), IB_WC_SUCCESS);
		expect(!memchr_inv(keys->local->va, ~i & 0xff, KEY_BYTES));
		renew(keys);
	}
	expect_is(kverbs_pool_open(keys->pool, keys->queue->sq, IB_ACCESS_REMOTE_READ, WAIT),
		  -EBUSY);
	keys_destroy(keys);
}

/* An old key, a byte too many, an access that was not given, a pool that was closed. */
static void buf_not_reached(enum rig_cq cq)
{
	struct keys *keys;
	u32 i, rkey;

	for (i = 0; i < 4; i++) {
		keys = keys_create(cq, IB_ACCESS_REMOTE_READ);
		if (!keys)
			return;
		rkey = keys->buf->rkey;
		expect_is(reach(keys, IB_WR_RDMA_READ, rkey, KEY_BYTES), IB_WC_SUCCESS);
		switch (i) {
		case 0:
			renew(keys);
			expect(refused(reach(keys, IB_WR_RDMA_READ, rkey, 1)));
			break;
		case 1:
			expect(refused(reach(keys, IB_WR_RDMA_READ, rkey, KEY_BYTES + 1)));
			break;
		case 2:
			expect(refused(reach(keys, IB_WR_RDMA_WRITE, rkey, 1)));
			break;
		case 3:
			expect_is(kverbs_pool_close(keys->pool), 0);
			expect_is(keys->buf->rkey, 0);
			keys->buf->remote = keys->buf->dma;
			expect(refused(reach(keys, IB_WR_RDMA_READ, rkey, 1)));
			expect_is(kverbs_pool_renew(keys->pool, keys->buf, keys->queue->sq,
						    renewed), -EINVAL);
			break;
		}
		keys_destroy(keys);
	}
}

/* The queue has failed: nothing is registered, and the pool can be used without keys. */
static void buf_queue_failed(enum rig_cq cq)
{
	struct keys *keys = keys_create(cq, IB_ACCESS_REMOTE_READ);
	u32 rkey;

	if (!keys)
		return;
	expect_is(kverbs_pool_open(keys->own, keys->queue->sq, 0, WAIT), -EINVAL);
	expect_is(kverbs_pool_open(keys->own, keys->queue->sq, IB_ACCESS_REMOTE_READ, WAIT),
		  -EBUSY);
	kverbs_pool_free(keys->own, keys->local);
	keys->local = NULL;
	expect_is(rig_drain(keys->queue), 0);
	expect_is(kverbs_pool_open(keys->own, keys->queue->sq, IB_ACCESS_REMOTE_READ, WAIT),
		  -ESHUTDOWN);
	rkey = keys->buf->rkey;
	expect_is(kverbs_pool_renew(keys->pool, keys->buf, keys->queue->sq, renewed), -ESHUTDOWN);
	expect_is(keys->buf->rkey, rkey);
	keys_destroy(keys);
}

#ifdef CONFIG_FAILSLAB
/* How many allocations there were, each of which has failed once. */
static void swept(const char *what, u32 n, u32 refusals)
{
	engine_note("%s: %u allocations, %u that it cannot do without", what, n - 1, refusals);
	expect(refusals > 0 && n < FAULTS_MAX);
}

static void sweep_create(struct ib_pd *pd)
{
	struct kverbs_pool *pool;
	u32 n, refusals = 0;
	bool struck = true;

	for (n = 1; n < FAULTS_MAX && struck; n++) {
		fail_at(n);
		pool = make(pd, 3000, 40);
		struck = fault_struck();
		if (IS_ERR(pool)) {
			expect(struck);
			expect_is(PTR_ERR(pool), -ENOMEM);
			refusals++;
		} else {
			expect_is(kverbs_pool_destroy(pool), 0);
		}
	}
	swept("a pool", n, refusals);
}

static void sweep_open(struct rig_queue *queue)
{
	struct kverbs_pool *pool = make(queue->rig->pd, 100, 3);
	u32 n, refusals = 0;
	bool struck = true;
	int err;

	if (!expect(!IS_ERR(pool)))
		return;
	for (n = 1; n < FAULTS_MAX && struck; n++) {
		fail_at(n);
		err = kverbs_pool_open(pool, queue->sq, IB_ACCESS_REMOTE_READ, WAIT);
		struck = fault_struck();
		if (err) {
			expect(struck);
			expect_is(err, -ENOMEM);
			refusals++;
		} else {
			expect_is(kverbs_pool_close(pool), 0);
		}
	}
	swept("its keys", n, refusals);
	expect_is(kverbs_pool_destroy(pool), 0);
}

static void buf_no_memory(enum rig_cq cq)
{
	struct rig_attr attr = { .cq = cq, .depth = 4 };
	struct rig *rig = rig_create(&attr);

	if (!rig)
		return;
	sweep_create(rig->pd);
	sweep_open(&rig->queue[0]);
	expect_is(rig_drain(&rig->queue[0]), 0);
	rig_destroy(rig);
}
#else
static void buf_no_memory(enum rig_cq cq)
{
	engine_skip("this kernel has no fault injection");
}
#endif

const struct engine_case buf_cases[] = {
	{ "buf_exhausted", BIT(RIG_INTERRUPT), buf_exhausted },
	{ "buf_refused", BIT(RIG_INTERRUPT), buf_refused },
	{ "buf_shapes", BIT(RIG_INTERRUPT), buf_shapes },
	{ "buf_crowd", BIT(RIG_INTERRUPT), buf_crowd },
	{ "buf_reached", ON_ALL, buf_reached },
	{ "buf_not_reached", BIT(RIG_INTERRUPT) | BIT(RIG_SOFTIRQ), buf_not_reached },
	{ "buf_queue_failed", BIT(RIG_INTERRUPT), buf_queue_failed },
	{ "buf_no_memory", BIT(RIG_INTERRUPT), buf_no_memory },
	{}
};
