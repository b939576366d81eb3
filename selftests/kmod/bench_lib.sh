# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
#
# What the tests of the bench share. Sourced, after ktap.sh.

# shellcheck disable=SC2034 # the test's
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# bench ARGUMENT...: kverbs bench, its JSON in $work/json, its exit status in $status.
bench() {
	status=0
	kverbs bench --json --timeout 120 "$@" >"$work/json" 2>"$work/err" || status=$?
}

# said: what it said on standard error, without its progress, as diagnostics.
said() { grep -v '^round ' "$work/err" | sed 's/^/# /'; }

# holds NAME EXPRESSION: one case, true if jq says so of the last run; of nothing, it
# says yes.
holds() {
	if [ -s "$work/json" ] && jq -e "$2" "$work/json" >/dev/null 2>&1; then
		pass "$1"
	else
		said
		jq -c '.results[]' "$work/json" 2>/dev/null | cut -c 1-600 | sed 's/^/# /'
		fail "$1"
	fi
}

# clean NAME REQUESTS: the last run succeeded: every engine ended that many requests, with
# nothing lost, doubled, out of order, failed, flushed or wrong.
clean() {
	[ "$status" -eq 0 ] || echo "# exit status $status"
	holds "$1" ".error == null and (.results | length > 0) and
		all(.results[]; .requests == $2 and ([.ledger[]] | add) == 0)"
}
