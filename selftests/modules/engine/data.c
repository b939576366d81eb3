// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What groups carry over a real driver. Each work request has a place of its own in the
 * client's and in the server's memory; a byte depends on the group, its number and its
 * place. A send's message names its group, so that the receiver can tell what it ought
 * to be and whether it is its turn.
 */
#include <linux/delay.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

#include "engine.h"

#define PLACE		192	/* bytes of a work request */
#define GROUP_PLACE	1024	/* of a group: never across a page */
#define NR_RECEIVES	256
#define GRH		40	/* bytes before what a datagram brings */

struct message {
	u32 tag;
	u32 seq;
	u32 index;
};

struct receive {
	struct ib_cqe cqe;
	struct traffic *traffic;
	struct ib_recv_wr wr;
	struct ib_sge sge;
	u8 *memory;
};

static size_t memory_size(const struct traffic *traffic)
{
	return traffic->nr_groups * GROUP_PLACE + NR_RECEIVES * PLACE;
}

static size_t offset_of(const struct group *group, u32 i)
{
	return (group->tag - 1) * GROUP_PLACE + i * PLACE;
}

static u8 byte(const struct message *key, u32 at)
{
	return key->tag * 31 + key->seq * 7 + key->index * 3 + at + 1;
}

static void fill(u8 *memory, const struct message *key, u32 len)
{
	u32 i;

	for (i = 0; i < len; i++)
		memory[i] = byte(key, i);
}

static bool is_filled(const u8 *memory, const struct message *key, u32 from, u32 len)
{
	u32 i;

	for (i = from; i < len; i++)
		if (memory[i] != byte(key, i))
			return false;
	return true;
}

static bool is_send(const struct ib_send_wr *wr)
{
	return wr->opcode == IB_WR_SEND || wr->opcode == IB_WR_SEND_WITH_IMM;
}

static bool is_atomic(const struct ib_send_wr *wr)
{
	return wr->opcode == IB_WR_ATOMIC_CMP_AND_SWP || wr->opcode == IB_WR_ATOMIC_FETCH_AND_ADD;
}

/* What an atomic leaves behind where @old was. */
static u64 after_atomic(const struct ib_send_wr *wr, u64 old)
{
	return wr->opcode == IB_WR_ATOMIC_CMP_AND_SWP ? ~old : old + 1;
}

static void prepare_atomic(struct group *group, u32 i)
{
	struct traffic *traffic = group->producer->traffic;
	const u64 *old = traffic->server_memory + offset_of(group, i);
	struct ib_atomic_wr *wr = &group->wr[i].atomic;
	bool swaps = wr->wr.opcode == IB_WR_ATOMIC_CMP_AND_SWP;

	wr->remote_addr = traffic->server_dma + offset_of(group, i);
	wr->rkey = traffic->atomics->rkey;
	wr->compare_add = swaps ? *old : 1;
	wr->swap = after_atomic(&wr->wr, *old);
}

static void prepare_datagram(struct group *group, u32 i)
{
	struct rig_queue *queue = group->producer->queue;
	struct ib_ud_wr *wr = &group->wr[i].ud;

	wr->ah = queue->rig->peer_ah;
	wr->remote_qpn = queue->peer->qp_num;
	wr->remote_qkey = RIG_QKEY;
	wr->pkey_index = 0;
}

static void prepare_payload(struct group *group, u32 i)
{
	struct traffic *traffic = group->producer->traffic;
	struct message key = { group->tag, group->seq, i };
	u8 *client = traffic->client_memory + offset_of(group, i);
	u8 *server = traffic->server_memory + offset_of(group, i);
	struct ib_send_wr *wr = &group->wr[i].send;

	if (wr->opcode == IB_WR_RDMA_READ || is_atomic(wr)) {
		fill(server, &key, group->len);
		memset(client, 0, group->len);
	} else {
		fill(client, &key, group->len);
		memset(server, 0, group->len);
		if (is_send(wr))
			memcpy(client, &key, sizeof(key));
	}
	group->sge[i].addr = traffic->client_dma + offset_of(group, i);
	group->sge[i].lkey = traffic->queue->qp->pd->local_dma_lkey;
	if (traffic->queue->rig->attr.type == IB_QPT_UD) {
		prepare_datagram(group, i);
	} else if (is_atomic(wr)) {
		prepare_atomic(group, i);
	} else {
		group->wr[i].rdma.remote_addr = traffic->server_dma + offset_of(group, i);
		group->wr[i].rdma.rkey = traffic->queue->qp->pd->unsafe_global_rkey;
	}
}

