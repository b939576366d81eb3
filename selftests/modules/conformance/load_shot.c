// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A chain of one to four requests of random opcodes, lengths and lists, silent or signaled
 * but for the last. The thread that made it owns it until it is posted and again when
 * @pending is zero; in between whoever polls clears the bits of what has come, and one that
 * is cleared already was reported twice.
 */
#include "load.h"

#define FILLER	0xa5	/* what nothing was written to */

/* Chains that register memory, use it, and invalidate it, one in so many. */
#define REGISTER_RATIO	5

static const enum ib_wr_opcode rc_ops[] = {
	IB_WR_SEND, IB_WR_SEND_WITH_IMM, IB_WR_RDMA_WRITE, IB_WR_RDMA_WRITE_WITH_IMM,
	IB_WR_RDMA_READ, IB_WR_ATOMIC_CMP_AND_SWP, IB_WR_ATOMIC_FETCH_AND_ADD,
};

static const enum ib_wr_opcode uc_ops[] = {
	IB_WR_SEND, IB_WR_SEND_WITH_IMM, IB_WR_RDMA_WRITE, IB_WR_RDMA_WRITE_WITH_IMM,
};

static const enum ib_wr_opcode ud_ops[] = { IB_WR_SEND, IB_WR_SEND_WITH_IMM };

static bool is_send(enum ib_wr_opcode op)
{
	return op == IB_WR_SEND || op == IB_WR_SEND_WITH_IMM || op == IB_WR_SEND_WITH_INV;
}

static bool is_write(enum ib_wr_opcode op)
{
	return op == IB_WR_RDMA_WRITE || op == IB_WR_RDMA_WRITE_WITH_IMM;
}

static bool is_atomic(enum ib_wr_opcode op)
{
	return op == IB_WR_ATOMIC_CMP_AND_SWP || op == IB_WR_ATOMIC_FETCH_AND_ADD;
}

static bool has_imm(enum ib_wr_opcode op)
{
	return op == IB_WR_SEND_WITH_IMM || op == IB_WR_RDMA_WRITE_WITH_IMM;
}

/* It says who it is in its first bytes. */
static bool has_name(enum ib_wr_opcode op)
{
	return is_send(op) && !has_imm(op);
}

static const u8 *data_of(const struct load_part *part)
{
	return part->shot->lane->thread->load->pool + part->from;
}

static u64 dma_of(const struct load_part *part, const u8 *va)
{
	const struct area *area = &part->shot->lane->area;

	return area->dma + (va - area->va);
}

/* The list: up to three elements with gaps between them. */
static void cut(struct load_part *part, u32 least)
{
	struct load_thread *thread = part->shot->lane->thread;
	struct ib_send_wr *wr = &part->work.send;
	u32 left = part->bytes, length, i;
	u8 *va = part->local;

	for (i = 0; left; i++) {
		length = left;
		if (i < LOAD_MAX_SGES - 1 && left > least)
			length -= load_random(thread, left - least + 1);
		if (!length)
			length = left;
		work_sge(&part->work, i, &part->shot->lane->area, va - part->shot->lane->area.va,
			 length);
		part->work.sge[i].lkey = part->shot->side->bed->pd->local_dma_lkey;
		va += length + LOAD_GAP;
		left -= length;
		least = 1;
	}
	wr->sg_list = part->work.sge;
	wr->num_sge = i;
}

static u8 *element(const struct load_part *part, u32 i)
{
	return part->local + (part->work.sge[i].addr - dma_of(part, part->local));
}

static void fill_list(struct load_part *part)
{
	const u8 *data = data_of(part);
	int i;

	for (i = 0; i < part->work.send.num_sge; i++) {
		memcpy(element(part, i), data, part->work.sge[i].length);
		data += part->work.sge[i].length;
	}
	if (has_name(part->work.send.opcode))
		memcpy(part->local, &part->id, sizeof(part->id));
}

/* Inline, from addresses of the CPU, if it is granted and the dice say so. */
static void maybe_inline(struct load_part *part)
{
	int i;

	if (part->bytes > part->shot->side->init.cap.max_inline_data ||
	    load_random(part->shot->lane->thread, 2))
		return;
	part->work.send.send_flags |= IB_SEND_INLINE;
	for (i = 0; i < part->work.send.num_sge; i++)
		part->work.sge[i].addr = (uintptr_t)element(part, i);
}

