/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What is written to a knob in configfs. A knob says what it does not take: in one line of
 * the kernel log that names the value, and what it takes instead.
 */
#ifndef _KVERBS_SIM_KNOB_H
#define _KVERBS_SIM_KNOB_H

#include <linux/types.h>

int sim_knob_number(const char *knob, const char *page, s64 min, s64 max, s64 *value);
int sim_knob_name(const char *knob, const char *page, const char * const *names, int nr);

ssize_t sim_knob_show(const u32 *field, char *page);
ssize_t sim_knob_store(const char *knob, const char *page, size_t size, s64 min, s64 max,
		       u32 *field);

/* A number; @_field, a u32, is reached by the configfs item that is named item. */
#define SIM_KNOB(_prefix, _name, _field, _min, _max)					\
static u32 *_prefix##_name##_at(struct config_item *item)				\
{											\
	return &(_field);								\
}											\
											\
static ssize_t _prefix##_name##_show(struct config_item *item, char *page)		\
{											\
	return sim_knob_show(_prefix##_name##_at(item), page);			\
}											\
											\
static ssize_t _prefix##_name##_store(struct config_item *item, const char *page,	\
				      size_t size)					\
{											\
	return sim_knob_store(#_name, page, size, _min, _max,				\
			      _prefix##_name##_at(item));				\
}											\
											\
CONFIGFS_ATTR(_prefix, _name)

#endif /* _KVERBS_SIM_KNOB_H */
