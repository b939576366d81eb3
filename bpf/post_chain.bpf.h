/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What is posted: a chain of work requests, walked to its end or as far as is bearable.
 */
#ifndef _KVERBS_POST_CHAIN_BPF_H
#define _KVERBS_POST_CHAIN_BPF_H

#include "post_row.bpf.h"

/* The lengths of SGEs behind the first, where typed pointers do not lead. */
static __noinline __u64 sum_sges(struct ib_sge *sge, __u32 count)
{
	__u64 bytes = 0;
	__u32 length, i;

	for (i = 1; i < KVERBS_POST_SGES && i < count; i++) {
		length = 0;
		bpf_probe_read_kernel(&length, sizeof(length), &sge[i].length);
		bytes += length;
	}
	return bytes;
}

static __always_inline void add_request(struct kverbs_post_row *row, struct ib_send_wr *wr,
					bool typed)
{
	__u32 sges = FIELD(typed, wr, num_sge);
	__u64 flags = FIELD(typed, wr, send_flags);
	struct ib_sge *sge;

	row->requests[flags % KVERBS_POST_FLAGS]++;
	if (!sges)
		return;
	sge = FIELD(typed, wr, sg_list);
	row->bytes += FIELD(typed, sge, length);
	if (sges > 1) {
		row->bytes += sum_sges(sge, sges);
		row->truncated += sges > KVERBS_POST_SGES;
	}
}

struct walk {
	struct kverbs_post_row *row;
	struct ib_send_wr *wr;
};

static __always_inline long walk_one(struct walk *w, bool typed)
{
	struct ib_send_wr *wr = w->wr;

	w->row->more++;
	add_request(w->row, wr, typed);
	w->wr = FIELD(typed, wr, next);
	return !w->wr;
}

static long walk_one_typed(__u32 index, struct walk *w)
{
	return walk_one(w, true);
}

static long walk_one_untyped(__u32 index, struct walk *w)
{
	return walk_one(w, false);
}

/* The work requests behind the first; functions of their own, to keep the usual path short. */
static __noinline int walk_typed(struct kverbs_post_row *row, struct ib_send_wr *wr)
{
	struct walk w = { .row = row, .wr = wr };

	bpf_loop(KVERBS_POST_CHAIN - 1, walk_one_typed, &w, 0);
	row->truncated += !!w.wr;
	return 0;
}

static __noinline int walk_untyped(struct kverbs_post_row *row, struct ib_send_wr *wr)
{
	struct walk w = { .row = row, .wr = wr };

	bpf_loop(KVERBS_POST_CHAIN - 1, walk_one_untyped, &w, 0);
	row->truncated += !!w.wr;
	return 0;
}

static __always_inline void add_chain(struct kverbs_post_row *row, struct ib_send_wr *wr,
				      bool typed)
{
	struct ib_send_wr *next;

	add_request(row, wr, typed);
	next = FIELD(typed, wr, next);
	if (!next)
		return;
	if (typed)
		walk_typed(row, next);
	else
		walk_untyped(row, next);
}

#endif /* _KVERBS_POST_CHAIN_BPF_H */
