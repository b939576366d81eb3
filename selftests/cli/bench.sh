#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# What kverbs bench prints as JSON has the shape that scripts read.
set -u
# shellcheck source=selftests/cli/common.sh
. "$(dirname "$0")/common.sh"

small=(kverbs bench --json --iters 64 --rounds 1)
shaped "all engines" bench --not-empty -- "${small[@]}"
is "engines" "$(json "' '.join(r['engine'] for r in d['results'])")" "raw raw chain kverbs"
shaped "CQs of kverbs count their passes" bench --not-empty -- "${small[@]}" --engine kverbs --cq interrupt
is "passes are there" "$(json "all(r['passes'] > 0 for r in d['results'])")" True
shaped "each policy" bench --not-empty -- "${small[@]}" --engine chain,kverbs --policy dynamic,each,four
is "of kverbs only" "$(json "' '.join(str(r['policy']) for r in d['results'])")" "None dynamic each four"
finish
