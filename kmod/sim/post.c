// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The consumer's side of a queue pair: a work request is checked and built into the ring as
 * a WQE, and the doorbell is rung once for a chain. What a WQE holds is all that the HCA
 * looks at: work requests, lists and address handles may go when the call has returned.
 */
#include <linux/mm.h>
#include <linux/pgtable.h>

#include "plain.h"

#define OP_RC		0x01
#define OP_UC		0x02
#define OP_UD		0x04
#define OP_INLINE	0x08
#define OP_RDMA		0x10
#define OP_ATOMIC	0x20
#define OP_REG		0x40
#define OP_NO_DATA	0x80

static const u8 op_flags[] = {
	[IB_WR_SEND] = OP_RC | OP_UC | OP_UD | OP_INLINE,
	[IB_WR_SEND_WITH_IMM] = OP_RC | OP_UC | OP_UD | OP_INLINE,
	[IB_WR_SEND_WITH_INV] = OP_RC | OP_INLINE,
	[IB_WR_RDMA_WRITE] = OP_RC | OP_UC | OP_INLINE | OP_RDMA,
	[IB_WR_RDMA_WRITE_WITH_IMM] = OP_RC | OP_UC | OP_INLINE | OP_RDMA,
	[IB_WR_RDMA_READ] = OP_RC | OP_RDMA,
	[IB_WR_ATOMIC_CMP_AND_SWP] = OP_RC | OP_ATOMIC,
	[IB_WR_ATOMIC_FETCH_AND_ADD] = OP_RC | OP_ATOMIC,
	[IB_WR_REG_MR] = OP_RC | OP_UC | OP_REG | OP_NO_DATA,
	[IB_WR_LOCAL_INV] = OP_RC | OP_UC | OP_NO_DATA,
};

/* Which opcodes a send queue takes. */
u8 sim_sq_ops(enum ib_qp_type type)
{
	switch (type) {
	case IB_QPT_RC:
		return OP_RC;
	case IB_QPT_UC:
		return OP_UC;
	default:
		return OP_UD;
	}
}

static bool can_post(u32 state)
{
	return state == IB_QPS_RTS || state == IB_QPS_SQD || state == IB_QPS_SQE ||
	       state == IB_QPS_ERR;
}

static bool of_module(u64 addr)
{
#ifdef MODULES_VADDR
	return addr >= MODULES_VADDR && addr < MODULES_END;
#else
	return false;
#endif
}

/* Inline data is read by the CPU: it must be at a kernel address. */
static bool readable(u64 addr)
{
	void *va = (void *)(uintptr_t)addr;

	return virt_addr_valid(va) || is_vmalloc_addr(va) || of_module(addr);
}

static noinline int check_inline(struct sim_qp *qp, const struct ib_send_wr *wr)
{
	const struct sim_sq *sq = qp->sq;
	u32 length = 0;
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		const struct ib_sge *sge = &wr->sg_list[i];

		if (!sge->length)
			continue;
		if (sge->length > sq->max_inline - length)
			return -EINVAL;
		if (!readable(sge->addr))
			return sim_judge_inline(qp);
		length += sge->length;
	}
	return 0;
}

/* What kind of opcode it is, or nothing for one that this send queue does not take. */
static __always_inline u8 op_of(const struct sim_sq *sq, const struct ib_send_wr *wr)
{
	u32 opcode = wr->opcode;

	if (unlikely(opcode >= ARRAY_SIZE(op_flags) || !(op_flags[opcode] & sq->ops)))
		return 0;
	return op_flags[opcode];
}

/* Whether a work request of a kind is one that this queue pair can ever take. */
static __always_inline int check_wr(struct sim_qp *qp, const struct ib_send_wr *wr, u8 op)
{
	if (unlikely(!op))
		return -EOPNOTSUPP;
	if (op & OP_NO_DATA)
		return wr->num_sge ? -EINVAL : 0;
	if (unlikely((u32)wr->num_sge > qp->sq->max_sge))
		return -EINVAL;
	if (wr->send_flags & IB_SEND_INLINE)
		return op & OP_INLINE ? check_inline(qp, wr) : -EINVAL;
	return 0;
}

