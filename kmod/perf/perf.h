/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The kernel-mode bench: the map of its parts. It is a consumer like any other and
 * uses what any other can.
 *
 *  main.c     /dev/kverbs_perf, and the devices as they come and go
 *  attr.c     what a run asks for, held against what the device can do
 *  run.c      a run: its thread takes the cases in turn, round by round
 *  bench.c    one case in one round: set up, measure, take down, judge
 *  producer.c the threads that post, and what they sleep on
 *  engine.c   raw, chain and kverbs: how a burst is posted, how it completes
 *  queue.c    a pair of QPs with completion queues, a client and a server
 *  connect.c  the path between the two
 *  memory.c   buffers, mapped once for a run, and memory regions over them
 *  receive.c  the server's ring of receives
 *  rpc.c      request and reply, between two endpoints
 *  pattern.c  what is in a message
 *
 * The ledger. A lane is the share of one producer in one queue: a ring of slots,
 * one for each request that may be in flight. Requests of a lane are posted in the
 * order of its ring and must end in that order, each once. The producer alone
 * moves @posted and @tail, the completion side alone moves @retired and @head.
 */
#ifndef _KVERBS_PERF_H
#define _KVERBS_PERF_H

#include <linux/bottom_half.h>
#include <linux/completion.h>
#include <linux/kref.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <rdma/ib_verbs.h>
#include <rdma/kverbs.h>
#include <uapi/rdma/kverbs_perf.h>
#include <kverbs/core/hist.h>

struct perf_bench;
struct perf_queue;
struct perf_rpc;
struct perf_run;

/* An RDMA device that there is, and the runs on it; main.c has the lock. */
struct perf_device {
	struct list_head entry;
	struct ib_device *ib;
	struct list_head runs;
	refcount_t users;
	struct completion unused;
};

/* The path from a port to itself. */
struct perf_path {
	u32 port;
	enum ib_mtu mtu;
	struct rdma_ah_attr ah;
};

/* Buffers of one size, in chunks that are physically contiguous and mapped. */
struct perf_chunk {
	void *va;
	u64 dma;
};

struct perf_memory {
	struct ib_device *ib;
	u32 stride;
	u32 per_chunk;
	u32 nr_chunks;
	size_t chunk_size;
	struct perf_chunk *chunks;
};

/* Memory regions over a perf_memory: slot i is in region i / @slots_each. */
struct perf_regions {
	u32 nr;
	u32 slots_each;
	struct ib_mr **mr;
};

/* A work request that registers a region; freed after the CQ it completes on. */
struct perf_registration {
	struct ib_cqe cqe;
	struct completion done;
	enum ib_wc_status status;
};

/* A request. */
struct perf_slot {
	union {
		struct ib_send_wr send;
		struct ib_rdma_wr rdma;
		struct ib_ud_wr ud;
	} wr;
	union {
		struct ib_cqe cqe;
		struct kverbs_req req;
	};
	struct ib_sge sge;
	struct perf_lane *lane;
	u64 posted_at;		/* ticks */
	u64 key;		/* of the pattern that its message has */
	u32 index;		/* in the memory of its queue */
	bool outstanding;
	bool last_of_burst;
	bool used;
};

/* One writer each; the completion side has one dispatcher at a time for a CQ. */
struct perf_post_side {
	u64 post_calls;
	u64 signaled;
	u64 call_ticks;
	u64 post_ticks;
	u64 call_min_ticks;
};

struct perf_retire_side {
	u64 succeeded;
	u64 cqes;
	u64 doubled;
	u64 reordered;
	u64 failed;
	u64 flushed;
	u64 corrupt;
	u64 latency[KVERBS_PERF_BUCKETS];
};

struct perf_lane {
	struct perf_bench *bench;
	struct perf_queue *queue;
	struct perf_producer *producer;
	struct perf_slot *slots;
	u32 nr_slots;
	u32 first_index;	/* of its slots in the memory of the queue */
	u32 number;		/* among the lanes of the bench */
	u64 target;		/* requests to post */

