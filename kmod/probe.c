// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A function of another module is watched. */
#include <linux/cpumask.h>
#include <linux/minmax.h>
#include <linux/ptrace.h>
#include <linux/string.h>

#include "probe.h"

/* Calls under way at one moment, which may sleep where the kernel preempts. */
static int probe_calls(void)
{
	return max(128, 16 * (int)num_possible_cpus());
}

#ifdef KVERBS_FPROBE
static int enter(struct fprobe *fp, unsigned long ip, unsigned long ret_ip, struct pt_regs *regs,
		 void *data)
{
	struct kverbs_probe *probe = container_of(fp, struct kverbs_probe, fp);

	return !probe->enter(regs_get_kernel_argument(regs, 0), regs_get_kernel_argument(regs, 1),
			     data);
}

static void leave(struct fprobe *fp, unsigned long ip, unsigned long ret_ip, struct pt_regs *regs,
		  void *data)
{
	container_of(fp, struct kverbs_probe, fp)->leave(regs_return_value(regs), data);
}

int kverbs_probe_add(struct kverbs_probe *probe, void *function)
{
	unsigned long address = (unsigned long)function;

	memset(&probe->fp, 0, sizeof(probe->fp));
	probe->fp.entry_handler = enter;
	probe->fp.exit_handler = leave;
	probe->fp.entry_data_size = KVERBS_PROBE_DATA;
	probe->fp.nr_maxactive = probe_calls();
	return register_fprobe_ips(&probe->fp, &address, 1);
}

void kverbs_probe_del(struct kverbs_probe *probe)
{
	unregister_fprobe(&probe->fp);
}

unsigned long kverbs_probe_missed(const struct kverbs_probe *probe)
{
	return READ_ONCE(probe->fp.nmissed);
}
#else
static struct kverbs_probe *probe_of(struct kretprobe_instance *call)
{
	return container_of(get_kretprobe(call), struct kverbs_probe, rp);
}

static int enter(struct kretprobe_instance *call, struct pt_regs *regs)
{
	return !probe_of(call)->enter(regs_get_kernel_argument(regs, 0),
				      regs_get_kernel_argument(regs, 1), call->data);
}

static int leave(struct kretprobe_instance *call, struct pt_regs *regs)
{
	probe_of(call)->leave(regs_return_value(regs), call->data);
	return 0;
}

int kverbs_probe_add(struct kverbs_probe *probe, void *function)
{
	memset(&probe->rp, 0, sizeof(probe->rp));
	probe->rp.kp.addr = function;
	probe->rp.entry_handler = enter;
	probe->rp.handler = leave;
	probe->rp.data_size = KVERBS_PROBE_DATA;
	probe->rp.maxactive = probe_calls();
	return register_kretprobe(&probe->rp);
}

void kverbs_probe_del(struct kverbs_probe *probe)
{
	unregister_kretprobe(&probe->rp);
}

unsigned long kverbs_probe_missed(const struct kverbs_probe *probe)
{
	return probe->rp.kp.nmissed + READ_ONCE(probe->rp.nmissed);
}
#endif
