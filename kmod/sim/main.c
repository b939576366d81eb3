// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Devices come with "rdma link add NAME type kverbs_sim netdev DEV" and go with "rdma link
 * del", with their netdev or its namespace, or with the module.
 */
#include <linux/module.h>
#include <linux/rtnetlink.h>
#include <net/net_namespace.h>
#include <rdma/rdma_netlink.h>

#include "sim.h"

LIST_HEAD(sim_devices);
DEFINE_MUTEX(sim_devices_lock);	/* for changes of the list */

static int sim_newlink(const char *name, struct net_device *ndev)
{
	struct sim_device *sim;

	mutex_lock(&sim_devices_lock);
	list_for_each_entry(sim, &sim_devices, entry) {
		if (sim->ndev == ndev) {
			mutex_unlock(&sim_devices_lock);
			return -EEXIST;
		}
	}
	mutex_unlock(&sim_devices_lock);
	return sim_device_create(name, ndev);
}

static struct rdma_link_ops sim_link_ops = {
	.type = "kverbs_sim",
	.newlink = sim_newlink,
};

/* The device of a netdev, held against unregistration. */
static struct sim_device *sim_get_by_netdev(struct net_device *ndev)
{
	struct sim_device *sim;

	mutex_lock(&sim_devices_lock);
	list_for_each_entry(sim, &sim_devices, entry) {
		if (sim->ndev == ndev && ib_device_try_get(&sim->ib)) {
			mutex_unlock(&sim_devices_lock);
			return sim;
		}
	}
	mutex_unlock(&sim_devices_lock);
	return NULL;
}

static int sim_netdev_event(struct notifier_block *block, unsigned long event, void *info)
{
	struct net_device *ndev = netdev_notifier_info_to_dev(info);
	struct sim_device *sim = sim_get_by_netdev(ndev);

	if (!sim)
		return NOTIFY_DONE;
	switch (event) {
	case NETDEV_UNREGISTER:
		ib_unregister_device_queued(&sim->ib);
		break;
	case NETDEV_UP:
	case NETDEV_DOWN:
	case NETDEV_CHANGE:
		sim_port_update(sim, ndev);
		break;
	default:
		break;
	}
	ib_device_put(&sim->ib);
	return NOTIFY_OK;
}

static struct notifier_block sim_netdev_block = {
	.notifier_call = sim_netdev_event,
};

/* A client of our own devices alone: clients are told of new names. */
static int sim_client_add(struct ib_device *ib)
{
	return ib->ops.owner == THIS_MODULE ? 0 : -EOPNOTSUPP;
}

static void sim_client_rename(struct ib_device *ib, void *data)
{
	sim_cfs_rename(to_sim(ib));
}

static struct ib_client sim_client = {
	.name = KBUILD_MODNAME,
	.add = sim_client_add,
	.rename = sim_client_rename,
};

/* Links come no more: each device leaves, and its last call into us has returned. */
static void sim_remove_all(void)
{
	struct sim_device *sim;

	for (;;) {
		mutex_lock(&sim_devices_lock);
		sim = list_first_entry_or_null(&sim_devices, struct sim_device, entry);
		if (sim)
			get_device(&sim->ib.dev);
		mutex_unlock(&sim_devices_lock);
		if (!sim)
			return;
		ib_unregister_device(&sim->ib);
		put_device(&sim->ib.dev);
	}
}

static int __init sim_init(void)
{
	int ret;

	ret = sim_cfs_init();
	if (ret)
		return ret;
	ret = register_netdevice_notifier(&sim_netdev_block);
	if (ret)
		goto cfs_exit;
	ret = ib_register_client(&sim_client);
	if (ret)
		goto unregister_notifier;
	rdma_link_register(&sim_link_ops);
	return 0;

unregister_notifier:
	unregister_netdevice_notifier(&sim_netdev_block);
cfs_exit:
	sim_cfs_exit();
	return ret;
}

static void __exit sim_exit(void)
{
	rdma_link_unregister(&sim_link_ops);
	sim_remove_all();
	ib_unregister_client(&sim_client);
	unregister_netdevice_notifier(&sim_netdev_block);
	sim_cfs_exit();
	sim_qps_cleanup();
	rcu_barrier();
}

module_init(sim_init);
module_exit(sim_exit);

MODULE_DESCRIPTION("Simulated HCA");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_ALIAS_RDMA_LINK("kverbs_sim");
