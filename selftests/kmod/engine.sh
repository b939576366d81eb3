#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# engine.sh COUNT PATTERN...: runs cases of the kverbs_engine module (it prints KTAP
# itself) on rxe0. COUNT is the number of requests of the large cases; SEED in the
# environment repeats a run.
set -eu
[ $# -ge 2 ] || { echo "Bail out! usage: engine.sh COUNT PATTERN..."; exit 2; }
debugfs=/sys/kernel/debug/kverbs_engine
parameters=/sys/module/kverbs_engine/parameters
[ -w "$debugfs/run" ] || { echo "Bail out! the kverbs_engine module is not loaded"; exit 1; }

echo "$1" >"$parameters/count"
echo "${SEED:-0}" >"$parameters/seed"
shift
for pattern in "$@"; do
	echo "$pattern" >"$debugfs/run"
	cat "$debugfs/ktap"
done | awk '/^1\.\./ || /^KTAP/ { next }
	/^(not )?ok / { n++; sub(/ok [0-9]+/, "ok " n) } # one plan for all patterns
	/^not ok / || /^Bail out!/ { bad = 1 }
	{ print; fflush() }
	END { print "1.." n + 0; exit bad }'