	/* Written by who posts: the producer, or whoever holds @lock. */
	spinlock_t lock;	/* posts come from completions and from the producer */
	u64 posted;
	u32 tail;
	struct perf_post_side post;
	struct kverbs_credit_wait credit;
	bool waits_for_credit;

	/* Written by the dispatcher of the send CQ. */
	u64 retired ____cacheline_aligned_in_smp;
	u32 head;
	struct perf_retire_side done;

	/* Written by the dispatcher of the receive CQ. */
	u64 received ____cacheline_aligned_in_smp;
	u64 received_corrupt;
	u32 receive_head;
};

/* A receive of the server's ring. */
struct perf_receive {
	struct ib_cqe cqe;
	struct ib_recv_wr wr;
	struct ib_sge sge;
	struct perf_queue *queue;
	struct perf_slot *slot;	/* whose message came last */
	u32 index;
};

struct perf_ring {
	u32 nr;
	u32 batch;		/* receives that are posted again together */
	u32 nr_spent;
	struct ib_recv_wr *first_spent;
	struct ib_recv_wr **next_spent;
	struct perf_receive *receives;
};

struct perf_queue {
	struct perf_bench *bench;
	u32 index;
	struct perf_memory *client_memory;
	struct perf_memory *server_memory;
	struct ib_qp *client;
	struct ib_qp *server;
	struct ib_cq *client_cq;
	struct ib_cq *server_cq;
	struct ib_ah *ah;
	u32 qkey;
	struct kverbs_cq *cq;	/* behind client_cq, unless that is ib_core's */
	struct kverbs_sq *sq;	/* over client, in the kverbs engine */
	struct perf_registration *registration;
	struct perf_regions regions;
	struct perf_ring ring;
	struct perf_rpc *rpc;	/* in place of the QPs */
	u32 qpn;		/* of the client */
};

struct perf_producer {
	struct perf_bench *bench;
	struct task_struct *task;
	wait_queue_head_t wait;
	struct perf_lane **lanes;
	u32 nr_lanes;
	bool finished;
};

/* How an engine posts; how it completes is in the callbacks that prepare() sets. */
struct perf_engine {
	const char *name;
	void (*prepare)(struct perf_slot *slot);
	/* Post @n requests from the tail of the lane. How many were accepted, or an errno. */
	int (*post)(struct perf_lane *lane, u32 n);
};

/* One case in one round. */
struct perf_bench {
	struct perf_run *run;
	const struct perf_engine *engine;
	struct kverbs_perf_case what;
	u32 number;		/* tells the patterns of one bench from another's */
	u64 requests;		/* to post, over all lanes */
	u32 burst;		/* requests posted together */
	bool verify;
	bool counts_receives;	/* a send has ended when it was received, too */
	bool time_is_up;
	struct ib_pd *pd;
	struct perf_queue *queues;
	struct perf_lane *lanes;
	u32 nr_lanes;
	struct perf_producer *producers;
	u32 nr_producers;
	struct completion start;
	struct completion finished;
	atomic_t nr_posting;
	u64 ended_ns;
};

/* Why a run ends before its time. */
enum perf_stop {
	PERF_GO,
	PERF_STOP_POSTING,	/* what is in flight completes */
	PERF_STOP_WAITING,	/* nothing is waited for any more */
};

struct perf_run {
	struct list_head entry;		/* of perf_device.runs */
	struct perf_device *device;
	struct ib_device *ib;
	struct kverbs_perf_run attr;
	struct perf_path path;
	u32 ring_size;
	u32 lane_depth;
	u32 lanes_per_queue;
	u64 ns_per_tick;		/* 32.32 */
	struct perf_memory *client_memory;	/* one for each queue */
	struct perf_memory *server_memory;
	struct task_struct *task;

	enum perf_stop stop;
	bool leaving;			/* its device is */
	spinlock_t message_lock;	/* error and message: the first one counts */
	int error;
	char message[KVERBS_PERF_MESSAGE_MAX];

