#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# A trace event that is off costs one no-op: on the hot functions of the module each
# event's test is a no-op in the jump table, and what makes the record is out
# of line. Read from the objects as built, for the kernel named.
set -u
cd "$(dirname "$0")" || exit
# shellcheck source=selftests/ktap.sh
. ../ktap.sh
kernel=${1:-6.1}
objects=$KVERBS_OUT/$kernel/kmod
[ -e "$objects/kverbs.ko" ] || ../../scripts/modules "$kernel" >/dev/null 2>&1

# sites OBJECT EVENT: entries of the jump table for the event's key.
sites() {
	readelf -rW "$objects/$1.o" | awk -v key="__tracepoint_kverbs_$2" '
		/^Relocation section/ { table = /\.rela__jump_table/ }
		table && index($0, key) { n++ }
		END { print n + 0 }'
}

# nops: the jump table entries of the module's events, whose code is a no-op or else is
# printed. Not of each object: where objtool runs late it writes the no-ops only there.
nops() {
	local code module=$objects/kverbs.ko
	readelf -rW "$module" | awk '
		/^Relocation section/ { table = /\.rela__jump_table/; n = 0 }
		table && /R_X86_64_PC32/ && n++ % 2 == 0 { code = $5 " " $7 }
		table && /R_X86_64_(PC)?64 .*__tracepoint_/ { print code }' | while read -r section offset; do
		code=$(objdump -d -j "$section" --start-address="0x$offset" --stop-address="$((16#$offset + 5))" \
			"$module" | grep -m 1 '^ *[0-9a-f]*:')
		case $code in
		*nop* | *"xchg   %ax,%ax"*) echo nop ;;
		*) echo "$code" ;;
		esac
	done
}

# Every object of the data path: event and number of places where it may be made. A post has
# one where it stages a list, the rest of a list, a group, and copies; a flush one in a turn,
# where a queue is closed, and where what a driver refused is settled. Each has one more where,
# once it is on, its records are made, out of line.
while read -r object event count; do
	is "$object.c tests for kverbs_$event in $count place(s)" "$(sites "$object" "$event")" "$count"
done <<END
post post 5
flush flush 4
complete complete 1
cq poll 1
END
is "every test of an event is a no-op when off" "$(nops | sort -u)" nop
finish
