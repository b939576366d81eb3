// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Knobs: values are checked, and a wrong one is answered with what is right.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "knob.h"

#define SHOWN	32	/* of a value, at most */

/* -EINVAL: no number; -ERANGE: too small or too large. */
int sim_knob_number(const char *knob, const char *page, s64 min, s64 max, s64 *value)
{
	int length = min_t(int, strcspn(page, "\n"), SHOWN);
	s64 number;
	int ret;

	ret = kstrtos64(page, 0, &number);
	if (ret) {
		pr_warn("%s: '%.*s' is not a number: write one from %lld to %lld\n", knob, length,
			page, min, max);
		return ret == -ERANGE ? -ERANGE : -EINVAL;
	}
	if (number < min || number > max) {
		pr_warn("%s: %lld is not in range: write a number from %lld to %lld\n", knob,
			number, min, max);
		return -ERANGE;
	}
	*value = number;
	return 0;
}

ssize_t sim_knob_show(const u32 *field, char *page)
{
	return sysfs_emit(page, "%u\n", READ_ONCE(*field));
}

ssize_t sim_knob_store(const char *knob, const char *page, size_t size, s64 min, s64 max,
		       u32 *field)
{
	s64 value;
	int ret = sim_knob_number(knob, page, min, max, &value);

	if (ret)
		return ret;
	WRITE_ONCE(*field, value);
	return size;
}

/* Which of the names it is; those that are NULL are none. */
int sim_knob_name(const char *knob, const char *page, const char * const *names, int nr)
{
	int length = min_t(int, strcspn(page, "\n"), SHOWN), i;
	char known[512];
	size_t n = 0;

	for (i = 0; i < nr; i++) {
		if (!names[i])
			continue;
		if (sysfs_streq(page, names[i]))
			return i;
		n += scnprintf(known + n, sizeof(known) - n, " %s", names[i]);
	}
	pr_warn("%s: '%.*s' is not known: write one of%s\n", knob, length, page, known);
	return -EINVAL;
}