static void make_data(struct load_part *part)
{
	enum ib_wr_opcode op = part->work.send.opcode;
	struct load_thread *thread = part->shot->lane->thread;

	part->bytes = load_random(thread, load_random(thread, 2) ? 65 : LOAD_MAX_BYTES + 1);
	if (has_name(op))
		part->bytes = max_t(u32, part->bytes, sizeof(part->id));
	part->from = load_random(thread, LOAD_POOL - LOAD_MAX_BYTES);
	memset(part->local, FILLER, LOAD_PART_SIZE);
	memset(part->remote, FILLER, LOAD_PART_SIZE);
	cut(part, has_name(op) ? sizeof(part->id) : 1);
	if (op == IB_WR_RDMA_READ) {
		memcpy(part->remote, data_of(part), part->bytes);
		return;
	}
	fill_list(part);
	maybe_inline(part);
}

/* On a word of its own, or added to that of all threads. */
static void make_atomic(struct load_part *part, u64 remote, u32 rkey)
{
	struct load_lane *lane = part->shot->lane;
	struct load_thread *thread = lane->thread;
	struct ib_atomic_wr *wr = &part->work.atomic;
	u64 value = prandom_u32_state(&thread->rnd);

	part->bytes = sizeof(u64);
	cut(part, sizeof(u64));
	part->before = value << 32 | value;
	*(u64 *)part->remote = part->before;
	*(u64 *)part->local = 0;
	wr->remote_addr = remote;
	wr->rkey = rkey;
	wr->compare_add = value;
	part->after = part->before + value;
	if (wr->wr.opcode == IB_WR_ATOMIC_CMP_AND_SWP) {
		wr->swap = ~value;
		if (value & 1)
			wr->compare_add = part->before;
		part->after = wr->compare_add == part->before ? ~value : part->before;
	} else if (value & 1) {
		part->remote = NULL;
		wr->remote_addr = lane->queue->word_iova;
		wr->rkey = lane->queue->word_rkey;
		thread->added += value;
	}
}

static void make_part(struct load_shot *shot, enum ib_wr_opcode op)
{
	struct load_lane *lane = shot->lane;
	struct load_part *part = &shot->part[shot->nr];
	struct load_thread *thread = lane->thread;
	u32 slot = shot - lane->shot, i = slot * LOAD_PARTS + shot->nr;
	u64 remote;

	part->shot = shot;
	part->id = (u32)shot->generation << 24 | thread->index << 16 | slot << 8 | shot->nr;
	part->bytes = 0;
	part->local = lane->area.va + 2 * i * LOAD_PART_SIZE;
	part->remote = part->local + LOAD_PART_SIZE;
	memset(&part->work, 0, sizeof(part->work));
	part->work.send.wr_cqe = &part->work.cqe;
	part->work.send.opcode = op;
	if (!load_random(thread, 4))
		part->work.send.send_flags |= IB_SEND_SIGNALED;
	remote = lane->area.iova + (part->remote - lane->area.va);
	if (is_atomic(op)) {
		make_atomic(part, remote, lane->area.mr->rkey);
	} else if (is_send(op) || is_write(op) || op == IB_WR_RDMA_READ) {
		make_data(part);
		if (!load_random(thread, 4))
			part->work.send.send_flags |= IB_SEND_SOLICITED;
	}
	if (is_write(op) || op == IB_WR_RDMA_READ) {
		part->work.rdma.remote_addr = remote;
		part->work.rdma.rkey = lane->area.mr->rkey;
	}
	if (has_imm(op))
		part->work.send.ex.imm_data = cpu_to_be32(part->id);
	if (lane->queue->kind == LOAD_UD) {
		part->work.ud.ah = lane->queue->ah;
		part->work.ud.remote_qpn = shot->side->peer->qp->qp_num;
		part->work.ud.remote_qkey = CONF_QKEY;
	}
	if (shot->nr)
		shot->part[shot->nr - 1].work.send.next = &part->work.send;
	shot->nr++;
}

static void make_mix(struct load_shot *shot)
{
	struct load_thread *thread = shot->lane->thread;
	u32 nr = 1 + load_random(thread, LOAD_PARTS);

	while (nr--) {
		switch (shot->lane->queue->kind) {
		case LOAD_RC:
			make_part(shot, rc_ops[load_random(thread, ARRAY_SIZE(rc_ops))]);
			break;
		case LOAD_UC:
			make_part(shot, uc_ops[load_random(thread, ARRAY_SIZE(uc_ops))]);
			break;
		default:
			make_part(shot, ud_ops[load_random(thread, ARRAY_SIZE(ud_ops))]);
		}
	}
}