	struct mutex lock;		/* what follows, for perf_run_status() */
	struct perf_bench *bench;
	struct kverbs_perf_result *results;
	u32 nr_results;
	u32 case_index;
	u32 round;
	u64 done_before;		/* requests of the benches that have ended */
	u64 started_ns;
	u64 ended_ns;

	struct completion done;
	wait_queue_head_t *poll_wait;
};

/* main.c: a run holds the device that it names, or the first. */
int perf_device_get(struct perf_run *run);
void perf_device_put(struct perf_run *run);

/* attr.c: the run holds its device; fills in what follows from the attributes. */
int perf_attr_check(struct perf_run *run);

/* run.c */
struct perf_run *perf_run_start(struct kverbs_perf_run *attr, wait_queue_head_t *poll_wait);
void perf_run_stop(struct perf_run *run, enum perf_stop stop, int error, const char *format, ...)
	__printf(4, 5);
bool perf_run_ended(struct perf_run *run);
u64 perf_run_patience_ns(const struct perf_run *run);
void perf_run_status(struct perf_run *run, struct kverbs_perf_status *status);
void perf_run_free(struct perf_run *run);

static inline enum perf_stop perf_stopped(const struct perf_run *run)
{
	return READ_ONCE(run->stop);
}

/* bench.c */
int perf_bench_setup(struct perf_bench *bench);
void perf_bench_measure(struct perf_bench *bench, struct kverbs_perf_result *result);
void perf_bench_free(struct perf_bench *bench);
u64 perf_bench_progress(const struct perf_bench *bench);

/* producer.c */
int perf_producers_start(struct perf_bench *bench);
void perf_producers_join(struct perf_bench *bench);

void perf_lane_moved(struct perf_lane *lane);

/* engine.c */
extern const struct perf_engine perf_engines[KVERBS_PERF_NR_ENGINES];

void perf_slot_fill(struct perf_slot *slot, u64 number);
bool perf_slot_arrived(const struct perf_slot *slot);

/* queue.c */
int perf_queue_create(struct perf_queue *queue);
void perf_queue_stop(struct perf_queue *queue, u64 since_ns);
void perf_queue_destroy(struct perf_queue *queue);

/* rpc.c: with CQEs for so many times its depth. */
#define PERF_RPC_CQES	3

int perf_rpc_create(struct perf_queue *queue, struct kverbs_cq *server_cq);
void perf_rpc_end(struct perf_rpc *rpc);
void perf_rpc_destroy(struct perf_queue *queue);

/* connect.c */
int perf_path_find(struct perf_path *path, struct ib_device *ib);
int perf_connect(struct perf_queue *queue);

/* memory.c */
int perf_memory_alloc(struct perf_memory *memory, struct ib_device *ib, u32 size, u32 nr);
void perf_memory_free(struct perf_memory *memory);
void perf_memory_poison(struct perf_memory *memory);
size_t perf_memory_bytes(u32 size, u32 nr);
int perf_regions_create(struct perf_regions *regions, struct perf_queue *queue);
void perf_regions_destroy(struct perf_regions *regions);
bool perf_regions_possible(const struct ib_device *ib);
u32 perf_regions_max_size(const struct ib_device *ib);
void perf_regions_remote(const struct perf_regions *regions, u32 stride, u32 slot, u64 *addr,
			 u32 *rkey);

static inline void *perf_memory_va(const struct perf_memory *memory, u32 slot)
{
	return memory->chunks[slot / memory->per_chunk].va +
	       slot % memory->per_chunk * memory->stride;
}

static inline u64 perf_memory_dma(const struct perf_memory *memory, u32 slot)
{
	return memory->chunks[slot / memory->per_chunk].dma +
	       slot % memory->per_chunk * memory->stride;
}

/* receive.c: a UD message comes behind a header that the device writes. */
#define PERF_GRH_SIZE	40

int perf_ring_create(struct perf_queue *queue);
void perf_ring_destroy(struct perf_ring *ring);
u64 perf_ring_check(const struct perf_queue *queue);
struct perf_lane *perf_queue_lane(const struct perf_queue *queue, const u64 *key);

