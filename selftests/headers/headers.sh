#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Every public header compiles alone, and twice in one file, in each language that it
# is for: the core as C11, C++20, BPF and kernel C, the user ABI as C90 to C++20 and
# kernel C, the library's headers as what their names say.
set -u
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/../ktap.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$KVERBS_TOP/include" || exit

flags=(-Wall -Wextra -Werror -fsyntax-only -I "$KVERBS_TOP/include")
triplet=$(gcc -print-multiarch)

# compiles HEADER LANGUAGE PRELUDE COMMAND...: one case; a source that includes the header
# twice after the lines of PRELUDE is on standard input of COMMAND.
compiles() {
	local header=$1 language=$2 prelude=$3
	shift 3
	if printf '%s\n#include <%s>\n#include <%s>\n' "$prelude" "$header" "$header" |
		"$@" "${flags[@]}" - 2>"$work/errors"; then
		pass "$header as $language"
	else
		sed 's/^/# /' "$work/errors" | head -n 20
		fail "$header as $language"
	fi
}

as_c() { compiles "$1" C11 "" gcc -std=c11 -pedantic -x c; }
as_cpp() {
	compiles "$1" C++20 "" g++ -std=c++20 -x c++
	compiles "$1" "C++20 of clang" "" clang++ -std=c++20 -x c++
}
# As a kernel installs it: old compilers, and <linux/types.h> from the C library's side.
as_uapi() {
	compiles "$1" C90 "" gcc -std=c90 -x c
	as_c "$1"
	compiles "$1" C++20 "" g++ -std=c++20 -x c++
}
as_bpf() {
	local prelude='#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>
#define __VMLINUX_H__'
	compiles "$1" BPF "$prelude" clang -target bpf -O2 -isystem "/usr/include/$triplet" -x c
}

# One object for each header, by the kernel's own rules and warnings.
as_kernel() {
	local kernel=$1 dir=$work/kernel-$1 header name objects=()
	shift
	mkdir "$dir"
	echo "ccflags-y += -I$KVERBS_TOP/include -Werror" >"$dir/Kbuild"
	for header in "$@"; do
		name=${header//[\/.]/_}
		printf '#include <%s>\n#include <%s>\n' "$header" "$header" >"$dir/$name.c"
		echo "obj-m += $name.o" >>"$dir/Kbuild"
		objects+=("$name.o")
	done
	make -k -j2 -C "$("$KVERBS_TOP/scripts/kernels/debian" "$kernel")/kdir" M="$dir" W=1 \
		"${objects[@]}" >"$work/build" 2>&1
	grep -E 'warning|error' "$work/build" | sed 's/^/# /' | head -n 20
	for header in "$@"; do
		check "$header as kernel C, $kernel" test -s "$dir/${header//[\/.]/_}.o"
	done
}

for header in kverbs/core/*.h; do
	as_c "$header"
	as_cpp "$header"
	# The stage needs compare-and-swap of 64 bits and is not for BPF.
	[ "$header" = kverbs/core/stage.h ] || as_bpf "$header"
done
for header in uapi/rdma/*.h; do
	as_uapi "$header"
done
for header in kverbs/*.hpp; do
	as_cpp "$header"
done
as_c kverbs/kverbs.h
as_cpp kverbs/kverbs.h
for kernel in 6.1 6.12; do
	as_kernel "$kernel" kverbs/core/*.h uapi/rdma/*.h rdma/*.h
done
finish