/* Register what the second request works on, and invalidate it from here or from there. */
static void make_registered(struct load_shot *shot)
{
	struct load_thread *thread = shot->lane->thread;
	struct load_part *reg = &shot->part[0], *part = &shot->part[1], *end = &shot->part[2];
	struct area *mr = &shot->mr;

	make_part(shot, IB_WR_REG_MR);
	make_part(shot, load_random(thread, 2) ? IB_WR_RDMA_WRITE : IB_WR_RDMA_READ);
	make_part(shot, load_random(thread, 2) ? IB_WR_LOCAL_INV : IB_WR_SEND_WITH_INV);
	if (!area_map(shot->side, mr, part->remote - shot->lane->area.va,
		      max(part->bytes, 1U)))
		return;
	ib_update_fast_reg_key(mr->mr, ib_inc_rkey(mr->mr->rkey));
	reg->work.reg.mr = mr->mr;
	reg->work.reg.key = mr->mr->rkey;
	reg->work.reg.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |
			       IB_ACCESS_REMOTE_READ;
	part->work.rdma.remote_addr = mr->iova;
	part->work.rdma.rkey = mr->mr->rkey;
	end->work.send.ex.invalidate_rkey = mr->mr->rkey;
	end->work.send.send_flags |= IB_SEND_FENCE;
}

static void tally_part(struct load_thread *thread, const struct load_part *part)
{
	const struct ib_send_wr *wr = &part->work.send;

	thread->tally.ops[wr->opcode]++;
	load_add(thread, LOAD_SENDS, is_send(wr->opcode));
	load_add(thread, LOAD_WRITES, is_write(wr->opcode));
	load_add(thread, LOAD_READS, wr->opcode == IB_WR_RDMA_READ);
	load_add(thread, LOAD_ATOMICS, is_atomic(wr->opcode));
	load_add(thread, LOAD_REGISTRATIONS, wr->opcode == IB_WR_REG_MR);
	load_add(thread, LOAD_INVALIDATIONS, wr->opcode == IB_WR_LOCAL_INV);
	if (!is_atomic(wr->opcode))
		load_add(thread, LOAD_BYTES, part->bytes);
	if (!is_send(wr->opcode) && !is_write(wr->opcode))
		return;
	if (wr->send_flags & IB_SEND_INLINE)
		load_add(thread, LOAD_INLINE, 1);
	else
		load_add(thread, LOAD_PAYLOAD_READS, wr->num_sge);
}

/* What a doorbell for all of them reads; without BlueFlame, it is the same at any cost. */
static u32 wqe_fetches(const struct load_shot *shot)
{
	struct kverbs_cost_run run = {};
	struct kverbs_cost cost;
	u32 i;

	kverbs_cost_zero(&cost);
	for (i = 0; i < shot->nr; i++) {
		const struct load_part *part = &shot->part[i];
		const struct ib_send_wr *wr = &part->work.send;
		u32 bytes = wr->send_flags & IB_SEND_INLINE ?
				    kverbs_cost_wqe_bytes(0, part->bytes) :
				    kverbs_cost_wqe_bytes(wr->num_sge, 0);

		kverbs_cost_fetch(&cost, &run, bytes);
	}
	return run.wqe_fetches;
}

/* All that will complete is written down before any of it can. */
static void expect_parts(struct load_shot *shot)
{
	u32 i, pending = 0;

	for (i = 0; i < shot->nr; i++) {
		struct load_part *part = &shot->part[i];
		enum ib_wr_opcode op = part->work.send.opcode;

		part->sent = !!(part->work.send.send_flags & IB_SEND_SIGNALED);
		part->arriving = is_send(op) || op == IB_WR_RDMA_WRITE_WITH_IMM;
		pending += part->sent + part->arriving;
		tally_part(shot->lane->thread, part);
	}
	atomic_set(&shot->pending, pending);
}

/* Returns how many requests it was. */
u32 load_shoot(struct load_shot *shot)
{
	struct load_lane *lane = shot->lane;
	const struct ib_send_wr *bad = NULL;

	shot->side = &lane->queue->bed->side[load_random(lane->thread, 2)];
	shot->nr = 0;
	shot->generation++;
	if (lane->queue->kind == LOAD_RC && !load_random(lane->thread, REGISTER_RATIO))
		make_registered(shot);
	else
		make_mix(shot);
	shot->part[shot->nr - 1].work.send.send_flags |= IB_SEND_SIGNALED;
	expect_parts(shot);
	load_add(lane->thread, LOAD_DOORBELLS, 1);
	load_add(lane->thread, LOAD_SEND_WQES, shot->nr);
	load_add(lane->thread, LOAD_WQE_FETCHES, wqe_fetches(shot));
	expect_is(ib_post_send(shot->side->qp, &shot->part[0].work.send, &bad), 0);
	return shot->nr;
}

