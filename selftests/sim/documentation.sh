#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Runs the page about the simulated HCA: each line "# COMMAND" of its blocks must succeed and
# print the lines that follow it there, numbers and the width of columns aside. And the page
# must name all that there is to set, to count and to choose from.
set -u
cd "$(dirname "$0")" || exit
# shellcheck source=selftests/ktap.sh
. ../ktap.sh

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
page=../../Documentation/sim.rst

# The lines of the blocks that begin with a command of root's, without their indentation. A
# block is what is indented behind a line that ends with "::".
blocks() {
	awk '/::$/ { block = 1; root = 0; blank = 0; next }
	     block && /^$/ { blank++; next }
	     block && !/^    / { block = 0 }
	     block { sub(/^    /, "")
		     if (/^# /) root = 1
		     else if (/^\$ /) root = 0
		     if (root) { for (; blank > 0 && !/^# /; blank--) print ""; print }
		     blank = 0 }' "$1"
}

plain() { sed -E 's/[0-9]+/N/g; s/ +/ /g; s/ $//' "$1" >"$1.plain"; }

# What was the last command's, and what the page says of it.
verify() {
	[ -n "$command" ] || return 0
	plain "$work/want"
	plain "$work/got"
	if [ "$status" -ne 0 ]; then
		fail "$command" "status $status: $(head -n 3 "$work/got")"
	elif cmp -s "$work/want.plain" "$work/got.plain"; then
		pass "$command"
	else
		sed 's/^/# /' "$work/got"
		fail "$command" "not what the page shows"
	fi
}

command=
blocks "$page" >"$work/lines"
while IFS= read -r line <&3; do
	case $line in
	'# '*)
		verify
		command=${line#'# '} status=0
		: >"$work/want"
		bash -o pipefail -c "$command" >"$work/got" 2>&1 || status=$?
		;;
	*) printf '%s\n' "$line" >>"$work/want" ;;
	esac
done 3<"$work/lines"
verify
# names WHAT NAME...: the page has each, as a word of its own.
names() {
	local what=$1 name text missing=()
	text=$(<"$page")
	shift
	for name; do [[ $text == *"\`\`$name\`\`"* ]] || missing+=("$name"); done
	is "the page names each $what" "${missing[*]}" ""
	check "there are some" [ $# -ge 2 ]
}

# files DIR: its files, of any depth, but for those that are counters.
files() { find "$1" -type f ! -name counters -printf '%f\n'; }

# choices KNOB: what a rule takes there.
choices() {
	echo nonesuch >"$config/faults/names/$1"
	dmesg | sed -n "s/.*kverbs_sim: $1: 'nonesuch' is not known: write one of//p" | tail -n 1
} 2>/dev/null

config=/sys/kernel/config/kverbs_sim
kverbs sim create names >/dev/null && mkdir $config/faults/names
mapfile -t knobs <<<"$(files $config/defaults)"
names "knob of a new device" "${knobs[@]}"
mapfile -t knobs <<<"$(files $config/names)"
names "knob of a device, and rule of the judge" "${knobs[@]}"
mapfile -t knobs <<<"$(cut -d' ' -f1 $config/names/counters)"
names "counter" "${knobs[@]}"
mapfile -t knobs <<<"$(files $config/faults/names)"
names "knob of a rule" "${knobs[@]}"
for choice in kind preset; do
	read -ra knobs <<<"$(choices $choice)"
	names "$choice" "${knobs[@]}"
done
rmdir $config/faults/names
kverbs sim remove names >/dev/null
# A page that no longer has its commands marked must not pass.
check "the page has its commands" [ "$(grep -c '^# ' "$work/lines")" -ge 15 ]
finish
