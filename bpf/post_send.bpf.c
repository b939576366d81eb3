// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What goes through a driver's post_send, by device, consumer and opcode: how many posts
 * of how many work requests, and, as asked for, how long they take, how they are batched,
 * and what a line through their times says.
 *
 * A pair of programs sits on one post_send function: the first sees the call, the
 * second the return, where that matters. There are fentry and fexit, and kprobe and
 * kretprobe, once for each question; the loader loads two of them at most, so that
 * what the others do costs nothing. Each function has programs and maps
 * of its own, so that whatever a program finds here was left by a program of the
 * same function, and the kernel never runs one of those inside itself.
 *
 * NESTING: an interrupt may post while a post is under way on the same CPU, so a
 * CPU has frames for several calls, and a return looks for its own. A call or a
 * return may be missing, since the kernel does not run a program inside itself:
 * then it is counted, never guessed.
 */
#include "post_chain.bpf.h"
#include "post_event.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* A post that was under way for so long has returned, and we were not told. */
#define STALE_NS 1000000000ULL

/* What a program does. Constant in each, so that what it does not do is not there. */
#define TYPED	1	/* it may follow pointers, as fentry may */
#define TIMED	2	/* a program sees the return as well */
#define SIZES	4	/* posts are counted by their number of work requests */
#define SUMS	8	/* what a line through their times needs is summed up */
#define EVENTS	16	/* each is told, for who replays it */
#define ONE_QP	32	/* posts of all QPs but one go to a row that nobody looks at */

/* The QP's number; set by the loader before it loads. */
const volatile __u32 only_qp = 0;

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

/* A post of a QP that is not asked for: its return will look for the frame. */
static __noinline int other_call(struct kverbs_post_cpu *cpu, struct kverbs_post_frame *frame)
{
	frame->row = KVERBS_POST_ROW_OTHERS;
	frame->wrs = 0;
	row_of(cpu, frame->row)->requests[0]++;
	frame->start = bpf_ktime_get_ns();
	return 0;
}

static __always_inline void count_size(struct kverbs_post_row *row, __u64 wrs)
{
	__u32 size = kverbs_post_size(wrs);

	if (size < KVERBS_POST_SIZES)
		row->sizes[size]++;
}

/* The chain's work requests are counted in @row: how many there are. */
static __always_inline __u64 count_chain(struct kverbs_post_row *row, struct ib_send_wr *wr,
					 int does)
{
	__u64 more = row->more;

	add_chain(row, wr, does & TYPED);
	return row->more - more + 1;
}

/* @who tells the call from others under way; its frame keeps what need not stay in registers. */
static __always_inline void on_call(struct ib_qp *qp, struct ib_send_wr *wr, __u64 who, int does)
{
	struct kverbs_post_cpu *cpu = cpu_state();
	struct kverbs_post_frame *frame;
	struct kverbs_post_row *row;

	if (!cpu)
		return;
	frame = &cpu->frame[0];
	if (does & TIMED && frame->who)
		frame = &cpu->frame[nested_frame(cpu) % KVERBS_POST_FRAMES];
	frame->who = who;
	if (does & ONE_QP && FIELD(does & TYPED, qp, qp_num) != only_qp) {
		other_call(cpu, frame);
		return;
	}
	if (!wr) {
		if (does & (SUMS | EVENTS))
			frame->wrs = 0;
		user_call(cpu, frame, qp);
		return;
	}
	frame->row = find_row(cpu, qp, op_class(FIELD(does & TYPED, wr, opcode)), does & TYPED);
	row = row_of(cpu, frame->row);
	if (does & EVENTS)
		frame->signaled = -count_signaled(row);
	if (does & (SIZES | SUMS))
		frame->wrs = count_chain(row, wr, does);
	else
		add_chain(row, wr, does & TYPED);
	if (does & SIZES)
		count_size(row, frame->wrs);
	if (does & EVENTS) {
		frame->signaled += count_signaled(row);
		frame->pass = pass_of(cpu, qp);
		frame->qp = FIELD(does & TYPED, qp, qp_num);
	}
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

static __always_inline void on_return(__u64 who, int does)
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
	if (does & SUMS) {
		kverbs_post_sum(&row->sums, frame->wrs, ns);
	} else if (does & EVENTS) {
		emit(cpu, frame, ns);
	} else {
		bucket = kverbs_post_bucket(bucket_of, ns);
		if (bucket < KVERBS_HIST_BUCKETS)
			row->hist[bucket]++;
	}
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

/*
 * A kretprobe sees no arguments, but the stack on which its call was. On x86 the call has
 * pushed the return address that the return has taken off.
 */
#if defined(__TARGET_ARCH_x86)
#define CALL_SP(ctx) (PT_REGS_SP(ctx) + sizeof(long))
#else
#define CALL_SP(ctx) PT_REGS_SP(ctx)
#endif

/* What is done upon a call and upon its return, by the question that is asked. */
#define CALL_PROGRAMS(name, does) \
	SEC("fentry") \
	int BPF_PROG(fentry_##name, struct ib_qp *qp, struct ib_send_wr *wr) \
	{ \
		on_call(qp, wr, who_is(qp, wr), (does) | TYPED); \
		return 0; \
	} \
\
	SEC("kprobe") \
	int BPF_KPROBE(kprobe_##name, struct ib_qp *qp, struct ib_send_wr *wr) \
	{ \
		on_call(qp, wr, CALL_SP(ctx), does); \
		return 0; \
	}

#define RETURN_PROGRAMS(name, does) \
	SEC("fexit") \
	int BPF_PROG(fexit_##name, struct ib_qp *qp, struct ib_send_wr *wr) \
	{ \
		on_return(who_is(qp, wr), does); \
		return 0; \
	} \
\
	SEC("kretprobe") \
	int BPF_KRETPROBE(kretprobe_##name) \
	{ \
		on_return(PT_REGS_SP(ctx), does); \
		return 0; \
	}

CALL_PROGRAMS(latency, TIMED)
CALL_PROGRAMS(latency_qp, TIMED | ONE_QP)
CALL_PROGRAMS(batch, SIZES)
CALL_PROGRAMS(batch_qp, SIZES | ONE_QP)
CALL_PROGRAMS(what_if, SIZES | TIMED | EVENTS)
CALL_PROGRAMS(what_if_qp, SIZES | TIMED | EVENTS | ONE_QP)
CALL_PROGRAMS(cost, TIMED | SUMS)
CALL_PROGRAMS(cost_qp, TIMED | SUMS | ONE_QP)

RETURN_PROGRAMS(latency, 0)
RETURN_PROGRAMS(what_if, EVENTS)
RETURN_PROGRAMS(cost, SUMS)
