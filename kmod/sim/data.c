// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Cursors over what a WQE or a message names: a scatter/gather list, a range of the peer's
 * memory, a buffer of ours. An element is checked as a whole when it is begun (key, domain,
 * access, bounds) and then yields pieces that are contiguous in the kernel's address space.
 */
#include "sim.h"

void sim_cursor_sgl(struct sim_cursor *cursor, struct sim_qp *qp, const struct ib_sge *sge, u32 nr,
		    u32 access)
{
	*cursor = (struct sim_cursor) {
		.sim = sim_of_qp(qp),
		.pd = qp->ib.pd,
		.access = access,
		.sge = sge,
		.nr = nr,
	};
}

void sim_cursor_remote(struct sim_cursor *cursor, struct sim_qp *peer, struct ib_sge *sge,
		       u32 access)
{
	sim_cursor_sgl(cursor, peer, sge, 1, access);
	cursor->remote = true;
}

void sim_cursor_buffer(struct sim_cursor *cursor, void *buffer, u32 length)
{
	*cursor = (struct sim_cursor) {
		.va = buffer,
		.length = length,
	};
}

/* What a WQE sends. */
void sim_cursor_payload(struct sim_cursor *cursor, struct sim_qp *qp, struct sim_wqe *wqe)
{
	if (wqe->flags & IB_SEND_INLINE)
		sim_cursor_buffer(cursor, wqe->sge, wqe->length);
	else
		sim_cursor_sgl(cursor, qp, wqe->sge, wqe->num_sge, 0);
}

void sim_cursor_end(struct sim_cursor *cursor)
{
	if (cursor->mr)
		sim_mr_put(cursor->mr);
	cursor->mr = NULL;
}

static bool begin_element(struct sim_cursor *cursor)
{
	const struct ib_sge *sge = cursor->sge++;
	s64 registration;

	cursor->nr--;
	sim_cursor_end(cursor);
	cursor->addr = sge->addr;
	cursor->left = sge->length;
	if (!sge->length || (sge->lkey == SIM_LOCAL_DMA_LKEY && !cursor->remote))
		return true;
	cursor->mr = sim_mr_get(cursor->sim, cursor->pd, sge, cursor->access, &registration);
	return cursor->mr;
}

/* Whether a list may be read, by its keys. */
bool sim_sgl_ok(struct sim_qp *qp, const struct ib_sge *sge, u32 nr)
{
	struct sim_cursor cursor;
	bool ok = true;

	sim_cursor_sgl(&cursor, qp, sge, nr, 0);
	while (ok && cursor.nr)
		ok = begin_element(&cursor);
	sim_cursor_end(&cursor);
	return ok;
}

/* Make the current piece the next one: false if there is none or it may not be used. */
bool sim_cursor_fill(struct sim_cursor *cursor)
{
	u64 dma;

	while (!cursor->left) {
		if (!cursor->nr || !begin_element(cursor))
			return false;
	}
	cursor->length = cursor->left;
	dma = cursor->mr ? sim_mr_dma(cursor->mr, cursor->addr, &cursor->length) : cursor->addr;
	cursor->va = sim_dma_va(cursor->sim, dma, cursor->length,
				cursor->access & (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |
						  IB_ACCESS_REMOTE_ATOMIC));
	if (!cursor->va) {
		sim_judge_dma(cursor->sim, SIM_JUDGE_DMA_ADDRESS);
		cursor->length = 0;
		return false;
	}
	cursor->addr += cursor->length;
	cursor->left -= cursor->length;
	return true;
}

static void advance(struct sim_cursor *cursor, u32 length)
{
	cursor->va += length;
	cursor->length -= length;
}

/* The source is looked at first: what is wrong with it leaves the target alone. */
enum sim_copied sim_copy(struct sim_cursor *to, struct sim_cursor *from, u32 length)
{
	u32 n;

	while (length) {
		if (!from->length && !sim_cursor_fill(from))
			return SIM_BAD_SOURCE;
		if (!to->length && !sim_cursor_fill(to))
			return SIM_BAD_TARGET;
		n = min3(length, from->length, to->length);
		sim_move(to->va, from->va, n);
		advance(from, n);
		advance(to, n);
		length -= n;
	}
	return SIM_COPIED;
}
