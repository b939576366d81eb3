// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Full queues, and posts that are taken in part. */
#include "conformance.h"

#define ROOM_MAX	(CONF_LIST - 4)

static const char deeper[] = "the device grants a deeper queue than the test fills";

/* Sends that wait, as the peer has no receive, until none is taken any more. */
static u32 fill_sq(struct side *side, struct work **works)
{
	u32 nr;

	for (nr = 0; nr < ROOM_MAX; nr++) {
		works[nr] = work_send(side, IB_WR_SEND, 0, 16);
		if (post_try(side, works[nr], NULL))
			break;
	}
	return nr;
}

static u32 index_of(struct work **works, const struct work *bad)
{
	u32 i;

	for (i = 0; i < CONF_LIST && works[i] != bad; i++)
		;
	return i;
}

static void receive_all(struct side *a, struct side *b, struct work **works, u32 nr)
{
	struct work *recv;
	u32 i;

	for (i = 0; i < nr && !conf_failed(); i++) {
		recv = post_receive(b, 0, 64);
		sent(a, works[i], NULL);
		got(b, recv, 16, NULL);
	}
	expect(cq_empty(a->scq) && cq_empty(b->rcq));
}

/* At least as many fit as were granted; one too many does not, and room comes back. */
static void queue_full(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work **works = bed->list, *bad, *more;
	u32 nr = fill_sq(a, works);

	if (nr == ROOM_MAX)
		return conf_skip(deeper);
	expect(nr >= a->init.cap.max_send_wr);
	more = work_send(a, IB_WR_SEND, 0, 16);
	expect_is(post_try(a, more, &bad), -ENOMEM);
	expect(bad == more);
	receive_all(a, b, works, nr);
	if (conf_failed())
		return;
	expect_is(fill_sq(a, works), nr);
	receive_all(a, b, works, nr);
}

/* What was signaled by none takes room until a signaled one is polled. */
static void queue_full_silent(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	u32 room = a->init.cap.max_send_wr, i;
	struct work *work = NULL;

	for (i = 0; i < 3 * room && !conf_failed(); i++) {
		post_receive(b, 0, 64);
		work = work_send(a, IB_WR_SEND, 0, 16);
		if ((i + 1) % room)
			work->send.send_flags = 0;
		post(a, work);
		if (!((i + 1) % room))
			sent(a, work, NULL);
		got(b, &bed->works[(bed->nr_works - 2) % CONF_WORKS], 16, NULL);
	}
}

/* A chain that fits in part: its first ones are taken. */
static void queue_half_taken(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work **works = bed->list, *bad;
	u32 nr, i;

	for (i = 0; i < CONF_LIST; i++)
		works[i] = work_send(a, IB_WR_SEND, 0, 16);
	work_chain(works, CONF_LIST);
	if (!expect_is(post_try(a, works[0], &bad), -ENOMEM))
		return;
	nr = index_of(works, bad);
	expect(nr >= a->init.cap.max_send_wr);
	if (expect(nr < CONF_LIST))
		receive_all(a, b, works, nr);
}

/* One in the middle is not for posting: those before it are taken, no other. */
static void queue_bad_middle(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work *works[6], *bad;
	u32 i;

	for (i = 0; i < 6; i++)
		works[i] = work_send(a, IB_WR_SEND, 0, 16);
	works[3]->send.num_sge = a->init.cap.max_send_sge + 1;
	if (works[3]->send.num_sge > CONF_SGES)
		return conf_skip("the device grants more SGEs than the test has");
	work_chain(works, 6);
	expect(post_try(a, works[0], &bad) < 0);
	expect(bad == works[3]);
	receive_all(a, b, works, 3);
}

static void queue_bad_opcode(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0];
	struct work *work, *bad;

	work = work_send(a, IB_WR_SEND, 0, 16);
	work->send.opcode = 0x7e;
	if (expect(post_try(a, work, &bad) < 0))
		expect(bad == work);
}

static void queue_recv_full(struct bed *bed, u32 arg)
{
	struct side *b = &bed->side[1];
	struct work *more, *bad;
	u32 nr;
	int err = 0;

	for (nr = 0; nr < ROOM_MAX && !err; nr += !err) {
		more = work_recv(b, 0, 64);
		err = post_recv_try(b, more, &bad);
	}
	if (!err)
		return conf_skip(deeper);
	expect(nr >= b->init.cap.max_recv_wr);
	expect_is(err, -ENOMEM);
	expect(bad == more);
}

static void queue_recv_half_taken(struct bed *bed, u32 arg)
{
	struct side *a = &bed->side[0], *b = &bed->side[1];
	struct work **works = bed->list, *bad;
	u32 nr, i;

	for (i = 0; i < CONF_LIST; i++)
		works[i] = work_recv(b, 0, 64);
	for (i = 1; i < CONF_LIST; i++)
		works[i - 1]->recv.next = &works[i]->recv;
	if (!expect_is(post_recv_try(b, works[0], &bad), -ENOMEM))
		return;
	nr = index_of(works, bad);
	if (!expect(nr >= b->init.cap.max_recv_wr && nr < CONF_LIST))
		return;
	for (i = 0; i < nr && !conf_failed(); i++) {
		do_work(a, work_send(a, IB_WR_SEND, 0, 16));
		got(b, works[i], 16, NULL);
	}
}

const struct conf_case queue_cases[] = {
	{ "queue/full", queue_full, 0, NEED_IB },
	{ "queue/full_silent", queue_full_silent },
	{ "queue/half_taken", queue_half_taken, 0, NEED_IB },
	{ "queue/bad_middle", queue_bad_middle, 0, NEED_IB },
	{ "queue/bad_opcode", queue_bad_opcode },
	{ "queue/recv_full", queue_recv_full },
	{ "queue/recv_half_taken", queue_recv_half_taken },
	{}
};