/* Register the group's place of the client; the writes between go through it. */
static int prepare_mr(struct group *group)
{
	struct traffic *traffic = group->producer->traffic;
	struct ib_reg_wr *reg = &group->wr[0].reg;
	struct ib_mr *mr = group->mr;
	struct scatterlist sg;
	u32 i;

	ib_update_fast_reg_key(mr, mr->rkey + 1);
	sg_init_table(&sg, 1);
	sg_dma_address(&sg) = traffic->client_dma + offset_of(group, 0);
	sg_dma_len(&sg) = GROUP_MAX * PLACE;
	if (ib_map_mr_sg(mr, &sg, 1, NULL, PAGE_SIZE) != 1)
		return -EINVAL;
	reg->mr = mr;
	reg->key = mr->rkey;
	reg->access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ;
	for (i = 1; i + 1 < group->nr; i++) {
		prepare_payload(group, i);
		group->sge[i].addr = mr->iova + i * PLACE;
		group->sge[i].lkey = mr->lkey;
	}
	/* Not before the writes have gone out. */
	group->wr[i].send.send_flags = IB_SEND_FENCE;
	group->wr[i].send.ex.invalidate_rkey = mr->rkey;
	return 0;
}

static void prepare_inline(struct group *group)
{
	struct traffic *traffic = group->producer->traffic;
	u32 last = group->nr - 1;

	group->inline_sge = (struct ib_sge){
		.addr = (uintptr_t)traffic->client_memory + offset_of(group, last),
		.length = group->len,
	};
	if (group->copied) {
		if (group->len > traffic->queue->init.cap.max_inline_data)
			return;
		group->inlined = true;
		group->sge[last].addr = group->inline_sge.addr;
		group->wr[last].send.send_flags |= IB_SEND_INLINE;
	} else {
		group->req.inline_sge = &group->inline_sge;
	}
}

int data_prepare(struct group *group)
{
	struct traffic *traffic = group->producer->traffic;
	u32 i;

	if (group->kind == GROUP_REG)
		return prepare_mr(group);
	for (i = 0; i < group->nr; i++)
		prepare_payload(group, i);
	if (traffic->attr.inlines && group->kind != GROUP_READ && group->kind != GROUP_ATOMIC &&
	    prandom_u32_state(&group->producer->rnd) & 1)
		prepare_inline(group);
	return 0;
}

static bool changed_by(const struct group *group, u32 i)
{
	struct traffic *traffic = group->producer->traffic;
	const u64 *client = traffic->client_memory + offset_of(group, i);
	const u64 *server = traffic->server_memory + offset_of(group, i);

	return *server == after_atomic(&group->wr[i].send, *client);
}

/* A success of a connected queue: the data is there. A send's is looked at by who receives it. */
void data_check(const struct group *group)
{
	struct traffic *traffic = group->producer->traffic;
	const u8 *memory;
	u32 i;

	for (i = 0; i < group->nr; i++) {
		struct message key = { group->tag, group->seq, i };

		if (group->wr[i].send.opcode == IB_WR_RDMA_READ || is_atomic(&group->wr[i].send))
			memory = traffic->client_memory;
		else if ((group->wr[i].send.opcode == IB_WR_RDMA_WRITE ||
			  group->wr[i].send.opcode == IB_WR_RDMA_WRITE_WITH_IMM) &&
			 !traffic->attr.may_drop)
			memory = traffic->server_memory;
		else
			continue;
		if (!is_filled(memory + offset_of(group, i), &key, 0, group->len))
			engine_fail("work request %u of %u, kind %d, inline %d: wrong data", i,
				    group->nr, group->kind,
				    group->inlined || group->req.inlined);
		if (is_atomic(&group->wr[i].send) && !changed_by(group, i))
			engine_fail("work request %u of %u: an atomic did not do what it says", i,
				    group->nr);
	}
}

static int post_receive(struct receive *receive)
{
	memset(receive->memory, 0, PLACE);
	return ib_post_recv(receive->traffic->queue->peer, &receive->wr, NULL);
}

static void received(struct ib_cq *cq, struct ib_wc *wc)
{
	struct receive *receive = container_of(wc->wr_cqe, struct receive, cqe);
	struct traffic *traffic = receive->traffic;
	u32 from = traffic->queue->rig->attr.type == IB_QPT_UD ? GRH : 0;
	u32 len = wc->byte_len - from;
	struct producer *producer;
	struct message key;

	if (wc->status != IB_WC_SUCCESS)
		return;
	if (wc->opcode == IB_WC_RECV_RDMA_WITH_IMM)
		goto post;
	memcpy(&key, receive->memory + from, sizeof(key));
	if (!key.tag || key.tag > traffic->nr_groups || len > PLACE - from ||
	    !is_filled(receive->memory + from, &key, sizeof(key), len)) {
		engine_fail("a message of %u bytes arrived wrong", wc->byte_len);
		return;
	}
	producer = traffic->groups[key.tag - 1].producer;
	if ((s32)(key.seq - producer->received) < 0)
		engine_fail("producer %u: message %u arrives after %u", producer->index, key.seq,
			    producer->received);
	producer->received = key.seq;
post:
	if (post_receive(receive))
		engine_fail("no receive could be posted");
}

