# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash disable=SC2034 # for who sources this
#
# What every script of this tree needs: where things are, how to speak, how to
# fill the cache without two callers getting into each other's way. Sourced.

# The root of the source tree, and where what is built from it goes.
KVERBS_TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
KVERBS_OUT=$KVERBS_TOP/.output

# Kernels are too expensive to build per checkout: they live outside the tree.
KVERBS_CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/kverbs

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

die() {
	say "$*"
	exit 1
}

# with_lock NAME COMMAND...: runs COMMAND while holding the cache's lock NAME. Who only
# wants to know whether something is in the cache sets KVERBS_CACHED_ONLY.
with_lock() {
	local name=$1 fd
	shift
	[ -z "${KVERBS_CACHED_ONLY-}" ] || die "$name is not in the cache"
	mkdir -p "$KVERBS_CACHE/locks"
	exec {fd}>"$KVERBS_CACHE/locks/$name"
	if ! flock -n "$fd"; then
		say "waiting for another run that prepares $name"
		flock "$fd"
	fi
	# Not "|| rc=$?": that would switch "set -e" off in all that COMMAND calls.
	# The lock must not outlive us in a daemon the command leaves behind.
	"$@" {fd}>&-
	exec {fd}>&-
}

# hash_of FILE... [-- STRING...]: a short key of the given inputs. Comments do not
# count: a kernel is not built again for a word.
hash_of() {
	local files=() f
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		files+=("$1")
		shift
	done
	[ $# -eq 0 ] || shift
	{
		for f in "${files[@]}"; do sed '/^[[:space:]]*#/d; /^$/d' "$f"; done
		printf '%s\n' "$@"
	} | sha256sum | cut -c1-12
}
