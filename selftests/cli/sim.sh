#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# kverbs sim: devices come, are set, fail as told, count and go; what is wrong is refused
# in one line; a device has no more and no less than its configfs directory.
set -u
# shellcheck source=selftests/cli/common.sh
. "$(dirname "$0")/common.sh"

config=/sys/kernel/config/kverbs_sim
there() { [ -e "/sys/class/infiniband/$1" ]; }
refuses() { ! "$@" >/dev/null 2>&1; }
quiet() { "$@" >/dev/null; }
netdev() { ip link show "$1" >/dev/null 2>&1; }

# traffic DEVICE: a consumer's; its status.
traffic() { kverbs bench --device "$1" --engine raw --iters 256 --rounds 1 --depth 16 --timeout 5 >/dev/null 2>&1; }

none() {
	refused "list without a device" 5 "kverbs sim create" -- kverbs sim list
	run kverbs sim list --json
	is "in JSON it is an empty list" "$status $(tr -d ' \n' <"$work/out")" '5 {"devices":[]}'
	refused "counters without a device" 5 "'sim0'" "kverbs sim create" -- kverbs sim counters sim0
}

create() {
	shaped "create makes a netdev, too" sim-create -- kverbs sim create sim0 --json
	is "and says so" "$(json 'd["name"], d["simulated"], d["netdev"], d["netdev_made"], d["address"]')" \
		"('sim0', True, 'sim0', True, '198.18.0.1/24')"
	check "there is the device" there sim0
	is "its port is up" "$(cut -d' ' -f2 /sys/class/infiniband/sim0/ports/1/state)" ACTIVE
	run kverbs sim create sim1
	is "for people" "$(cat "$work/out")" \
		"sim1 (simulated) on network device sim1, 198.18.1.1/24, a dummy made for it; 'kverbs sim remove sim1' removes both"
	ip link add own0 type dummy && ip addr add 10.9.0.1/24 dev own0 && ip link set own0 up
	run kverbs sim create sim2 --netdev own0 --json
	is "on a netdev of one's own" "$(json 'd["netdev"], d["netdev_made"], d["address"]')" "('own0', False, '10.9.0.1/24')"
}

create_refused() {
	refused "a name that is taken" 2 "'sim0'" "choose another" -- kverbs sim create sim0
	refused "the name of another's device" 2 "'rxe0'" -- kverbs sim create rxe0
	refused "a name that is a directory" 2 "'faults'" "1 to 63" -- kverbs sim create faults
	refused "a name with a slash" 2 "'a/b'" -- kverbs sim create a/b
	refused "a name that is too long for a netdev" 2 "simulated-device-0" "15" "--netdev" -- kverbs sim create simulated-device-0
	refused "a netdev that has one" 2 "own0" "sim2" -- kverbs sim create sim3 --netdev own0
	refused "a netdev that is none" 5 "'nothing0'" -- kverbs sim create sim3 --netdev nothing0
	refused "the name of a netdev" 2 "'own0'" "--netdev own0" -- kverbs sim create own0
	refused "a context that is none" 2 "'hardirq'" "thread softirq" "post" -- kverbs sim create sim3 context=hardirq
	refused "a depth of 0" 2 "qp_wr: 0 " "from 1 to" -- kverbs sim create sim3 qp_wr=0
	refused "a depth that is no number" 2 "'deep'" "from 1 to" -- kverbs sim create sim3 sge=2 qp_wr=deep
	refused "a knob that is none" 2 "'depth'" "qp_wr" -- kverbs sim create sim3 depth=3
	refused "no value" 2 "'sge'" "KNOB=VALUE" -- kverbs sim create sim3 sge
	check "nothing of them is there" refuses there sim3
	check "nor its netdev" refuses netdev sim3
	is "the defaults are as before" "$(cat $config/defaults/context $config/defaults/caps/*)" "$defaults"
}

born() {
	check "create with capabilities" quiet kverbs sim create sim3 qp_wr=64 sge=2 inline_bytes=101 cqe=1024 qps=8 mrs=16 \
		comp_vectors=1 context=softirq virtual_dma=1
	is "the defaults are as before, again" "$(cat $config/defaults/context $config/defaults/caps/*)" "$defaults"
	is "the device has them" "$(cat $config/sim3/context)" softirq
	run kverbs sim list --json
	is "and tells them" "$(json '[list(x["capabilities"].items()) for x in d["devices"] if x["name"] == "sim3"][0]')" \
		"[('comp_vectors', 1), ('cqe', 1024), ('inline_bytes', 101), ('mrs', 16), ('numa_node', -1), ('qp_wr', 64), ('qps', 8), ('sge', 2), ('virtual_dma', 1)]"
	refused "what it can do is not set" 2 "'qp_wr'" "kverbs sim create" -- kverbs sim set sim3 qp_wr=65
	refused "the depth is its limit" 2 "--depth 65" "64" -- kverbs bench --device sim3 --depth 65 --iters 65
	check "as remove does" quiet kverbs sim remove sim3
	check "the netdev that was made goes with it" refuses netdev sim3
}

