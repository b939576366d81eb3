/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the parts of an HCA's work cost: the CPU's time at a doorbell, when each of the
 * work requests that it covers is executed, and what crosses PCIe for them.
 *
 * The model. The CPU rings for one or more WQEs of a send queue. The HCA notices, and reads
 * them from memory, so many bytes at a time, one read after the other. Each WQE is parsed,
 * in order; payload that is not inline is read, the reads of different WQEs under way at
 * the same time; messages follow each other on the wire, which takes them byte by byte and
 * delivers them later. With BlueFlame the CPU writes a WQE that is alone together with the
 * doorbell, so that it needs no read. Each queue has all that for itself.
 *
 * Times are in nanoseconds, on whatever clock the caller rings by.
 */
#ifndef _KVERBS_CORE_COST_H
#define _KVERBS_CORE_COST_H

#include "types.h"

/*
 * A WQE as drivers lay it out: control and remote address, an entry for each element of the
 * list or the inline data with its length, in blocks of the width of a cache line.
 */
#define KVERBS_COST_WQE_HEAD	32U
#define KVERBS_COST_WQE_ELEMENT	16U
#define KVERBS_COST_WQE_INLINE	4U
#define KVERBS_COST_WQE_BLOCK	64U

/*
 * What one read of WQEs brings if nothing else is said: four of the shortest, the least
 * that MRRS should be set to. The articles' saving by a doorbell for four (62 % of the PCIe
 * transactions) comes out only if the four come at once.
 */
#define KVERBS_COST_FETCH_BYTES	256U

/**
 * struct kverbs_cost - the constants of the model; the articles' in kverbs_cost_articles()
 * @doorbell_ns: an MMIO write to the doorbell, spent by the CPU that posts
 * @notice_ns: from the doorbell to the HCA's first read of WQEs
 * @fetch_ns: a read of WQEs
 * @fetch_bytes: of the send queue that one such read brings, at most; not 0
 * @parse_ns: a WQE is parsed
 * @payload_ns: the payload of a WQE is read from memory
 * @wire_ns: from the first HCA's sending to the second's having it in memory
 * @wire_ns_per_kib: 1024 bytes are sent: 82 is 100 Gb/s; 0: in no time
 * @cqe_ns: a CQE is written
 * @interrupt_ns: from a CQE to the handler of the event that it causes
 * @blueflame_bytes: a WQE no longer than that, alone, comes with its doorbell; 0: none does
 */
struct kverbs_cost {
	__u32 doorbell_ns;
	__u32 notice_ns;
	__u32 fetch_ns;
	__u32 fetch_bytes;
	__u32 parse_ns;
	__u32 payload_ns;
	__u32 wire_ns;
	__u32 wire_ns_per_kib;
	__u32 cqe_ns;
	__u32 interrupt_ns;
	__u32 blueflame_bytes;
};

/**
 * struct kverbs_cost_wqe - what the model looks at of a work request
 * @bytes: of its WQE, see kverbs_cost_wqe_bytes()
 * @reads: elements of its list that are read; none if it is inline, or reads itself
 * @length: of its message
 */
struct kverbs_cost_wqe {
	__u32 bytes;
	__u32 reads;
	__u32 length;
};

/**
 * struct kverbs_cost_run - where the HCA is in a send queue, and what it took so far
 * @fetched: when the last read of WQEs is there
 * @parsed: when the last WQE is parsed
 * @sent: when the wire is free
 * @left: bytes of the last read that no WQE has used
 * @doorbells: writes to the doorbell
 * @blueflames: those of them with which a WQE came
 * @wqe_fetches: reads of WQEs
 * @payload_reads: reads of payload
 */
struct kverbs_cost_run {
	__u64 fetched;
	__u64 parsed;
	__u64 sent;
	__u32 left;
	__u32 doorbells;
	__u32 blueflames;
	__u32 wqe_fetches;
	__u32 payload_reads;
};

/* Nothing costs anything; PCIe transactions are counted all the same. */
KVERBS_CORE_FN void kverbs_cost_zero(struct kverbs_cost *cost)
{
	cost->doorbell_ns = 0;
	cost->notice_ns = 0;
	cost->fetch_ns = 0;
	cost->fetch_bytes = KVERBS_COST_FETCH_BYTES;
	cost->parse_ns = 0;
	cost->payload_ns = 0;
	cost->wire_ns = 0;
	cost->wire_ns_per_kib = 0;
	cost->cqe_ns = 0;
	cost->interrupt_ns = 0;
	cost->blueflame_bytes = 0;
}

