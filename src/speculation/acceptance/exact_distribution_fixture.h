// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <iostream>

#include "speculation/acceptance/exact_distribution_test.h"

namespace outrider {

// Checks scenarios by enumeration and prints their number at the end.
class ExactDistributionTest : public testing::Test {
 protected:
  static constexpr double kLargestTotalVariation = 1e-12;

  void expect_lossless(const Scenario& scenario) {
    const ExactComparison comparison = compare_with_target(scenario);
    ++scenarios_;
    outcomes_ += comparison.outcomes;
    ASSERT_NEAR(comparison.total_weight, 1.0, kLargestTotalVariation) << "scenario " << scenarios_;
    ASSERT_LE(comparison.total_variation, kLargestTotalVariation) << "scenario " << scenarios_;
  }

  void TearDown() override { std::cout << scenarios_ << " scenarios, " << outcomes_ << " outcomes\n"; }

  int scenarios_ = 0;
  int64_t outcomes_ = 0;
};

}  // namespace outrider
