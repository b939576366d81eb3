/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What devices.bpf.c and its loader share.
 */
#ifndef _KVERBS_BPF_DEVICES_H
#define _KVERBS_BPF_DEVICES_H

#include "../include/kverbs/core/types.h"

#define KVERBS_DEVICES_MAX	1024	/* devices that can be asked for */
#define KVERBS_SYMBOL_MAX	192	/* "function [module]", its zero included */

/**
 * struct kverbs_device_ops - the functions a device's driver registered
 * @name: the device's
 * @post_send: symbol of the function, followed by its module in brackets unless
 *	it is built in
 */
struct kverbs_device_ops {
	char name[64];
	char post_send[KVERBS_SYMBOL_MAX];
};

#endif /* _KVERBS_BPF_DEVICES_H */
