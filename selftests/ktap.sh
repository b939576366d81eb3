# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
#
# KTAP for shell tests. Sourced:
#
#   . "$(dirname "$0")/../ktap.sh"
#   check "device is listed" grep -q rxe0 out    # one case: the command's status
#   is "post calls" "$calls" 1                   # one case: equal strings
#   skip "name" "reason"
#   finish                                       # prints the plan, exits
ktap_number=0
ktap_failed=0

ktap_result() { # ok|not ok, name
	ktap_number=$((ktap_number + 1))
	[ "$1" = ok ] || ktap_failed=$((ktap_failed + 1))
	printf '%s %d - %s\n' "$1" "$ktap_number" "$2"
}

pass() { ktap_result ok "$1"; }
fail() {
	[ -z "${2-}" ] || printf '# %s\n' "$2"
	ktap_result "not ok" "$1"
}
skip() { ktap_result ok "$1 # SKIP $2"; }

check() {
	local name=$1
	shift
	if "$@"; then pass "$name"; else fail "$name" "status $?: $*"; fi
}

is() {
	if [ "$2" = "$3" ]; then pass "$1"; else fail "$1" "got '$2', want '$3'"; fi
}

finish() {
	printf '1..%d\n' "$ktap_number"
	[ "$ktap_failed" -eq 0 ]
	exit
}
