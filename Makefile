# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# The commands of this tree. Each installs first what is missing (scripts/packages);
# everything that is built goes to .output/, kernels to ~/.cache/kverbs.

# The stock kernel that modules are built for and that the demo, the bench and the
# shell run: 6.1 or 6.12. "make test" runs both unless KERNEL is given.
KERNEL ?= 6.1
KERNEL_GIVEN := $(filter command line environment,$(origin KERNEL))
export KERNEL

# All processors, unless told otherwise.
ifeq ($(filter -j% --jobs%,$(MAKEFLAGS)),)
MAKEFLAGS += --jobs=$(shell nproc)
endif

# SETUP=no for machines where the packages come from elsewhere.
SETUP ?= yes
SELFTEST_DIRS := $(patsubst selftests/%/Makefile,%,$(wildcard selftests/*/Makefile))

.PHONY: all help setup packages modules bpf userland selftests test test-lockdep test-storm test-ledger demo bench bench-repeat bench-native lint \
	shell shell-uml install install-modules clean

all: modules userland

help:
	@echo 'make              modules (KERNEL=6.1 or 6.12, or running), library, command'
	@echo 'make demo         NVMe over Soft-RoCE in a virtual machine, traced, and the engine at work'
	@echo 'make test         all tests: native, User Mode Linux, stock kernels; the last line counts them'
	@echo 'make test T=kmod/ only those whose names begin so (see selftests/run --help)'
	@echo 'make test-lockdep the modules once more, where the order of locks is proved'
	@echo 'make test-storm   simulated HCAs come and go, 1,000 of them under load (long)'
	@echo 'make test-ledger  100 million requests, each ends once; a broken engine is found (long)'
	@echo 'make bench        instructions per request of the three engines, twice, compared'
	@echo 'make bench-repeat the same in ten boots, which must agree to the last digit'
	@echo 'make bench-native two processors on one queue of a simulated HCA, in real time'
	@echo 'make lint         checkpatch, sparse, W=1, clang-format, clang-tidy, shellcheck'
	@echo 'make shell        a shell in a stock kernel with Soft-RoCE and the modules'
	@echo 'make shell-uml    the same in User Mode Linux with KASAN'
	@echo 'make install      library and command (PREFIX=, DESTDIR=)'
	@echo 'make install-modules   modules for the running kernel (or KDIR=)'
	@echo 'make setup        only the packages and the stock kernels'
	@echo 'make clean        removes .output/'

packages:
ifneq ($(SETUP),no)
	@scripts/setup
endif

setup: packages
	@scripts/kernels/debian 6.1 >/dev/null
	@scripts/kernels/debian 6.12 >/dev/null

modules: packages
	scripts/modules $(KERNEL)

bpf: packages
	$(MAKE) -C bpf

userland: bpf
	$(MAKE) -C lib

# Native test programs: each folder of tests that has any brings its makefile.
selftests: userland
	@for dir in $(SELFTEST_DIRS); do \
		$(MAKE) -C selftests/$$dir OUTPUT=$(CURDIR)/.output/selftests/$$dir || exit; \
	done

test: selftests
	selftests/run $(if $(KERNEL_GIVEN),--kernel $(KERNEL)) $(T)

test-lockdep: selftests
	selftests/run --vehicle uml-lockdep $(T)

test-storm: selftests
	selftests/run --table selftests/table.storm

test-ledger: selftests
	selftests/run --table selftests/table.ledger

demo: userland modules
	scripts/demo

bench: userland modules
	scripts/bench

bench-repeat: userland modules
	scripts/bench 10

bench-native: userland
	scripts/modules uml-plain
	selftests/vm/uml --plain --cpus 2 --timeout 1800 --load "kverbs kverbs_perf kverbs_sim" -- \
		$(CURDIR)/selftests/bench_native

lint: userland
	scripts/lint

shell: userland modules
	selftests/vm/qemu --load kverbs,kverbs_perf,kverbs_sim --shell

shell-uml: userland
	scripts/modules uml
	selftests/vm/uml --load kverbs,kverbs_perf,kverbs_sim --shell

install: userland
	$(MAKE) -C lib install

install-modules: packages
	scripts/modules running
	scripts/install-modules

clean:
	rm -rf .output