/*
 * As two practitioners' articles on tuning verbs split a small write up. They give one
 * figure for what passes between the doorbell and the WQE's being there (@notice_ns, so
 * that @fetch_ns is 0), and none for bandwidth, CQE and interrupt.
 */
KVERBS_CORE_FN void kverbs_cost_articles(struct kverbs_cost *cost)
{
	kverbs_cost_zero(cost);
	cost->doorbell_ns = 80;		/* "fill to doorbell" */
	cost->notice_ns = 400;		/* "doorbell to fetch" */
	cost->parse_ns = 150;		/* "parse" */
	cost->payload_ns = 1200;	/* "payload DMA" */
	cost->wire_ns = 800;		/* "send" */
}

/* Whether it is what kverbs_cost_zero() makes. */
KVERBS_CORE_FN bool kverbs_cost_is_zero(const struct kverbs_cost *cost)
{
	return !(cost->doorbell_ns | cost->notice_ns | cost->fetch_ns | cost->parse_ns |
		 cost->payload_ns | cost->wire_ns | cost->wire_ns_per_kib | cost->cqe_ns |
		 cost->interrupt_ns | cost->blueflame_bytes) &&
	       cost->fetch_bytes == KVERBS_COST_FETCH_BYTES;
}

/* The WQE of a work request with @nr elements in its list, or with @inline_bytes inline. */
KVERBS_CORE_FN __u32 kverbs_cost_wqe_bytes(__u32 nr, __u32 inline_bytes)
{
	__u32 bytes = KVERBS_COST_WQE_HEAD + nr * KVERBS_COST_WQE_ELEMENT;

	if (inline_bytes)
		bytes += KVERBS_COST_WQE_INLINE + inline_bytes;
	return (bytes + KVERBS_COST_WQE_BLOCK - 1) & ~(KVERBS_COST_WQE_BLOCK - 1);
}

KVERBS_CORE_FN __u64 kverbs_cost_later(__u64 a, __u64 b)
{
	return a > b ? a : b;
}

/*
 * The doorbell was rung at @now, for WQEs of which the first has @bytes and is @alone or is
 * followed by others. How long the CPU was at it (@doorbell_ns) is past.
 */
KVERBS_CORE_FN void kverbs_cost_ring(const struct kverbs_cost *cost, struct kverbs_cost_run *run,
				     __u64 now, __u32 bytes, bool alone)
{
	bool blueflame = alone && bytes <= cost->blueflame_bytes;

	run->doorbells++;
	run->blueflames += blueflame;
	run->left = blueflame ? bytes : 0;
	run->fetched = kverbs_cost_later(run->fetched, blueflame ? now : now + cost->notice_ns);
}

/* The next WQE that the doorbell covers needs so many more reads. */
KVERBS_CORE_FN __u32 kverbs_cost_fetch(const struct kverbs_cost *cost, struct kverbs_cost_run *run,
				       __u32 bytes)
{
	__u32 reads = 0;

	if (bytes > run->left) {
		bytes -= run->left;
		reads = (bytes + cost->fetch_bytes - 1) / cost->fetch_bytes;
		run->left = reads * cost->fetch_bytes;
	}
	run->left -= bytes;
	run->wqe_fetches += reads;
	return reads;
}

/*
 * The next WQE that the doorbell covers: when its data is where it is to be. Its CQE is
 * there @cqe_ns later. Never before that of the WQE before it.
 */
KVERBS_CORE_FN __u64 kverbs_cost_execute(const struct kverbs_cost *cost,
					 struct kverbs_cost_run *run,
					 const struct kverbs_cost_wqe *wqe)
{
	__u64 ready;

	run->fetched += (__u64)cost->fetch_ns * kverbs_cost_fetch(cost, run, wqe->bytes);
	run->parsed = kverbs_cost_later(run->parsed, run->fetched) + cost->parse_ns;
	run->payload_reads += wqe->reads;
	ready = run->parsed + (wqe->reads ? cost->payload_ns : 0);
	run->sent = kverbs_cost_later(run->sent, ready) +
		    (((__u64)wqe->length * cost->wire_ns_per_kib) >> 10);
	return run->sent + cost->wire_ns;
}

#endif /* _KVERBS_CORE_COST_H */
