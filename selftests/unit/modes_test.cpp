// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// The three ways to ring a doorbell that the articles compare, over the cost model of the
// simulated HCA, in virtual time: A for each request, B for every fourth, C for whatever is
// there anyway. What batching saves on PCIe it may cost in latency; C is free if, at every
// depth, it is on or below the line between A and B, also if the model's constants are
// half or twice as large.
//
// modes_test --table prints the figures instead.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include <kverbs/core/cost.h>

#include "batch_queue.hpp"

namespace
{

using selftest::batch_queue;

constexpr std::array<std::uint32_t, 7> depths = {1, 2, 4, 8, 16, 32, 64};
constexpr std::uint32_t message = 64;
constexpr std::uint64_t warm_up = 1'000;
constexpr std::uint64_t measured = 6'000;
constexpr std::uint64_t stall_ns = 50'000;

// What a request takes on average.
struct figures {
	double latency_ns;   // from its post to its end
	double transactions; // on PCIe: doorbells, reads of WQEs and payload, CQEs
	double doorbells;
};

// How the requests begin: one by one, as one burst, or the processor is away for a while and
// finds all of them ended.
enum class start { one_by_one, burst, stall };

constexpr std::array starts = {start::one_by_one, start::burst, start::stall};
constexpr std::array start_names = {"one by one", "a burst", "after a stall"};

// One processor that posts and polls, and an HCA. @depth requests are out at any time: the
// end of each posts the next.
class machine
{
      public:
	machine(const kverbs_cost &cost, kverbs_batch_policy policy, std::uint32_t depth, start how)
		: cost_(cost), depth_(depth), how_(how), queue_(policy, std::max(128U, 2 * depth))
	{
		queue_.driver = [this](std::uint32_t pos, std::uint32_t nr) { ring(pos, nr); };
		queue_.done = [this](std::uint64_t posted_at) { end(posted_at); };
	}

	figures run()
	{
		for (std::uint32_t i = 0; i < depth_; i++)
			post(how_ == start::burst && i + 1 < depth_);
		while (ended_ < warm_up / 2)
			pass();
		if (how_ == start::stall)
			now_ += stall_ns;
		while (ended_ < warm_up)
			pass();
		std::uint64_t ended = ended_, latency = latency_,
			      transactions = this->transactions();
		std::uint64_t doorbells = run_.doorbells;

		while (ended_ < ended + measured)
			pass();
		auto requests = static_cast<double>(ended_ - ended);
		return {static_cast<double>(latency_ - latency) / requests,
			static_cast<double>(this->transactions() - transactions) / requests,
			static_cast<double>(run_.doorbells - doorbells) / requests};
	}

      private:
	void post(bool more)
	{
		ASSERT_TRUE(queue_.post(1, now_, more));
	}

	// The driver: a doorbell, and then the HCA is at it.
	void ring(std::uint32_t pos, std::uint32_t nr)
	{
		const kverbs_cost_wqe wqe = {kverbs_cost_wqe_bytes(1, 0), 1, message};

		now_ += cost_.doorbell_ns;
		kverbs_cost_ring(&cost_, &run_, now_, wqe.bytes, nr == 1);
		for (std::uint32_t i = 0; i < nr; i++) {
			std::uint64_t there = kverbs_cost_execute(&cost_, &run_, &wqe);

			if (queue_.at(pos + i).signaled)
				cqes_.push_back(there + cost_.cqe_ns);
		}
	}

	void end(std::uint64_t posted_at)
	{
		ended_++;
		latency_ += now_ - posted_at;
		post(false);
	}

	// The processor polls: it finds what is there, or waits for the next one.
	void pass()
	{
		ASSERT_FALSE(cqes_.empty()) << "requests are out, and nothing is to come";
		now_ = std::max(now_, cqes_.front());
		std::uint32_t nr = 0;

		while (!cqes_.empty() && cqes_.front() <= now_) {
			cqes_.pop_front();
			nr++;
		}
		written_ += nr;
		queue_.pass(nr);
	}

	std::uint64_t transactions() const
	{
		return run_.doorbells + run_.wqe_fetches + run_.payload_reads + written_;
	}

