// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * How the QPs of a pair get to RTS: step by step where the transport is InfiniBand's; on
 * iWARP only the connection manager can, from a port of the device to itself.
 */
#include <linux/delay.h>
#include <linux/inet.h>
#include <net/ipv6.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>

#include "conformance.h"

#define CM_PORT		20077
#define CM_TIME_MS	5000

static bool gid_serves(struct bed *bed, const struct ib_gid_attr *gid)
{
	if (!rdma_protocol_roce(bed->ib, bed->port))
		return true;
	return gid->gid_type == IB_GID_TYPE_ROCE_UDP_ENCAP &&
	       ipv6_addr_v4mapped((const struct in6_addr *)gid->gid.raw) &&
	       !rdma_read_gid_l2_fields(gid, NULL, bed->ah.roce.dmac);
}

/* The address of the port itself. */
int bed_path(struct bed *bed)
{
	const struct ib_gid_attr *gid;
	struct ib_port_attr port;
	bool found = false;
	int i, err;

	bed->port = rdma_start_port(bed->ib);
	bed->iwarp = rdma_protocol_iwarp(bed->ib, bed->port);
	err = ib_query_port(bed->ib, bed->port, &port);
	if (err || bed->iwarp)
		return err;
	bed->mtu = port.active_mtu;
	bed->ah.type = rdma_ah_find_type(bed->ib, bed->port);
	rdma_ah_set_port_num(&bed->ah, bed->port);
	rdma_ah_set_dlid(&bed->ah, port.lid);
	for (i = 0; i < port.gid_tbl_len && !found; i++) {
		gid = rdma_get_gid_attr(bed->ib, bed->port, i);
		if (IS_ERR(gid))
			continue;
		found = gid_serves(bed, gid);
		if (found)
			rdma_ah_set_grh(&bed->ah, (union ib_gid *)&gid->gid, 0, i, 64, 0);
		rdma_put_gid_attr(gid);
	}
	return found ? 0 : -EADDRNOTAVAIL;
}

/* What a transition takes; returns the mask. */
int side_attr(struct side *side, enum ib_qp_state state, struct ib_qp_attr *attr)
{
	struct bed *bed = side->bed;
	enum ib_qp_type type = bed->attr.type;
	int mask = IB_QP_STATE;

	*attr = (struct ib_qp_attr){
		.qp_state = state,
		.port_num = bed->port,
		.qkey = CONF_QKEY,
		.qp_access_flags = ALL_RIGHTS & ~bed->attr.deny,
		.ah_attr = bed->ah,
		.path_mtu = bed->mtu,
		.dest_qp_num = IS_ERR_OR_NULL(side->peer->qp) ? 0 : side->peer->qp->qp_num,
		.rq_psn = bed->psn,
		.sq_psn = bed->psn,
		.max_dest_rd_atomic = bed->rd_atomic,
		.max_rd_atomic = bed->rd_atomic,
		.min_rnr_timer = 1,
		.timeout = bed->timeout,
		.retry_cnt = bed->retry_cnt,
		.rnr_retry = bed->rnr_retry,
	};
	if (state == IB_QPS_INIT) {
		mask |= IB_QP_PKEY_INDEX | IB_QP_PORT;
		mask |= type == IB_QPT_UD ? IB_QP_QKEY : IB_QP_ACCESS_FLAGS;
	} else if (state == IB_QPS_RTR && type != IB_QPT_UD) {
		mask |= IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN;
		if (type == IB_QPT_RC)
			mask |= IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER;
	} else if (state == IB_QPS_RTS) {
		mask |= IB_QP_SQ_PSN;
		if (type == IB_QPT_RC)
			mask |= IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY |
				IB_QP_MAX_QP_RD_ATOMIC;
	}
	return mask;
}

int side_to(struct side *side, enum ib_qp_state state)
{
	struct ib_qp_attr attr;
	int mask = side_attr(side, state, &attr);

	return ib_modify_qp(side->qp, &attr, mask);
}

/* From RESET, step by step. */
int side_up_to(struct side *side, enum ib_qp_state state)
{
	int err = side_to(side, IB_QPS_INIT);

	if (!err && state > IB_QPS_INIT)
		err = side_to(side, IB_QPS_RTR);
	if (!err && state > IB_QPS_RTR)
		err = side_to(side, IB_QPS_RTS);
	return err;
}

