// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Reads, writes and lists files of configfs.

#include "sim_knob.hpp"
#include "errors.hpp"
#include "kernel_log.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/vfs.h>
#include <tuple>
#include <unistd.h>

namespace kverbs::cli
{
namespace
{

namespace fs = std::filesystem;

constexpr long configfs_magic = 0x62656570; // of fs/configfs/mount.c
constexpr const char *log_prefix = "kverbs_sim: ";

// A file that is open.
class descriptor
{
      public:
	descriptor(const fs::path &path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC))
	{
	}
	~descriptor()
	{
		if (fd_ >= 0)
			::close(fd_);
	}
	descriptor(const descriptor &) = delete;
	descriptor &operator=(const descriptor &) = delete;

	int get() const
	{
		return fd_;
	}

      private:
	int fd_;
};

bool permits(const fs::directory_entry &file, fs::perms bit)
{
	std::error_code gone;

	return (file.status(gone).permissions() & bit) != fs::perms::none;
}

void add_knobs(std::vector<sim_knob> &found, const fs::path &dir, const std::string &group)
{
	std::error_code gone; // a device may leave while we look

	for (fs::directory_iterator it(dir, gone), end; !gone && it != end; it.increment(gone)) {
		std::string name = it->path().filename();
		std::error_code unknown;

		if (it->is_directory(unknown))
			add_knobs(found, it->path(), name);
		else
			found.push_back({name, group, it->path(),
					 permits(*it, fs::perms::owner_read),
					 permits(*it, fs::perms::owner_write)});
	}
}

exit_code code_of(int error_number)
{
	switch (error_number) {
	case EACCES:
	case EPERM:
		return exit_code::no_privilege;
	case ENODEV:
	case ENOENT:
		return exit_code::device_left;
	case EINVAL:
	case ERANGE:
		return exit_code::usage;
	default:
		return exit_code::failure;
	}
}

// What the kernel said of a file, in its log: under the name of the file, or that of
// the directory it is in.
std::string kernel_words(const kernel_log &log, const sim_knob &knob)
{
	fs::path dir = knob.path.parent_path();
	std::string place = dir.parent_path().filename() / dir.filename();
	std::string line = log.last({log_prefix + knob.name + ": ", log_prefix + place});

	return line.empty() ? line : line.substr(std::strlen(log_prefix));
}

error failed(const sim_knob &knob, int error_number, std::string_view whose)
{
	exit_code code = code_of(error_number);

	if (code == exit_code::no_privilege)
		return error(code, fmt::format("{}: {} may be changed by root only; run it as root",
					       whose, knob.name));
	if (code == exit_code::device_left)
		return error(code, fmt::format("{} left meanwhile", whose));
	return error(code,
		     fmt::format("{}: {}: {}", whose, knob.name, std::strerror(error_number)));
}

bool is_configfs(const fs::path &dir)
{
	struct statfs found;

	return !::statfs(dir.c_str(), &found) && found.f_type == configfs_magic;
}

} // namespace

fs::path sim_config()
{
	fs::path root = "/sys/kernel/config";
	fs::path dir = root / "kverbs_sim";
	std::error_code none;

	if (fs::is_directory(dir, none))
		return dir;
	if (!fs::exists("/sys/module/kverbs_sim", none))
		throw error(exit_code::no_module,
			    "the module kverbs_sim is not loaded; load it with 'modprobe "
			    "kverbs_sim'");
	if (!is_configfs(root))
		throw error(exit_code::failure,
			    fmt::format("configfs is not mounted on {0}; mount it with 'mount -t "
					"configfs none {0}'",
					root.string()));
	throw error(exit_code::failure,
		    "the module kverbs_sim is older than this command; load its own");
}

std::vector<sim_knob> sim_knobs(const fs::path &dir)
{
	std::vector<sim_knob> found;

	add_knobs(found, dir, "");
	std::sort(found.begin(), found.end(), [](const sim_knob &a, const sim_knob &b) {
		return std::tie(a.group, a.name) < std::tie(b.group, b.name);
	});
	return found;
}

std::string read(const sim_knob &knob, std::string_view whose)
{
	descriptor file(knob.path, O_RDONLY);
	std::array<char, 4096> buffer; // the most that a file there holds
	std::string text;
	ssize_t size;

	if (file.get() < 0)
		throw failed(knob, errno, whose);
	while ((size = ::read(file.get(), buffer.data(), buffer.size())) > 0)
		text.append(buffer.data(), static_cast<std::size_t>(size));
	if (size < 0)
		throw failed(knob, errno, whose);
	if (text.ends_with('\n'))
		text.pop_back();
	return text;
}

void write(const sim_knob &knob, const std::string &value, std::string_view whose)
{
	kernel_log log;
	descriptor file(knob.path, O_WRONLY);
	int error_number = errno;

	if (file.get() >= 0) {
		if (::write(file.get(), value.data(), value.size()) >= 0)
			return;
		error_number = errno;
	}

	std::string words = kernel_words(log, knob);

	if (words.empty())
		throw failed(knob, error_number, whose);
	throw error(code_of(error_number), fmt::format("{}: {}", whose, words));
}

sim_setting parse_setting(const std::string &given)
{
	std::size_t equals = given.find('=');

	if (equals == std::string::npos || equals == 0 || equals + 1 == given.size())
		throw error(exit_code::usage,
			    fmt::format("'{}' is no setting; write KNOB=VALUE", given));
	return {given.substr(0, equals), given.substr(equals + 1)};
}

std::vector<sim_setting> settings_of(const std::vector<sim_knob> &knobs, std::string_view whose)
{
	std::vector<sim_setting> found;

	for (const sim_knob &knob : knobs)
		if (knob.readable && knob.writable)
			found.push_back({knob.name, read(knob, whose)});
	return found;
}

const sim_knob &find_knob(const std::vector<sim_knob> &knobs, const std::string &name,
			  std::string_view whose)
{
	std::string known;
	bool read_only = false;

	for (const sim_knob &knob : knobs) {
		if (knob.writable && knob.name == name)
			return knob;
		if (knob.writable)
			known += (known.empty() ? "" : ", ") + knob.name;
		read_only |= knob.name == name;
	}
	if (read_only)
		throw error(
			exit_code::usage,
			fmt::format("'{}' of {} can only be read; set one of {}, or what it can do "
				    "as it is made, by 'kverbs sim create'",
				    name, whose, known));
	throw error(exit_code::usage,
		    fmt::format("{} has no knob '{}' to set; it has {}", whose, name, known));
}

void write_all(const std::vector<sim_knob> &knobs, const std::vector<sim_setting> &settings,
	       std::string_view whose)
{
	for (const sim_setting &setting : settings)
		find_knob(knobs, setting.knob, whose);

	// A preset changes others, and is not itself what they are put back by.
	std::vector<sim_setting> before = settings_of(knobs, whose);

	std::erase_if(before, [](const sim_setting &setting) { return setting.knob == "preset"; });

	try {
		for (const sim_setting &setting : settings)
			write(find_knob(knobs, setting.knob, whose), setting.value, whose);
	} catch (const error &) {
		for (const sim_setting &setting : before)
			write(find_knob(knobs, setting.knob, whose), setting.value, whose);
		throw;
	}
}

} // namespace kverbs::cli
