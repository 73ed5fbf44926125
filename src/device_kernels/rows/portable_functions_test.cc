// SPDX-License-Identifier: Apache-2.0
#include "device_kernels/rows/portable_functions.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/portable_math.h"
#include "device_kernels/kernel_comparison.h"

namespace outrider {
namespace {

// Numbers of all sizes, and the borders of the functions.
Floats numbers_of_all_sizes(size_t count, uint64_t seed) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Floats numbers = {0.0F,       -0.0F,         20.0F,   std::nextafter(20.0F, 30.0F),
                    -105.0F,    -106.0F,       89.0F,   90.0F,
                    88.8F,      -87.3F,        -104.0F, kInfinity,
                    -kInfinity, std::nanf(""), 1e-30F,  -1e-42F};
  std::mt19937_64 engine(seed);
  while (numbers.size() < count) {
    if (engine() % 2 == 0) {
      numbers.push_back(std::bit_cast<float>(static_cast<uint32_t>(engine())));
    } else {
      numbers.push_back(static_cast<float>(engine() % 2'000'000) * 1e-4F - 100.0F);
    }
  }
  numbers.resize(count);
  return numbers;
}

template <typename Function, typename Expected>
void expect_function(Function&& function, Expected&& expected) {
  BitComparison comparison;
  for (uint64_t seed = 1; comparison.compared() < kLeastOutputs; ++seed) {
    const Floats x = numbers_of_all_sizes(4096, seed);
    Floats y, found;
    for (size_t first = 0; first < x.size(); first += simt::kWarp) {
      simt::Floats lanes;
      std::copy_n(x.begin() + static_cast<int64_t>(first), simt::kWarp, lanes.v);
      lanes = function(lanes);
      found.insert(found.end(), lanes.v, lanes.v + simt::kWarp);
    }
    for (const float number : x) y.push_back(expected(number));
    comparison.add(y, found);
  }
  EXPECT_EQ(comparison.differing(), 0);
}

TEST(DevicePortableFunctions, Exponential) {
  expect_function([](simt::Floats x) { return simt::portable_exp_of(x); },
                  [](float x) { return portable_exp(x); });
}
TEST(DevicePortableFunctions, ExponentialOfDoubles) {
  expect_function([](simt::Floats x) { return simt::to_float(simt::portable_exp_of(simt::to_double(x))); },
                  [](float x) { return static_cast<float>(portable_exp(static_cast<double>(x))); });
}
TEST(DevicePortableFunctions, Sigmoid) {
  expect_function([](simt::Floats x) { return simt::portable_sigmoid_of(x); },
                  [](float x) { return portable_sigmoid(x); });
}
TEST(DevicePortableFunctions, Softplus) {
  expect_function([](simt::Floats x) { return simt::softplus_of(x); },
                  [](float x) {
                    const double power = portable_exp(static_cast<double>(x));
                    return x > 20 ? x : static_cast<float>(portable_log1p(power));
                  });
}

// The bits of f64, also in the places that a conversion to f32 hides.
TEST(DevicePortableFunctions, LogarithmOfDoubles) {
  std::mt19937_64 engine(1);
  for (int i = 0; i < 4096; ++i) {
    const double x =
        std::ldexp(1.0 + static_cast<double>(engine() >> 12) * 0x1p-52, static_cast<int>(engine() % 60) - 20);
    const simt::Doubles found = simt::portable_log_of_normal_of(simt::Doubles(x));
    ASSERT_EQ(found.v[31], portable_log_of_normal(x)) << x;
    const simt::Doubles power = simt::portable_exp_of(simt::Doubles(-x));
    ASSERT_EQ(power.v[0], portable_exp(-x)) << x;
  }
}

}  // namespace
}  // namespace outrider
