// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What posts cost, by core/fit.h, told in the rows of the queue and of its device.
 *
 * Nothing of it is on the way of a post: the flight recorder has noted how many work
 * requests each flush posted and how long it took. The watchdog of the device takes what
 * each queue noted since it last came, at most the whole ring; so does the queue's end.
 */
#include "path.h"

/* Note @n, unless its writer has come around to its place. */
static bool read_note(struct kverbs_sq *sq, u64 n, struct kverbs_flush_note *note)
{
	*note = sq->recorder->rings->flush[n % KVERBS_NOTES];
	/* ORDER: pairs with the barrier in kverbs_note_flush(): what was begun is counted */
	smp_rmb();
	return READ_ONCE(sq->nr_flushes) - n < KVERBS_NOTES;
}

static void tell(struct kverbs_fit *fit, struct kverbs_row *row)
{
	if (!kverbs_fit_line(fit))
		return;
	WRITE_ONCE(row->post_fixed_ns, fit->fixed_ns);
	WRITE_ONCE(row->post_wr_ps, fit->wr_ps);
}

/* Under the device's lock. */
void kverbs_fit_feed(struct kverbs_sq *sq)
{
	struct kverbs_device *dev = sq->dev;
	struct kverbs_flush_note note;
	/* ORDER: pairs with the release in kverbs_note_flush() */
	u64 end = smp_load_acquire(&sq->nr_flushes), n = sq->nr_fitted;

	if (n == end)
		return;
	if (end - n > KVERBS_NOTES)
		n = end - KVERBS_NOTES;
	sq->nr_fitted = end;
	for (; n != end; n++) {
		if (!read_note(sq, n, &note) || note.result)
			continue;
		kverbs_fit_add(&sq->fit, note.nr, note.ns);
		kverbs_fit_add(&dev->fit, note.nr, note.ns);
	}
	tell(&sq->fit, sq->obj.row);
	tell(&dev->fit, dev->obj.row);
}