/* A request has ended when it was received, too. */
static inline bool perf_op_sends(const struct kverbs_perf_run *attr)
{
	return attr->op == KVERBS_PERF_SEND || attr->op == KVERBS_PERF_RPC;
}

static inline u32 perf_receive_offset(const struct perf_run *run)
{
	return run->attr.transport == KVERBS_PERF_UD ? PERF_GRH_SIZE : 0;
}

/* pattern.c: where and how much is synced for the CPU or for the device. */
void perf_pattern_fill(struct perf_memory *memory, u32 slot, u32 size, u64 key);
void perf_pattern_poison(struct perf_memory *memory, u32 slot, u32 size);
bool perf_pattern_ok(const struct perf_memory *memory, u32 slot, u32 offset, u32 size, u64 key);
u64 perf_pattern_key(const struct perf_memory *memory, u32 slot, u32 offset);

/* The lane a key belongs to; @number tells its messages apart. */
#define PERF_KEY_LANE_SHIFT	40
#define PERF_KEY_BENCH_SHIFT	52

static inline u64 perf_key(const struct perf_lane *lane, u64 number)
{
	return (u64)lane->bench->number << PERF_KEY_BENCH_SHIFT |
	       (u64)lane->number << PERF_KEY_LANE_SHIFT |
	       (number & GENMASK_ULL(PERF_KEY_LANE_SHIFT - 1, 0));
}

static inline u32 perf_key_lane(u64 key)
{
	return key >> PERF_KEY_LANE_SHIFT &
	       GENMASK(PERF_KEY_BENCH_SHIFT - PERF_KEY_LANE_SHIFT - 1, 0);
}

/*
 * The cheapest clock there is: reading it is part of what is measured. User Mode
 * Linux runs on x86 and has no get_cycles() of its own.
 */
static inline u64 perf_ticks(void)
{
#ifdef CONFIG_X86_64
	unsigned long low, high;

	asm volatile("rdtsc" : "=a" (low), "=d" (high));
	return (u64)high << 32 | low;
#else
	return ktime_get_ns();
#endif
}

static inline u64 perf_ticks_to_ns(const struct perf_run *run, u64 ticks)
{
	return mul_u64_u64_shr(ticks, run->ns_per_tick, 32);
}

static inline bool perf_lanes_share(const struct perf_bench *bench)
{
	return bench->nr_lanes > bench->run->attr.queues;
}

static inline struct perf_slot *perf_lane_slot(const struct perf_lane *lane, u32 index)
{
	return &lane->slots[index];
}

static inline u32 perf_lane_next(const struct perf_lane *lane, u32 index)
{
	return index + 1 == lane->nr_slots ? 0 : index + 1;
}

/*
 * Share @part of @parts in @total requests: whole bursts, so that no share ends with a
 * small one, but for the last, which has what is left.
 */
static inline u64 perf_share(u64 total, u32 burst, u32 parts, u32 part)
{
	u32 left, more;
	u64 bursts = div_u64_rem(total, burst, &left);
	u64 each = div_u64_rem(bursts, parts, &more);

	return (each + (part < more)) * burst + (part == parts - 1 ? left : 0);
}

/* Requests that have ended, and whose slots may be used again. */
static inline u64 perf_lane_ended(const struct perf_lane *lane)
{
	/* ORDER: pairs with perf_count(), by the dispatcher of the send CQ */
	u64 retired = smp_load_acquire(&lane->retired);

	if (!lane->bench->counts_receives)
		return retired;
	/* ORDER: pairs with perf_count(), by the dispatcher of the receive CQ */
	return min(retired, smp_load_acquire(&lane->received));
}

static inline void perf_count(u64 *counter)
{
	/* ORDER: the slot was let go before it is seen free; pairs with perf_lane_ended() */
	smp_store_release(counter, *counter + 1);
}

/* A request has ended, or a message has come: may be there is room for more. */
static inline void perf_lane_advance(struct perf_lane *lane, bool last_of_burst)
{
	if (last_of_burst || lane->bench->what.context == KVERBS_PERF_COMPLETION)
		perf_lane_moved(lane);
}

#endif /* _KVERBS_PERF_H */
