/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Which row counts a post, and where what is counted is kept.
 *
 * HOT PATH: one array look-up finds all that this CPU needs. The row of a post is
 * remembered under its PD, which belongs to one device and one consumer, and its
 * opcode. A PD that is freed is forgotten before another may get its address, so
 * what is remembered is never wrong. Only the first post of a PD and opcode on
 * each CPU takes more than that.
 */
#ifndef _KVERBS_POST_ROW_BPF_H
#define _KVERBS_POST_ROW_BPF_H

#include "rdma_types.bpf.h"

#include "post_send.h"

/* Set by the loader before it loads; see kverbs_post_bucket(). */
const volatile __u8 bucket_of[256] = {};
const volatile __u32 nr_cpus = 1;

/* Rows given out, the special ones included; and whether both programs are in place. */
__u32 rows_used = KVERBS_POST_ROW_FIRST;
bool complete = false;

/* Changes whenever the address of a device may have got another name. */
__u64 names_seen = 1;

struct row_id {
	__u64 device;
	__u64 caller;
	__u64 op;
};

struct row_at {
	__u64 row;
	__u64 names;	/* @names_seen when it was looked at */
};

/* One value a CPU; the loader sets the number of entries. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct kverbs_post_cpu);
} cpus SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, KVERBS_POST_ROWS);
	__type(key, struct row_id);
	__type(value, struct row_at);
} rows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, KVERBS_POST_ROWS);
	__type(key, __u32);
	__type(value, struct kverbs_post_key);
} keys SEC(".maps");

/*
 * fentry programs follow typed pointers at the price of a few instructions;
 * kprobes have to call a helper. @typed is constant, so one of the two vanishes.
 */
#define FIELD(typed, ptr, field)                               \
	({                                                     \
		typeof(ptr) __ptr = (ptr);                     \
		typeof(__ptr->field) __value;                  \
		if (typed)                                     \
			__value = __ptr->field;                \
		else                                           \
			__value = BPF_CORE_READ(__ptr, field); \
		__value;                                       \
	})

static __always_inline struct kverbs_post_cpu *cpu_state(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&cpus, &cpu);
}

static __always_inline struct kverbs_post_row *row_of(struct kverbs_post_cpu *cpu, __u64 row)
{
	struct kverbs_post_row *r = &cpu->row[row % KVERBS_POST_ROWS];

	barrier_var(r); /* or it is computed again and again */
	return r;
}

static __always_inline __u32 op_class(__u32 opcode)
{
	if (opcode <= KVERBS_POST_OP_LAST)
		return opcode;
	if (opcode == IB_WR_REG_MR)
		return KVERBS_POST_OP_REG_MR;
	if (opcode == IB_WR_REG_MR_INTEGRITY)
		return KVERBS_POST_OP_REG_MR_INTEGRITY;
	return KVERBS_POST_OP_OTHER;
}

static __always_inline bool same_name(const char *a, const char *b)
{
	int i;

	for (i = 0; i < KVERBS_POST_NAME && a[i] == b[i]; i++)
		if (!a[i])
			return true;
	return i == KVERBS_POST_NAME;
}

/* A row for @id, whose device is called @device now. */
static __always_inline __u64 new_row(const struct row_id *id, const char *device)
{
	struct row_at at = { .names = names_seen };
	struct kverbs_post_key *key;
	__u32 row;

	if (rows_used >= KVERBS_POST_ROWS)
		return KVERBS_POST_ROW_LOST;
	row = __sync_fetch_and_add(&rows_used, 1);
	key = bpf_map_lookup_elem(&keys, &row);
	if (!key)
		return KVERBS_POST_ROW_LOST;

	__builtin_memcpy(key->device, device, KVERBS_POST_NAME);
	key->op = id->op;
	if (id->caller >> 32) {
		bpf_probe_read_kernel_str(key->consumer, KVERBS_POST_NAME, (void *)id->caller);
	} else {
		key->pid = id->caller;
		bpf_get_current_comm(key->consumer, KVERBS_POST_NAME);
	}
	at.row = row;
	bpf_map_update_elem(&rows, id, &at, BPF_ANY);
	return row;
}