list() {
	shaped "list" sim-list -- kverbs sim list --json
	is "it has all" "$(json '[(x["name"], x["netdev"], x["netdev_made"], x["state"], x["rules"]) for x in d["devices"]]')" \
		"[('sim0', 'sim0', True, 'ACTIVE', ['sim0-cqe_late']), ('sim1', 'sim1', True, 'ACTIVE', []), ('sim2', 'own0', False, 'ACTIVE', [])]"
	run kverbs sim list
	check "for people, and says what it is" grep -qE '^SIMULATED +STATE +NETDEV' "$work/out"
	check "with its address" grep -qE '^sim2 +ACTIVE +own0 +10\.9\.0\.1/24 +0$' "$work/out"
	check "with settings" grep -qE '^context( +thread){3}$' "$work/out"
	check "with capabilities" grep -qE '^qp_wr( +[0-9]+){3}$' "$work/out"
}

set_knobs() {
	shaped "set" sim-set -- kverbs sim set sim0 context=softirq lost_arm_ms=1234 --json
	is "what is set is so" "$(cat $config/sim0/context $config/sim0/judge/lost_arm_ms | xargs)" "softirq 1234"
	refused "a knob that is none" 2 "'depth'" "context" "strict" -- kverbs sim set sim0 depth=3
	refused "no value" 2 "'context='" "KNOB=VALUE" -- kverbs sim set sim0 context=
	refused "a value out of range" 2 "strict: 2 " "from 0 to 1" -- kverbs sim set sim0 context=post strict=2
	is "then nothing is changed" "$(cat $config/sim0/context)" softirq
	check "a preset and more" quiet kverbs sim set sim0 preset=articles cqe_ns=7
	is "are set in turn" "$(cat $config/sim0/cost/doorbell_ns $config/sim0/cost/cqe_ns | xargs)" "80 7"
	refused "a preset, and a value that is refused" 2 "strict: 2 " -- kverbs sim set sim0 preset=zero strict=2
	is "then all that it had set is as before" "$(cat $config/sim0/cost/doorbell_ns $config/sim0/cost/cqe_ns | xargs)" "80 7"
	quiet kverbs sim set sim0 preset=zero
	refused "a counter cannot be set" 2 "'counters'" -- kverbs sim set sim0 counters=0
	refused "a device that is not simulated" 5 "'rxe0'" "sim0, sim1, sim2" -- kverbs sim set rxe0 strict=1
	quiet kverbs sim set sim0 context=thread
}

# Each kind and preset that the help tells is one of the kernel's, and none is missing.
names() { # kind|preset COMMAND
	local told known
	told=$(kverbs sim fault "$2" --help | sed -n '/^\(Kinds\|Presets\)/,/^$/s/^  \([a-z_0-9]*\) .*/\1/p' | sort | xargs)
	known=$(kverbs sim fault "$2" sim0 nonesuch 2>&1 | sed 's/.*write one of//' | xargs -n 1 | sort | xargs)
	is "$1: the help has what there is" "$told" "$known"
}

faults() {
	shaped "fault add" sim-rule -- kverbs sim fault add sim0 cqe_late delay_ns=1000 count_hits=3 --json
	is "as told" "$(json 'd["rule"], d["kind"], d["delay_ns"], d["count_hits"], d["enabled"], d["hits"], d["device"]')" \
		"('sim0-cqe_late', 'cqe_late', 1000, 3, True, 0, 'sim0')"
	check "traffic" traffic sim0
	shaped "fault list" sim-rules --not-empty -- kverbs sim fault list sim0 --json
	is "it has hit" "$(json '[x["hits"] for x in d["rules"]]')" "[3]"
	run kverbs sim fault list
	check "for people" grep -qE '^sim0-cqe_late +sim0 +cqe_late +yes +3 .*delay_ns=1000' "$work/out"
	list
	refused "a kind that is none" 2 "'cqe_gone'" "cqe_lost" -- kverbs sim fault add sim0 cqe_gone
	refused "a setting out of range" 2 "probability_ppm: 2000000 " "to 1000000" -- kverbs sim fault add sim0 error probability_ppm=2000000
	refused "a setting that is none" 2 "'count'" "count_hits" -- kverbs sim fault add sim0 error count=1
	refused "a kind that cannot be so" 2 "opcode" -- kverbs sim fault add sim0 event_lost opcode=send
	refused "a device that is not there" 5 "'sim9'" -- kverbs sim fault add sim9 error
	is "nothing is left of them" "$(ls $config/faults)" sim0-cqe_late
	refused "a rule that is not there" 2 "'nonesuch'" "sim0-cqe_late" -- kverbs sim fault remove nonesuch
	names kind add
	names preset preset
	check "the same again has a number" quiet kverbs sim fault add sim0 cqe_late
	check "fault remove" quiet kverbs sim fault remove sim0-cqe_late sim0-cqe_late-2
	is "nothing is left" "$(ls $config/faults)" ""
	refused "a fault is seen by who posts" 1 "-5" -- failing_bench post_fail errno=-5
	for preset in irdma erdma siw mlx5 iwarp; do
		check "preset $preset" quiet kverbs sim fault preset sim1 $preset after_hits=5
	done
	is "presets go on without an end" "$(cat $config/faults/sim1-erdma/count_hits)" 0
}

