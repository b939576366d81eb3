// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Loads bpf/post_send.bpf.c for one function, and adds up what its CPUs counted.

#include "post_send.hpp"

#include "post_send.skel.h"

#include "../../bpf/post_send.h"
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

void add(kverbs_post_row &to, const kverbs_post_row &from)
{
	for (std::size_t flags = 0; flags < std::size(to.requests); flags++)
		to.requests[flags] += from.requests[flags];
	to.more += from.more;
	to.bytes += from.bytes;
	to.truncated += from.truncated;
	to.ns += from.ns;
	to.max_ns = std::max(to.max_ns, from.max_ns);
	kverbs_hist_merge(to.hist, from.hist);
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

const std::vector<std::string> &opcode_names()
{
	static const std::vector<std::string> names(opcodes.begin(),
						    opcodes.begin() + KVERBS_POST_OP_NONE + 1);
	return names;
}

post_row &post_row::operator+=(const post_row &other)
{
	posts += other.posts;
	work_requests += other.work_requests;
	signaled += other.signaled;
	inlined += other.inlined;
	bytes += other.bytes;
	truncated += other.truncated;
	time += other.time;
	longest = std::max(longest, other.longest);
	latency += other.latency;
	return *this;
}

post_row post_row::since(const post_row &before) const
{
	post_row d = *this;
	auto buckets = d.latency.buckets();
	std::size_t top = 0;

	d.posts -= before.posts;
	d.work_requests -= before.work_requests;
	d.signaled -= before.signaled;
	d.inlined -= before.inlined;
	d.bytes -= before.bytes;
	d.truncated -= before.truncated;
	d.time -= before.time;
	for (std::size_t i = 0; i < buckets.size(); i++) {
		buckets[i] -= before.latency.buckets()[i];
		if (buckets[i])
			top = i;
	}
	if (longest == before.longest && top + 1 < buckets.size())
		d.longest = std::min(longest, histogram::low(top + 1));
	return d;
}

post_losses &post_losses::operator+=(const post_losses &other)
{
	calls += other.calls;
	returns += other.returns;
	unmatched += other.unmatched;
	keys += other.keys;
	return *this;
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

post_send_probe::post_send_probe(const function &f, method m)
	: programs_(post_send_bpf::open()), method_(m)
{
	libbpf_messages messages;
	bool fentry = m == method::fentry;

	if (!programs_)
		messages.fail("cannot open the BPF programs");
	configure();
	bpf_program__set_autoload(programs_->progs.fentry_call, fentry);
	bpf_program__set_autoload(programs_->progs.fexit_return, fentry);
	bpf_program__set_autoload(programs_->progs.kprobe_call, !fentry);
	bpf_program__set_autoload(programs_->progs.kretprobe_return, !fentry);
	if (fentry) {
		bpf_program__set_attach_target(programs_->progs.fentry_call, 0, f.name.c_str());
		bpf_program__set_attach_target(programs_->progs.fexit_return, 0, f.name.c_str());
	}
	if (post_send_bpf::load(programs_.get()))
		messages.fail("cannot load the BPF programs for " + f.text());
	attach(f);
}

// What the programs need to know before they are loaded.
void post_send_probe::configure()
{
	cpus_ = static_cast<std::uint32_t>(libbpf_num_possible_cpus());
	programs_->rodata->nr_cpus = cpus_;
	for (__u32 byte = 16; byte < std::size(programs_->rodata->bucket_of); byte++)
		programs_->rodata->bucket_of[byte] =
			static_cast<__u8>(kverbs_hist_index(byte << 4));
	bpf_map__set_max_entries(programs_->maps.cpus, cpus_);
}

// The return first: a call whose return nobody sees would stay on the stack of calls.
void post_send_probe::attach(const function &f)
{
	const auto &p = programs_->progs;
	std::string at = f.probe_name();

	if (method_ == method::fentry) {
		exit_.reset(made(bpf_program__attach(p.fexit_return), at));
		entry_.reset(made(bpf_program__attach(p.fentry_call), at));
	} else {
		exit_.reset(
			made(bpf_program__attach_kprobe(p.kretprobe_return, true, at.c_str()), at));
		entry_.reset(
			made(bpf_program__attach_kprobe(p.kprobe_call, false, at.c_str()), at));
	}
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
template <typename F> std::vector<kverbs_post_row> post_send_probe::read(F &&other) const
{
	std::vector<kverbs_post_row> sum(KVERBS_POST_ROWS);
	auto state = std::make_unique<kverbs_post_cpu>();

	for (std::uint32_t cpu = 0; cpu < cpus_; cpu++) {
		if (bpf_map__lookup_elem(programs_->maps.cpus, &cpu, sizeof(cpu), state.get(),
					 sizeof(*state), 0))
			throw std::system_error(errno, std::generic_category(),
						"cannot read the counts");
		for (std::size_t row = 0; row < sum.size(); row++)
			add(sum[row], state->row[row]);
		other(*state);
	}
	return sum;
}

std::vector<post_row> post_send_probe::rows() const
{
	std::vector<kverbs_post_row> sum = read([](const kverbs_post_cpu &) {});
	std::vector<post_row> rows;

	for (std::uint32_t i = 0; i < sum.size(); i++)
		if (posts(sum[i]))
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
	std::copy(std::begin(from.hist), std::end(from.hist), r.latency.buckets().begin());
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
	const auto &p = programs_->progs;
	bpf_prog_info info{};
	__u32 size = sizeof(info);
	int fd = bpf_program__fd(method_ == method::fentry ? p.fentry_call : p.kprobe_call);

	return bpf_obj_get_info_by_fd(fd, &info, &size) ? 0 : info.recursion_misses;
}

post_losses post_send_probe::losses() const
{
	post_losses l;
	std::vector<kverbs_post_row> sum =
		read([&](const kverbs_post_cpu &cpu) { l.unmatched += cpu.unmatched; });

	l.calls = recursion_misses();
	l.keys = posts(sum[KVERBS_POST_ROW_LOST]);
	for (const kverbs_post_row &r : sum)
		l.returns += posts(r) - kverbs_hist_total(r.hist);
	return l;
}

} // namespace kverbs::trace
