// SPDX-License-Identifier: Apache-2.0
#include "speculation/policy/speedup_estimate.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

// A step of five rows and three committed tokens: its pass takes `slowness` times the calibrated time, its
// draft 0.1 ms times `slowness`.
SpeedupEstimate::Step step(double slowness) {
  return {.rows = 5.0,
          .pass_ms = 1.4 * slowness,
          .plain_rows = 1.0,
          .plain_steps = 3.0,
          .ms = 1.4 * slowness + 0.1 * slowness};
}

constexpr double kTruth = 3.0 * 1.0 / 1.5;

SpeedupEstimate estimate() { return SpeedupEstimate(PassCosts({{1, 1.0, 0.0}, {5, 1.4, 0.0}})); }

TEST(SpeedupEstimate, IsUnknownUntilStepsAreWarm) {
  SpeedupEstimate speedup = estimate();
  SpeedupEstimate::Step cold = step(1.0);
  cold.ms *= 50.0;  // the drafter loads its weights and reads the prompt
  for (int i = 0; i < SpeedupEstimate::kStepsLeftOut; ++i) {
    speedup.learn(cold);
    EXPECT_EQ(speedup.value(), 0.0);
  }
  for (int i = 1; i < SpeedupEstimate::kMinSteps; ++i) {
    speedup.learn(step(1.0));
    EXPECT_EQ(speedup.value(), 0.0);
  }
  speedup.learn(step(1.0));
  EXPECT_NEAR(speedup.value(), kTruth, 1e-9);
}

// The costs were calibrated on an idle machine that is busy now.
TEST(SpeedupEstimate, AMachineThatBecameSlowerSlowsBothWays) {
  SpeedupEstimate speedup = estimate();
  for (int i = 0; i < 100; ++i) speedup.learn(step(i % 3 == 0 ? 7.0 : 2.0));
  EXPECT_NEAR(speedup.value(), kTruth, 1e-9);
}

TEST(SpeedupEstimate, NothingIsKnownWithoutCosts) {
  SpeedupEstimate speedup{PassCosts()};
  for (int i = 0; i < 100; ++i) speedup.learn(step(1.0));
  EXPECT_EQ(speedup.value(), 0.0);
}

}  // namespace
}  // namespace outrider
