# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
#
# For tests of the command: runs it, looks at what it said. Sourced.
# shellcheck source=selftests/ktap.sh
. "$(dirname "${BASH_SOURCE[0]}")/../ktap.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
shapes=$KVERBS_TOP/selftests/cli/shapes

# run COMMAND...: its output in $work/out and $work/err, its status in $status.
run() {
	status=0
	"$@" >"$work/out" 2>"$work/err" || status=$?
}

# Until a kverbs command that goes on for a while is under way: it blocks SIGTERM.
under_way() {
	local pid
	until pid=$(pidof -s kverbs) &&
		[ $((0x0$(sed -n 's/^SigBlk:\t//p' "/proc/$pid/status") & 0x4000)) -ne 0 ]; do sleep 0.1; done
}

# interrupted SIGNAL SECONDS COMMAND...: the command gets the signal so long after it
# has got ready to heed it.
interrupted() {
	local signal=$1 seconds=$2 pid
	shift 2
	# Jobs in the background would ignore SIGINT.
	(trap - INT && exec "$@") &
	pid=$!
	under_way
	sleep "$seconds"
	kill -"$signal" "$pid"
	wait "$pid"
}

# refused NAME CODE WORD... -- COMMAND...: the command must fail with CODE, print
# nothing but one line on standard error, and that line must hold every WORD.
refused() {
	local name=$1 code=$2 words=() word
	shift 2
	while [ "$1" != -- ]; do
		words+=("$1")
		shift
	done
	shift
	run "$@"
	for word in "${words[@]}"; do
		if ! grep -qF -e "$word" "$work/err"; then
			fail "$name" "no '$word' in: $(head -c 300 "$work/err")"
			return
		fi
	done
	if [ "$(wc -l <"$work/err")" -ne 1 ] || ! grep -q '^kverbs: ' "$work/err"; then
		fail "$name" "not one line: $(head -c 300 "$work/err")"
	elif [ "$status" -ne "$code" ]; then
		fail "$name" "exit code $status, not $code: $(cat "$work/err")"
	else
		pass "$name"
	fi
}

# onto_full COMMAND...: its output goes where there is no room for it.
onto_full() { "$@" >/dev/full; }

# shaped NAME SHAPE [--not-empty] -- COMMAND...: succeeds, with JSON of that shape.
shaped() {
	local name=$1 shape=$2 options=()
	shift 2
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	run "$@"
	if [ "$status" -ne 0 ]; then
		fail "$name" "exit code $status: $(cat "$work/err")"
	elif python3 "$KVERBS_TOP/selftests/cli/shape.py" ${options[@]+"${options[@]}"} "$shapes/$shape.json" \
		<"$work/out"; then
		pass "$name"
	else
		fail "$name"
	fi
}

# json EXPRESSION: what a Python expression says of the last output, "d" being the
# document, or the list of documents if there was one a line.
json() {
	python3 -c '
import json, sys
text = open(sys.argv[1]).read()
try:
    d = json.loads(text)
except json.JSONDecodeError:
    d = [json.loads(line) for line in text.splitlines()]
print(eval(sys.argv[2]))' "$work/out" "$1"
}
