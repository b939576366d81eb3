// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * /dev/kverbs_perf, and the RDMA devices as they come and go.
 *
 * A run belongs to the file that started it: the file stops it when it is closed, and
 * while it is open the module cannot be unloaded. A device that leaves ends the runs on
 * it and waits until they have given back all that they made on it.
 */
#include <linux/capability.h>
#include <linux/compat.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <net/net_namespace.h>

#include "perf.h"

static DEFINE_MUTEX(devices_lock);
static LIST_HEAD(devices);

static struct perf_device *device_find(const char *name)
{
	struct perf_device *device;

	list_for_each_entry(device, &devices, entry)
		if (rdma_dev_access_netns(device->ib, current->nsproxy->net_ns) &&
		    (!*name || !strcmp(name, dev_name(&device->ib->dev))))
			return device;
	return NULL;
}

int perf_device_get(struct perf_run *run)
{
	struct kverbs_perf_run *attr = &run->attr;
	struct perf_device *device;

	attr->device[sizeof(attr->device) - 1] = '\0';
	mutex_lock(&devices_lock);
	device = device_find(attr->device);
	if (device) {
		refcount_inc(&device->users);
		list_add(&run->entry, &device->runs);
	}
	mutex_unlock(&devices_lock);
	if (!device) {
		attr->bad_attr = KVERBS_PERF_ATTR_DEVICE;
		return -ENODEV;
	}

	run->device = device;
	run->ib = device->ib;
	attr->driver = device->ib->ops.driver_id;
	strscpy(attr->device, dev_name(&device->ib->dev), sizeof(attr->device));
	return 0;
}

static void device_unuse(struct perf_device *device)
{
	if (refcount_dec_and_test(&device->users))
		complete(&device->unused);
}

void perf_device_put(struct perf_run *run)
{
	mutex_lock(&devices_lock);
	list_del(&run->entry);
	mutex_unlock(&devices_lock);
	device_unuse(run->device);
}

static int client_add(struct ib_device *ib);
static void client_remove(struct ib_device *ib, void *data);

static struct ib_client client = {
	.name = "kverbs_perf",
	.add = client_add,
	.remove = client_remove,
};

static int client_add(struct ib_device *ib)
{
	struct perf_device *device = kzalloc(sizeof(*device), GFP_KERNEL);

	if (!device)
		return -ENOMEM;
	device->ib = ib;
	INIT_LIST_HEAD(&device->runs);
	refcount_set(&device->users, 1);
	init_completion(&device->unused);
	ib_set_client_data(ib, &client, device);
	mutex_lock(&devices_lock);
	list_add_tail(&device->entry, &devices);
	mutex_unlock(&devices_lock);
	return 0;
}

static void client_remove(struct ib_device *ib, void *data)
{
	struct perf_device *device = data;
	struct perf_run *run;

	mutex_lock(&devices_lock);
	list_del(&device->entry);
	list_for_each_entry(run, &device->runs, entry) {
		WRITE_ONCE(run->leaving, true);
		perf_run_stop(run, PERF_STOP_POSTING, -ENODEV, "device %s has left",
			      dev_name(&ib->dev));
	}
	mutex_unlock(&devices_lock);
	device_unuse(device);
	wait_for_completion(&device->unused);
	kfree(device);
}

/* An open file. */
struct perf_file {
	struct mutex lock;	/* guards run, which stays until the next one or the end */
	struct perf_run *run;
	wait_queue_head_t wait;
};

union cmd_buffer {
	struct kverbs_perf_run run;
	struct kverbs_perf_status status;
	struct kverbs_perf_stop stop;
};

static int cmd_run(struct perf_file *pf, union cmd_buffer *buffer)
{
	struct kverbs_perf_run *attr = &buffer->run;
	struct perf_run *run;

	if (!capable(CAP_NET_ADMIN))
		return -EPERM;
	if (pf->run && !perf_run_ended(pf->run))
		return -EBUSY;
	attr->bad_attr = KVERBS_PERF_ATTR_NONE;
	attr->limit = 0;
	run = perf_run_start(attr, &pf->wait);
	if (IS_ERR(run))
		return PTR_ERR(run);
	if (pf->run)
		perf_run_free(pf->run);
	pf->run = run;
	return 0;
}

static int cmd_status(struct perf_file *pf, union cmd_buffer *buffer)
{
	struct kverbs_perf_status *status = &buffer->status;
	const u32 each = sizeof(struct kverbs_perf_result);

	if (status->flags)
		return -EOPNOTSUPP;
	status->state = KVERBS_PERF_IDLE;
	status->result_size = each;
	if (!pf->run)
		return 0;
	perf_run_status(pf->run, status);
	if (!status->buffer)
		return 0;
	if (status->buffer_size / each < status->nr_results)
		return -EMSGSIZE;
	/* Results that were counted do not change, and the file's lock keeps the run. */
	if (copy_to_user(u64_to_user_ptr(status->buffer), pf->run->results,
			 (size_t)each * status->nr_results))
		return -EFAULT;
	return 0;
}

