/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef _KVERBS_EP_EXAMPLE_H
#define _KVERBS_EP_EXAMPLE_H

#include <linux/socket.h>

int echo_example(const struct sockaddr *addr, const char *text, char *answer);

#endif /* _KVERBS_EP_EXAMPLE_H */
