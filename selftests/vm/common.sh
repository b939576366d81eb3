# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash disable=SC2034,SC2154 # shared with who sources this
#
# The part of a vehicle that does not depend on which it is: options, the job that
# is handed to guest-init, the verdict. Sourced by qemu and uml.
# shellcheck source=scripts/lib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../scripts/lib/common.sh"

usage() {
	cat >&2 <<-END
		usage: ${0##*/} [OPTION]... [--] COMMAND [ARGUMENT]...
		       ${0##*/} [OPTION]... --shell

		  --cpus N        processors (2)
		  --mem SIZE      memory (2G)
		  --timeout SEC   kill the machine after so many seconds (600)
		  --no-rxe        no Soft-RoCE device (else rxe0 on eth0, 192.168.77.1)
		  --load M,...      load these modules of .output/KERNEL/modules first
		  --share DIR     DIR is the host's and writable
		  --log FILE      where the kernel log goes (.output/results/VEHICLE/kernel.log)
		  --shell         a shell instead of a command
		$1
	END
	exit 2
}

# parse_options ARG...: sets the variables below; own options of a vehicle go to
# vehicle_option, which says with its status whether it took one.
parse_options() {
	cpus=2 mem=2G timeout=600 rxe=1 load='' share='' log='' interactive='' leakcheck=1 command=()
	while [ $# -gt 0 ]; do
		case $1 in
		--cpus) cpus=$2 && shift ;;
		--mem) mem=$2 && shift ;;
		--timeout) timeout=$2 && shift ;;
		--no-rxe) rxe='' ;;
		--load) load=${2//,/ } && shift ;;
		--share) share+="${share:+ }$(realpath "$2")" && shift ;;
		--log) log=$2 && shift ;;
		--shell) interactive=1 timeout=0 leakcheck='' ;;
		--)
			shift
			break
			;;
		-*) vehicle_option "$1" || usage "$vehicle_usage" ;;
		*) break ;;
		esac
		shift
	done
	command=("$@")
	[ -n "$interactive" ] || [ ${#command[@]} -gt 0 ] || usage "$vehicle_usage"
}

# write_job VEHICLE KERNEL MODULES CHANNEL: makes $job, what guest-init reads. Its name
# is always the same where two boots are to be the same to the last instruction.
write_job() {
	local size
	mkdir -p "$KVERBS_OUT/jobs"
	if [ -n "${icount-}" ]; then
		job=$KVERBS_OUT/jobs/icount
		exec 8>"$job.lock"
		flock -n 8 || die "another machine counts instructions in this tree: wait for it"
		rm -rf "$job"
		mkdir "$job"
	else
		job=$(mktemp -d -p "$KVERBS_OUT/jobs")
	fi
	trap 'rm -rf "$job" "$job.cpio"' EXIT
	log=${log:-$KVERBS_OUT/results/$1/kernel.log}
	mkdir -p "$(dirname "$log")"
	: >"$log"
	size=$(stty size 2>/dev/null || echo 24 80)
	{
		printf '%s=%q\n' KVERBS_TOP "$KVERBS_TOP" KVERBS_OUT "$KVERBS_OUT" \
			KVERBS_KERNEL "$2" KVERBS_VEHICLE "$1" modules "$3" channel "$4" \
			rxe "$rxe" load "$load" share "$share" interactive "$interactive" \
			leakcheck "$leakcheck" rows "${size% *}" cols "${size#* }"
	} >"$job/vars"
	[ -n "$interactive" ] || printf '%q ' "${command[@]}" >"$job/run"
}

# Passes the command's output on, line by line, and keeps its exit status, which
# guest-init prints last.
filter_output() {
	sed -u -e "/#@exit [0-9][0-9]*\$/{h;s/.*#@exit //;w $job/rc" \
		-e 'x;s/#@exit [0-9]*$//;/^$/d}'
}

# run_machine STDERR COMMAND...: runs the emulator, with its standard error going to
# the given file, judges what came of it, and exits. When this shell is killed, by
# whatever, the emulator is, too.
run_machine() {
	local status findings stderr=$1 die=(setpriv --pdeathsig KILL --)
	shift
	if [ -n "$interactive" ]; then
		"$@" 2>>"$stderr"
		exit 0
	fi
	"${die[@]}" timeout -s KILL "$timeout" "${die[@]}" "$@" </dev/null 2>>"$stderr" | filter_output || true
	if [ ! -s "$job/rc" ]; then
		say "the machine died or did not end within $timeout s: $(tail -n 1 "$log" | tr -d '\r') (log: $log)"
		status=125
	else
		status=$(cat "$job/rc")
	fi
	if ! findings=$("$KVERBS_TOP/selftests/vm/klog" "$log"); then
		say "the kernel complained (log: $log):"
		printf '%s\n' "$findings" >&2
		[ "$status" -ne 0 ] || status=124
	fi
	exit "$status"
}
