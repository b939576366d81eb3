// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A platform device that buffers are mapped for, and what its DMA addresses stand for.
 *
 * Where the kernel lets a device have DMA operations of its own, these addresses are an
 * address space of the device, as behind an IOMMU: no address is a pointer or is ever used
 * twice, an access is held against what was mapped, to the byte and the direction, and so
 * is what is unmapped; the judge hears of all that does not fit. Elsewhere a DMA address is
 * the physical one.
 */
#include <linux/dma-direct.h>
#include <linux/dma-map-ops.h>
#include <linux/dma-mapping.h>

#include "sim.h"

#ifdef KVERBS_DEVICE_DMA_OPS

#define FIRST_IOVA	0x100000	/* pages */

struct sim_mapping {
	struct rcu_head rcu;
	u64 addr;
	u64 length;
	void *va;
	enum dma_data_direction direction;
	bool writable;
};

static u64 iova_pages(const struct sim_mapping *mapping)
{
	return PFN_UP(mapping->addr + mapping->length) - PFN_DOWN(mapping->addr);
}

static void iova_erase(struct sim_device *sim, struct sim_mapping *mapping, u64 pages)
{
	u64 first = PFN_DOWN(mapping->addr), i;
	unsigned long flags;

	xa_lock_irqsave(&sim->iova, flags);
	for (i = 0; i < pages; i++)
		__xa_erase(&sim->iova, first + i);
	xa_unlock_irqrestore(&sim->iova, flags);
	sim_epoch_end();
	kfree_rcu(mapping, rcu);
}

/* How many pages of it were entered: all, or memory is short. */
static u64 iova_enter(struct sim_device *sim, struct sim_mapping *mapping, u64 pages)
{
	u64 first = PFN_DOWN(mapping->addr), i;
	unsigned long flags;

	xa_lock_irqsave(&sim->iova, flags);
	for (i = 0; i < pages; i++)
		if (__xa_insert(&sim->iova, first + i, mapping, GFP_ATOMIC))
			break;
	xa_unlock_irqrestore(&sim->iova, flags);
	return i;
}

static dma_addr_t iova_map(struct device *dev, void *va, size_t length,
			   enum dma_data_direction direction)
{
	struct sim_device *sim = dev_get_drvdata(dev);
	struct sim_mapping *mapping;
	u64 pages, entered;

	mapping = kmalloc(sizeof(*mapping), GFP_ATOMIC);
	if (!mapping)
		return DMA_MAPPING_ERROR;
	mapping->va = va;
	mapping->length = length;
	mapping->direction = direction;
	mapping->writable = direction != DMA_TO_DEVICE;
	mapping->addr = offset_in_page(va);
	pages = iova_pages(mapping);
	/* A page is left out behind it. */
	mapping->addr += (u64)atomic64_fetch_add(pages + 1, &sim->next_iova) << PAGE_SHIFT;
	entered = iova_enter(sim, mapping, pages);
	if (entered == pages)
		return mapping->addr;
	iova_erase(sim, mapping, entered);
	return DMA_MAPPING_ERROR;
}

/* What is found is gone, also if it is not quite what was asked for. */
static void iova_unmap(struct device *dev, dma_addr_t addr, size_t length,
		       enum dma_data_direction direction)
{
	struct sim_device *sim = dev_get_drvdata(dev);
	struct sim_mapping *mapping = xa_load(&sim->iova, PFN_DOWN(addr));
	bool found = mapping && mapping->addr == addr;

	if (!found || mapping->length != length || mapping->direction != direction)
		sim_judge_dma(sim, SIM_JUDGE_DMA_UNMAP);
	if (found)
		iova_erase(sim, mapping, iova_pages(mapping));
}

static dma_addr_t map_page(struct device *dev, struct page *page, unsigned long offset,
			   size_t length, enum dma_data_direction direction, unsigned long attrs)
{
	return iova_map(dev, page_address(page) + offset, length, direction);
}

static void unmap_page(struct device *dev, dma_addr_t addr, size_t length,
		       enum dma_data_direction direction, unsigned long attrs)
{
	iova_unmap(dev, addr, length, direction);
}

static void unmap_sg(struct device *dev, struct scatterlist *sgl, int nents,
		     enum dma_data_direction direction, unsigned long attrs)
{
	struct scatterlist *sg;
	int i;

	for_each_sg(sgl, sg, nents, i)
		iova_unmap(dev, sg_dma_address(sg), sg_dma_len(sg), direction);
}

static int map_sg(struct device *dev, struct scatterlist *sgl, int nents,
		  enum dma_data_direction direction, unsigned long attrs)
{
	struct scatterlist *sg;
	int i;

