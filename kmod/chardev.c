// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * /dev/kverbs: the statistics for user space, as ioctls that copy them and as
 * pages to map.
 *
 * A command is a row of the table below: the size that its structure has now, and
 * the size that it had when it was introduced, which is the least it may have. The
 * structure is copied in whole, the command fills in its answers, and as much goes
 * back as the caller knows of. Errnos are told once, in the user ABI header.
 *
 * Nothing is copied to or from the caller while a lock is held: its pages may be
 * served by another process that takes its time.
 */
#include <linux/compat.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/nsproxy.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <net/net_namespace.h>

#include "compat.h"
#include "recorder.h"
#include "stats.h"

union cmd_buffer {
	struct kverbs_info info;
	struct kverbs_snapshot snapshot;
	struct kverbs_histogram histogram;
	struct kverbs_record record;
};

static const struct net *caller_net(void)
{
	return current->nsproxy->net_ns;
}

static int cmd_info(union cmd_buffer *buffer)
{
	struct kverbs_info *info = &buffer->info;

	if (info->flags || info->reserved)
		return -EOPNOTSUPP;
	info->abi_version = KVERBS_ABI_VERSION;
	info->row_size = sizeof(struct kverbs_row);
	info->nr_counters = KVERBS_NR_COUNTERS;
	info->nr_rows = kverbs_arena_rows();
	info->hist_buckets = KVERBS_HIST_BUCKETS;
	memset(info->version, 0, sizeof(info->version));
	strscpy(info->version, KVERBS_VERSION, sizeof(info->version));
	return 0;
}

/* Take the rows into memory of our own, as many as @room, and pass them on. */
static int snapshot_copy(struct kverbs_snapshot *snap, u32 room, u32 *nr)
{
	struct kverbs_row *rows = NULL;
	int ret = 0;

	if (room) {
		rows = kvmalloc_array(room, sizeof(*rows), GFP_KERNEL_ACCOUNT);
		if (!rows)
			return -ENOMEM;
	}
	*nr = kverbs_stats_snapshot(caller_net(), rows, room, &snap->time_ns);
	if (*nr <= room &&
	    copy_to_user(u64_to_user_ptr(snap->buffer), rows, *nr * sizeof(*rows)))
		ret = -EFAULT;
	kvfree(rows);
	return ret;
}

static int cmd_snapshot(union cmd_buffer *buffer)
{
	struct kverbs_snapshot *snap = &buffer->snapshot;
	u64 fits = div_u64(snap->buffer_size, sizeof(struct kverbs_row));
	u32 room, nr = 0;
	int ret;

	if (snap->flags)
		return -EOPNOTSUPP;
	/* Rows may come between the two: look again while they outgrew the room. */
	do {
		room = min_t(u64, fits, kverbs_stats_objects());
		ret = snapshot_copy(snap, room, &nr);
		if (ret)
			return ret;
	} while (nr > room && nr <= fits);

	snap->buffer_size = (u64)nr * sizeof(struct kverbs_row);
	snap->row_size = sizeof(struct kverbs_row);
	snap->nr_rows = nr > room ? 0 : nr;
	return nr > room ? -EMSGSIZE : 0;
}

static int cmd_histogram(union cmd_buffer *buffer)
{
	struct kverbs_histogram *hist = &buffer->histogram;
	u32 room = hist->nr_buckets;
	u64 *bucket;
	int ret;

	if (hist->flags || hist->kind >= KVERBS_NR_HISTS)
		return -EOPNOTSUPP;
	hist->nr_buckets = KVERBS_HIST_BUCKETS;
	if (room < KVERBS_HIST_BUCKETS)
		return -EMSGSIZE;

	bucket = kmalloc_array(KVERBS_HIST_BUCKETS, sizeof(*bucket), GFP_KERNEL_ACCOUNT);
	if (!bucket)
		return -ENOMEM;
	ret = kverbs_stats_histogram(caller_net(), hist, bucket);
	if (!ret && copy_to_user(u64_to_user_ptr(hist->buffer), bucket,
				 KVERBS_HIST_BUCKETS * sizeof(*bucket)))
		ret = -EFAULT;
	kfree(bucket);
	return ret;
}

