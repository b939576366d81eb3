/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Room: how deep a send queue must be, and whether a completion queue can overflow.
 */
#ifndef _KVERBS_CORE_CREDIT_H
#define _KVERBS_CORE_CREDIT_H

#include "types.h"

/*
 * Depth of a send queue for @operations at once of @wrs work requests each
 * (registrations and invalidations count): 0 if it exceeds @max_wr of the device.
 */
KVERBS_CORE_FN __u32 kverbs_credit_depth(__u32 operations, __u32 wrs, __u32 max_wr)
{
	__u64 depth = (__u64)operations * wrs;

	return depth <= max_wr ? (__u32)depth : 0;
}

/*
 * CQEs that a QP may leave in its CQ before anybody polls: after an error each
 * send work request yields one, silent or not, and so does each receive.
 */
KVERBS_CORE_FN __u64 kverbs_credit_claim(__u32 send_wr, __u32 recv_wr)
{
	return (__u64)send_wr + recv_wr;
}

/* May a QP that claims @claim share a CQ of @cqe where @claimed are taken? */
KVERBS_CORE_FN bool kverbs_credit_cq_fits(__u64 claimed, __u64 claim, __u32 cqe)
{
	return claimed + claim <= cqe;
}

#endif /* _KVERBS_CORE_CREDIT_H */
