// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The path between the two QPs of a pair: from a port of the device to itself. Both
 * ends are here, so that QP numbers need no connection manager to be exchanged.
 */
#include <net/ipv6.h>
#include <rdma/ib_cache.h>

#include "perf.h"

#define PERF_QKEY	0x4b564552	/* not a controlled one: the top bit is off */
#define RD_ATOMIC_MAX	16
#define HOP_LIMIT	64

/* The larger, the better: what a peer can be reached by. */
static int gid_rank(const struct ib_gid_attr *gid)
{
	const struct in6_addr *addr = (const struct in6_addr *)gid->gid.raw;

	if (gid->gid_type != IB_GID_TYPE_ROCE_UDP_ENCAP)
		return 1;
	if (ipv6_addr_type(addr) & IPV6_ADDR_LINKLOCAL)
		return 2;
	return ipv6_addr_v4mapped(addr) ? 4 : 3;
}

/* A RoCE address handle needs the MAC address, too: it is our own. */
static int path_use_gid(struct perf_path *path, const struct ib_gid_attr *gid)
{
	int ret;

	ret = rdma_read_gid_l2_fields(gid, NULL, path->ah.roce.dmac);
	if (ret)
		return ret;
	rdma_ah_set_grh(&path->ah, (union ib_gid *)&gid->gid, 0, gid->index, HOP_LIMIT, 0);
	return 0;
}

static int path_find_gid(struct perf_path *path, struct ib_device *ib, int nr_gids)
{
	const struct ib_gid_attr *gid;
	int i, rank, best = 0;

	for (i = 0; i < nr_gids; i++) {
		gid = rdma_get_gid_attr(ib, path->port, i);
		if (IS_ERR(gid))
			continue;
		rank = gid_rank(gid);
		if (rank > best && !path_use_gid(path, gid))
			best = rank;
		rdma_put_gid_attr(gid);
	}
	return best ? 0 : -EADDRNOTAVAIL;
}

static int path_of_port(struct perf_path *path, struct ib_device *ib, u32 port)
{
	struct ib_port_attr attr;
	int ret;

	ret = ib_query_port(ib, port, &attr);
	if (ret)
		return ret;
	if (attr.state != IB_PORT_ACTIVE)
		return -ENETDOWN;
	if (!rdma_ib_or_roce(ib, port))
		return -EPROTONOSUPPORT;

	memset(path, 0, sizeof(*path));
	path->port = port;
	path->mtu = attr.active_mtu;
	path->ah.type = rdma_ah_find_type(ib, port);
	rdma_ah_set_port_num(&path->ah, port);
	if (rdma_protocol_roce(ib, port))
		return path_find_gid(path, ib, attr.gid_tbl_len);
	rdma_ah_set_dlid(&path->ah, attr.lid);
	return 0;
}

/* The first port that serves; what is wrong with the first if none does. */
int perf_path_find(struct perf_path *path, struct ib_device *ib)
{
	int ret, first = 0;
	u32 port;

	rdma_for_each_port(ib, port) {
		ret = path_of_port(path, ib, port);
		if (!ret)
			return 0;
		if (!first)
			first = ret;
	}
	return first ?: -ENETDOWN;
}

static int connect_rc(struct ib_qp *qp, const struct ib_qp *peer, const struct perf_path *path)
{
	const struct ib_device_attr *dev = &qp->device->attrs;
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = path->port,
		.qp_access_flags = IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ,
	};
	int ret;

	ret = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
			   IB_QP_ACCESS_FLAGS);
	if (ret)
		return ret;

	attr = (struct ib_qp_attr){
		.qp_state = IB_QPS_RTR,
		.ah_attr = path->ah,
		.path_mtu = path->mtu,
		.dest_qp_num = peer->qp_num,
		.max_dest_rd_atomic = min(dev->max_qp_rd_atom, RD_ATOMIC_MAX),
		.min_rnr_timer = 1,
	};
	ret = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN |
			   IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER);
	if (ret)
		return ret;

	attr = (struct ib_qp_attr){
		.qp_state = IB_QPS_RTS,
		/* 4.096 us << 18 = 1 s: nothing is lost between two QPs of one port, only late. */
		.timeout = 18,
		.retry_cnt = 7,
		.rnr_retry = 7,	/* for ever */
		.max_rd_atomic = min(dev->max_qp_init_rd_atom, RD_ATOMIC_MAX),
	};
	return ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
			    IB_QP_RNR_RETRY | IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC);
}

static int connect_ud(struct ib_qp *qp, const struct perf_path *path)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = path->port,
		.qkey = PERF_QKEY,
	};
	int ret;

	ret = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_QKEY);
	if (ret)
		return ret;
	attr.qp_state = IB_QPS_RTR;
	ret = ib_modify_qp(qp, &attr, IB_QP_STATE);
	if (ret)
		return ret;
	attr.qp_state = IB_QPS_RTS;
	return ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_SQ_PSN);
}

static int connect_ud_pair(struct perf_queue *queue)
{
	struct perf_path *path = &queue->bench->run->path;
	struct ib_ah *ah;
	int ret;

	ret = connect_ud(queue->server, path);
	if (!ret)
		ret = connect_ud(queue->client, path);
	if (ret)
		return ret;
	ah = rdma_create_ah(queue->bench->pd, &path->ah, RDMA_CREATE_AH_SLEEPABLE);
	if (IS_ERR(ah))
		return PTR_ERR(ah);
	queue->ah = ah;
	queue->qkey = PERF_QKEY;
	return 0;
}

int perf_connect(struct perf_queue *queue)
{
	const struct perf_path *path = &queue->bench->run->path;
	int ret;

	if (queue->bench->run->attr.transport == KVERBS_PERF_UD)
		return connect_ud_pair(queue);
	ret = connect_rc(queue->server, queue->client, path);
	return ret ?: connect_rc(queue->client, queue->server, path);
}