static int cmd_record(union cmd_buffer *buffer)
{
	struct kverbs_record *record = &buffer->record;
	u64 room = record->buffer_size, size;
	struct kverbs_record_view *view;
	int ret = 0;

	if (record->flags || record->reserved)
		return -EOPNOTSUPP;
	view = kvmalloc(sizeof(*view), GFP_KERNEL_ACCOUNT);
	if (!view)
		return -ENOMEM;
	if (record->row)
		ret = kverbs_stats_record(caller_net(), record, view);
	else
		kverbs_kept_read(caller_net(), record, view);
	if (ret)
		goto free_view;
	size = record->nr_events * sizeof(view->event[0]);
	record->buffer_size = size;
	record->event_size = sizeof(view->event[0]);
	if (room < size) {
		record->nr_events = 0;
		ret = -EMSGSIZE;
	} else if (copy_to_user(u64_to_user_ptr(record->buffer), view->event, size)) {
		ret = -EFAULT;
	}
free_view:
	kvfree(view);
	return ret;
}

struct cmd {
	unsigned int ioctl;
	size_t size;
	size_t min_size;
	int (*run)(union cmd_buffer *buffer);
};

static const struct cmd cmds[] = {
	[KVERBS_CMD_INFO] = {
		.ioctl = KVERBS_IOCTL_INFO,
		.size = sizeof(struct kverbs_info),
		.min_size = offsetofend(struct kverbs_info, version),
		.run = cmd_info,
	},
	[KVERBS_CMD_SNAPSHOT] = {
		.ioctl = KVERBS_IOCTL_SNAPSHOT,
		.size = sizeof(struct kverbs_snapshot),
		.min_size = offsetofend(struct kverbs_snapshot, time_ns),
		.run = cmd_snapshot,
	},
	[KVERBS_CMD_HISTOGRAM] = {
		.ioctl = KVERBS_IOCTL_HISTOGRAM,
		.size = sizeof(struct kverbs_histogram),
		.min_size = offsetofend(struct kverbs_histogram, buffer),
		.run = cmd_histogram,
	},
	[KVERBS_CMD_RECORD] = {
		.ioctl = KVERBS_IOCTL_RECORD,
		.size = sizeof(struct kverbs_record),
		.min_size = offsetofend(struct kverbs_record, name),
		.run = cmd_record,
	},
};

static long chardev_ioctl(struct file *file, unsigned int ioctl, unsigned long arg)
{
	void __user *to = (void __user *)arg;
	union cmd_buffer buffer = {};
	const struct cmd *cmd;
	u32 size;
	int ret;

	if (_IOC_NR(ioctl) >= ARRAY_SIZE(cmds))
		return -ENOTTY;
	cmd = &cmds[array_index_nospec(_IOC_NR(ioctl), ARRAY_SIZE(cmds))];
	if (cmd->ioctl != ioctl)
		return -ENOTTY;

	/* Every structure starts with its size. */
	if (get_user(size, (u32 __user *)to))
		return -EFAULT;
	if (size < cmd->min_size)
		return -EINVAL;
	if (size > PAGE_SIZE)
		return -E2BIG;
	ret = copy_struct_from_user(&buffer, cmd->size, to, size);
	if (ret)
		return ret;

	ret = cmd->run(&buffer);
	/* What is needed goes back with -EMSGSIZE, too; @size stays the caller's. */
	if (ret && ret != -EMSGSIZE)
		return ret;
	if (copy_to_user(to + sizeof(u32), (char *)&buffer + sizeof(u32),
			 min_t(size_t, size, cmd->size) - sizeof(u32)))
		return -EFAULT;
	return ret;
}

static vm_fault_t arena_fault(struct vm_fault *vmf)
{
	struct page *page = kverbs_arena_page(vmf->pgoff);

	if (!page)
		return VM_FAULT_SIGBUS;
	get_page(page);
	vmf->page = page;
	return 0;
}

static const struct vm_operations_struct arena_vm_ops = {
	.fault = arena_fault,
};

static int chardev_mmap(struct file *file, struct vm_area_struct *vma)
{
	/* The rows of all devices are there, whatever namespace they are in. */
	if (!net_eq(caller_net(), &init_net))
		return -EPERM;
	if (vma->vm_flags & VM_WRITE)
		return -EACCES;
	if (vma->vm_pgoff + vma_pages(vma) > kverbs_arena_max_pages())
		return -EINVAL;
	/* Nor may it be made writable later, by mprotect() or by a debugger. */
	vm_flags_clear(vma, VM_MAYWRITE);
	vma->vm_ops = &arena_vm_ops;
	return 0;
}

static const struct file_operations chardev_fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = chardev_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = chardev_mmap,
};

/* The udev rule gives it to the group rdma, which may read. */
static struct miscdevice chardev = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "kverbs",
	.fops = &chardev_fops,
	.mode = 0640,
};

int kverbs_chardev_init(void)
{
	return misc_register(&chardev);
}

void kverbs_chardev_exit(void)
{
	misc_deregister(&chardev);
}