/* How many bytes of a send queue the WQE takes, as the next has it. */
static noinline u32 build_inline(struct sim_wqe *wqe, const struct ib_send_wr *wr)
{
	u32 length = 0;
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		sim_move((void *)wqe->sge + length, (void *)(uintptr_t)wr->sg_list[i].addr,
			 wr->sg_list[i].length);
		length += wr->sg_list[i].length;
	}
	wqe->num_sge = 0;
	wqe->length = length;
	return kverbs_cost_wqe_bytes(0, length);
}

static __always_inline u32 build_list(struct sim_wqe *wqe, const struct ib_sge *sge, u32 nr)
{
	u32 length = 0, i;

	if (likely(nr == 1)) {
		wqe->sge[0] = sge[0];
		length = sge[0].length;
	} else {
		for (i = 0; i < nr; i++) {
			wqe->sge[i] = sge[i];
			length += sge[i].length;
		}
	}
	wqe->num_sge = nr;
	wqe->length = length;
	return kverbs_cost_wqe_bytes(nr, 0);
}

static void build_reg(struct sim_wqe *wqe, const struct ib_reg_wr *wr)
{
	wqe->rkey = wr->key;
	wqe->access = wr->access;
	wqe->reg_start = wr->mr->iova;
	wqe->reg_length = wr->mr->length;
	wqe->reg_page_shift = ilog2(wr->mr->page_size);
}

static void build_datagram(struct sim_wqe *wqe, const struct ib_ud_wr *wr)
{
	wqe->av = to_sim_ah(wr->ah)->av;
	wqe->remote_qpn = wr->remote_qpn;
	wqe->remote_qkey = wr->remote_qkey;
}

static void build_atomic(struct sim_wqe *wqe, const struct ib_atomic_wr *wr)
{
	wqe->remote_addr = wr->remote_addr;
	wqe->rkey = wr->rkey;
	wqe->compare_add = wr->compare_add;
	wqe->swap = wr->swap;
}

static noinline void build_other(const struct sim_sq *sq, struct sim_wqe *wqe,
				 const struct ib_send_wr *wr, u8 op)
{
	if (op & OP_ATOMIC)
		build_atomic(wqe, atomic_wr(wr));
	else if (op & OP_REG)
		build_reg(wqe, reg_wr(wr));
	else if (sq->ops == OP_UD)
		build_datagram(wqe, ud_wr(wr));
}

static __always_inline u32 build_wqe(const struct sim_sq *sq, struct sim_wqe *wqe,
				     const struct ib_send_wr *wr, u8 op)
{
	wqe->opcode = wr->opcode;
	wqe->flags = wr->send_flags | sq->signal_all;
	wqe->ex = wr->ex.invalidate_rkey;
	wqe->wr_id = wr->wr_id;
	if (likely(op & OP_RDMA)) {
		wqe->remote_addr = rdma_wr(wr)->remote_addr;
		wqe->rkey = rdma_wr(wr)->rkey;
	} else {
		build_other(sq, wqe, wr, op);
	}
	/* What has no data has no list either. */
	if (unlikely(wr->send_flags & IB_SEND_INLINE && !(op & OP_NO_DATA)))
		return build_inline(wqe, wr);
	return build_list(wqe, wr->sg_list, wr->num_sge);
}

/*
 * Each send work request that is accepted is accepted here: how many bytes its WQE takes of
 * a send queue, or why it is not.
 */
static __always_inline int post_accept(struct sim_qp *qp, const struct ib_send_wr *wr,
				       struct sim_ring *ring)
{
	struct sim_sq *sq = qp->sq;
	u8 op = op_of(sq, wr);
	int head, bytes = check_wr(qp, wr, op);
	struct sim_wqe *wqe;

