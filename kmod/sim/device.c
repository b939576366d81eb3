// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A simulated HCA as an ib_device: what it says of itself, how it is registered, and the
 * objects that hold nothing (protection domains, address handles).
 */
#include <linux/etherdevice.h>
#include <linux/module.h>
#include <net/addrconf.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_user_verbs.h>

#include "sim.h"

const char * const sim_context_names[SIM_NR_CONTEXTS] = {
	[SIM_CONTEXT_THREAD] = "thread",
	[SIM_CONTEXT_SOFTIRQ] = "softirq",
	[SIM_CONTEXT_HRTIMER] = "hrtimer",
	[SIM_CONTEXT_POST] = "post",
};

u32 sim_default_context = SIM_CONTEXT_THREAD;

static int context_set(const char *value, const struct kernel_param *param)
{
	int i = sysfs_match_string(sim_context_names, value);

	if (i < 0)
		return i;
	WRITE_ONCE(sim_default_context, i);
	return 0;
}

static int context_get(char *buffer, const struct kernel_param *param)
{
	return sysfs_emit(buffer, "%s\n", sim_context_names[READ_ONCE(sim_default_context)]);
}

static const struct kernel_param_ops context_ops = {
	.set = context_set,
	.get = context_get,
};

module_param_cb(context, &context_ops, NULL, 0644);
MODULE_PARM_DESC(context, "where new devices execute work requests: thread, softirq, hrtimer, post");

bool sim_default_virtual_dma;
module_param_named(virtual_dma, sim_default_virtual_dma, bool, 0644);
MODULE_PARM_DESC(virtual_dma, "DMA addresses of new devices are kernel pointers");

static atomic_t last_id;

static int sim_query_device(struct ib_device *ib, struct ib_device_attr *attr,
			    struct ib_udata *udata)
{
	const struct sim_caps *caps = &to_sim(ib)->caps;

	memset(attr, 0, sizeof(*attr));
	attr->sys_image_guid = ib->node_guid;
	attr->max_mr_size = U64_MAX;
	attr->page_size_cap = ~(u64)(SZ_4K - 1);
	attr->max_qp = caps->qps;
	attr->max_qp_wr = caps->qp_wr;
	attr->device_cap_flags = IB_DEVICE_MEM_MGT_EXTENSIONS | IB_DEVICE_RC_RNR_NAK_GEN |
				 IB_DEVICE_PORT_ACTIVE_EVENT | IB_DEVICE_SYS_IMAGE_GUID |
				 IB_DEVICE_CURR_QP_STATE_MOD;
	attr->kernel_cap_flags = IBK_LOCAL_DMA_LKEY | IBK_ALLOW_USER_UNREG;
	attr->max_send_sge = caps->sge;
	attr->max_recv_sge = caps->sge;
	attr->max_sge_rd = caps->sge;
	attr->max_cq = SIM_MAX_QPN;
	attr->max_cqe = caps->cqe;
	attr->max_mr = caps->mrs;
	attr->max_pd = S32_MAX;
	attr->max_qp_rd_atom = SIM_MAX_RD_ATOMIC;
	attr->max_res_rd_atom = S32_MAX;
	attr->max_qp_init_rd_atom = SIM_MAX_RD_ATOMIC;
	attr->atomic_cap = IB_ATOMIC_GLOB;
	attr->max_ah = S32_MAX;
	attr->max_srq = SIM_MAX_QPN;
	attr->max_srq_wr = SIM_MAX_SRQ_WR;
	attr->max_srq_sge = caps->sge;
	attr->max_fast_reg_page_list_len = SIM_MAX_REG_PAGES;
	attr->max_pkeys = 1;
	attr->cq_caps.max_cq_moderation_count = U16_MAX;
	attr->cq_caps.max_cq_moderation_period = U16_MAX;
	return 0;
}

static enum rdma_link_layer sim_get_link_layer(struct ib_device *ib, u32 port)
{
	return IB_LINK_LAYER_ETHERNET;
}

static int sim_alloc_pd(struct ib_pd *ib, struct ib_udata *udata)
{
	return 0;
}

static int sim_dealloc_pd(struct ib_pd *ib, struct ib_udata *udata)
{
	return 0;
}

static void av_fill(struct sim_av *av, const struct rdma_ah_attr *attr)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(attr);

	av->dgid = grh->dgid;
	av->sgid_index = grh->sgid_index;
	av->traffic_class = grh->traffic_class;
	av->hop_limit = grh->hop_limit;
}

static int sim_create_ah(struct ib_ah *ib, struct rdma_ah_init_attr *init, struct ib_udata *udata)
{
	if (!(rdma_ah_get_ah_flags(init->ah_attr) & IB_AH_GRH))
		return -EINVAL;
	av_fill(&to_sim_ah(ib)->av, init->ah_attr);
	return 0;
}

static int sim_destroy_ah(struct ib_ah *ib, u32 flags)
{
	return 0;
}

/* The last call into the driver for a device. */
static void sim_dealloc_driver(struct ib_device *ib)
{
	struct sim_device *sim = to_sim(ib);

	mutex_lock(&sim_devices_lock);
	list_del_rcu(&sim->entry);
	mutex_unlock(&sim_devices_lock);
	synchronize_rcu();
	sim_cfs_remove(sim);
	sim_judge_destroy(sim);
	sim_fault_destroy(sim);
	sim_engine_destroy(sim);
	sim_vectors_destroy(sim);
	sim_cost_destroy(sim);
	WARN_ON(!xa_empty(&sim->mrs));
	xa_destroy(&sim->mrs);
	sim_dma_destroy(sim);
}

