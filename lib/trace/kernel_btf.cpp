// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Reading BTF: a module's types stand behind those of the kernel and may refer to
// them.

#include "kernel_btf.hpp"

#include <bpf/btf.h>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace kverbs::trace
{
namespace
{

constexpr const char *btf_dir = "/sys/kernel/btf";

const btf_type *skip_const(const btf *types, __u32 id)
{
	const btf_type *t = btf__type_by_id(types, id);

	while (t && (btf_is_mod(t) || btf_is_typedef(t)))
		t = btf__type_by_id(types, t->type);
	return t;
}

// Whether @id is a pointer, @depth deep, to the structure called @name.
bool points_to(const btf *types, __u32 id, std::string_view name, int depth)
{
	const btf_type *t = skip_const(types, id);

	for (; t && depth; depth--) {
		if (!btf_is_ptr(t))
			return false;
		t = skip_const(types, t->type);
	}
	return t && (btf_is_struct(t) || btf_is_fwd(t)) &&
	       name == btf__name_by_offset(types, t->name_off);
}

bool returns_int(const btf *types, const btf_type *proto)
{
	const btf_type *t = skip_const(types, proto->type);

	return t && btf_is_int(t) && t->size == sizeof(int);
}

bool is_post_send(const btf *types, const btf_type *func)
{
	const btf_type *proto = btf__type_by_id(types, func->type);

	if (!proto || btf_vlen(proto) != 3 || !returns_int(types, proto))
		return false;
	const btf_param *p = btf_params(proto);

	return points_to(types, p[0].type, "ib_qp", 1) &&
	       points_to(types, p[1].type, "ib_send_wr", 1) &&
	       points_to(types, p[2].type, "ib_send_wr", 2);
}

void add_candidates(const btf *types, __u32 first, const std::string &module,
		    std::vector<function> &found)
{
	for (__u32 id = first; id < btf__type_cnt(types); id++) {
		const btf_type *t = btf__type_by_id(types, id);

		if (btf_is_func(t) && is_post_send(types, t))
			found.push_back({btf__name_by_offset(types, t->name_off), module});
	}
}

} // namespace

void kernel_btf::deleter::operator()(btf *b) const
{
	btf__free(b);
}

kernel_btf::kernel_btf() : base_(btf__load_vmlinux_btf())
{
	if (!base_)
		throw std::system_error(errno, std::generic_category(),
					"no type information in /sys/kernel/btf (a kernel with "
					"CONFIG_DEBUG_INFO_BTF is needed)");
	for (const auto &file : std::filesystem::directory_iterator(btf_dir)) {
		std::string name = file.path().filename();

		if (name == "vmlinux")
			continue;
		// One that was unloaded meanwhile is simply not there.
		if (handle types{btf__load_module_btf(name.c_str(), base_.get())})
			modules_.emplace(name, std::move(types));
	}
}

std::vector<function> kernel_btf::post_send_candidates() const
{
	std::vector<function> found;

	add_candidates(base_.get(), 1, "", found);
	for (const auto &[name, types] : modules_)
		add_candidates(types.get(), btf__type_cnt(base_.get()), name, found);
	return found;
}

// libbpf looks a function up by its name alone: in the kernel, then module by module.
std::string kernel_btf::why_no_fentry(const function &f) const
{
	bool in_kernel = btf__find_by_name_kind(base_.get(), f.name.c_str(), BTF_KIND_FUNC) > 0;
	bool found = in_kernel && f.module.empty();
	bool others = in_kernel && !f.module.empty();

	if (!f.module.empty() && !modules_.contains(f.module))
		return "module " + f.module + " was built without BTF";
	for (const auto &[module, types] : modules_) {
		if (btf__find_by_name_kind(types.get(), f.name.c_str(), BTF_KIND_FUNC) <= 0)
			continue;
		(module == f.module ? found : others) = true;
	}
	if (!found)
		return "the BTF of its module does not have it";
	return others ? "another module has a function of that name" : "";
}

} // namespace kverbs::trace
