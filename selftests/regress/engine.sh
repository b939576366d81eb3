#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# engine.sh: what once broke in the send queue, each case of the kverbs_engine module
# named after it.
set -eu
exec "$(dirname "$0")/../kmod/engine.sh" 1000 'regress_*'