static const struct ib_device_ops sim_ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_UNKNOWN,

	.add_gid = sim_add_gid,
	.alloc_hw_port_stats = sim_alloc_hw_port_stats,
	.alloc_mr = sim_alloc_mr,
	.alloc_pd = sim_alloc_pd,
	.create_ah = sim_create_ah,
	.create_cq = sim_create_cq,
	.create_qp = sim_create_qp,
	.create_srq = sim_create_srq,
	.dealloc_driver = sim_dealloc_driver,
	.dealloc_pd = sim_dealloc_pd,
	.del_gid = sim_del_gid,
	.dereg_mr = sim_dereg_mr,
	.destroy_ah = sim_destroy_ah,
	.destroy_cq = sim_destroy_cq,
	.destroy_qp = sim_destroy_qp,
	.destroy_srq = sim_destroy_srq,
	.get_dma_mr = sim_get_dma_mr,
	.get_hw_stats = sim_get_hw_stats,
	.get_link_layer = sim_get_link_layer,
	.get_port_immutable = sim_get_port_immutable,
	.map_mr_sg = sim_map_mr_sg,
	.modify_cq = sim_modify_cq,
	.modify_qp = sim_modify_qp,
	.modify_srq = sim_modify_srq,
	.poll_cq = sim_poll_cq,
	.post_recv = sim_post_recv,
	.post_send = sim_post_send,
	.post_srq_recv = sim_post_srq_recv,
	.query_device = sim_query_device,
	.query_pkey = sim_query_pkey,
	.query_port = sim_query_port,
	.query_qp = sim_query_qp,
	.query_srq = sim_query_srq,
	.reg_user_mr = sim_reg_user_mr,
	.req_notify_cq = sim_req_notify_cq,

	INIT_RDMA_OBJ_SIZE(ib_ah, sim_ah, ib),
	INIT_RDMA_OBJ_SIZE(ib_cq, sim_cq, ib),
	INIT_RDMA_OBJ_SIZE(ib_pd, sim_pd, ib),
	INIT_RDMA_OBJ_SIZE(ib_qp, sim_qp, ib),
	INIT_RDMA_OBJ_SIZE(ib_srq, sim_srq, ib),
};

static void device_fill(struct sim_device *sim, struct net_device *ndev)
{
	struct ib_device *ib = &sim->ib;

	sim->ndev = ndev;
	sim->net = dev_net(ndev);
	sim->id = atomic_inc_return(&last_id);
	sim->up = sim_port_state(ndev) == IB_PORT_ACTIVE;
	sim->virtual_dma = READ_ONCE(sim_default_virtual_dma);
	sim->config.context = READ_ONCE(sim_default_context);
	sim->caps = sim_default_caps;
	xa_init_flags(&sim->mrs, XA_FLAGS_ALLOC);
	mutex_init(&sim->lock);
	mutex_init(&sim->cost.lock);
	INIT_LIST_HEAD(&sim->qps);
	INIT_LIST_HEAD(&sim->cqs);
	sim_fault_init(sim);
	sim_judge_init(sim);
	/* A netdev without a hardware address still needs a GUID. */
	if (ndev->addr_len == ETH_ALEN)
		ether_addr_copy(sim->mac, ndev->dev_addr);
	else
		eth_random_addr(sim->mac);

	strscpy(ib->node_desc, "kverbs_sim", sizeof(ib->node_desc));
	ib->node_type = RDMA_NODE_IB_CA;
	ib->phys_port_cnt = 1;
	ib->num_comp_vectors = sim->caps.comp_vectors;
	ib->local_dma_lkey = SIM_LOCAL_DMA_LKEY;
	addrconf_addr_eui48((u8 *)&ib->node_guid, sim->mac);
	ib_set_device_ops(ib, &sim_ops);
}

int sim_device_create(const char *name, struct net_device *ndev)
{
	struct device *dma = NULL;
	struct sim_device *sim;
	int ret, node;

	sim = ib_alloc_device(sim_device, ib);
	if (!sim)
		return -ENOMEM;
	device_fill(sim, ndev);
	node = sim->caps.numa_node == NUMA_NO_NODE ? dev_to_node(&ndev->dev) : sim->caps.numa_node;
	mutex_lock(&sim_devices_lock);
	list_add_tail_rcu(&sim->entry, &sim_devices);
	mutex_unlock(&sim_devices_lock);

	ret = sim_engine_init(sim);
	if (ret)
		goto dealloc;
	ret = sim_cost_init(sim);
	if (ret)
		goto dealloc;
	ret = sim_vectors_init(sim, node);
	if (ret)
		goto dealloc;
	ret = sim_dma_create(sim, node);
	if (ret)
		goto dealloc;
	sim->ib.dev.parent = &sim->parent->dev;
	if (!sim->virtual_dma)
		dma = &sim->parent->dev;
	ret = ib_device_set_netdev(&sim->ib, ndev, 1);
	if (ret)
		goto dealloc;
	ret = sim_cfs_add(sim, name);
	if (ret)
		goto dealloc;
	ib_mark_name_assigned_by_user(&sim->ib);
	ret = ib_register_device(&sim->ib, name, dma);
	if (ret)
		goto dealloc;
	return 0;

dealloc:
	ib_dealloc_device(&sim->ib);
	return ret;
}
