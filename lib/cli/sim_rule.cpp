// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// mkdir makes a rule, rmdir removes it.

#include "sim_rule.hpp"
#include "errors.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kverbs::cli
{
namespace
{

namespace fs = std::filesystem;

fs::path rules_dir()
{
	return sim_config() / "faults";
}

error failed(const std::string &name, int error_number)
{
	if (error_number == EACCES || error_number == EPERM)
		return error(exit_code::no_privilege,
			     "rules of faults are made and removed by root only; run it as root");
	return error(exit_code::failure,
		     fmt::format("rule {}: {}", name, std::strerror(error_number)));
}

// A directory that is removed again, unless the rule was finished.
class new_rule
{
      public:
	explicit new_rule(const std::string &stem)
	{
		for (int number = 1;; number++) {
			name_ = number == 1 ? stem : fmt::format("{}-{}", stem, number);
			path_ = rules_dir() / name_;
			if (!::mkdir(path_.c_str(), 0755))
				return;
			if (errno != EEXIST)
				throw failed(name_, errno);
		}
	}

	~new_rule()
	{
		if (!finished_)
			::rmdir(path_.c_str());
	}

	new_rule(const new_rule &) = delete;
	new_rule &operator=(const new_rule &) = delete;

	const fs::path &path() const
	{
		return path_;
	}

	const std::string &finish()
	{
		finished_ = true;
		return name_;
	}

      private:
	std::string name_;
	fs::path path_;
	bool finished_ = false;
};

// What the rule is known by is not for who makes it to set.
bool is_own(const std::string &knob)
{
	return knob == "device" || knob == "enabled" || knob == "kind" || knob == "preset";
}

std::vector<sim_knob> free_knobs(const std::vector<sim_knob> &knobs)
{
	std::vector<sim_knob> found;

	std::copy_if(knobs.begin(), knobs.end(), std::back_inserter(found),
		     [](const sim_knob &knob) { return !is_own(knob.name); });
	return found;
}

} // namespace

std::string sim_rule::value(const std::string &knob) const
{
	for (const sim_setting &setting : values)
		if (setting.knob == knob)
			return setting.value;
	return {};
}

std::vector<sim_rule> sim_rules(const std::string &device)
{
	std::vector<sim_rule> found;
	std::error_code gone;

	for (const fs::directory_entry &entry : fs::directory_iterator(rules_dir(), gone)) {
		sim_rule rule = {entry.path().filename(), {}};

		for (const sim_knob &knob : sim_knobs(entry.path()))
			if (knob.readable)
				rule.values.push_back({knob.name, read(knob, rule.name)});
		if (device.empty() || rule.value("device") == device)
			found.push_back(std::move(rule));
	}
	std::sort(found.begin(), found.end(),
		  [](const sim_rule &a, const sim_rule &b) { return a.name < b.name; });
	return found;
}

std::string add_sim_rule(const std::string &device, const sim_setting &first,
			 const std::vector<sim_setting> &settings)
{
	// The name is made of what was given before the kernel has looked at it.
	std::string what = first.value.substr(0, first.value.find_first_of("/% \t\n"));
	new_rule rule(fmt::format("{}-{}", device, what));
	std::vector<sim_knob> knobs = sim_knobs(rule.path());

	write(find_knob(knobs, "device", device), device, device);
	write(find_knob(knobs, first.knob, device), first.value, device);
	for (const sim_setting &setting : settings)
		write(find_knob(free_knobs(knobs), setting.knob, "a rule"), setting.value, device);
	write(find_knob(knobs, "enabled", device), "1", device);
	return rule.finish();
}

void remove_sim_rule(const std::string &name)
{
	std::string known;

	for (const sim_rule &rule : sim_rules("")) {
		known += (known.empty() ? "" : ", ") + rule.name;
		if (rule.name != name)
			continue;
		if (::rmdir((rules_dir() / name).c_str()))
			throw failed(name, errno);
		return;
	}
	if (known.empty())
		throw error(exit_code::usage, fmt::format("no rule '{}': there is none", name));
	throw error(exit_code::usage, fmt::format("no rule '{}'; there is {}", name, known));
}

} // namespace kverbs::cli