	for_each_sg(sgl, sg, nents, i) {
		sg_dma_address(sg) = iova_map(dev, sg_virt(sg), sg->length, direction);
		sg_dma_len(sg) = sg->length;
		if (sg_dma_address(sg) == DMA_MAPPING_ERROR) {
			unmap_sg(dev, sgl, i, direction, attrs);
			return -ENOMEM;
		}
	}
	return nents;
}

static void *alloc_coherent(struct device *dev, size_t size, dma_addr_t *addr, gfp_t gfp,
			    unsigned long attrs)
{
	void *va = alloc_pages_exact(size, gfp | __GFP_ZERO);

	if (!va)
		return NULL;
	*addr = iova_map(dev, va, size, DMA_BIDIRECTIONAL);
	if (*addr != DMA_MAPPING_ERROR)
		return va;
	free_pages_exact(va, size);
	return NULL;
}

static void free_coherent(struct device *dev, size_t size, void *va, dma_addr_t addr,
			  unsigned long attrs)
{
	iova_unmap(dev, addr, size, DMA_BIDIRECTIONAL);
	free_pages_exact(va, size);
}

static const struct dma_map_ops sim_dma_ops = {
	.alloc = alloc_coherent,
	.free = free_coherent,
	.map_page = map_page,
	.unmap_page = unmap_page,
	.map_sg = map_sg,
	.unmap_sg = unmap_sg,
};

static void ops_set(struct sim_device *sim)
{
	xa_init_flags(&sim->iova, XA_FLAGS_LOCK_IRQ);
	atomic64_set(&sim->next_iova, FIRST_IOVA);
	set_dma_ops(&sim->parent->dev, &sim_dma_ops);
}

/* Every consumer has left: whose mappings are still there? */
static void ops_check(struct sim_device *sim)
{
	struct sim_mapping *mapping;
	unsigned long index;

	xa_for_each(&sim->iova, index, mapping) {
		sim_judge_dma(sim, SIM_JUDGE_DMA_LEAKED);
		iova_erase(sim, mapping, iova_pages(mapping));
	}
}

/* All that was mapped with an address: false if nothing was, or not for that. */
static bool real_window(struct sim_device *sim, struct sim_window *window, u64 addr, u32 length,
			bool write)
{
	const struct sim_mapping *mapping = xa_load(&sim->iova, PFN_DOWN(addr));

	if (!mapping || (write && !mapping->writable))
		return false;
	window->start = mapping->addr;
	window->length = mapping->length;
	window->va = mapping->va;
	return true;
}

#else

static void ops_set(struct sim_device *sim)
{
}

static void ops_check(struct sim_device *sim)
{
}

/* The pages that it is in. */
static bool real_window(struct sim_device *sim, struct sim_window *window, u64 addr, u32 length,
			bool write)
{
	phys_addr_t phys = dma_to_phys(&sim->parent->dev, addr);

	if (!pfn_valid(PHYS_PFN(phys)) || !pfn_valid(PHYS_PFN(phys + length - 1)))
		return false;
	window->start = addr & PAGE_MASK;
	window->length = PAGE_ALIGN(addr + length) - window->start;
	window->va = phys_to_virt(phys & PAGE_MASK);
	return true;
}

#endif

/* The kernel's view of what is around a DMA address: NULL if that is not all there. */
void *sim_dma_window(struct sim_device *sim, struct sim_window *window, u64 addr, u32 length,
		     bool write)
{
	if (sim->virtual_dma)
		*window = (struct sim_window) { .length = U64_MAX };
	else if (!real_window(sim, window, addr, length, write))
		return NULL;
	return sim_window_at(window, addr, length);
}

/* The kernel's view of a DMA address: NULL if it is none, or not for that. */
void *sim_dma_va(struct sim_device *sim, u64 addr, u32 length, bool write)
{
	struct sim_window window;

	return sim_dma_window(sim, &window, addr, length, write);
}

int sim_dma_create(struct sim_device *sim, int node)
{
	struct platform_device *parent;
	int ret;

	parent = platform_device_alloc("kverbs_sim", PLATFORM_DEVID_AUTO);
	if (!parent)
		return -ENOMEM;
	set_dev_node(&parent->dev, node);
	ret = platform_device_add(parent);
	if (ret) {
		platform_device_put(parent);
		return ret;
	}
	sim->parent = parent;
	platform_set_drvdata(parent, sim);
	ops_set(sim);
	dma_set_max_seg_size(&parent->dev, UINT_MAX);
	return dma_coerce_mask_and_coherent(&parent->dev, DMA_BIT_MASK(64));
}

void sim_dma_destroy(struct sim_device *sim)
{
	if (!sim->parent)
		return;
	ops_check(sim);
	platform_device_unregister(sim->parent);
}
