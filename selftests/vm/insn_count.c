// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A plugin for QEMU: how often each instruction in a range of addresses was executed.
 *
 *   -plugin insn_count.so,from=ADDRESS,to=ADDRESS,out=FILE
 *
 * At the end a line for each that was: address and count. What is at an address is for
 * others to know; see selftests/bench_profile. QEMU's header for plugins is in no
 * package, so that the few calls are declared here, as version 1 of its interface has
 * them.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t qemu_plugin_id_t;
struct qemu_info;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
					   void (*cb)(qemu_plugin_id_t id,
						      struct qemu_plugin_tb *tb));
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *insn,
						enum qemu_plugin_op op, void *to,
						uint64_t value);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id,
				    void (*cb)(qemu_plugin_id_t id, void *data), void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t i);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);

int qemu_plugin_version = 1;
int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc, char **argv);

static uint64_t from, to;
static uint64_t *counts;
static const char *out;

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t i, n = qemu_plugin_tb_n_insns(tb);

	for (i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint64_t address = qemu_plugin_insn_vaddr(insn);

		if (address >= from && address < to)
			qemu_plugin_register_vcpu_insn_exec_inline(insn, QEMU_PLUGIN_INLINE_ADD_U64,
								   &counts[address - from], 1);
	}
}

static void ended(qemu_plugin_id_t id, void *data)
{
	FILE *file = fopen(out, "w");
	uint64_t i;

	if (!file) {
		perror(out);
		return;
	}
	for (i = 0; i < to - from; i++)
		if (counts[i])
			fprintf(file, "%" PRIx64 " %" PRIu64 "\n", from + i, counts[i]);
	fclose(file);
}

int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc, char **argv)
{
	int i;

	for (i = 0; i < argc; i++) {
		if (!strncmp(argv[i], "from=", 5))
			from = strtoull(argv[i] + 5, NULL, 0);
		else if (!strncmp(argv[i], "to=", 3))
			to = strtoull(argv[i] + 3, NULL, 0);
		else if (!strncmp(argv[i], "out=", 4))
			out = strdup(argv[i] + 4);
	}
	if (!out || to <= from) {
		fprintf(stderr, "insn_count: give from=ADDRESS,to=ADDRESS,out=FILE\n");
		return -1;
	}
	counts = calloc(to - from, sizeof(*counts));
	if (!counts)
		return -1;
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	qemu_plugin_register_atexit_cb(id, ended, NULL);
	return 0;
}
