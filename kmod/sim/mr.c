// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory regions. A key is an index into the table of the device and eight bits that the
 * consumer changes from one registration to the next. Who copies holds the region by its
 * @users; who invalidates or destroys it takes the key away first and then waits for them.
 */
#include <linux/wait_bit.h>

#include "sim.h"

static int mr_add(struct sim_mr *mr, struct ib_pd *pd)
{
	struct sim_device *sim = to_sim(pd->device);
	u32 index;
	int ret;

	mr->ib.pd = pd;
	mr->ib.device = pd->device;
	/* The first two: no key at all, and the whole memory. */
	if (!sim_take_one(&sim->nr_mrs, sim->caps.mrs))
		return -ENOMEM;
	ret = xa_alloc(&sim->mrs, &index, mr, XA_LIMIT(2, U32_MAX >> SIM_KEY_SHIFT), GFP_KERNEL);
	if (ret) {
		atomic_dec(&sim->nr_mrs);
		return ret;
	}
	mr->key = index << SIM_KEY_SHIFT;
	mr->ib.lkey = mr->key;
	mr->ib.rkey = mr->key;
	return 0;
}

struct ib_mr *sim_get_dma_mr(struct ib_pd *pd, int access)
{
	struct sim_mr *mr = kzalloc_obj(*mr);
	int ret;

	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->access = access;
	mr->length = U64_MAX;
	atomic64_set(&mr->registration, 1);
	ret = mr_add(mr, pd);
	if (ret) {
		kfree(mr);
		return ERR_PTR(ret);
	}
	return &mr->ib;
}

struct ib_mr *sim_alloc_mr(struct ib_pd *pd, enum ib_mr_type type, u32 max_num_sg)
{
	struct sim_mr *mr;
	int ret;

	if (type != IB_MR_TYPE_MEM_REG)
		return ERR_PTR(-EOPNOTSUPP);
	if (!max_num_sg || max_num_sg > SIM_MAX_REG_PAGES)
		return ERR_PTR(-EINVAL);
	mr = kzalloc_obj(*mr);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	ret = -ENOMEM;
	mr->max_pages = max_num_sg;
	mr->pages = kcalloc(max_num_sg, sizeof(*mr->pages), GFP_KERNEL);
	if (!mr->pages)
		goto free_mr;
	ret = mr_add(mr, pd);
	if (ret)
		goto free_pages;
	return &mr->ib;

free_pages:
	kfree(mr->pages);
free_mr:
	kfree(mr);
	return ERR_PTR(ret);
}

/* Without it kernel consumers are never told of the device. */
KVERBS_REG_USER_MR(sim_reg_user_mr)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static int set_page(struct ib_mr *ib, u64 addr)
{
	struct sim_mr *mr = to_sim_mr(ib);

	if (mr->nr_pages == mr->max_pages)
		return -ENOMEM;
	mr->pages[mr->nr_pages++] = addr;
	return 0;
}

int sim_map_mr_sg(struct ib_mr *ib, struct scatterlist *sg, int nents, unsigned int *offset)
{
	to_sim_mr(ib)->nr_pages = 0;
	return ib_sg_to_pages(ib, sg, nents, offset, set_page);
}

static void mr_free(struct rcu_head *rcu)
{
	struct sim_mr *mr = container_of(rcu, struct sim_mr, rcu);

	kfree(mr->pages);
	kfree(mr);
}

/* It is registered no more. Whether somebody still copies by it shows after that. */
static void mr_unregister(struct sim_mr *mr)
{
	s64 registration = sim_mr_registration(mr);

	if (registration & 1)
		atomic64_cmpxchg(&mr->registration, registration, registration + 1);
	smp_mb();	/* ORDER: the registration before the users; pairs with sim_mr_hold() */
}

int sim_dereg_mr(struct ib_mr *ib, struct ib_udata *udata)
{
	struct sim_mr *mr = to_sim_mr(ib);

	sim_judge_dereg(mr);
	xa_erase(&to_sim(ib->device)->mrs, mr->key >> SIM_KEY_SHIFT);
	sim_epoch_end();
	atomic_dec(&to_sim(ib->device)->nr_mrs);
	WRITE_ONCE(mr->dying, true);
	mr_unregister(mr);
	wait_var_event(&mr->users, !atomic_read(&mr->users));
	call_rcu(&mr->rcu, mr_free);
	return 0;
}

static bool mr_allows(const struct sim_mr *mr, u32 access, u64 addr, u32 length)
{
	return (mr->access & access) == access && addr >= mr->start &&
	       length <= mr->length && addr - mr->start <= mr->length - length;
}