	if (unlikely(bytes))
		return bytes;
	head = atomic_read(&sq->head);
	do {
		/* Negative: others have posted, and it was retired, since head was read. */
		if (unlikely(head - atomic_read(&sq->retired) >= (int)sq->depth))
			return sim_judge_full(qp);
	} while (!atomic_try_cmpxchg(&sq->head, &head, head + 1));

	wqe = sim_sq_slot(sq, head);
	bytes = build_wqe(sq, wqe, wr, op);
	if (ring)
		sim_cost_wqe(ring, wqe, bytes);
	/* ORDER: the WQE before its number; pairs with sim_sq_peek() */
	smp_store_release(&wqe->seq, head + 1);
	return bytes;
}

/* A chain up to @end, and the doorbell for what was accepted of it; @ring if it costs. */
static __always_inline int post_chain(struct sim_qp *qp, const struct ib_send_wr *wr,
				      const struct ib_send_wr *end,
				      const struct ib_send_wr **bad_wr, struct sim_ring *ring)
{
	const struct ib_send_wr *next;
	u32 bytes = 0;
	int ret = 0;

	for (; wr != end; wr = next) {
		/* Once it is accepted it may be executed, and gone. */
		next = wr->next;
		ret = post_accept(qp, wr, ring);
		if (unlikely(ret < 0)) {
			*bad_wr = wr;
			break;
		}
		bytes += ret;
	}
	if (likely(bytes)) {
		if (ring)
			sim_cost_ring(qp, ring);
		else
			sim_cost_free(&sim_of_qp(qp)->cost, bytes);
		sim_doorbell(qp);
	}
	return min(ret, 0);
}

static noinline int post_costly(struct sim_qp *qp, const struct ib_send_wr *wr,
				const struct ib_send_wr *end, const struct ib_send_wr **bad_wr)
{
	struct sim_ring ring;

	sim_cost_open(qp, wr, &ring);
	return post_chain(qp, wr, end, bad_wr, &ring);
}

static __always_inline int post_until(struct sim_qp *qp, const struct ib_send_wr *wr,
				      const struct ib_send_wr *end,
				      const struct ib_send_wr **bad_wr)
{
	if (sim_costly())
		return post_costly(qp, wr, end, bad_wr);
	return post_chain(qp, wr, end, bad_wr, NULL);
}

static noinline int post_faulty(struct sim_qp *qp, const struct ib_send_wr *wr,
				const struct ib_send_wr **bad_wr)
{
	struct sim_refusal refusal;
	int ret;

	sim_fault_post(qp, wr, &refusal);
	ret = post_until(qp, wr, refusal.at, bad_wr);
	if (!ret && refusal.at)
		ret = sim_fault_refuse(&refusal, wr, bad_wr);
	return sim_fault_posted(qp, wr, ret);
}

int sim_post_send(struct ib_qp *ib, const struct ib_send_wr *wr, const struct ib_send_wr **bad_wr)
{
	struct sim_qp *qp = to_sim_qp(ib);

	if (unlikely(!can_post(READ_ONCE(qp->state)))) {
		*bad_wr = wr;
		return -EINVAL;
	}
	if (sim_faulty())
		return post_faulty(qp, wr, bad_wr);
	return post_until(qp, wr, NULL, bad_wr);
}

int sim_post_recv(struct ib_qp *ib, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad_wr)
{
	struct sim_qp *qp = to_sim_qp(ib);
	int ret;

	if (unlikely(qp->srq || READ_ONCE(qp->state) == IB_QPS_RESET)) {
		*bad_wr = wr;
		return -EINVAL;
	}
	ret = sim_rq_post(&qp->rq, wr, bad_wr);
	/* ORDER: the receive before the state; pairs with sim_qp_fail() and modify_qp */
	smp_mb();
	if (unlikely(READ_ONCE(qp->state) == IB_QPS_ERR))
		sim_kick(qp);
	return ret;
}
