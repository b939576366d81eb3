/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Posts one by one, for who replays them, and the passes over CQs that they are made in.
 *
 * A pass is a call of what polls a CQ for its owner: in a softirq, which stays on its CPU
 * and to which that belongs meanwhile; or in a task, which may be preempted. A consumer
 * that calls ib_poll_cq() itself is in no pass that could be seen.
 */
#ifndef _KVERBS_POST_EVENT_BPF_H
#define _KVERBS_POST_EVENT_BPF_H

#include "post_row.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, KVERBS_POST_EVENTS);
} events SEC(".maps");

/* By the number of the task; one that ended in its pass makes way for others. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, KVERBS_POST_TASKS);
	__type(key, __u32);
	__type(value, struct kverbs_post_pass);
} tasks SEC(".maps");

/* The pass over the send CQ of @qp that this is called in. */
static __noinline __u64 pass_of(struct kverbs_post_cpu *cpu, struct ib_qp *qp)
{
	__u32 task = bpf_get_current_pid_tgid();
	struct kverbs_post_pass *pass = &cpu->pass;

	if (!pass->cq)
		pass = bpf_map_lookup_elem(&tasks, &task);
	if (!pass || pass->cq != (__u64)BPF_CORE_READ(qp, send_cq))
		return 0;
	return pass->number;
}

static __always_inline __u64 count_signaled(const struct kverbs_post_row *row)
{
	__u64 signaled = 0;
	__u32 flags;

	for (flags = 0; flags < KVERBS_POST_FLAGS; flags++)
		if (flags & KVERBS_POST_SIGNALED)
			signaled += row->requests[flags];
	return signaled;
}

/* The post of @frame has returned. A user's cannot be replayed. */
static __always_inline void emit(struct kverbs_post_cpu *cpu,
				 const struct kverbs_post_frame *frame, __u64 ns)
{
	struct kverbs_post_event *event;

	if (!frame->wrs) {
		cpu->events++;
		return;
	}
	event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	if (!event) {
		cpu->no_events++;
		return;
	}
	cpu->events++;
	event->start = frame->start;
	event->pass = frame->pass;
	event->ns = ns < ~0U ? ns : ~0U;
	event->qp = frame->qp;
	event->row = frame->row;
	event->wrs = frame->wrs;
	event->signaled = frame->signaled;
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
}

static __always_inline struct kverbs_post_pass new_pass(struct kverbs_post_cpu *cpu, __u64 cq)
{
	struct kverbs_post_pass pass = { .cq = cq };

	pass.number = (++cpu->passes << 16) + bpf_get_smp_processor_id() + 1;
	return pass;
}

static __always_inline void begin_in_task(__u64 cq)
{
	struct kverbs_post_cpu *cpu = cpu_state();
	__u32 task = bpf_get_current_pid_tgid();
	struct kverbs_post_pass pass;

	if (!cpu)
		return;
	pass = new_pass(cpu, cq);
	bpf_map_update_elem(&tasks, &task, &pass, BPF_ANY);
}

SEC("kprobe/ib_poll_handler")
int BPF_KPROBE(begin_softirq, __u64 iop)
{
	struct kverbs_post_cpu *cpu = cpu_state();

	if (cpu)
		cpu->pass = new_pass(cpu, iop - bpf_core_field_offset(struct ib_cq, iop));
	return 0;
}

SEC("kretprobe/ib_poll_handler")
int BPF_KRETPROBE(end_softirq)
{
	struct kverbs_post_cpu *cpu = cpu_state();

	if (cpu)
		cpu->pass.cq = 0;
	return 0;
}

SEC("kprobe/ib_cq_poll_work")
int BPF_KPROBE(begin_work, __u64 work)
{
	begin_in_task(work - bpf_core_field_offset(struct ib_cq, work));
	return 0;
}

SEC("kprobe/ib_process_cq_direct")
int BPF_KPROBE(begin_direct, __u64 cq)
{
	begin_in_task(cq);
	return 0;
}

static __always_inline int end_in_task(void)
{
	__u32 task = bpf_get_current_pid_tgid();

	bpf_map_delete_elem(&tasks, &task);
	return 0;
}

SEC("kretprobe/ib_cq_poll_work")
int BPF_KRETPROBE(end_work)
{
	return end_in_task();
}

SEC("kretprobe/ib_process_cq_direct")
int BPF_KRETPROBE(end_direct)
{
	return end_in_task();
}

#endif /* _KVERBS_POST_EVENT_BPF_H */