/*
 * Hold the region that an element names by its key, if it allows this, and say by which
 * registration it does. Within the RCU read side section of a run.
 */
struct sim_mr *sim_mr_get(struct sim_device *sim, struct ib_pd *pd, const struct ib_sge *sge,
			  u32 access, s64 *registration)
{
	struct sim_mr *mr = xa_load(&sim->mrs, sge->lkey >> SIM_KEY_SHIFT);

	if (!mr || mr->ib.pd != pd)
		return NULL;
	sim_mr_hold(mr);
	/* ORDER: the registration before what it is; pairs with sim_mr_register() */
	*registration = atomic64_read_acquire(&mr->registration);
	if (*registration & 1 && READ_ONCE(mr->key) == sge->lkey &&
	    mr_allows(mr, access, sge->addr, sge->length))
		return mr;
	sim_mr_put(mr);
	return NULL;
}

/* Nobody holds it for now. */
void sim_mr_idle(struct sim_mr *mr)
{
	wake_up_var(&mr->users);
}

static u64 mr_page(const struct sim_mr *mr)
{
	return 1ULL << mr->page_shift;
}

/* Where a place in a region is from the beginning of its first page. */
static u64 page_offset(const struct sim_mr *mr, u64 addr)
{
	return addr - mr->start + (mr->start & (mr_page(mr) - 1));
}

/* The DMA address of a place in a region, and how much of it is in one page. */
u64 sim_mr_dma(const struct sim_mr *mr, u64 addr, u32 *length)
{
	u64 offset, in_page;

	if (!mr->pages)
		return addr;
	offset = page_offset(mr, addr);
	in_page = offset & (mr_page(mr) - 1);
	*length = min_t(u64, *length, mr_page(mr) - in_page);
	return mr->pages[offset >> mr->page_shift] + in_page;
}

/* What of the DMA addresses around it is in one page, as the region has it. */
static void page_clip(const struct sim_mr *mr, struct sim_window *window, u64 addr, u64 dma)
{
	u64 in_page = dma & (mr_page(mr) - 1);
	u64 before = min3(dma - window->start, in_page, addr - mr->start);
	u64 after = min3(window->start + window->length - dma, mr_page(mr) - in_page,
			 mr->start + mr->length - addr);

	window->va += dma - before - window->start;
	window->start = addr - before;
	window->length = before + after;
}

/* What is around a place in a region: NULL if that is not all there, or in several pages. */
void *sim_mr_window(const struct sim_mr *mr, struct sim_window *window, u64 addr, u32 length,
		    bool write)
{
	struct sim_device *sim = to_sim(mr->ib.device);
	u32 in_page = length;
	u64 dma = sim_mr_dma(mr, addr, &in_page);

	if (in_page != length || !sim_dma_window(sim, window, dma, length, write))
		return NULL;
	if (mr->pages)
		page_clip(mr, window, addr, dma);
	return sim_window_at(window, addr, length);
}

/* REG_MR: the pages are those of the last map_mr_sg(), what they are is in the WQE. */
u32 sim_mr_register(struct sim_qp *qp, const struct sim_wqe *wqe)
{
	struct sim_mr *mr = xa_load(&sim_of_qp(qp)->mrs, wqe->rkey >> SIM_KEY_SHIFT);
	s64 registration;

	if (!mr || !mr->pages || mr->ib.pd != qp->ib.pd)
		return IB_WC_LOC_PROT_ERR;
	registration = sim_mr_registration(mr);
	if (registration & 1)
		return IB_WC_MW_BIND_ERR;
	mr->start = wqe->reg_start;
	mr->length = wqe->reg_length;
	mr->page_shift = wqe->reg_page_shift;
	mr->access = wqe->access;
	WRITE_ONCE(mr->key, wqe->rkey);
	/* ORDER: what it is before that it is; pairs with sim_mr_get() */
	atomic64_set_release(&mr->registration, registration + 1);
	return IB_WC_SUCCESS;
}

/* Whoever is copying may finish first. */
u32 sim_mr_invalidate(struct sim_qp *qp, u32 key)
{
	struct sim_mr *mr = xa_load(&sim_of_qp(qp)->mrs, key >> SIM_KEY_SHIFT);

	if (!mr || !mr->pages || mr->ib.pd != qp->ib.pd || READ_ONCE(mr->key) != key)
		return IB_WC_LOC_PROT_ERR;
	mr_unregister(mr);
	if (!atomic_read(&mr->users))
		return IB_WC_SUCCESS;
	sim_judge_invalidate(qp, mr);
	return SIM_BUSY;
}