	const kverbs_cost &cost_;
	std::uint32_t depth_;
	start how_;
	batch_queue queue_;
	kverbs_cost_run run_{};
	std::deque<std::uint64_t> cqes_; // when each is there
	std::uint64_t now_ = 0;
	std::uint64_t ended_ = 0;
	std::uint64_t latency_ = 0;
	std::uint64_t written_ = 0;
};

struct comparison {
	figures each;
	figures four;
	figures dynamic;
};

comparison compare(const kverbs_cost &cost, std::uint32_t depth, start how)
{
	return {machine(cost, KVERBS_BATCH_EACH, depth, how).run(),
		machine(cost, KVERBS_BATCH_FOUR, depth, how).run(),
		machine(cost, KVERBS_BATCH_DYNAMIC, depth, how).run()};
}

// Latency on the line between A and B at C's transactions. Where C has fewer than B, or
// more than A, the end of the line counts, not what it would lead to.
double line(const comparison &c)
{
	double wide = c.each.transactions - c.four.transactions;
	double at = wide > 0 ? (c.dynamic.transactions - c.four.transactions) / wide : 1;

	at = std::clamp(at, 0.0, 1.0);
	return c.four.latency_ns + at * (c.each.latency_ns - c.four.latency_ns);
}

struct constant {
	const char *name;
	std::uint32_t kverbs_cost::*member;
};

constexpr constant constants[] = {
	{"doorbell", &kverbs_cost::doorbell_ns}, {"notice", &kverbs_cost::notice_ns},
	{"parse", &kverbs_cost::parse_ns},       {"payload", &kverbs_cost::payload_ns},
	{"wire", &kverbs_cost::wire_ns},
};

struct model {
	std::string name;
	kverbs_cost cost;
};

// The articles' figures, and each of them halved and doubled.
std::vector<model> models()
{
	std::vector<model> all(1);

	all[0].name = "as in the articles";
	kverbs_cost_articles(&all[0].cost);
	for (const constant &c : constants) {
		model half = all[0], twice = all[0];

		half.name = std::string(c.name) + " halved";
		half.cost.*c.member /= 2;
		twice.name = std::string(c.name) + " doubled";
		twice.cost.*c.member *= 2;
		all.push_back(half);
		all.push_back(twice);
	}
	return all;
}

// For each model, start and depth: what, and the figures.
template <typename Check> void for_all(Check check)
{
	for (const model &m : models())
		for (start how : starts)
			for (std::uint32_t depth : depths)
				check(m.name + ", " + start_names[static_cast<int>(how)] +
					      ", depth " + std::to_string(depth),
				      compare(m.cost, depth, how));
}

TEST(Modes, DynamicIsOnOrBelowTheLine)
{
	for_all([](const std::string &what, const comparison &c) {
		// A nanosecond for the rounding of a division.
		EXPECT_LE(c.dynamic.latency_ns, line(c) + 1) << what;
	});
}

TEST(Modes, DynamicIsNotWorseThanEach)
{
	for_all([](const std::string &what, const comparison &c) {
		EXPECT_LE(c.dynamic.transactions, c.each.transactions + 0.001) << what;
		EXPECT_LE(c.dynamic.latency_ns, 1.03 * c.each.latency_ns) << what;
	});
}

// Nothing to compare otherwise: four a doorbell save most of what is not payload, and make
// each later but who is alone.
TEST(Modes, TheArticlesHaveAPoint)
{
	kverbs_cost cost;

	kverbs_cost_articles(&cost);
	comparison alone = compare(cost, 1, start::one_by_one);

	EXPECT_NEAR(alone.four.latency_ns, alone.each.latency_ns, 0.01);
	for (std::uint32_t depth : {4U, 8U, 16U}) {
		comparison c = compare(cost, depth, start::one_by_one);

		EXPECT_GT(c.four.latency_ns, c.each.latency_ns);
		EXPECT_LT(c.four.transactions, 0.5 * c.each.transactions);
	}
}

void print_row(std::uint32_t depth, const char *mode, const figures &f, double base)
{
	std::printf("  %5u  %-9s  %9.4f %6.2f %8.0f %8.0f\n", depth, mode, f.doorbells,
		    f.transactions, f.latency_ns, f.latency_ns - base);
}

void print_model(const model &m)
{
	std::printf("%s:\n  DEPTH  MODE       DOORBELLS   PCIE  LATENCY    ADDED\n",
		    m.name.c_str());
	for (std::uint32_t depth : depths) {
		comparison c = compare(m.cost, depth, start::one_by_one);

		print_row(depth, "A each", c.each, c.each.latency_ns);
		print_row(depth, "B four", c.four, c.each.latency_ns);
		print_row(depth, "C dynamic", c.dynamic, c.each.latency_ns);
	}
}

} // namespace

int main(int argc, char **argv)
{
	if (argc == 2 && !std::strcmp(argv[1], "--table")) {
		std::puts(
			"SIMULATED: the articles' costs in virtual time; each a request, nanoseconds.");
		for (const model &m : models())
			print_model(m);
		return 0;
	}
	testing::InitGoogleTest(&argc, argv);
	return RUN_ALL_TESTS();
}
