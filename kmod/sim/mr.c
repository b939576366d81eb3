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
	mr->state = SIM_MR_VALID;
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

int sim_dereg_mr(struct ib_mr *ib, struct ib_udata *udata)
{
	struct sim_mr *mr = to_sim_mr(ib);

	sim_judge_dereg(mr);
	xa_erase(&to_sim(ib->device)->mrs, mr->key >> SIM_KEY_SHIFT);
	atomic_dec(&to_sim(ib->device)->nr_mrs);
	WRITE_ONCE(mr->dying, true);
	WRITE_ONCE(mr->state, SIM_MR_FREE);
	smp_mb();	/* ORDER: the state before the users; pairs with sim_mr_get() */
	wait_var_event(&mr->users, !atomic_read(&mr->users));
	call_rcu(&mr->rcu, mr_free);
	return 0;
}

static bool mr_allows(const struct sim_mr *mr, u32 access, u64 addr, u32 length)
{
	return (mr->access & access) == access && addr >= mr->start &&
	       length <= mr->length && addr - mr->start <= mr->length - length;
}

/* Hold the region of a key if it allows this. Under rcu_read_lock(). */
struct sim_mr *sim_mr_get(struct sim_device *sim, struct ib_pd *pd, u32 key, u32 access, u64 addr,
			  u32 length)
{
	struct sim_mr *mr = xa_load(&sim->mrs, key >> SIM_KEY_SHIFT);

	if (!mr || mr->ib.pd != pd)
		return NULL;
	atomic_inc(&mr->users);
	/* ORDER: the users before the state; pairs with sim_dereg_mr(), sim_mr_invalidate() */
	smp_mb__after_atomic();
	if (READ_ONCE(mr->state) == SIM_MR_VALID && READ_ONCE(mr->key) == key &&
	    mr_allows(mr, access, addr, length))
		return mr;
	sim_mr_put(mr);
	return NULL;
}

void sim_mr_put(struct sim_mr *mr)
{
	if (atomic_dec_and_test(&mr->users) && unlikely(READ_ONCE(mr->dying)))
		wake_up_var(&mr->users);
}

/* REG_MR: the pages are those of the last map_mr_sg(), what they are is in the WQE. */
u32 sim_mr_register(struct sim_qp *qp, const struct sim_wqe *wqe)
{
	struct sim_mr *mr = xa_load(&sim_of_qp(qp)->mrs, wqe->rkey >> SIM_KEY_SHIFT);

	if (!mr || !mr->pages || mr->ib.pd != qp->ib.pd)
		return IB_WC_LOC_PROT_ERR;
	if (READ_ONCE(mr->state) != SIM_MR_FREE)
		return IB_WC_MW_BIND_ERR;
	mr->start = wqe->reg_start;
	mr->length = wqe->reg_length;
	mr->page_shift = wqe->reg_page_shift;
	mr->access = wqe->access;
	WRITE_ONCE(mr->key, wqe->rkey);
	/* ORDER: what it is before that it is; pairs with sim_mr_get() */
	smp_store_release(&mr->state, SIM_MR_VALID);
	return IB_WC_SUCCESS;
}

/* Whoever is copying may finish first. */
u32 sim_mr_invalidate(struct sim_qp *qp, u32 key)
{
	struct sim_mr *mr = xa_load(&sim_of_qp(qp)->mrs, key >> SIM_KEY_SHIFT);

	if (!mr || !mr->pages || mr->ib.pd != qp->ib.pd || READ_ONCE(mr->key) != key)
		return IB_WC_LOC_PROT_ERR;
	WRITE_ONCE(mr->state, SIM_MR_FREE);
	smp_mb();	/* ORDER: the state before the users; pairs with sim_mr_get() */
	if (!atomic_read(&mr->users))
		return IB_WC_SUCCESS;
	sim_judge_invalidate(qp, mr);
	return SIM_BUSY;
}
