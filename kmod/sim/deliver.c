// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Datagrams. The destination's GID leads to a device of this host, the number to a queue
 * pair of it (number 1 is the one for management); what is not wanted there is dropped. The
 * message lands behind 40 bytes that hold the header a RoCE version 2 packet comes with: an
 * IPv6 header, or an IPv4 header in the last 20 of them.
 */
#include <linux/ip.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <rdma/ib_mad.h>

#include "sim.h"

union sim_grh {
	u8 bytes[SIM_GRH_SIZE];
	struct ib_grh v6;
	struct {
		u8 unused[SIM_GRH_SIZE - sizeof(struct iphdr)];
		struct iphdr v4;
	};
};

#define SIM_HEADERS	(8 + 12 + 8)	/* UDP, BTH, DETH */

static void fill_v4(struct iphdr *ip, const struct sim_av *av, const union ib_gid *sgid,
		    u32 length)
{
	ip->version = 4;
	ip->ihl = sizeof(*ip) / 4;
	ip->tos = av->traffic_class;
	ip->tot_len = htons(sizeof(*ip) + SIM_HEADERS + length);
	ip->frag_off = htons(IP_DF);
	ip->ttl = av->hop_limit;
	ip->protocol = IPPROTO_UDP;
	memcpy(&ip->saddr, sgid->raw + 12, sizeof(ip->saddr));
	memcpy(&ip->daddr, av->dgid.raw + 12, sizeof(ip->daddr));
	ip->check = ip_fast_csum(ip, ip->ihl);
}

static void fill_v6(struct ib_grh *grh, const struct sim_av *av, const union ib_gid *sgid,
		    u32 length)
{
	grh->version_tclass_flow = htonl(6U << 28 | av->traffic_class << 20);
	grh->paylen = htons(SIM_HEADERS + length);
	grh->next_hdr = IPPROTO_UDP;
	grh->hop_limit = av->hop_limit;
	grh->sgid = *sgid;
	grh->dgid = av->dgid;
}

static bool is_v4(const union ib_gid *gid)
{
	return ipv6_addr_v4mapped((const struct in6_addr *)gid->raw);
}

static void fill_header(union sim_grh *grh, const struct sim_av *av, const union ib_gid *sgid,
			u32 length)
{
	memset(grh, 0, sizeof(*grh));
	if (is_v4(&av->dgid))
		fill_v4(&grh->v4, av, sgid, length);
	else
		fill_v6(&grh->v6, av, sgid, length);
}

static struct sim_qp *target_of(struct sim_qp *qp, const struct sim_wqe *wqe)
{
	struct sim_device *sim = sim_find_gid(sim_of_qp(qp), &wqe->av.dgid);
	struct sim_qp *peer;

	if (!sim || !READ_ONCE(sim->up) || !READ_ONCE(sim_of_qp(qp)->up))
		return NULL;
	if (wqe->remote_qpn == SIM_GSI_QPN)
		return rcu_dereference_check(sim->gsi, rcu_read_lock_bh_held());
	peer = sim_qp_find(wqe->remote_qpn);
	return peer && sim_of_qp(peer) == sim && peer->ib.qp_type == IB_QPT_UD ? peer : NULL;
}

/* A key with the top bit set stands for the sender's own. */
static bool qkey_fits(const struct sim_qp *qp, const struct sim_wqe *wqe,
		      const struct sim_qp *peer)
{
	u32 qkey = wqe->remote_qkey & BIT(31) ? qp->attr.qkey : wqe->remote_qkey;

	return qkey == READ_ONCE(peer->attr.qkey);
}

static u32 deliver(struct sim_qp *qp, struct sim_wqe *wqe, struct sim_qp *peer)
{
	const struct sim_gid *sgid = &sim_of_qp(qp)->gids[wqe->av.sgid_index];
	struct sim_arrival arrival = {
		.opcode = IB_WC_RECV,
		.wc_flags = IB_WC_GRH | IB_WC_WITH_NETWORK_HDR_TYPE,
		.src_qpn = qp->ib.qp_num,
		.length = wqe->length + SIM_GRH_SIZE,
		.solicited = wqe->flags & IB_SEND_SOLICITED,
		.network_hdr_type = is_v4(&wqe->av.dgid) ? RDMA_NETWORK_IPV4 : RDMA_NETWORK_IPV6,
	};
	struct sim_cursor from;
	union sim_grh grh;
	u32 status;

	status = sim_recv_take(peer);
	if (status != IB_WC_SUCCESS)
		return status;
	if (wqe->opcode == IB_WR_SEND_WITH_IMM) {
		arrival.wc_flags |= IB_WC_WITH_IMM;
		arrival.ex = wqe->ex;
	}
	fill_header(&grh, &wqe->av, &sgid->gid, wqe->length);
	sim_cursor_payload(&from, qp, wqe);
	status = sim_recv_scatter(peer, &from, wqe->length, grh.bytes);
	sim_cursor_end(&from);
	switch (status) {
	case IB_WC_SUCCESS:
		sim_recv_done(peer, status, &arrival);
		return status;
	case IB_WC_GENERAL_ERR:
		return IB_WC_LOC_PROT_ERR;
	case IB_WC_LOC_LEN_ERR:
		/* It did not fit: dropped, and the receive waits for another. */
		return IB_WC_REM_INV_REQ_ERR;
	default:
		sim_qp_fail(peer, IB_QPS_ERR);
		sim_recv_done(peer, status, &arrival);
		return IB_WC_REM_OP_ERR;
	}
}

u32 sim_deliver_datagram(struct sim_qp *qp, struct sim_wqe *wqe)
{
	u32 status = SIM_NO_ANSWER;
	struct sim_qp *peer;

	if (!(wqe->flags & IB_SEND_INLINE) && !sim_sgl_ok(qp, wqe->sge, wqe->num_sge))
		return IB_WC_LOC_PROT_ERR;
	peer = target_of(qp, wqe);
	if (!peer || !qkey_fits(qp, wqe, peer) || wqe->length > SIM_MTU)
		return SIM_NO_ANSWER;
	if (!sim_rx_trylock(peer))
		return SIM_BUSY;
	if (sim_can_receive(READ_ONCE(peer->state)))
		status = deliver(qp, wqe, peer);
	sim_rx_unlock(peer);
	return status;
}
