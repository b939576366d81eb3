// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The server's ring of receives. Each is posted again once its message was looked at,
 * a batch of them in one call. A slot of the client is free when its send has completed
 * and its message was received, so that there is always a receive for a message: the
 * ring has a batch more than there are requests in flight.
 *
 * Messages of a lane arrive in the order of its slots. Where lanes share a queue, the
 * first word of a message tells its lane.
 */
#include <linux/slab.h>

#include "perf.h"

static int ring_post(struct perf_queue *queue)
{
	struct perf_ring *ring = &queue->ring;
	struct ib_recv_wr *first = ring->first_spent;

	ring->first_spent = NULL;
	ring->next_spent = &ring->first_spent;
	ring->nr_spent = 0;
	return ib_post_recv(queue->server, first, NULL);
}

static int ring_spent(struct perf_receive *receive)
{
	struct perf_ring *ring = &receive->queue->ring;

	receive->wr.next = NULL;
	*ring->next_spent = &receive->wr;
	ring->next_spent = &receive->wr.next;
	return ++ring->nr_spent == ring->batch ? ring_post(receive->queue) : 0;
}

static bool has_key(const struct perf_run *run)
{
	return run->attr.msg_size >= sizeof(u64);
}

/* Whose turn it is, or, where lanes share a queue, whose @key says it is. */
struct perf_lane *perf_queue_lane(const struct perf_queue *queue, const u64 *key)
{
	struct perf_bench *bench = queue->bench;
	u32 nr_queues = bench->run->attr.queues;
	u32 lane = key ? perf_key_lane(*key) : queue->index;

	if (lane >= bench->nr_lanes || lane % nr_queues != queue->index)
		return NULL;
	return &bench->lanes[lane];
}

static struct perf_lane *receive_lane(const struct perf_receive *receive)
{
	const struct perf_queue *queue = receive->queue;
	u64 key;

	if (!perf_lanes_share(queue->bench))
		return perf_queue_lane(queue, NULL);
	key = perf_pattern_key(queue->server_memory, receive->index,
			       perf_receive_offset(queue->bench->run));
	return perf_queue_lane(queue, &key);
}

static bool receive_ok(const struct perf_receive *receive, const struct perf_slot *slot)
{
	const struct perf_bench *bench = receive->queue->bench;
	const struct perf_memory *memory = receive->queue->server_memory;
	u32 offset = perf_receive_offset(bench->run);

	if (bench->verify)
		return perf_pattern_ok(memory, receive->index, offset, bench->run->attr.msg_size,
				       slot->key);
	return !has_key(bench->run) ||
	       perf_pattern_key(memory, receive->index, offset) == slot->key;
}

static void received(struct ib_cq *cq, struct ib_wc *wc)
{
	struct perf_receive *receive = container_of(wc->wr_cqe, struct perf_receive, cqe);
	struct perf_run *run = receive->queue->bench->run;
	struct perf_lane *lane;
	struct perf_slot *slot;
	bool last;
	int ret;

	if (wc->status != IB_WC_SUCCESS) {
		/* A flush is what taking a queue down gives. */
		if (wc->status != IB_WC_WR_FLUSH_ERR)
			perf_run_stop(run, PERF_STOP_WAITING, -EIO, "a receive ended with %s",
				      ib_wc_status_msg(wc->status));
		return;
	}
	lane = receive_lane(receive);
	if (!lane || wc->byte_len != run->attr.msg_size + perf_receive_offset(run)) {
		perf_run_stop(run, PERF_STOP_WAITING, -EBADMSG,
			      "a message of %u bytes came that nobody had sent", wc->byte_len);
		return;
	}

	slot = perf_lane_slot(lane, lane->receive_head);
	lane->receive_head = perf_lane_next(lane, lane->receive_head);
	receive->slot = slot;
	if (!receive_ok(receive, slot)) {
		lane->received_corrupt++;
		perf_run_stop(run, PERF_STOP_WAITING, -EBADMSG,
			      "message %llu of queue %u arrived wrong", lane->received,
			      receive->queue->index);
	}
	ret = ring_spent(receive);
	if (ret)
		perf_run_stop(run, PERF_STOP_WAITING, ret, "ib_post_recv: error %d", ret);

	last = slot->last_of_burst;
	perf_count(&lane->received);
	perf_lane_advance(lane, last);
}

int perf_ring_create(struct perf_queue *queue)
{
	const struct perf_run *run = queue->bench->run;
	struct perf_ring *ring = &queue->ring;
	u32 i;

	ring->nr = run->ring_size;
	ring->batch = ring->nr;
	ring->next_spent = &ring->first_spent;
	ring->receives = kvcalloc(ring->nr, sizeof(*ring->receives), GFP_KERNEL);
	if (!ring->receives)
		return -ENOMEM;

	for (i = 0; i < ring->nr; i++) {
		struct perf_receive *receive = &ring->receives[i];
		int ret;

		receive->queue = queue;
		receive->index = i;
		receive->cqe.done = received;
		receive->sge.addr = perf_memory_dma(queue->server_memory, i);
		receive->sge.length = run->attr.msg_size + perf_receive_offset(run);
		receive->sge.lkey = queue->bench->pd->local_dma_lkey;
		receive->wr.wr_cqe = &receive->cqe;
		receive->wr.sg_list = &receive->sge;
		receive->wr.num_sge = 1;
		ret = ring_spent(receive);
		if (ret)
			return ret;
	}
	ring->batch = max_t(u32, ring->nr - run->attr.depth, 1);
	return 0;
}

void perf_ring_destroy(struct perf_ring *ring)
{
	kvfree(ring->receives);
	ring->receives = NULL;
}

/*
 * At the end: the last message in each receive, whole. With verify on each was looked
 * at when it came, and its slot may have sent another since.
 */
u64 perf_ring_check(const struct perf_queue *queue)
{
	const struct perf_run *run = queue->bench->run;
	const struct perf_ring *ring = &queue->ring;
	u64 corrupt = 0;
	u32 i;

	for (i = 0; i < ring->nr && !queue->bench->verify; i++) {
		const struct perf_receive *receive = &ring->receives[i];

		if (receive->slot &&
		    !perf_pattern_ok(queue->server_memory, i, perf_receive_offset(run),
				     run->attr.msg_size, receive->slot->key))
			corrupt++;
		cond_resched();
	}
	return corrupt;
}
