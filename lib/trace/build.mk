# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# What the tracer adds to the build of the command: libbpf, RDMA netlink, and the
# skeletons that the BPF programs are compiled into.

CPPFLAGS += -I$(OUT)/bpf $(shell pkg-config --cflags libnl-3.0)
LDLIBS += -lbpf -lnl-3
SKELETONS := $(patsubst $(TOP)/bpf/%.bpf.c,$(OUT)/bpf/%.skel.h,$(wildcard $(TOP)/bpf/*.bpf.c))
GENERATED += $(SKELETONS)

# The rules below must not become what is made by default.
.DEFAULT_GOAL := all
.PHONY: bpf-skeletons
bpf-skeletons:
	$(MAKE) -C $(TOP)/bpf OUT=$(OUT)/bpf

# Made by that, and only newer if they changed.
$(SKELETONS): bpf-skeletons ;
