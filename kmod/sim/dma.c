// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A platform device that buffers are mapped for, and what its DMA addresses stand for.
 */
#include <linux/dma-direct.h>
#include <linux/dma-mapping.h>

#include "sim.h"

struct platform_device *sim_dma_create(int node)
{
	struct platform_device *parent;
	int ret;

	parent = platform_device_alloc("kverbs_sim", PLATFORM_DEVID_AUTO);
	if (!parent)
		return ERR_PTR(-ENOMEM);
	set_dev_node(&parent->dev, node);
	ret = platform_device_add(parent);
	if (ret) {
		platform_device_put(parent);
		return ERR_PTR(ret);
	}
	ret = dma_coerce_mask_and_coherent(&parent->dev, DMA_BIT_MASK(64));
	if (ret) {
		platform_device_unregister(parent);
		return ERR_PTR(ret);
	}
	dma_set_max_seg_size(&parent->dev, UINT_MAX);
	return parent;
}

/*
 * The kernel's view of a DMA address: NULL if there is nothing. @length is what is wanted,
 * and becomes what is there in one piece.
 */
void *sim_dma_va(struct sim_device *sim, u64 addr, u32 *length, bool write)
{
	phys_addr_t phys;

	if (sim->virtual_dma)
		return (void *)(uintptr_t)addr;
	phys = dma_to_phys(&sim->parent->dev, addr);
	if (!pfn_valid(PHYS_PFN(phys)) || !pfn_valid(PHYS_PFN(phys + *length - 1)))
		return NULL;
	return phys_to_virt(phys);
}
