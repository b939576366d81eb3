// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// The kernel says which attribute it refused and what the limit is; this says it in
// the terms of the command's options.

#include "perf_refusal.hpp"
#include "rdma_devices.hpp"

#include <cerrno>
#include <cstring>
#include <fmt/format.h>

namespace kverbs::cli
{
namespace
{

error usage(const std::string &line)
{
	return error(exit_code::usage, line);
}

error no_device(const perf_plan &plan)
{
	std::string there;

	for (const rdma_device &device : rdma_devices())
		there += (there.empty() ? "" : ", ") + device.name;
	if (there.empty())
		return error(exit_code::no_device,
			     "no RDMA device on this host; load a driver, or make a Soft-RoCE "
			     "device with 'rdma link add'");
	return error(exit_code::no_device,
		     fmt::format("no RDMA device '{}' that can be used from here; there is: {}",
				 plan.device, there));
}

error bad_device(int error_number, const kverbs_perf_run &answer)
{
	switch (error_number) {
	case ENETDOWN:
		return error(exit_code::no_device,
			     fmt::format("no port of {} is active; bring its network interface up "
					 "('ip link set ... up'), or connect its cable",
					 answer.device));
	case EADDRNOTAVAIL:
		return error(exit_code::no_device,
			     fmt::format("{} has no address to be reached by; give its network "
					 "interface one ('ip addr add ...')",
					 answer.device));
	case EPROTONOSUPPORT:
		return error(
			exit_code::no_device,
			fmt::format("{} is an iWARP device or cannot register memory by work "
				    "request, which the bench needs; use an InfiniBand or RoCE "
				    "device",
				    answer.device));
	default:
		return error(exit_code::failure,
			     fmt::format("{}: {}", answer.device, std::strerror(error_number)));
	}
}

// "--depth 0 is too low; give at least 1": @value against the one limit it broke.
error out_of_range(const char *option, std::uint64_t value, std::uint64_t limit,
		   const std::string &whose)
{
	if (value < limit)
		return usage(
			fmt::format("{} {} is too low; give at least {}", option, value, limit));
	return usage(fmt::format("{} {} is too high; {} at most {}, give that or less", option,
				 value, whose, limit));
}

error bad_size(const perf_plan &plan, const kverbs_perf_run &answer)
{
	if (plan.transport == perf_transport::ud && plan.size > answer.limit)
		return usage(
			fmt::format("--size {} does not fit into a datagram: the MTU of {} is {}; "
				    "give that or less, or --transport rc",
				    plan.size, answer.device, answer.limit));
	return out_of_range("--size", plan.size, answer.limit,
			    fmt::format("the bench takes on {}", answer.device));
}

error bad_length(const perf_plan &plan, const kverbs_perf_run &answer)
{
	if (!plan.iterations && !plan.duration.count())
		return usage("--iters 0 is nothing to do; give at least 1, or --seconds");
	return usage(fmt::format("--iters or --seconds is too high; the bench takes at most {} {}",
				 answer.limit, plan.iterations ? "requests" : "nanoseconds"));
}

error bad_value(const perf_plan &plan, const kverbs_perf_run &answer)
{
	const std::string device = fmt::format("{} takes", answer.device);
	const std::string bench = "the bench takes";
	const std::uint64_t limit = answer.limit;

	switch (answer.bad_attr) {
	case KVERBS_PERF_ATTR_DEPTH:
		return out_of_range("--depth", plan.depth, limit, device);
	case KVERBS_PERF_ATTR_QUEUES:
		return out_of_range("--queues", plan.queues, limit, bench);
	case KVERBS_PERF_ATTR_THREADS:
		return out_of_range("--threads", plan.threads, limit,
				    "with that depth and so many queues the bench takes");
	case KVERBS_PERF_ATTR_BATCH:
		return out_of_range("--batch", plan.batch, limit, bench);
	case KVERBS_PERF_ATTR_ROUNDS:
		return out_of_range("--rounds", plan.rounds, limit, bench);
	case KVERBS_PERF_ATTR_TIMEOUT:
		return out_of_range("--timeout", static_cast<std::uint64_t>(plan.timeout.count()),
				    limit, bench);
	case KVERBS_PERF_ATTR_CASES:
		return usage(fmt::format("{} combinations of --engine, --policy, --context and "
					 "--cq are too many; the bench takes at most {}",
					 plan.cases.size(), limit));
	default:
		return bad_length(plan, answer);
	}
}

} // namespace

error open_refusal(int error_number)
{
	switch (error_number) {
	case ENOENT:
	case ENXIO:
	case ENODEV:
		return error(exit_code::no_module, KVERBS_PERF_DEVICE_PATH
			     " is not there; load the module with 'modprobe kverbs_perf'");
	case EACCES:
	case EPERM:
		return error(exit_code::no_privilege, KVERBS_PERF_DEVICE_PATH
			     " may not be opened by this user; run the bench as root");
	default:
		return error(exit_code::failure, fmt::format("{}: {}", KVERBS_PERF_DEVICE_PATH,
							     std::strerror(error_number)));
	}
}

error run_refusal(int error_number, const perf_plan &plan, const kverbs_perf_run &answer)
{
	switch (error_number) {
	case EPERM:
		return error(exit_code::no_privilege,
			     "the bench needs the capability CAP_NET_ADMIN; run it as root");
	case ENODEV:
		return no_device(plan);
	case ERANGE:
		return bad_value(plan, answer);
	case EMSGSIZE:
		return bad_size(plan, answer);
	case EFBIG:
		return usage(fmt::format(
			"--queues {} of --depth {} with --size {} need more memory than "
			"the {} MiB that the bench takes; give less of one of them",
			plan.queues, plan.depth, plan.size, answer.limit >> 20));
	case EOPNOTSUPP:
		if (answer.bad_attr == KVERBS_PERF_ATTR_TRANSPORT)
			return usage(fmt::format("--transport ud has no {}; give --op send, or "
						 "--transport rc",
						 name(plan.op)));
		if (answer.bad_attr == KVERBS_PERF_ATTR_CASES && plan.op == perf_op::rpc)
			return usage("--op rpc is posted by the engine kverbs, on its own CQs; "
				     "give --engine kverbs, --policy dynamic, and --cq interrupt, "
				     "poll, hybrid or adaptive");
		return error(exit_code::failure,
			     "the module kverbs_perf is older than this command; load its own");
	default:
		return bad_device(error_number, answer);
	}
}

} // namespace kverbs::cli
