// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * How long a driver's post_send takes, and what goes through it: one histogram
 * and a few counters per device, consumer and opcode.
 *
 * A pair of programs sits on one post_send function: the first sees the call, the
 * second the return. There is a pair of fentry and fexit and a pair of kprobe and
 * kretprobe, of which the loader loads one. Each function has programs and maps
 * of its own, so that whatever a program finds here was left by a program of the
 * same function, and the kernel never runs one of those inside itself.
 *
 * HOT PATH: one array look-up finds all that this CPU needs. The rows of a caller
 * are remembered per CPU under two pointers that every call reads again (the
 * device, and the name its PD was allocated under), so that a QP that is freed and
 * allocated anew is never taken for the old one. Only the first post of a caller
 * and opcode on each CPU goes to the hash map.
 *
 * NESTING: an interrupt may post while a post is under way on the same CPU, so
 * calls stand on a stack per CPU, each with what tells it from the others. A call or a
 * return may be missing, since the kernel does not run a program inside itself: then it is counted, never guessed.
 */
#include "rdma_types.bpf.h"

#include "post_send.h"

char LICENSE[] SEC("license") = "GPL";

/* Set by the loader before it loads. */
const volatile __u32 max_rows = 1;
const volatile __u32 nr_cpus = 1;

/* Rows given out, the first one included; and whether both programs are in place. */
__u32 rows_used = 1;
bool complete = false;

struct row_id {
	__u64 device;
	__u64 caller;
	__u64 op;
};

/* One value a CPU. The loader sets the size of a value and the number of entries. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct kverbs_post_cpu));
} cpus SEC(".maps");

/* The number of a row, and what it counts. The loader sets the number of entries. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct row_id);
	__type(value, __u32);
} rows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
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

static __always_inline struct kverbs_post_cpu *this_cpu(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&cpus, &cpu);
}

static __always_inline struct kverbs_post_row *row_of(struct kverbs_post_cpu *cpu, __u64 row)
{
	/* In one register, or the verifier does not see that what is used was checked. */
	barrier_var(row);
	if (row >= max_rows)
		row = KVERBS_POST_ROW_LOST;
	barrier_var(row);
	return &cpu->row[row];
}

/* ---- which row ---- */

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

static __always_inline __u32 new_row(const struct row_id *id, const char *device)
{
	struct kverbs_post_key *key;
	__u32 row;

	if (rows_used >= max_rows)
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
	bpf_map_update_elem(&rows, id, &row, BPF_ANY);
	return row;
}

/*
 * The row of a caller that this CPU does not remember. A device that went may
 * have left its address to another one, so it is the name that decides.
 */
static __noinline __u32 resolve(struct ib_device *device, __u64 caller, __u32 op)
{
	struct row_id id = { .device = (__u64)device, .caller = caller, .op = op };
	char name[KVERBS_POST_NAME] = {};
	struct kverbs_post_key *key;
	__u32 *row;

	BPF_CORE_READ_STR_INTO(&name, device, name);
	row = bpf_map_lookup_elem(&rows, &id);
	if (row) {
		key = bpf_map_lookup_elem(&keys, row);
		if (key && same_name(key->device, name))
			return *row;
	}
	return new_row(&id, name);
}

/* The verifier allows no arithmetic on a typed pointer; what was in memory has no type. */
static __always_inline __u64 as_number(struct kverbs_post_cpu *cpu, void *pointer)
{
	cpu->scratch = (__u64)pointer;
	barrier();
	return cpu->scratch;
}

static __always_inline __u64 find_row(struct kverbs_post_cpu *cpu, struct ib_qp *qp, __u32 op,
				      bool typed)
{
	struct ib_device *device = FIELD(typed, qp, device);
	struct ib_pd *pd = FIELD(typed, qp, pd);
	__u64 caller = (__u64)FIELD(typed, pd, res.kern_name);
	struct kverbs_post_slot *slot;
	__u64 hash, row;

	if (!caller) /* a user's: told apart by process */
		caller = bpf_get_current_pid_tgid() >> 32;
	hash = (as_number(cpu, device) + caller) * 0x9e3779b97f4a7c15ULL;
	slot = &cpu->slot[hash >> (64 - KVERBS_POST_SLOT_BITS)];
	if (slot->device == (__u64)device && slot->caller == caller) {
		row = slot->row[op];
		if (row)
			return row;
	} else {
		__builtin_memset(slot->row, 0, sizeof(slot->row));
		slot->caller = caller;
		slot->device = (__u64)device;
	}
	row = resolve(device, caller, op);
	slot->row[op] = row;
	return row;
}

/* ---- what is posted ---- */

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
	int flags = FIELD(typed, wr, send_flags);
	struct ib_sge *sge;

	row->work_requests++;
	row->signaled += !!(flags & IB_SEND_SIGNALED);
	row->inlined += !!(flags & IB_SEND_INLINE);
	if (!sges)
		return;
	sge = FIELD(typed, wr, sg_list);
	row->bytes += FIELD(typed, sge, length);
	if (sges > 1)
		row->bytes += sum_sges(sge, sges);
	if (sges > KVERBS_POST_SGES)
		row->truncated++;
}

struct walk {
	struct kverbs_post_row *row;
	struct ib_send_wr *wr;
};

static long walk_typed(__u32 index, struct walk *w)
{
	add_request(w->row, w->wr, true);
	w->wr = FIELD(true, w->wr, next);
	return !w->wr;
}