static int create_receives(struct traffic *traffic)
{
	struct receive *receive;
	int err = 0;
	size_t at;
	u32 i;

	traffic->receives = kvcalloc(NR_RECEIVES, sizeof(*receive), GFP_KERNEL);
	if (!traffic->receives)
		return -ENOMEM;
	for (i = 0; i < NR_RECEIVES && !err; i++) {
		at = traffic->nr_groups * GROUP_PLACE + i * PLACE;
		receive = &traffic->receives[i];
		receive->traffic = traffic;
		receive->memory = traffic->server_memory + at;
		receive->cqe.done = received;
		receive->sge.addr = traffic->server_dma + at;
		receive->sge.length = PLACE;
		receive->sge.lkey = traffic->queue->peer->pd->local_dma_lkey;
		receive->wr.wr_cqe = &receive->cqe;
		receive->wr.sg_list = &receive->sge;
		receive->wr.num_sge = 1;
		err = post_receive(receive);
	}
	return err;
}

/* Of all memory, as the core makes that of a PD. */
static int create_atomics(struct traffic *traffic)
{
	struct ib_pd *pd = traffic->queue->qp->pd;
	struct ib_mr *mr;

	if (!(traffic->attr.kinds & BIT(GROUP_ATOMIC)))
		return 0;
	mr = pd->device->ops.get_dma_mr(pd, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_ATOMIC);
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	mr->device = pd->device;
	mr->pd = pd;
	mr->type = IB_MR_TYPE_DMA;
	traffic->atomics = mr;
	return 0;
}

static int create_mrs(struct traffic *traffic)
{
	struct ib_mr *mr;
	u32 i;

	for (i = 0; traffic->attr.kinds & BIT(GROUP_REG) && i < traffic->nr_groups; i++) {
		mr = ib_alloc_mr(traffic->queue->qp->pd, IB_MR_TYPE_MEM_REG, 2);
		if (IS_ERR(mr))
			return PTR_ERR(mr);
		traffic->groups[i].mr = mr;
	}
	return 0;
}

static void *create_memory(struct ib_device *ib, size_t size, u64 *dma)
{
	void *memory = alloc_pages_exact(size, GFP_KERNEL | __GFP_ZERO);

	if (!memory)
		return NULL;
	*dma = ib_dma_map_single(ib, memory, size, DMA_BIDIRECTIONAL);
	if (!ib_dma_mapping_error(ib, *dma))
		return memory;
	free_pages_exact(memory, size);
	return NULL;
}

static void destroy_memory(struct ib_device *ib, void *memory, size_t size, u64 dma)
{
	if (!memory)
		return;
	ib_dma_unmap_single(ib, dma, size, DMA_BIDIRECTIONAL);
	free_pages_exact(memory, size);
}

/* Does what is posted take receives? */
static bool receives(const struct traffic *traffic)
{
	return traffic->attr.kinds & BIT(GROUP_SEND) || traffic->attr.imm;
}

int data_create(struct traffic *traffic)
{
	struct ib_device *ib = traffic->queue->rig->ib;
	size_t size = memory_size(traffic);
	int err = -ENOMEM;

	traffic->client_memory = create_memory(ib, size, &traffic->client_dma);
	traffic->server_memory = create_memory(ib, size, &traffic->server_dma);
	if (traffic->client_memory && traffic->server_memory)
		err = create_atomics(traffic) ?: create_mrs(traffic);
	if (!err && receives(traffic))
		err = create_receives(traffic);
	if (err)
		data_destroy(traffic);
	return err;
}

/* The peer receives no more: it may still hold receives, which end on its CQ. */
void data_destroy(struct traffic *traffic)
{
	struct ib_qp_attr error = { .qp_state = IB_QPS_ERR };
	struct ib_device *ib = traffic->queue->rig->ib;
	size_t size = memory_size(traffic);
	u32 i;

	if (traffic->receives && !IS_ERR_OR_NULL(traffic->queue->peer)) {
		ib_modify_qp(traffic->queue->peer, &error, IB_QP_STATE);
		ib_drain_rq(traffic->queue->peer);
	}
	for (i = 0; i < traffic->nr_groups; i++)
		if (traffic->groups[i].mr)
			ib_dereg_mr(traffic->groups[i].mr);
	if (traffic->atomics)
		ib->ops.dereg_mr(traffic->atomics, NULL);
	destroy_memory(ib, traffic->client_memory, size, traffic->client_dma);
	destroy_memory(ib, traffic->server_memory, size, traffic->server_dma);
	kvfree(traffic->receives);
}
