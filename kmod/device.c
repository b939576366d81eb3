// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The RDMA devices of the host, as an ib_client sees them come and go.
 *
 * A device's object is counted by its queues and CQs. Removal marks it gone, wakes who
 * sleeps and waits for nobody: this client's remove() runs before those of the users,
 * who tear their queues down afterwards.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/slab.h>
#include <linux/sysfs.h>

#include "clock.h"
#include "path.h"

#define WATCH_PERIOD	HZ

struct workqueue_struct *kverbs_wq;

/* All devices; under the lock nobody takes one that is leaving. */
static DEFINE_MUTEX(devices_lock);
static LIST_HEAD(devices);

static void watch(struct work_struct *work)
{
	struct kverbs_device *dev = container_of(to_delayed_work(work), struct kverbs_device,
						 watchdog);
	struct kverbs_sq *sq;

	kverbs_clock_watch();
	mutex_lock(&dev->lock);
	list_for_each_entry(sq, &dev->sqs, entry) {
		kverbs_sq_watch(sq);
		kverbs_fit_feed(sq);
	}
	if (!dev->gone)
		queue_delayed_work(kverbs_wq, &dev->watchdog, WATCH_PERIOD);
	mutex_unlock(&dev->lock);
}

static int add_row(struct kverbs_device *dev)
{
	struct kverbs_row id = { .type = KVERBS_ROW_DEVICE };

	strscpy(id.name, dev_name(&dev->ib->dev), sizeof(id.name));
	dev->obj.ibdev = dev->ib;
	dev->obj.hists = &dev->hists;
	return kverbs_object_add(&dev->obj, &id);
}

static int add_one(struct ib_device *ib)
{
	struct kverbs_device *dev;
	int err;

	dev = kzalloc(sizeof(*dev), GFP_KERNEL);
	if (!dev)
		return -ENOMEM;
	dev->ib = ib;
	kref_init(&dev->ref);
	mutex_init(&dev->lock);
	INIT_LIST_HEAD(&dev->sqs);
	INIT_DELAYED_WORK(&dev->watchdog, watch);
	err = add_row(dev);
	if (err)
		goto free;
	err = kverbs_hooks_add(&dev->hooked, ib);
	if (err)
		goto del_row;
	mutex_lock(&devices_lock);
	list_add_tail(&dev->list, &devices);
	mutex_unlock(&devices_lock);
	ib_set_client_data(ib, &kverbs_client, dev);
	queue_delayed_work(kverbs_wq, &dev->watchdog, WATCH_PERIOD);
	return 0;

del_row:
	kverbs_object_del(&dev->obj);
free:
	kfree(dev);
	return err;
}

static void release(struct kref *ref)
{
	struct kverbs_device *dev = container_of(ref, struct kverbs_device, ref);

	kverbs_object_del(&dev->obj);
	kfree(dev);
}

void kverbs_device_put(struct kverbs_device *dev)
{
	kref_put(&dev->ref, release);
}

/*
 * The device's object, NULL if it is leaving. The caller uses the device, so that it
 * has not been unregistered.
 */
struct kverbs_device *kverbs_device_get(struct ib_device *ib)
{
	struct kverbs_device *dev;

	mutex_lock(&devices_lock);
	dev = ib_get_client_data(ib, &kverbs_client);
	if (dev)
		kref_get(&dev->ref);
	mutex_unlock(&devices_lock);
	return dev;
}

/* The one with that RDMA index, if @net may see it, or NULL. */
struct kverbs_device *kverbs_device_find(const struct net *net, u32 index)
{
	struct kverbs_device *dev, *found = NULL;

	mutex_lock(&devices_lock);
	list_for_each_entry(dev, &devices, list) {
		if (dev->ib->index != index || !rdma_dev_access_netns(dev->ib, net))
			continue;
		found = dev;
		kref_get(&dev->ref);
		break;
	}
	mutex_unlock(&devices_lock);
	return found;
}

/* The devices that @net may see, as an attribute of the PMU. */
int kverbs_devices_show(const struct net *net, char *page)
{
	struct kverbs_device *dev;
	int len = 0;

	mutex_lock(&devices_lock);
	list_for_each_entry(dev, &devices, list)
		if (rdma_dev_access_netns(dev->ib, net))
			len += sysfs_emit_at(page, len, "device=%u %s\n",
					     kverbs_pmu_device(dev->ib->index),
					     dev->obj.row->name);
	mutex_unlock(&devices_lock);
	return len;
}

static void remove_one(struct ib_device *ib, void *client_data)
{
	struct kverbs_device *dev = client_data;
	struct kverbs_sq *sq;

	mutex_lock(&devices_lock);
	list_del(&dev->list);
	ib_set_client_data(ib, &kverbs_client, NULL);
	mutex_unlock(&devices_lock);

	mutex_lock(&dev->lock);
	WRITE_ONCE(dev->gone, true);
	list_for_each_entry(sq, &dev->sqs, entry)
		kverbs_sq_device_gone(sq);
	mutex_unlock(&dev->lock);
	kverbs_hooks_del(&dev->hooked);
	cancel_delayed_work_sync(&dev->watchdog);
	kverbs_object_hide(&dev->obj);
	kverbs_kept_orphan(dev);
	kverbs_device_put(dev);
}

static void rename_one(struct ib_device *ib, void *client_data)
{
	struct kverbs_device *dev = client_data;

	kverbs_object_rename(&dev->obj, dev_name(&ib->dev));
	kverbs_kept_rename(dev, dev_name(&ib->dev));
}

struct ib_client kverbs_client = {
	.name = "kverbs",
	.add = add_one,
	.remove = remove_one,
	.rename = rename_one,
	.no_kverbs_req = true,
};

int kverbs_devices_init(void)
{
	int err = ib_register_client(&kverbs_client);

	if (!err && list_empty(&devices))
		pr_info("loaded; there is no RDMA device yet\n");
	return err;
}

void kverbs_devices_exit(void)
{
	ib_unregister_client(&kverbs_client);
}
