// SPDX-License-Identifier: Apache-2.0
#include "cli/proof/uniformity.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/counter_rng.h"

namespace outrider {
namespace {

double draw(uint64_t number) { return random_uniform({.seed = 5, .index = number}); }

TEST(UniformSample, TheDeviationIsKolmogorovs) {
  UniformSample sample;
  EXPECT_EQ(sample.deviation(), 0.0);
  for (const double u : {0.5, 0.1}) sample.add(u);
  EXPECT_NEAR(sample.deviation(), 0.5 * std::sqrt(2.0), 1e-15);  // all lie below 0.5
  EXPECT_EQ(sample.count(), 2);
}

TEST(UniformSample, UniformNumbersPassAndBiasedOnesDoNot) {
  UniformSample uniform, biased;
  for (uint64_t i = 0; i < 4000; ++i) {
    uniform.add(draw(i));
    biased.add(std::pow(draw(i), 1.15));
  }
  EXPECT_LT(uniform.deviation(), UniformSample::kMaxDeviation);
  EXPECT_GT(biased.deviation(), UniformSample::kMaxDeviation);
}

}  // namespace
}  // namespace outrider
