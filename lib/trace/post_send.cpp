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

// Rows cost 1.6 KiB on each CPU: as many as the memory allows, within reason.
constexpr std::size_t row_memory = 64 << 20;
constexpr std::uint32_t least_rows = 32;
constexpr std::uint32_t most_rows = 256;

// Called when a device is freed, and when it gets another name.
constexpr const char *device_gone = "ib_dealloc_device";
constexpr const char *device_renamed = "ib_device_rename";

constexpr std::array<std::string_view, KVERBS_POST_NR_OPS> opcodes = {
	"write",     "write_imm",    "send",           "send_imm",         "read",
	"cmp_swp",   "fetch_add",    "local_inv",      "bind_mw",          "send_inv",
	"tso",       "read_inv",     "masked_cmp_swp", "masked_fetch_add", "flush",
	"atomic_write", "driver",    "reg_mr",         "reg_mr_integrity", "other",
	"unknown",
};
static_assert(opcodes[KVERBS_POST_OP_NONE] == "unknown");

std::uint32_t rows_for(std::uint32_t cpus)
{
	return std::clamp(static_cast<std::uint32_t>(row_memory / sizeof(kverbs_post_row) / cpus),
			  least_rows, most_rows);
}

void add(post_row &to, const kverbs_post_row &from)
{
	to.posts += from.posts;
	to.work_requests += from.work_requests;
	to.signaled += from.signaled;
	to.inlined += from.inlined;
	to.bytes += from.bytes;
	to.truncated += from.truncated;
	to.time += std::chrono::nanoseconds(from.ns);
	to.longest = std::max(to.longest, std::chrono::nanoseconds(from.max_ns));
	kverbs_hist_merge(to.latency.buckets().data(), from.hist);
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
	size_maps(static_cast<std::uint32_t>(libbpf_num_possible_cpus()));
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

void post_send_probe::size_maps(std::uint32_t cpus)
{
	cpus_ = cpus;
	max_rows_ = rows_for(cpus);
	value_size_ = sizeof(kverbs_post_cpu) + max_rows_ * sizeof(kverbs_post_row);
	programs_->rodata->max_rows = max_rows_;
	programs_->rodata->nr_cpus = cpus;
	bpf_map__set_value_size(programs_->maps.cpus, static_cast<__u32>(value_size_));
	bpf_map__set_max_entries(programs_->maps.cpus, cpus);
	bpf_map__set_max_entries(programs_->maps.rows, max_rows_);
	bpf_map__set_max_entries(programs_->maps.keys, max_rows_);
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
		exit_.reset(made(bpf_program__attach_kprobe(p.kretprobe_return, true, at.c_str()), at));
		entry_.reset(made(bpf_program__attach_kprobe(p.kprobe_call, false, at.c_str()), at));
	}
	gone_.reset(made(bpf_program__attach_kprobe(p.forget_devices, false, device_gone), device_gone));
	renamed_.reset(
		made(bpf_program__attach_kprobe(p.forget_devices, true, device_renamed), device_renamed));
	programs_->bss->complete = true;
}

void post_send_probe::stop()
{
	programs_->bss->complete = false;
	entry_.reset();
}

// What all CPUs counted, by number of the row; of each CPU, @other is told as well.
template <typename F> std::vector<post_row> post_send_probe::read(F &&other) const
{
	std::vector<post_row> sum(max_rows_);
	std::vector<std::uint64_t> value(value_size_ / sizeof(std::uint64_t));
	const auto *state = reinterpret_cast<const kverbs_post_cpu *>(value.data());

	for (std::uint32_t cpu = 0; cpu < cpus_; cpu++) {
		if (bpf_map__lookup_elem(programs_->maps.cpus, &cpu, sizeof(cpu), value.data(),
					 value_size_, 0))
			throw std::system_error(errno, std::generic_category(), "cannot read the counts");
		for (std::uint32_t row = 0; row < max_rows_; row++)
			add(sum[row], state->row[row]);
		other(*state);
	}
	return sum;
}

std::vector<post_row> post_send_probe::rows() const
{
	std::vector<post_row> sum = read([](const kverbs_post_cpu &) {});
	std::uint32_t used = std::min(programs_->data->rows_used, max_rows_);

	sum.resize(used);
	for (std::uint32_t row = 0; row < used; row++)
		describe(sum[row], row);
	std::erase_if(sum, [](const post_row &r) { return r.posts == 0; });
	return sum;
}

void post_send_probe::describe(post_row &r, std::uint32_t row) const
{
	kverbs_post_key key{};

	if (row == KVERBS_POST_ROW_LOST) {
		r.device = r.consumer = r.opcode = "other";
		return;
	}
	bpf_map__lookup_elem(programs_->maps.keys, &row, sizeof(row), &key, sizeof(key), 0);
	r.device = text(key.device);
	r.consumer = text(key.consumer);
	r.opcode = opcodes[std::min<std::size_t>(key.op, KVERBS_POST_OP_NONE)];
	r.pid = key.pid;
	r.user = key.pid != 0;
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
	std::vector<post_row> sum =
		read([&](const kverbs_post_cpu &cpu) { l.unmatched += cpu.unmatched; });

	l.calls = recursion_misses();
	l.keys = sum[KVERBS_POST_ROW_LOST].posts;
	for (const post_row &r : sum)
		l.returns += r.posts - r.latency.total();
	return l;
}

} // namespace kverbs::trace
