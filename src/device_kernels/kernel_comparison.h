// SPDX-License-Identifier: Apache-2.0
// Device kernels against the CPU's tables, for the tests of this folder.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "device_kernels/kernel_names.h"
#include "kernels/kernel_test_data.h"

namespace outrider {

// The tables of this machine with the arithmetic of devices. Tables for ARM, pairs of bf16 and tiles do not
// have it, nor have the scores of avx2.
inline std::vector<const KernelTable*> compared_tables() {
  std::vector<const KernelTable*> tables;
  for (const char* name : {"avx2_portable", "avx512"}) {
    const auto table = select_kernels(name);
    if (table.ok()) tables.push_back(*table);
  }
  return tables;
}

#define OUTRIDER_REQUIRE_TABLES() \
  if (compared_tables().empty()) GTEST_SKIP() << "this machine has no table with the arithmetic of devices"

// The outputs of each kernel that are compared at least.
#ifdef OUTRIDER_SLOW_TEST
inline constexpr int64_t kLeastOutputs = 1'000'000;
#else
inline constexpr int64_t kLeastOutputs = 10'000;
#endif
// The entries of long texts.
#ifdef OUTRIDER_SLOW_TEST
inline constexpr int kLongText = 131'072;
#else
inline constexpr int kLongText = 32'768;
#endif
// Each product is computed with eight warps, with two or three, and by the kernel for many rows if there is
// one.
inline constexpr int64_t kRunsOfProduct = 3;

// Counts outputs with other bits; any NaN equals any other.
class BitComparison {
 public:
  void add(std::span<const float> expected, std::span<const float> found) {
    ASSERT_EQ(expected.size(), found.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      const bool both_nan = std::isnan(expected[i]) && std::isnan(found[i]);
      if (both_nan || std::bit_cast<uint32_t>(expected[i]) == std::bit_cast<uint32_t>(found[i])) continue;
      if (differing_++ == 0) {
        ADD_FAILURE() << "output " << compared_ + static_cast<int64_t>(i) << " is " << found[i]
                      << ", expected " << expected[i];
      }
    }
    compared_ += std::ssize(expected);
  }
  int64_t compared() const { return compared_; }
  int64_t differing() const { return differing_; }

 private:
  int64_t compared_ = 0;
  int64_t differing_ = 0;
};

template <typename T>
simt::Rows<const T> rows_of(const std::vector<T>& numbers) {
  return {numbers.data(), std::ssize(numbers)};
}
template <typename T>
simt::Rows<T> rows_of(std::vector<T>& numbers) {
  return {numbers.data(), std::ssize(numbers)};
}
template <typename T>
simt::Weights<T> weights_of_test(const std::vector<T>& numbers) {
  return {numbers.data(), std::ssize(numbers)};
}

// Runs a kernel with race checks; anything that the emulation finds is a failure.
template <typename Args>
void run_kernel(KernelName name, const Args& args, const LaunchShape& shape, uint64_t seed = 1) {
  const auto report = emulate(name, args, shape, {.seed = seed, .checks_races = true});
  EXPECT_TRUE(report.is_clean()) << device_kernel(name).name << ": " << report.first;
}

// Numbers of normal size, with some large, tiny, subnormal and zero ones.
inline Floats adversarial_floats(size_t count, uint64_t seed) {
  Floats numbers = random_floats(count, seed);
  std::mt19937_64 engine(seed + 1);
  for (float& number : numbers) {
    const uint64_t draw = engine() % 64;
    if (draw == 0) number *= 1e4F;
    if (draw == 1) number *= 1e-20F;
    if (draw == 2) number *= 1e-42F;
    if (draw == 3) number = 0.0F;
    if (draw == 4) number = std::round(number);
  }
  return numbers;
}

}  // namespace outrider
