#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# "make install" brings what an application needs: it is built here with what
# pkg-config says, against the installed headers and libraries only, and run.
set -u
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/../ktap.sh"

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
prefix=$root/usr

# shellcheck disable=SC2317 # called by check
quietly() { "$@" >/dev/null; }
check "make install" quietly make -s -C "$KVERBS_TOP/lib" install PREFIX="$prefix"
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
check "pkg-config knows kverbs" pkg-config --exists kverbs
is "its version" "$(pkg-config --modversion kverbs)" "$(cat "$KVERBS_TOP/lib/VERSION")"
read -ra flags <<<"$(pkg-config --cflags --libs kverbs)"

cat >"$root/app.cpp" <<-'END'
	#include <cstdio>
	#include <kverbs/device_stats.hpp>
	#include <system_error>
	int main()
	{
		try {
			kverbs::device_stats::open("/nonexistent");
		} catch (const std::system_error &e) {
			std::puts(e.code() == std::errc::no_such_file_or_directory ? "none" : "?");
		}
	}
END
check "a C++ program builds" g++ -std=c++20 -Wall -Werror -o "$root/app" "$root/app.cpp" "${flags[@]}"
export LD_LIBRARY_PATH=$prefix/lib
is "and runs on the shared library" "$("$root/app")" none

printf '#include <kverbs/kverbs.h>\nint main(void) { return kverbs_stats_counter("bytes") < 0; }\n' \
	>"$root/app.c"
check "a C program builds" gcc -std=c11 -Wall -Werror -o "$root/capp" "$root/app.c" "${flags[@]}"
check "and runs" "$root/capp"
is "programs ask for the library by its soname" \
	"$(readelf -d "$root/capp" | sed -n 's/.*(NEEDED).*\[\(libkverbs.*\)\]/\1/p')" libkverbs.so.0

# What is not in a header is not exported: another library may use the same names.
nm -DC --defined-only "$prefix/lib/libkverbs.so" | awk '$2 == "T" { $1 = $2 = ""; print }' |
	grep -vE '^ *kverbs(_stats_|::(device_stats|mapped_stats|histogram|sample|name(_of_[a-z_]+)?)\b)' >"$root/foreign"
is "nothing else is exported" "$(cat "$root/foreign")" ""
check "the command is installed" quietly "$prefix/bin/kverbs" --version
check "and the udev rule" test -s "$prefix/lib/udev/rules.d/70-kverbs.rules"
finish
