// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Loads bpf/post_send.bpf.c for one function, and adds up what its CPUs counted.

#include "post_send.hpp"

#include "post_send.skel.h"

#include "libbpf.hpp"

#include <algorithm>
#include <array>
#include <bpf/bpf.h>
#include <cerrno>
#include <cstring>
#include <span>
#include <string_view>
#include <system_error>

namespace kverbs::trace
{
namespace
{

// Called when a device is freed, and when it gets another name.
constexpr const char *device_freed = "ib_dealloc_device";
constexpr const char *device_renamed = "ib_device_rename";

constexpr std::array<std::string_view, KVERBS_POST_NR_OPS> opcodes = {
	"write",        "write_imm", "send",           "send_imm",         "read",
	"cmp_swp",      "fetch_add", "local_inv",      "bind_mw",          "send_inv",
	"tso",          "read_inv",  "masked_cmp_swp", "masked_fetch_add", "flush",
	"atomic_write", "driver",    "reg_mr",         "reg_mr_integrity", "other",
	"unknown",
};
static_assert(opcodes[KVERBS_POST_OP_NONE] == "unknown");

// Beyond what all questions count.
void add_answer(kverbs_post_row &to, const kverbs_post_row &from, question q)
{
	switch (q) {
	case question::latency:
		kverbs_hist_merge(to.hist, from.hist);
		break;
	case question::batch:
	case question::what_if:
		for (std::size_t i = 0; i < std::size(to.sizes); i++)
			to.sizes[i] += from.sizes[i];
		break;
	case question::cost:
		add(to.sums, from.sums);
		break;
	}
}

void add_row(kverbs_post_row &to, const kverbs_post_row &from, question q)
{
	for (std::size_t flags = 0; flags < std::size(to.requests); flags++)
		to.requests[flags] += from.requests[flags];
	to.more += from.more;
	to.bytes += from.bytes;
	to.truncated += from.truncated;
	to.ns += from.ns;
	to.max_ns = std::max(to.max_ns, from.max_ns);
	add_answer(to, from, q);
}

// The work requests that have one of @mask in their flags; all if it is 0.
std::uint64_t requests(const kverbs_post_row &r, std::size_t mask = 0)
{
	std::uint64_t sum = 0;

	for (std::size_t flags = 0; flags < std::size(r.requests); flags++)
		if (!mask || flags & mask)
			sum += r.requests[flags];
	return sum;
}

std::uint64_t posts(const kverbs_post_row &r)
{
	return requests(r) - r.more;
}

// The calls whose return was seen.
std::uint64_t returns(const kverbs_post_row &r, question q)
{
	switch (q) {
	case question::latency:
		return kverbs_hist_total(r.hist);
	case question::cost:
		return r.sums.nr + r.sums.left_out;
	case question::batch:
	case question::what_if: // not by row
		break;
	}
	return 0;
}

std::string text(const char (&name)[KVERBS_POST_NAME])
{
	return {name, strnlen(name, sizeof(name))};
}

// @link, unless libbpf failed to make it.
bpf_link *made(bpf_link *link, std::string_view target)
{
	if (!link)
		throw std::system_error(errno, std::generic_category(),
					"cannot attach to " + std::string(target));
	return link;
}

} // namespace

std::string_view name(method m)
{
	return m == method::fentry ? "fentry" : "kprobe";
}

std::string_view name(question q)
{
	switch (q) {
	case question::latency:
		return "latency";
	case question::batch:
		return "batch";
	case question::what_if:
		return "what_if";
	case question::cost:
		break;
	}
	return "cost";
}

const std::vector<std::string> &opcode_names()
{
	static const std::vector<std::string> names(opcodes.begin(),
						    opcodes.begin() + KVERBS_POST_OP_NONE + 1);
	return names;
}

void post_send_probe::deleter::operator()(post_send_bpf *s) const
{
	post_send_bpf::destroy(s);
}

void post_send_probe::deleter::operator()(bpf_link *l) const
{
	bpf_link__destroy(l);
}

post_send_probe::~post_send_probe() = default;
post_send_probe::post_send_probe(post_send_probe &&) noexcept = default;
post_send_probe &post_send_probe::operator=(post_send_probe &&) noexcept = default;

post_send_probe::post_send_probe(const function &f, method m, const inquiry &asked)
	: programs_(post_send_bpf::open()), method_(m), asked_(asked)
{
	libbpf_messages messages;

	if (!programs_)
		messages.fail("cannot open the BPF programs");
	configure();
	choose_programs(f);
	if (post_send_bpf::load(programs_.get()))
		messages.fail("cannot load the BPF programs for " + f.text());
	attach(f);
}

// What the programs need to know before they are loaded.
void post_send_probe::configure()
{
	cpus_ = static_cast<std::uint32_t>(libbpf_num_possible_cpus());
	programs_->rodata->nr_cpus = cpus_;
	programs_->rodata->only_qp = asked_.qp.value_or(0);
	for (__u32 byte = 16; byte < std::size(programs_->rodata->bucket_of); byte++)
		programs_->rodata->bucket_of[byte] =
			static_cast<__u8>(kverbs_hist_index(byte << 4));
	bpf_map__set_max_entries(programs_->maps.cpus, cpus_);
}

// Of the programs that sit on the function, those that answer the question.
void post_send_probe::choose_programs(const function &f)
{
	bool fentry = method_ == method::fentry;
	std::string suffix = "_" + std::string(trace::name(asked_.about));
	std::string call = (fentry ? "fentry" : "kprobe") + suffix + (asked_.qp ? "_qp" : "");
	std::string ret = (fentry ? "fexit" : "kretprobe") + suffix;
	bool what_if = asked_.about == question::what_if;
	bpf_program *program = nullptr;

	bpf_map__set_autocreate(programs_->maps.events, what_if);
	bpf_map__set_autocreate(programs_->maps.tasks, what_if);
	while ((program = bpf_object__next_program(programs_->obj, program))) {
		std::string_view name = bpf_program__name(program);

		if (name.starts_with("forget_"))
			continue;
		if (name.starts_with("begin_") || name.starts_with("end_")) {
			bpf_program__set_autoload(program, what_if);
			continue;
		}
		bpf_program__set_autoload(program, name == call || name == ret);
		if (name == call)
			call_ = program;
		else if (name == ret)
			return_ = program;
		else
			continue;
		if (fentry)
			bpf_program__set_attach_target(program, 0, f.name.c_str());
	}
}

post_send_probe::link post_send_probe::attach(bpf_program *p, const function &f, bool ret) const
{
	std::string at = f.probe_name();

	return link(made(method_ == method::fentry ? bpf_program__attach(p)
						   : bpf_program__attach_kprobe(p, ret, at.c_str()),
			 at));
}

// The return first: a call whose return nobody sees would stay on the stack of calls.
void post_send_probe::attach(const function &f)
{
	const auto &p = programs_->progs;

	if (asked_.about == question::what_if)
		attach_passes();
	if (return_)
		exit_ = attach(return_, f, true);
	entry_ = attach(call_, f, false);
	pd_freed_.reset(made(bpf_program__attach(p.forget_pd), "ib_dealloc_pd_user"));
	freed_.reset(made(bpf_program__attach_kprobe(p.forget_names, false, device_freed),
			  device_freed));
	renamed_.reset(made(bpf_program__attach_kprobe(p.forget_names, true, device_renamed),
			    device_renamed));
	programs_->bss->complete = true;
}

void post_send_probe::stop()
{
	programs_->bss->complete = false;
	entry_.reset();
}

// What all CPUs counted, by number of the row; of each CPU, @other is told as well.
std::vector<kverbs_post_row>
post_send_probe::read(const std::function<void(const kverbs_post_cpu &)> &other) const
{
	std::vector<kverbs_post_row> sum(KVERBS_POST_ROWS);
	auto state = std::make_unique<kverbs_post_cpu>();

	for (std::uint32_t cpu = 0; cpu < cpus_; cpu++) {
		if (bpf_map__lookup_elem(programs_->maps.cpus, &cpu, sizeof(cpu), state.get(),
					 sizeof(*state), 0))
			throw std::system_error(errno, std::generic_category(),
						"cannot read the counts");
		for (std::size_t row = 0; row < sum.size(); row++)
			add_row(sum[row], state->row[row], asked_.about);
		other(*state);
	}
	return sum;
}

std::vector<post_row> post_send_probe::rows() const
{
	std::vector<kverbs_post_row> sum = read([](const kverbs_post_cpu &) {});
	std::vector<post_row> rows;

	for (std::uint32_t i = 0; i < sum.size(); i++)
		if (posts(sum[i]) && i != KVERBS_POST_ROW_OTHERS)
			rows.push_back(describe(i, sum[i]));
	return rows;
}

post_row post_send_probe::describe(std::uint32_t index, const kverbs_post_row &from) const
{
	kverbs_post_key key{};
	post_row r;

	r.posts = posts(from);
	r.work_requests = requests(from);
	r.signaled = requests(from, KVERBS_POST_SIGNALED);
	r.inlined = requests(from, KVERBS_POST_INLINE);
	r.bytes = from.bytes;
	r.truncated = from.truncated;
	r.time = std::chrono::nanoseconds(from.ns);
	r.longest = std::chrono::nanoseconds(from.max_ns);
	if (asked_.about == question::latency)
		std::copy(std::begin(from.hist), std::end(from.hist), r.latency.buckets().begin());
	else if (asked_.about == question::cost)
		r.sums = from.sums;
	else
		std::copy(std::begin(from.sizes), std::end(from.sizes), r.sizes.begin());
	if (index == KVERBS_POST_ROW_LOST) {
		r.device = r.consumer = r.opcode = "other";
		return r;
	}
	bpf_map__lookup_elem(programs_->maps.keys, &index, sizeof(index), &key, sizeof(key), 0);
	r.device = text(key.device);
	r.consumer = text(key.consumer);
	r.opcode = opcodes[std::min<std::size_t>(key.op, KVERBS_POST_OP_NONE)];
	r.pid = key.pid;
	r.user = key.pid != 0;
	if (key.op == KVERBS_POST_OP_NONE)
		r.work_requests = 0; // counted, not seen
	return r;
}

std::uint64_t post_send_probe::recursion_misses() const
{
	bpf_prog_info info{};
	__u32 size = sizeof(info);

	return bpf_obj_get_info_by_fd(bpf_program__fd(call_), &info, &size) ? 0
									    : info.recursion_misses;
}

post_losses post_send_probe::losses() const
{
	post_losses l;
	std::uint64_t events = 0;
	std::vector<kverbs_post_row> sum = read([&](const kverbs_post_cpu &cpu) {
		l.unmatched += cpu.unmatched;
		events += cpu.events + cpu.no_events;
	});

	l.calls = recursion_misses();
	l.keys = posts(sum[KVERBS_POST_ROW_LOST]);
	if (!return_)
		return l;
	for (const kverbs_post_row &r : sum)
		l.returns += posts(r) - returns(r, asked_.about);
	l.returns -= events;
	return l;
}

} // namespace kverbs::trace
