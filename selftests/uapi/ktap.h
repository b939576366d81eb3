/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * KTAP for tests in C and C++: one line a case, the plan at the end.
 */
#ifndef _KVERBS_SELFTESTS_KTAP_H
#define _KVERBS_SELFTESTS_KTAP_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#ifndef ARRAY_SIZE
#define ARRAY_SIZE(a)		(sizeof(a) / sizeof((a)[0]))
#endif

static unsigned int ktap_number;
static unsigned int ktap_failed;

static inline bool ktap_begin(bool good)
{
	printf("%s %u - ", good ? "ok" : "not ok", ++ktap_number);
	ktap_failed += !good;
	return good;
}

static inline bool ktap_end(bool good)
{
	printf("\n");
	fflush(stdout);
	return good;
}

/* One case, named by a format and its arguments; its value is whether it is good. */
#define ktap_check(good, ...) \
	({ bool good_ = ktap_begin(good); printf(__VA_ARGS__); ktap_end(good_); })

/* One case: a call that returned @ret, with errno, should give @want, 0 for success. */
static inline bool ktap_errno(long ret, int want, const char *name)
{
	int got = ret < 0 ? errno : 0;

	if (got != want)
		printf("# got %s, want %s\n", got ? strerror(got) : "success",
		       want ? strerror(want) : "success");
	return ktap_check(got == want, "%s", name);
}

static inline int ktap_finish(void)
{
	printf("1..%u\n", ktap_number);
	return ktap_failed ? 1 : 0;
}

/* Nothing can be tested, for a reason. */
static inline int ktap_skip_all(const char *why)
{
	printf("1..0 # SKIP %s\n", why);
	return 0;
}

#endif /* _KVERBS_SELFTESTS_KTAP_H */