/*
 * The row of a PD and opcode that this CPU does not remember: by device and caller,
 * which is the name under which a kernel consumer allocated its PD, or the process.
 * A device that went may have left its address to another, so that once any went,
 * it is the name that decides.
 */
static __noinline __u64 resolve(struct ib_qp *qp, __u32 op)
{
	struct row_id id = { .op = op };
	char name[KVERBS_POST_NAME] = {};
	struct kverbs_post_key *key;
	struct row_at *at;
	__u32 row;

	id.device = (__u64)BPF_CORE_READ(qp, device);
	id.caller = (__u64)BPF_CORE_READ(qp, pd, res.kern_name);
	if (!id.caller)
		id.caller = bpf_get_current_pid_tgid() >> 32;
	at = bpf_map_lookup_elem(&rows, &id);
	if (at && at->names == names_seen)
		return at->row;

	BPF_CORE_READ_STR_INTO(&name, qp, device, name);
	if (at) {
		row = at->row;
		key = bpf_map_lookup_elem(&keys, &row);
		if (key && same_name(key->device, name)) {
			at->names = names_seen;
			return row;
		}
	}
	return new_row(&id, name);
}

static __always_inline struct kverbs_post_slot *slot_of(struct kverbs_post_cpu *cpu, __u64 key)
{
	__u64 hash = key * 0x9e3779b97f4a7c15ULL;

	return &cpu->slot[hash >> (64 - KVERBS_POST_SLOT_BITS)];
}

/* PDs are further apart than there are opcodes. */
static __always_inline __u64 slot_key(__u64 pd, __u32 op)
{
	return pd + op;
}

static __always_inline __u64 find_row(struct kverbs_post_cpu *cpu, struct ib_qp *qp, __u32 op,
				      bool typed)
{
	struct kverbs_post_slot *slot;
	__u64 key;

	/* The verifier counts with numbers only, and what was in memory is one. */
	cpu->scratch = (__u64)FIELD(typed, qp, pd);
	barrier();
	key = slot_key(cpu->scratch, op);
	slot = slot_of(cpu, key);
	if (slot->key != key) {
		slot->row = resolve(qp, op);
		slot->key = key;
	}
	return slot->row;
}

/* ---- addresses that will mean something else ---- */

static long forget_slots(__u32 index, __u64 *pd)
{
	struct kverbs_post_cpu *cpu = bpf_map_lookup_elem(&cpus, &index);
	struct kverbs_post_slot *slot;
	__u32 op;

	for (op = 0; cpu && op < KVERBS_POST_NR_OPS; op++) {
		slot = slot_of(cpu, slot_key(*pd, op));
		if (slot->key == slot_key(*pd, op))
			slot->key = 0;
	}
	return 0;
}

/* A PD is freed. Nobody posts with it any more. */
SEC("kprobe/ib_dealloc_pd_user")
int BPF_KPROBE(forget_pd, __u64 pd)
{
	bpf_loop(nr_cpus, forget_slots, &pd, 0);
	return 0;
}

static long forget_all_slots(__u32 index, void *unused)
{
	struct kverbs_post_cpu *cpu = bpf_map_lookup_elem(&cpus, &index);
	__u32 i;

	for (i = 0; cpu && i < 1 << KVERBS_POST_SLOT_BITS; i++)
		cpu->slot[i].key = 0;
	return 0;
}

/* A device is freed, when its PDs have gone, or it got another name. */
SEC("kprobe")
int forget_names(void *ctx)
{
	names_seen++;
	bpf_loop(nr_cpus, forget_all_slots, NULL, 0);
	return 0;
}

#endif /* _KVERBS_POST_ROW_BPF_H */
