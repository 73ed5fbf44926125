// SPDX-License-Identifier: Apache-2.0
// Against wider numbers of the C library, on dense grids; the slow suite takes every f32.
#include "base/portable_math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>

namespace outrider {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The distance in units of the last place of `exact` in type T, which is narrower.
template <typename T, typename Wide>
double units(T found, Wide exact) {
  const T rounded = static_cast<T>(exact);
  const Wide distance = std::abs(static_cast<Wide>(found) - exact);
  if (found == rounded) return distance == 0 ? 0 : 0.5;
  const T next = std::nextafter(std::abs(rounded), std::numeric_limits<T>::infinity());
  return static_cast<double>(distance / (static_cast<Wide>(next) - static_cast<Wide>(std::abs(rounded))));
}

// The slow suite divides all f32 among parts that ctest runs beside one another.
#ifdef OUTRIDER_SLOW_TEST
constexpr bool kTakesAll = true;
constexpr uint32_t kParts = 16;
#else
constexpr bool kTakesAll = false;
constexpr uint32_t kParts = 1;
#endif

class PortableMathOfF32 : public testing::TestWithParam<uint32_t> {
 protected:
  // Calls visit(x) for f32 between the bounds: every one of this part, or every `stride`-th.
  template <typename Visit>
  static void each_float(float low, float high, uint32_t stride, Visit&& visit) {
    for (uint64_t bits = GetParam(); bits < uint64_t{1} << 32; bits += kTakesAll ? kParts : stride) {
      const auto x = std::bit_cast<float>(static_cast<uint32_t>(bits));
      if (x >= low && x <= high) visit(x);
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Parts, PortableMathOfF32, testing::Range(0U, kParts));

// Random f64 between the bounds.
template <typename Visit>
void random_doubles(double low, double high, Visit&& visit) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 300'000; ++i)
    visit(low + (high - low) * (static_cast<double>(random() >> 11) * 0x1.0p-53));
}

TEST_P(PortableMathOfF32, Exp) {
  double worst = 0;
  each_float(-110, 95, 1009, [&](float x) {
    worst = std::max(worst, units(portable_exp(x), std::exp(static_cast<double>(x))));
  });
  EXPECT_LT(worst, 0.51);
  EXPECT_EQ(portable_exp(0.0F), 1.0F);
  EXPECT_EQ(portable_exp(kInfinity), kInfinity);
  EXPECT_EQ(portable_exp(1e30F), kInfinity);
  EXPECT_EQ(portable_exp(-kInfinity), 0.0F);
  EXPECT_TRUE(std::isnan(portable_exp(std::nanf(""))));
}

TEST_P(PortableMathOfF32, Sigmoid) {
  double worst = 0;
  each_float(-87, 87, 1009, [&](float x) {
    worst = std::max(worst, units(portable_sigmoid(x), 1 / (1 + std::exp(-static_cast<double>(x)))));
  });
  EXPECT_LT(worst, 2.5);
  EXPECT_EQ(portable_sigmoid(kInfinity), 1.0F);
  EXPECT_EQ(portable_sigmoid(-kInfinity), 0.0F);
}

TEST(PortableMath, ExpOfF64) {
  double worst = 0;
  const auto visit = [&](double x) {
    worst = std::max(worst, units(portable_exp(x), std::exp(static_cast<long double>(x))));
  };
  random_doubles(-745, 709.7, visit);
  random_doubles(-1, 1, visit);
  random_doubles(-40, 0, visit);
  EXPECT_LT(worst, 1);
  EXPECT_EQ(portable_exp(0.0), 1.0);
  EXPECT_EQ(portable_exp(std::numeric_limits<double>::infinity()), std::numeric_limits<double>::infinity());
  EXPECT_EQ(portable_exp(-std::numeric_limits<double>::infinity()), 0.0);
  EXPECT_EQ(portable_exp(-1e300), 0.0);
  EXPECT_TRUE(std::isnan(portable_exp(std::nan(""))));
}

TEST(PortableMath, LogOfF64) {
  double worst = 0;
  const auto visit = [&](double x) {
    worst = std::max(worst, units(portable_log(x), std::log(static_cast<long double>(x))));
  };
  random_doubles(1e-17, 1, visit);
  random_doubles(0.5, 2, visit);
  random_doubles(0.999, 1.001, visit);
  random_doubles(-700, 700, [&](double x) { visit(std::exp(x)); });
  random_doubles(1e-320, 1e-308, visit);
  EXPECT_LT(worst, 1);
  EXPECT_EQ(portable_log(1.0), 0.0);
  EXPECT_EQ(portable_log(0.0), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(portable_log(std::numeric_limits<double>::infinity()), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(portable_log(-1.0)));
  EXPECT_TRUE(std::isnan(portable_log(std::nan(""))));
}

TEST(PortableMath, LogOfOneAndMore) {
  double worst = 0;
  const auto visit = [&](double x) {
    worst = std::max(worst, units(portable_log1p(x), std::log1p(static_cast<long double>(x))));
  };
  random_doubles(-0.5, 10, visit);
  random_doubles(-50, 3, [&](double x) { visit(std::exp(x)); });
  EXPECT_LT(worst, 2.5);
  EXPECT_EQ(portable_log1p(0.0), 0.0);
  EXPECT_EQ(portable_log1p(std::numeric_limits<double>::infinity()), std::numeric_limits<double>::infinity());
}

TEST_P(PortableMathOfF32, Powers) {
  double worst = 0;
  for (const float base : {10'000.0F, 500'000.0F, 1'000'000.0F}) {
    const double log = std::log(static_cast<double>(base));
    each_float(-2, 2, 4001, [&](float exponent) {
      worst =
          std::max(worst, units(portable_pow(base, exponent), std::exp(static_cast<double>(exponent) * log)));
    });
  }
  EXPECT_LT(worst, 0.51);
}

TEST_P(PortableMathOfF32, SineAndCosine) {
  double worst = 0;
  each_float(-0x1p24F, 0x1p24F, 2003, [&](float x) {
    const auto [sine, cosine] = portable_sine_and_cosine(static_cast<double>(x));
    const auto wide = static_cast<long double>(x);
    worst = std::max({worst, static_cast<double>(std::abs(static_cast<long double>(sine) - std::sin(wide))),
                      static_cast<double>(std::abs(static_cast<long double>(cosine) - std::cos(wide)))});
  });
  EXPECT_LT(worst, 0x1p-52);
}

// One number each, with its bits: a compiler that contracts would give others.
TEST(PortableMath, BitsAreTheSameEverywhere) {
  const auto bits = [](auto x) { return std::bit_cast<uint64_t>(static_cast<double>(x)); };
  uint64_t all = 0;
  random_doubles(-30, 30, [&](double x) {
    for (const uint64_t one : {bits(portable_exp(x)), bits(portable_exp(static_cast<float>(x))),
                               bits(portable_log(std::abs(x))), bits(portable_sine_and_cosine(x).sine)})
      all = all * 0x9E3779B97F4A7C15 + one;
  });
  EXPECT_EQ(all, 9207542770754900432U);
}

}  // namespace
}  // namespace outrider
