// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// kverbs: the command. Parses, runs one subcommand, turns every failure into
// one line and an exit code.

#include "commands.hpp"
#include "errors.hpp"
#include "output.hpp"

#include <cstdio>
#include <fmt/format.h>
#include <system_error>

namespace kverbs::cli
{

const char *const exit_code_help =
	"Exit codes: 0 done (Ctrl-C included), 1 failure, 2 bad option or value, 3 module not loaded,\n"
	"4 no privilege, 5 no such RDMA device or no driver, 6 the device left meanwhile.";

namespace
{

int fail(exit_code code, const std::string &line)
{
	fmt::print(stderr, "kverbs: {}\n", line);
	return static_cast<int>(code);
}

// The command that the user was trying, of those that have commands the innermost.
const CLI::App &innermost(const CLI::App &app)
{
	for (const CLI::App *sub : app.get_subcommands())
		return innermost(*sub);
	return app;
}

// For "see ... --help".
std::string command_name(const CLI::App &app)
{
	const CLI::App *outer = app.get_parent();

	return (outer ? command_name(*outer) + " " : "") + app.get_name();
}

int fail_parse(const CLI::App &app, const CLI::ParseError &e)
{
	const CLI::App &command = innermost(app);
	std::string what = e.what();

	if (e.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
		app.exit(e); // --help and --version
		flush_output();
		return static_cast<int>(exit_code::ok);
	}
	// What is no command looks to the parser like an argument too many.
	if (command.get_require_subcommand_min() && app.remaining_size(true)) {
		std::string first = app.remaining(true).front();

		what = fmt::format("there is no {} '{}'", first[0] == '-' ? "option" : "command",
				   first);
	}
	return fail(exit_code::usage,
		    fmt::format("{}; see '{} --help'", what, command_name(command)));
}

exit_code code_of(const std::system_error &e)
{
	if (e.code() == std::errc::operation_not_permitted ||
	    e.code() == std::errc::permission_denied)
		return exit_code::no_privilege;
	if (e.code() == std::errc::no_such_device)
		return exit_code::device_left;
	return exit_code::failure;
}

int run(int argc, char **argv)
{
	CLI::App app{"What the kernel's RDMA data path does, and how long it takes.", "kverbs"};
	globals g;

	app.set_version_flag("--version", "kverbs " KVERBS_VERSION);
	app.require_subcommand(1);
	app.footer(exit_code_help);
	add_devices(app, g);
	add_sim(app, g);
	add_stat(app, g);
	add_hist(app, g);
	add_why(app, g);
	add_trace(app, g);
	add_bench(app, g);
	try {
		app.parse(argc, argv);
		flush_output();
	} catch (const CLI::ParseError &e) {
		return fail_parse(app, e);
	} catch (const error &e) {
		return fail(e.code(), e.what());
	} catch (const std::system_error &e) {
		return fail(code_of(e), e.what());
	}
	return static_cast<int>(exit_code::ok);
}

} // namespace
} // namespace kverbs::cli

int main(int argc, char **argv)
{
	try {
		return kverbs::cli::run(argc, argv);
	} catch (const std::exception &e) {
		fmt::print(stderr, "kverbs: {}\n", e.what());
		return static_cast<int>(kverbs::cli::exit_code::failure);
	}
}