static bool check_list(const struct load_part *part)
{
	const u8 *data = data_of(part), *va;
	int i;

	for (i = 0; i < part->work.send.num_sge; i++) {
		u32 length = part->work.sge[i].length;

		va = element(part, i);
		if (!expect(!memcmp(va, data, length)) ||
		    !expect(!memchr_inv(va + length, FILLER, LOAD_GAP)))
			return false;
		data += length;
	}
	return true;
}

static bool check_part(const struct load_part *part)
{
	enum ib_wr_opcode op = part->work.send.opcode;

	if (is_write(op))
		return expect(!memcmp(part->remote, data_of(part), part->bytes)) &&
		       expect(!memchr_inv(part->remote + part->bytes, FILLER, LOAD_GAP));
	if (op == IB_WR_RDMA_READ)
		return check_list(part);
	if (is_atomic(op) && part->remote)
		return expect_is(*(u64 *)part->local, part->before) &&
		       expect_is(*(u64 *)part->remote, part->after);
	return true;
}

/* All completions of it came: what was silent is done, too. */
bool load_check(struct load_shot *shot)
{
	u32 i;

	for (i = 0; i < shot->nr; i++) {
		if (!check_part(&shot->part[i]))
			return false;
	}
	return true;
}

static void one_less(struct load_shot *shot)
{
	/* ORDER: what was looked at before it may be used again; pairs with slot_turn() */
	atomic_dec_return_release(&shot->pending);
}

static void polled_send(const struct ib_wc *wc)
{
	struct load_part *part = container_of(wc->wr_cqe, struct load_part, work.cqe);

	if (!expect(test_and_clear_bit(0, &part->sent)))
		return;
	expect_is(wc->opcode, done_opcode(part->work.send.opcode));
	expect(wc->qp == part->shot->side->qp);
	one_less(part->shot);
}

static struct load_part *part_of(struct load_queue *queue, u32 id)
{
	u32 thread = (id >> 16) & 0xff, slot = (id >> 8) & 0xff, i = id & 0xff;
	struct load_part *part;

	if (thread >= queue->load->nr_threads || slot >= LOAD_SLOTS || i >= LOAD_PARTS)
		return NULL;
	part = &queue->load->thread[thread].lane[queue->kind].shot[slot].part[i];
	return part->id == id ? part : NULL;
}

static void check_message(const struct load_recv *recv, const struct load_part *part,
			  const struct ib_wc *wc, u32 header)
{
	enum ib_wr_opcode op = part->work.send.opcode;
	u32 skip = has_name(op) ? sizeof(part->id) : 0;

	expect(part->shot->side == recv->side->peer);
	expect_is(wc->byte_len, part->bytes + header);
	if (!is_send(op)) {
		expect_is(wc->opcode, IB_WC_RECV_RDMA_WITH_IMM);
		return;
	}
	expect_is(wc->opcode, IB_WC_RECV);
	expect(!memcmp(recv->va + header + skip, data_of(part) + skip, part->bytes - skip));
	if (op == IB_WR_SEND_WITH_INV) {
		expect(wc->wc_flags & IB_WC_WITH_INVALIDATE);
		expect_is(wc->ex.invalidate_rkey, part->work.send.ex.invalidate_rkey);
	}
}

static void polled_recv(struct load_queue *queue, const struct ib_wc *wc)
{
	struct load_recv *recv = container_of(wc->wr_cqe, struct load_recv, cqe);
	u32 header = queue->kind == LOAD_UD ? LOAD_GRH_SIZE : 0;
	struct load_part *part;

	part = part_of(queue, wc->wc_flags & IB_WC_WITH_IMM ?
			      be32_to_cpu(wc->ex.imm_data) : *(u32 *)(recv->va + header));
	if (!expect(part && test_and_clear_bit(0, &part->arriving)))
		return;
	expect(wc->qp == recv->side->qp);
	check_message(recv, part, wc, header);
	expect_is(load_recv_post(recv), 0);
	one_less(part->shot);
}

/* A completion of the queue, of whichever thread. */
void load_polled(struct load_thread *thread, struct load_queue *queue, const struct ib_wc *wc)
{
	load_add(thread, LOAD_CQES, 1);
	if (!expect_is(wc->status, IB_WC_SUCCESS))
		return;
	if (!(wc->opcode & IB_WC_RECV)) {
		polled_send(wc);
		return;
	}
	load_add(thread, LOAD_RECV_WQES, 1);
	polled_recv(queue, wc);
}

int load_recv_post(struct load_recv *recv)
{
	struct ib_sge sge = {
		.addr = recv->dma,
		.length = LOAD_RECV_SIZE,
		.lkey = recv->side->bed->pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = { .wr_cqe = &recv->cqe, .sg_list = &sge, .num_sge = 1 };
	const struct ib_recv_wr *bad;

	return ib_post_recv(recv->side->qp, &wr, &bad);
}