static int cmd_stop(struct perf_file *pf, union cmd_buffer *buffer)
{
	if (buffer->stop.flags)
		return -EOPNOTSUPP;
	if (pf->run)
		perf_run_stop(pf->run, PERF_STOP_POSTING, -ECANCELED, "the run was stopped");
	return 0;
}

struct cmd {
	unsigned int ioctl;
	size_t size;
	size_t min_size;
	int (*run)(struct perf_file *pf, union cmd_buffer *buffer);
};

#define CMD(_ioctl, _run, _struct, _last)					\
	{									\
		.ioctl = _ioctl,						\
		.size = sizeof(_struct) +					\
			BUILD_BUG_ON_ZERO(sizeof(_struct) > sizeof(union cmd_buffer)), \
		.min_size = offsetofend(_struct, _last),			\
		.run = _run,							\
	}

static const struct cmd cmds[] = {
	CMD(KVERBS_PERF_IOCTL_RUN, cmd_run, struct kverbs_perf_run, limit),
	CMD(KVERBS_PERF_IOCTL_STATUS, cmd_status, struct kverbs_perf_status, message),
	CMD(KVERBS_PERF_IOCTL_STOP, cmd_stop, struct kverbs_perf_stop, flags),
};

static const struct cmd *cmd_find(unsigned int ioctl)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(cmds); i++)
		if (cmds[i].ioctl == ioctl)
			return &cmds[i];
	return NULL;
}

static long perf_ioctl(struct file *file, unsigned int ioctl, unsigned long arg)
{
	const struct cmd *cmd = cmd_find(ioctl);
	struct perf_file *pf = file->private_data;
	void __user *to = (void __user *)arg;
	union cmd_buffer buffer = {};
	u32 size;
	int ret;

	if (!cmd)
		return -ENOTTY;
	if (get_user(size, (u32 __user *)to))
		return -EFAULT;
	if (size < cmd->min_size)
		return -EINVAL;
	if (size > PAGE_SIZE)
		return -E2BIG;
	ret = copy_struct_from_user(&buffer, cmd->size, to, size);
	if (ret)
		return ret;

	mutex_lock(&pf->lock);
	ret = cmd->run(pf, &buffer);
	mutex_unlock(&pf->lock);
	/* With an error too: it says what the error is about. @size stays the caller's. */
	if (copy_to_user(to + sizeof(u32), (char *)&buffer + sizeof(u32),
			 min_t(size_t, size, cmd->size) - sizeof(u32)))
		return -EFAULT;
	return ret;
}

static __poll_t perf_poll(struct file *file, poll_table *table)
{
	struct perf_file *pf = file->private_data;
	__poll_t ready = 0;

	poll_wait(file, &pf->wait, table);
	mutex_lock(&pf->lock);
	if (!pf->run || perf_run_ended(pf->run))
		ready = EPOLLIN | EPOLLRDNORM;
	mutex_unlock(&pf->lock);
	return ready;
}

static int perf_open(struct inode *inode, struct file *file)
{
	struct perf_file *pf = kzalloc(sizeof(*pf), GFP_KERNEL);

	if (!pf)
		return -ENOMEM;
	mutex_init(&pf->lock);
	init_waitqueue_head(&pf->wait);
	file->private_data = pf;
	return 0;
}

static int perf_release(struct inode *inode, struct file *file)
{
	struct perf_file *pf = file->private_data;

	if (pf->run)
		perf_run_free(pf->run);
	kfree(pf);
	return 0;
}

static const struct file_operations perf_fops = {
	.owner = THIS_MODULE,
	.open = perf_open,
	.release = perf_release,
	.unlocked_ioctl = perf_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.poll = perf_poll,
};

static struct miscdevice perf_misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "kverbs_perf",
	.fops = &perf_fops,
	.mode = 0600,
};

static int __init perf_init(void)
{
	int ret;

	BUILD_BUG_ON(KVERBS_PERF_BUCKETS != KVERBS_HIST_BUCKETS);
	ret = ib_register_client(&client);
	if (ret)
		return ret;
	ret = misc_register(&perf_misc);
	if (ret)
		ib_unregister_client(&client);
	return ret;
}

/* No file is open: there is no run. */
static void __exit perf_exit(void)
{
	misc_deregister(&perf_misc);
	ib_unregister_client(&client);
}

module_init(perf_init);
module_exit(perf_exit);

MODULE_DESCRIPTION("Kernel-mode bench of RDMA verbs and of kverbs");
MODULE_LICENSE("Dual BSD/GPL");
