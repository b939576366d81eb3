// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Random choices that can be made again: SEED in the environment, or one that is printed.
#ifndef KVERBS_SELFTESTS_SEED_HPP
#define KVERBS_SELFTESTS_SEED_HPP

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>

namespace selftest
{

inline std::uint64_t seed()
{
	static const std::uint64_t chosen = [] {
		const char *given = std::getenv("SEED");
		std::uint64_t value =
			given ? std::strtoull(given, nullptr, 10) : std::random_device{}();

		std::cout << "SEED=" << value << '\n';
		return value;
	}();

	return chosen;
}

// splitmix64: a million small generators must cost nothing to make.
class dice
{
      public:
	explicit dice(std::uint64_t state) : state_(state)
	{
	}

	std::uint64_t operator()()
	{
		std::uint64_t z = state_ += 0x9e3779b97f4a7c15;

		z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
		z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
		return z ^ (z >> 31);
	}

	// 0 to below - 1
	std::uint32_t operator()(std::uint32_t below)
	{
		return static_cast<std::uint32_t>((*this)() % below);
	}

	bool one_in(std::uint32_t n)
	{
		return (*this)(n) == 0;
	}

      private:
	std::uint64_t state_;
};

} // namespace selftest

#endif
