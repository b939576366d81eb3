// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Makes a device what no consumer hopes for: it claims to register memory, of so many pages
 * as were written to "pages", may be none.
 */
#include <linux/module.h>
#include <rdma/ib_verbs.h>

static char device[IB_DEVICE_NAME_MAX] = "rxe0";
module_param_string(device, device, sizeof(device), 0444);
MODULE_PARM_DESC(device, "RDMA device that is made so");

static struct ib_device *victim;
static u32 driver_pages;

static int set_pages(const char *value, const struct kernel_param *param)
{
	return victim ? kstrtou32(value, 0, &victim->attrs.max_fast_reg_page_list_len) : -ENODEV;
}

static const struct kernel_param_ops pages_ops = {
	.set = set_pages,
};

module_param_cb(pages, &pages_ops, NULL, 0200);
MODULE_PARM_DESC(pages, "pages that one memory region can have");

static int add(struct ib_device *ib)
{
	if (strcmp(dev_name(&ib->dev), device))
		return -EOPNOTSUPP;
	driver_pages = ib->attrs.max_fast_reg_page_list_len;
	WRITE_ONCE(victim, ib);
	return 0;
}

static void remove(struct ib_device *ib, void *data)
{
	ib->attrs.max_fast_reg_page_list_len = driver_pages;
	WRITE_ONCE(victim, NULL);
}

static struct ib_client client = {
	.name = KBUILD_MODNAME,
	.add = add,
	.remove = remove,
};

static int __init kverbs_bad_hca_init(void)
{
	return ib_register_client(&client);
}
module_init(kverbs_bad_hca_init);

static void __exit kverbs_bad_hca_exit(void)
{
	ib_unregister_client(&client);
}
module_exit(kverbs_bad_hca_exit);

MODULE_DESCRIPTION("kverbs: a device that claims too much, for tests");
MODULE_LICENSE("Dual BSD/GPL");
