// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// kverbs::device_stats and kverbs::mapped_stats against objects that kverbs_rows.ko
// makes up.

#include <atomic>
#include <cerrno>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <system_error>
#include <thread>

#include <kverbs/device_stats.hpp>

namespace
{

using namespace std::chrono_literals;
using kverbs::counter;
using kverbs::device_stats;
using kverbs::histogram_kind;
using kverbs::row_type;

const char *const parameters = "/sys/module/kverbs_rows/parameters/";

bool command(const std::string &text)
{
	std::ofstream out(std::string(parameters) + "command");

	out << text << std::flush;
	return out.good();
}

// A device of the test's own, gone with it.
class Rows : public testing::Test
{
      protected:
	void SetUp() override
	{
		if (!std::ifstream(std::string(parameters) + "truth"))
			GTEST_SKIP() << "kverbs_rows.ko is not loaded";
		ASSERT_TRUE(command("device dev"));
		ASSERT_TRUE(command("cq dev"));
		ASSERT_TRUE(command("queue dev"));
		ASSERT_TRUE(command("post dev 100"));
	}

	void TearDown() override
	{
		command("rest");
		command("remove dev");
	}
};

int errno_of(const auto &body)
{
	try {
		body();
	} catch (const std::system_error &e) {
		return e.code().value();
	}
	return 0;
}

const kverbs::row &only(const kverbs::sample &sample, row_type type)
{
	static const kverbs::row none;

	for (const kverbs::row &row : sample.rows)
		if (row.type == type)
			return row;
	ADD_FAILURE() << "no row of type " << name(type);
	return none;
}

TEST(Open, SaysWhatIsWrong)
{
	EXPECT_EQ(errno_of([] { device_stats::open("/nonexistent/kverbs"); }), ENOENT);
	EXPECT_EQ(errno_of([] { device_stats::open("/dev/null").snapshot(); }), ENOTTY);
	EXPECT_EQ(errno_of([] { device_stats::open("/dev/null").info(); }), ENOTTY);
	EXPECT_EQ(errno_of([] { device_stats::open("/dev/null").map(); }), ENOTTY);
}

TEST_F(Rows, InfoTellsTheModule)
{
	kverbs::module_info info = device_stats::open().info();

	EXPECT_EQ(info.abi_version, 3U);
	EXPECT_GE(info.row_size, 512U);
	EXPECT_GE(info.row_count, 4U);
	EXPECT_FALSE(info.version.empty());
}

TEST_F(Rows, SnapshotHasThem)
{
	auto before = std::chrono::steady_clock::now();
	kverbs::sample sample = device_stats::open().snapshot();
	const kverbs::row &device = only(sample, row_type::device);
	const kverbs::row &cq = only(sample, row_type::cq);
	const kverbs::row &queue = only(sample, row_type::queue);

	EXPECT_EQ(sample.rows.size(), 3U);
	EXPECT_GE(sample.time, before);
	EXPECT_LE(sample.time, std::chrono::steady_clock::now());
	EXPECT_EQ(device.name, "dev");
	EXPECT_EQ(device.driver, "kverbs_rows");
	EXPECT_EQ(sample.device("dev"), &device);
	EXPECT_EQ(sample.device("other"), nullptr);
	EXPECT_EQ(queue.device, device.id);
	EXPECT_EQ(queue.cq, cq.id);
	EXPECT_EQ(cq.cq, std::nullopt);
	EXPECT_EQ(cq.cpu, std::nullopt);
	EXPECT_EQ(queue.mode, kverbs::cq_mode::interrupt);
	EXPECT_EQ(queue.depth, 256U);
	EXPECT_EQ(queue[counter::post_calls], 100U);
	EXPECT_EQ(queue[counter::work_requests], 1600U);
	EXPECT_EQ(queue[counter::bytes], 1600U * 64);
	ASSERT_TRUE(queue.cost);
	EXPECT_EQ(queue.cost->fixed, 120ns);
	EXPECT_EQ(queue.cost->request.count(), 45'500U);
	EXPECT_FALSE(device.cost);
}

TEST_F(Rows, TotalHasTheDeparted)
{
	device_stats stats = device_stats::open();
	kverbs::sample sample = stats.snapshot();
	auto posts = static_cast<std::size_t>(counter::post_calls);

	EXPECT_EQ(sample.total(*sample.device("dev"))[posts], 100U);
	ASSERT_TRUE(command("pop dev"));
	ASSERT_TRUE(command("queue dev"));
	ASSERT_TRUE(command("post dev 11"));
	sample = stats.snapshot();
	EXPECT_EQ(sample.total(*sample.device("dev"))[posts], 111U);
}

TEST_F(Rows, Latency)
{
	device_stats stats = device_stats::open();
	kverbs::sample sample = stats.snapshot();

	for (row_type type : {row_type::device, row_type::cq, row_type::queue}) {
		kverbs::histogram post = stats.latency(only(sample, type), histogram_kind::post);
		kverbs::histogram done =
			stats.latency(only(sample, type), histogram_kind::complete);

		EXPECT_EQ(post.total(), 100U);
		EXPECT_NEAR(static_cast<double>(post.percentile(50).count()), 1e3, 1e3 / 16);
		EXPECT_EQ(done.total(), 1600U);
		EXPECT_NEAR(static_cast<double>(done.percentile(50).count()), 1e4, 1e4 / 16);
	}
}

TEST_F(Rows, LatencyOfWhatHasGoneIsAnError)
{
	device_stats stats = device_stats::open();
	kverbs::row queue = only(stats.snapshot(), row_type::queue);

	ASSERT_TRUE(command("pop dev"));
	EXPECT_EQ(errno_of([&] { stats.latency(queue, histogram_kind::post); }), ENODEV);
	ASSERT_TRUE(command("queue dev"));
	EXPECT_EQ(only(stats.snapshot(), row_type::queue).id, queue.id);
	EXPECT_EQ(errno_of([&] { stats.latency(queue, histogram_kind::post); }), ENODEV);
}

TEST_F(Rows, MappedIsTheSame)
{
	device_stats stats = device_stats::open();
	kverbs::mapped_stats mapped = stats.map();
	kverbs::sample one = stats.snapshot(), other = mapped.snapshot();

	ASSERT_EQ(one.rows.size(), other.rows.size());
	for (std::size_t i = 0; i < one.rows.size(); i++) {
		EXPECT_EQ(one.rows[i].id, other.rows[i].id);
		EXPECT_EQ(one.rows[i].generation, other.rows[i].generation);
		EXPECT_EQ(one.rows[i].name, other.rows[i].name);
		EXPECT_EQ(one.rows[i].values, other.rows[i].values);
	}
	EXPECT_LE(one.time, other.time);

	ASSERT_TRUE(command("post dev 1"));
	EXPECT_EQ(only(mapped.snapshot(), row_type::queue)[counter::post_calls], 101U);
}

TEST_F(Rows, MappedFollowsGrowth)
{
	device_stats stats = device_stats::open();
	kverbs::mapped_stats mapped = stats.map();
	std::uint32_t before = stats.info().row_count;

	// More than any test had before.
	for (std::uint32_t i = 0; i < before + 100; i++)
		ASSERT_TRUE(command("queue dev"));
	EXPECT_GT(stats.info().row_count, before);
	EXPECT_EQ(mapped.snapshot().rows.size(), before + 103);
	EXPECT_EQ(stats.snapshot().rows.size(), before + 103);
}

TEST_F(Rows, MovesKeepThemOpen)
{
	device_stats first = device_stats::open();
	device_stats second = std::move(first);
	kverbs::mapped_stats mapped = second.map();
	kverbs::mapped_stats moved = std::move(mapped);

	// The file may be closed before the mapping is used.
	{
		device_stats third = device_stats::open();

		third = std::move(second);
		EXPECT_EQ(third.snapshot().rows.size(), 3U);
	}
	EXPECT_EQ(moved.snapshot().rows.size(), 3U);
	mapped = std::move(moved);
	EXPECT_EQ(mapped.snapshot().rows.size(), 3U);
}

// Rows come and go: a device's total never falls, however it is read.
void expect_growth(auto &&read, std::chrono::milliseconds time)
{
	auto end = std::chrono::steady_clock::now() + time;
	auto posts = static_cast<std::size_t>(counter::post_calls);
	std::uint64_t last = 0;

	while (std::chrono::steady_clock::now() < end) {
		kverbs::sample sample = read();
		const kverbs::row *device = sample.device("dev");

		ASSERT_NE(device, nullptr);
		std::uint64_t now = sample.total(*device)[posts];

		ASSERT_GE(now, last);
		last = now;
	}
	EXPECT_GT(last, 100U);
}

TEST_F(Rows, TotalsOnlyGrowWhileQueuesComeAndGo)
{
	device_stats stats = device_stats::open();
	kverbs::mapped_stats mapped = stats.map();

	ASSERT_TRUE(command("churn dev"));
	expect_growth([&] { return stats.snapshot(); }, 1s);
	expect_growth([&] { return mapped.snapshot(); }, 1s);
}

TEST_F(Rows, SeveralThreadsShareOne)
{
	const device_stats stats = device_stats::open();
	std::atomic<int> good = 0;
	std::vector<std::thread> threads;

	for (int i = 0; i < 4; i++)
		threads.emplace_back([&] {
			for (int n = 0; n < 50; n++)
				good += stats.snapshot().rows.size() == 3;
		});
	for (std::thread &thread : threads)
		thread.join();
	EXPECT_EQ(good, 200);
}

} // namespace