static long walk_untyped(__u32 index, struct walk *w)
{
	add_request(w->row, w->wr, false);
	w->wr = FIELD(false, w->wr, next);
	return !w->wr;
}

static __always_inline void add_chain(struct kverbs_post_row *row, struct ib_send_wr *wr,
				      bool typed)
{
	struct walk w = { .row = row };

	if (!wr)
		return;
	add_request(row, wr, typed);
	w.wr = FIELD(typed, wr, next);
	if (!w.wr)
		return;
	bpf_loop(KVERBS_POST_CHAIN - 1, typed ? walk_typed : walk_untyped, &w, 0);
	if (w.wr)
		row->truncated++;
}

/* ---- call and return ---- */

static __always_inline void on_call(struct ib_qp *qp, struct ib_send_wr *wr, __u64 who, bool typed)
{
	struct kverbs_post_cpu *cpu = this_cpu();
	struct kverbs_post_frame *frame;
	struct kverbs_post_row *row;
	__u32 op = KVERBS_POST_OP_NONE;
	__u64 depth, index;

	if (!cpu)
		return;
	if (wr)
		op = op_class(FIELD(typed, wr, opcode));
	index = find_row(cpu, qp, op, typed);
	row = row_of(cpu, index);
	row->posts++;
	add_chain(row, wr, typed);

	/* Taken before it is filled: an interrupt's call takes the next one. */
	depth = cpu->depth;
	if (depth >= KVERBS_POST_FRAMES) {
		cpu->dropped += depth;
		depth = 0;
	}
	cpu->depth = depth + 1;
	frame = &cpu->frame[depth];
	frame->who = who;
	frame->row = index;
	frame->start = bpf_ktime_get_ns();
}

/* The frame of a call that is not the latest: later ones have not returned yet, or were missed. */
static __noinline __u64 find_frame(struct kverbs_post_cpu *cpu, __u64 who)
{
	__u64 i;

	for (i = 0; i < KVERBS_POST_FRAMES; i++)
		if (i < cpu->depth && cpu->frame[i].who == who)
			return i;
	return KVERBS_POST_FRAMES;
}

/* Takes a frame out, and those under it that were taken out before. */
static __always_inline void release_frame(struct kverbs_post_cpu *cpu, __u64 index)
{
	__u64 i, depth = cpu->depth;

	cpu->frame[index].who = 0;
	if (index + 1 != depth)
		return;
	for (i = 0; i < KVERBS_POST_FRAMES && index; i++, index--)
		if (cpu->frame[(index - 1) % KVERBS_POST_FRAMES].who)
			break;
	cpu->depth = index;
}

static __always_inline void on_return(__u64 who)
{
	__u64 now = bpf_ktime_get_ns();
	struct kverbs_post_cpu *cpu = this_cpu();
	struct kverbs_post_row *row;
	__u64 index, ns, bucket;

	if (!cpu)
		return;
	index = cpu->depth - 1;
	if (index >= KVERBS_POST_FRAMES || cpu->frame[index].who != who) {
		index = find_frame(cpu, who);
		if (index >= KVERBS_POST_FRAMES) {
			cpu->unmatched += complete;
			return;
		}
	}
	ns = now - cpu->frame[index].start;
	row = row_of(cpu, cpu->frame[index].row);
	release_frame(cpu, index);
	row->ns += ns;
	if (ns > row->max_ns)
		row->max_ns = ns;
	bucket = kverbs_hist_index(ns);
	barrier_var(bucket); /* we know that it is in range, the verifier does not */
	if (bucket < KVERBS_HIST_BUCKETS)
		row->hist[bucket]++;
}

/* No two calls under way have a work request in common; those of users have none. */
#define CALL_WR(qp, wr) ((wr) ? (__u64)(wr) : (__u64)(qp))

SEC("fentry")
int BPF_PROG(fentry_call, struct ib_qp *qp, struct ib_send_wr *wr)
{
	on_call(qp, wr, CALL_WR(qp, wr), true);
	return 0;
}

SEC("fexit")
int BPF_PROG(fexit_return, struct ib_qp *qp, struct ib_send_wr *wr)
{
	on_return(CALL_WR(qp, wr));
	return 0;
}

/*
 * A kretprobe sees no arguments, but the stack on which its call was. On x86 the call has
 * pushed the return address that the return has taken off.
 */
#if defined(__TARGET_ARCH_x86)
#define CALL_SP(ctx) (PT_REGS_SP(ctx) + sizeof(long))
#else
#define CALL_SP(ctx) PT_REGS_SP(ctx)
#endif

SEC("kprobe")
int BPF_KPROBE(kprobe_call, struct ib_qp *qp, struct ib_send_wr *wr)
{
	on_call(qp, wr, CALL_SP(ctx), false);
	return 0;
}

SEC("kretprobe")
int BPF_KRETPROBE(kretprobe_return)
{
	on_return(PT_REGS_SP(ctx));
	return 0;
}

/* ---- a device goes, or gets another name ---- */

static long forget_cpu(__u32 index, void *unused)
{
	struct kverbs_post_cpu *cpu = bpf_map_lookup_elem(&cpus, &index);
	__u32 i;

	for (i = 0; cpu && i < 1 << KVERBS_POST_SLOT_BITS; i++)
		cpu->slot[i].device = 0;
	return 0;
}

/* All CPUs ask for the device's name again. */
SEC("kprobe")
int forget_devices(void *ctx)
{
	bpf_loop(nr_cpus, forget_cpu, NULL, 0);
	return 0;
}
