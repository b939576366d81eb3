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
 * HOT PATH: one array look-up finds all that this CPU needs. The row of a post is
 * remembered under its PD, which belongs to one device and one consumer, and its
 * opcode. A PD that is freed is forgotten before another may get its address, so
 * what is remembered is never wrong. Only the first post of a PD and opcode on
 * each CPU takes more than that.
 *
 * NESTING: an interrupt may post while a post is under way on the same CPU, so a
 * CPU has frames for several calls, and a return looks for its own. A call or a
 * return may be missing, since the kernel does not run a program inside itself:
 * then it is counted, never guessed.
 */
#include "rdma_types.bpf.h"

#include "post_send.h"

char LICENSE[] SEC("license") = "GPL";

/* Set by the loader before it loads; see kverbs_post_bucket(). */
const volatile __u8 bucket_of[256] = {};
const volatile __u32 nr_cpus = 1;

/* Rows given out, the first one included; and whether both programs are in place. */
__u32 rows_used = 1;
bool complete = false;

/* Changes whenever the address of a device may have got another name. */
__u64 names_seen = 1;

/* A post that was under way for so long has returned, and we were not told. */
#define STALE_NS 1000000000ULL

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

/* ---- call and return ---- */

/*
 * A frame for a call that interrupted another one. A frame whose call must have
 * returned long ago is given up; so is one that lives, where all of them do.
 */
static __noinline __u64 nested_frame(struct kverbs_post_cpu *cpu)
{
	__u64 now = bpf_ktime_get_ns();
	__u64 i, free = 0;

	for (i = 0; i < KVERBS_POST_FRAMES; i++) {
		if (cpu->frame[i].who && now - cpu->frame[i].start > STALE_NS) {
			cpu->frame[i].who = 0;
			cpu->dropped++;
		}
		if (i && !cpu->frame[i].who)
			free = i;
	}
	if (free)
		return free;
	cpu->dropped++;
	return KVERBS_POST_FRAMES - 1;
}

/* A post of a user's QP: the driver finds the work requests in the process's memory. */
static __noinline int user_call(struct kverbs_post_cpu *cpu, struct kverbs_post_frame *frame,
				struct ib_qp *qp)
{
	frame->row = resolve(qp, KVERBS_POST_OP_NONE);
	row_of(cpu, frame->row)->requests[0]++;
	frame->start = bpf_ktime_get_ns();
	return 0;
}

/* @who tells the call from others under way; its frame keeps what need not stay in registers. */
static __always_inline void on_call(struct ib_qp *qp, struct ib_send_wr *wr, __u64 who, bool typed)
{
	struct kverbs_post_cpu *cpu = cpu_state();
	struct kverbs_post_frame *frame;
	struct kverbs_post_row *row;

	if (!cpu)
		return;
	frame = &cpu->frame[0];
	if (frame->who)
		frame = &cpu->frame[nested_frame(cpu) % KVERBS_POST_FRAMES];
	frame->who = who;
	if (!wr) {
		user_call(cpu, frame, qp);
		return;
	}
	frame->row = find_row(cpu, qp, op_class(FIELD(typed, wr, opcode)), typed);
	row = row_of(cpu, frame->row);
	add_chain(row, wr, typed);
	frame->start = bpf_ktime_get_ns();
}

/* The frame of @who is not the first one. */
static __noinline __u64 other_frame(struct kverbs_post_cpu *cpu, __u64 who)
{
	__u64 i;

	for (i = 1; i < KVERBS_POST_FRAMES; i++)
		if (cpu->frame[i].who == who)
			break;
	return i;
}

static __always_inline void on_return(__u64 who)
{
	__u64 now = bpf_ktime_get_ns();
	struct kverbs_post_cpu *cpu = cpu_state();
	struct kverbs_post_frame *frame;
	struct kverbs_post_row *row;
	__u64 index, ns;
	__u32 bucket;

	if (!cpu)
		return;
	frame = &cpu->frame[0];
	if (frame->who != who) {
		index = other_frame(cpu, who);
		if (index >= KVERBS_POST_FRAMES) {
			cpu->unmatched += complete;
			return;
		}
		frame = &cpu->frame[index];
	}
	ns = now - frame->start;
	row = row_of(cpu, frame->row);
	row->ns += ns;
	if (ns > row->max_ns)
		row->max_ns = ns;
	bucket = kverbs_post_bucket(bucket_of, ns);
	if (bucket < KVERBS_HIST_BUCKETS)
		row->hist[bucket]++;
	/* Last: the frame of a call whose return we interrupt is never the first one. */
	frame->who = 0;
}

/* No two calls under way have a work request in common; those of users have none. */
static __always_inline __u64 who_is(struct ib_qp *qp, struct ib_send_wr *wr)
{
	if (!wr) {
		barrier(); /* or both are loaded */
		return (__u64)qp;
	}
	return (__u64)wr;
}

SEC("fentry")
int BPF_PROG(fentry_call, struct ib_qp *qp, struct ib_send_wr *wr)
{
	on_call(qp, wr, who_is(qp, wr), true);
	return 0;
}

SEC("fexit")
int BPF_PROG(fexit_return, struct ib_qp *qp, struct ib_send_wr *wr)
{
	on_return(who_is(qp, wr));
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
