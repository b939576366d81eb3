// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Trace events of kverbs, which stand between two steps of the data path: what a case
 * does there happens between the two. They are not exported, but announced to whoever
 * asks for the tracepoints of modules.
 */
#include <linux/module.h>
#include <linux/notifier.h>
#include <linux/tracepoint.h>

#include "engine.h"

static struct tracepoint *found;
static const char *wanted;
static void *attached_fn, *attached_data;

static int look(struct notifier_block *nb, unsigned long event, void *data)
{
	struct module *module = ((struct tp_module *)data)->mod;
	struct tracepoint *tp;
	unsigned int i;

	if (event != MODULE_STATE_COMING || strcmp(module->name, "kverbs"))
		return NOTIFY_DONE;
	for (i = 0; i < module->num_tracepoints; i++) {
		tp = tracepoint_ptr_deref(&module->tracepoints_ptrs[i]);
		if (!strcmp(tp->name, wanted))
			found = tp;
	}
	return NOTIFY_DONE;
}

int probe_attach(const char *event, void *fn, void *data)
{
	struct notifier_block nb = { .notifier_call = look };
	int err;

	found = NULL;
	wanted = event;
	err = register_tracepoint_module_notifier(&nb);
	if (err)
		return err;
	unregister_tracepoint_module_notifier(&nb);
	if (!found)
		return -ENOENT;
	attached_fn = fn;
	attached_data = data;
	return tracepoint_probe_register(found, fn, data);
}

void probe_detach(void)
{
	if (!found)
		return;
	tracepoint_probe_unregister(found, attached_fn, attached_data);
	tracepoint_synchronize_unregister();
	found = NULL;
}