# failing_bench KIND SETTING: a consumer that meets that fault on its third request.
failing_bench() {
	kverbs sim fault add sim2 "$1" after_hits=2 "$2" >/dev/null || return
	kverbs bench --device sim2 --engine raw --iters 64 --rounds 1 --timeout 2 >/dev/null
}

counters() {
	shaped "counters" sim-counters -- kverbs sim counters sim0 --json
	is "what the consumer did" "$(json 'd["simulated"], d["counters"]["writes"] >= 256, d["counters"]["cq_overflows"]')" "(True, True, 0)"
	is "it broke no rule" "$(json '[k for k, v in d["judge"].items() if v]')" "[]"
	is "each rule of the judge" "$(json '" ".join(d["judge"])')" \
		"$(find $config/sim0/judge -type f -perm 444 -printf '%f\n' | sort | xargs)"
	run kverbs sim counters sim0
	check "for people" grep -qx 'sim0 (simulated)' "$work/out"
	is "the same as of RDMA's own" "$(sed -n 's/^doorbells *//p' "$work/out")" \
		"$(cat /sys/class/infiniband/sim0/ports/1/hw_counters/doorbells)"
}

# The device's own counters, and the judge's, beside those of kverbs.
stat() {
	kverbs sim counters sim0 --json >"$work/counters"
	shaped "stat of its hardware" stat-hardware --not-empty -- kverbs stat sim0 --hardware --json
	is "it is the port's" "$(json '[(x["device"], x["port"]) for x in d["hardware"]]')" "[('sim0', 1)]"
	is "it is what the simulator says, its judge included" "$(json 'sorted(d["hardware"][0]["counters"].items())')" \
		"$(json 'sorted(list((c := json.load(open("'"$work/counters"'")))["counters"].items()) + [("judge_" + k, v) for k, v in c["judge"].items()])')"
	run kverbs stat sim0 --hardware
	check "for people" grep -qE '^sim0 \(simulated\) +1 +writes +[0-9]+$' "$work/out"
	check "without what is 0" refuses grep -q judge_sq_overrun "$work/out"
	(under_way && traffic sim0) &
	run kverbs stat sim0 --hardware -i 5 -c 2 --json
	wait
	is "what happened meanwhile" "$(json 'sum(x["hardware"][0]["counters"]["writes"] for x in d) >= 256')" True
	run kverbs stat --hardware --json
	check "also of drivers that count other things" test "$(json '"rxe0" in [x["device"] for x in d["hardware"]]')" = True
}

privilege() {
	local nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all)
	refused "create as another user" 4 "root" -- "${nobody[@]}" kverbs sim create sim8
	refused "set as another user" 4 "root" -- "${nobody[@]}" kverbs sim set sim0 strict=1
	refused "a rule as another user" 4 "root" -- "${nobody[@]}" kverbs sim fault add sim0 error
	refused "remove as another user" 4 "root" -- "${nobody[@]}" kverbs sim remove sim0
	check "anybody may look" quiet "${nobody[@]}" kverbs sim counters sim0
}

remove() {
	shaped "remove" sim-remove -- kverbs sim remove sim1 --json
	is "with what was made for it" "$(json 'd["netdev_removed"], len(d["rules_removed"])')" "('sim1', 5)"
	check "the device is gone" refuses there sim1
	check "its netdev is gone" refuses netdev sim1
	run kverbs sim remove sim2
	is "for people" "$(cat "$work/out")" "sim2 (simulated) removed, with 1 rule of faults"
	check "the netdev of one's own stays" netdev own0
	refused "a device that was removed" 5 "'sim1'" "sim0" -- kverbs sim remove sim1
	refused "another's device" 5 "'rxe0'" -- kverbs sim remove rxe0
	check "the other's is there" there rxe0
	check "the last one" quiet kverbs sim remove sim0
}

# Several at once: what each is born with, and its address, is its own.
crowd() {
	local i pids=()
	for i in 1 2 3 4; do
		kverbs sim create "crowd$i" qp_wr=$((i * 16)) >"$work/crowd$i" 2>&1 &
		pids+=($!)
	done
	wait "${pids[@]}"
	run kverbs sim list --json
	is "four made at once are four" "$(json 'len({x["name"] for x in d["devices"]})')" 4
	is "each is born with what it was given" "$(json '" ".join(sorted(str(x["capabilities"]["qp_wr"]) for x in d["devices"]))')" \
		"16 32 48 64"
	is "each has an address of its own" "$(ip -o -4 addr show | grep -c 'crowd.* 198\.18\.[0-3]\.1/24')" 4
	is "none takes the limits of another" "$(cat $config/defaults/context $config/defaults/caps/*)" "$defaults"
	for i in 1 2 3 4; do kverbs sim remove "crowd$i" >/dev/null; done
	none
}

defaults=$(cat $config/defaults/context $config/defaults/caps/*)
none
create
create_refused
born
set_knobs
faults
counters
stat
privilege
remove
crowd
finish
