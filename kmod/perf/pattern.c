// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What is in a message: a sequence of 64-bit words that a key gives. The first word
 * is the key itself, so that a receiver can tell whose message came; the rest changes
 * with every bit of it. A message of less than eight bytes is the start of that.
 *
 * Nobody but the CPU and the device touches the buffers, and never both at once, so
 * that a sync before and after serves machines where caches are not coherent.
 */
#include <linux/string.h>

#include "perf.h"

#define POISON	0xa5

static u64 word(u64 key, u32 i)
{
	u64 x = (key + i) * 0x9e3779b97f4a7c15ULL;

	return i ? x ^ x >> 29 : key;
}

static void sync_for_cpu(const struct perf_memory *memory, u32 slot)
{
	ib_dma_sync_single_for_cpu(memory->ib, perf_memory_dma(memory, slot), memory->stride,
				   DMA_BIDIRECTIONAL);
}

static void sync_for_device(const struct perf_memory *memory, u32 slot)
{
	ib_dma_sync_single_for_device(memory->ib, perf_memory_dma(memory, slot), memory->stride,
				      DMA_BIDIRECTIONAL);
}

void perf_pattern_fill(struct perf_memory *memory, u32 slot, u32 size, u64 key)
{
	u8 *to = perf_memory_va(memory, slot);
	u32 i, words = size / sizeof(u64);
	u64 last;

	for (i = 0; i < words; i++)
		((u64 *)to)[i] = word(key, i);
	last = word(key, words);
	memcpy(to + words * sizeof(u64), &last, size % sizeof(u64));
	sync_for_device(memory, slot);
}

/* So that a message that never arrived is not taken for one that did. */
void perf_pattern_poison(struct perf_memory *memory, u32 slot, u32 size)
{
	memset(perf_memory_va(memory, slot), POISON, size);
	sync_for_device(memory, slot);
}

bool perf_pattern_ok(const struct perf_memory *memory, u32 slot, u32 offset, u32 size, u64 key)
{
	const u8 *from = perf_memory_va(memory, slot) + offset;
	u32 i, words = size / sizeof(u64);
	u64 last;

	sync_for_cpu(memory, slot);
	for (i = 0; i < words; i++)
		if (((const u64 *)from)[i] != word(key, i))
			return false;
	last = word(key, words);
	return !memcmp(from + words * sizeof(u64), &last, size % sizeof(u64));
}

/* Whose message it claims to be; there are at least eight bytes of it. */
u64 perf_pattern_key(const struct perf_memory *memory, u32 slot, u32 offset)
{
	sync_for_cpu(memory, slot);
	return *(const u64 *)(perf_memory_va(memory, slot) + offset);
}
