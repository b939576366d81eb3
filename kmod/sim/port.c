// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The one port of a device is up when its netdev is. RoCE version 2: GIDs are the addresses
 * of the netdev. All devices of this host are on one wire: a GID is looked up among them.
 */
#include <rdma/ib_cache.h>
#include <rdma/ib_mad.h>

#include "sim.h"

#define SIM_PORT	1

enum ib_port_state sim_port_state(const struct net_device *ndev)
{
	return netif_running(ndev) && netif_carrier_ok(ndev) ? IB_PORT_ACTIVE : IB_PORT_DOWN;
}

void sim_port_update(struct sim_device *sim, struct net_device *ndev)
{
	bool up = sim_port_state(ndev) == IB_PORT_ACTIVE;
	struct ib_event event = {
		.device = &sim->ib,
		.element.port_num = SIM_PORT,
		.event = up ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR,
	};

	if (xchg(&sim->up, up) == up)
		return;
	sim_epoch_end();
	if (!KVERBS_CORE_HAS_PORT_EVENTS)
		ib_dispatch_event(&event);
}

int sim_query_port(struct ib_device *ib, u32 port, struct ib_port_attr *attr)
{
	struct sim_device *sim = to_sim(ib);
	bool up = READ_ONCE(sim->up);

	attr->state = up ? IB_PORT_ACTIVE : IB_PORT_DOWN;
	attr->phys_state = up ? IB_PORT_PHYS_STATE_LINK_UP : IB_PORT_PHYS_STATE_DISABLED;
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = IB_MTU_4096;
	attr->gid_tbl_len = SIM_NR_GIDS;
	attr->port_cap_flags = IB_PORT_CM_SUP;
	attr->max_msg_sz = SIM_MAX_MSG;
	attr->pkey_tbl_len = 1;
	attr->max_vl_num = 1;
	attr->active_width = IB_WIDTH_4X;
	attr->active_speed = IB_SPEED_EDR;
	return 0;
}

int sim_get_port_immutable(struct ib_device *ib, u32 port, struct ib_port_immutable *immutable)
{
	immutable->core_cap_flags = RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;
	immutable->pkey_tbl_len = 1;
	immutable->gid_tbl_len = SIM_NR_GIDS;
	immutable->max_mad_size = IB_MGMT_MAD_SIZE;
	return 0;
}

int sim_query_pkey(struct ib_device *ib, u32 port, u16 index, u16 *pkey)
{
	if (index)
		return -EINVAL;
	*pkey = IB_DEFAULT_PKEY_FULL;
	return 0;
}

/* The core serialises both for a port. */
int sim_add_gid(const struct ib_gid_attr *attr, void **context)
{
	struct sim_gid *slot = &to_sim(attr->device)->gids[attr->index];

	WRITE_ONCE(slot->valid, false);
	smp_wmb();	/* ORDER: pairs with gid_matches(): no valid slot holds half a GID */
	WRITE_ONCE(slot->gid.global.subnet_prefix, attr->gid.global.subnet_prefix);
	WRITE_ONCE(slot->gid.global.interface_id, attr->gid.global.interface_id);
	/* ORDER: pairs with gid_matches() */
	smp_store_release(&slot->valid, true);
	return 0;
}

int sim_del_gid(const struct ib_gid_attr *attr, void **context)
{
	WRITE_ONCE(to_sim(attr->device)->gids[attr->index].valid, false);
	return 0;
}

static bool gid_matches(const struct sim_gid *slot, const union ib_gid *gid)
{
	/* ORDER: pairs with sim_add_gid() */
	return smp_load_acquire(&slot->valid) &&
	       READ_ONCE(slot->gid.global.interface_id) == gid->global.interface_id &&
	       READ_ONCE(slot->gid.global.subnet_prefix) == gid->global.subnet_prefix;
}

static bool has_gid(const struct sim_device *sim, const union ib_gid *gid)
{
	u32 i;

	for (i = 0; i < SIM_NR_GIDS; i++)
		if (gid_matches(&sim->gids[i], gid))
			return true;
	return false;
}

/*
 * The device with a GID, for one that sends from @from: itself before others, its own
 * network namespace before others. Under rcu_read_lock().
 */
struct sim_device *sim_find_gid(struct sim_device *from, const union ib_gid *gid)
{
	struct sim_device *sim, *found = NULL;

	if (has_gid(from, gid))
		return from;
	list_for_each_entry_rcu(sim, &sim_devices, entry) {
		if (!has_gid(sim, gid))
			continue;
		if (sim->net == from->net)
			return sim;
		found = sim;
	}
	return found;
}