int side_state(struct side *side)
{
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;
	int err = ib_query_qp(side->qp, &attr, IB_QP_STATE, &init);

	return err ?: (int)attr.qp_state;
}

bool side_becomes(struct side *side, enum ib_qp_state state)
{
	unsigned long end = conf_deadline();
	bool late;

	do {
		late = time_after(jiffies, end);
		if (side_state(side) == state)
			return true;
		usleep_range(50, 100);
	} while (!late);
	return expect_is(side_state(side), state);
}

static int cm_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct cm_link *link = id->context;

	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		link->accepted = id;
		complete(&link->request);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		if (atomic_inc_return(&link->established) == 2)
			complete(&link->event);
		break;
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		complete(&link->event);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
		link->err = event->status ?: -ECONNREFUSED;
		complete(&link->event);
		break;
	default:
		break;
	}
	return 0;
}

static int cm_wait(struct cm_link *link, struct completion *what)
{
	if (!wait_for_completion_timeout(what, msecs_to_jiffies(CM_TIME_MS)))
		return -ETIMEDOUT;
	return READ_ONCE(link->err);
}

static int cm_create_qp(struct side *side, struct rdma_cm_id *id)
{
	int err;

	side->id = id;
	if (id->device != side->bed->ib)
		return -EXDEV;
	err = rdma_create_qp(id, side->bed->pd, &side->init);
	if (!err)
		side->qp = id->qp;
	return err;
}

static void cm_param(struct bed *bed, struct rdma_conn_param *param)
{
	*param = (struct rdma_conn_param){
		.responder_resources = bed->rd_atomic,
		.initiator_depth = bed->rd_atomic,
		.retry_count = bed->retry_cnt,
		.rnr_retry_count = bed->rnr_retry,
	};
}

static int cm_active(struct side *side, struct cm_link *link, struct sockaddr_in *address)
{
	struct rdma_conn_param param;
	struct rdma_cm_id *id;
	int err;

	id = rdma_create_id(&init_net, cm_event, link, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return PTR_ERR(id);
	side->id = id;
	err = rdma_resolve_addr(id, NULL, (struct sockaddr *)address, CM_TIME_MS);
	err = err ?: cm_wait(link, &link->event);
	err = err ?: rdma_resolve_route(id, CM_TIME_MS);
	err = err ?: cm_wait(link, &link->event);
	err = err ?: cm_create_qp(side, id);
	if (err)
		return err;
	cm_param(side->bed, &param);
	return rdma_connect(id, &param);
}

static int cm_passive(struct side *side, struct cm_link *link)
{
	struct rdma_conn_param param;
	int err = cm_wait(link, &link->request);

	err = err ?: cm_create_qp(side, link->accepted);
	if (err)
		return err;
	cm_param(side->bed, &param);
	return rdma_accept(side->id, &param);
}

static int cm_connect(struct side *side)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(CM_PORT) };
	struct cm_link *link = &side->link;
	struct rdma_cm_id *listener;
	int err;

	if (!in4_pton(conf_address, -1, (u8 *)&address.sin_addr, -1, NULL))
		return -EADDRNOTAVAIL;
	init_completion(&link->event);
	init_completion(&link->request);
	listener = rdma_create_id(&init_net, cm_event, link, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(listener))
		return PTR_ERR(listener);
	err = rdma_bind_addr(listener, (struct sockaddr *)&address);
	err = err ?: rdma_listen(listener, 1);
	err = err ?: cm_active(side, link, &address);
	err = err ?: cm_passive(side->peer, link);
	err = err ?: cm_wait(link, &link->event);
	rdma_destroy_id(listener);
	/* A request that came too late. */
	if (link->accepted && !side->peer->id)
		rdma_destroy_id(link->accepted);
	return err;
}

static int connect(struct side *side)
{
	int err;

	if (side->bed->iwarp)
		return cm_connect(side);
	err = side_up_to(side, IB_QPS_RTR);
	err = err ?: side_up_to(side->peer, IB_QPS_RTS);
	return err ?: side_to(side, IB_QPS_RTS);
}

int bed_connect(struct bed *bed)
{
	int err = 0;
	u32 i;

	for (i = 0; !err && i < bed->attr.pairs; i++)
		err = connect(&bed->side[2 * i]);
	return err;
}
