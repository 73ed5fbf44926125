// SPDX-License-Identifier: Apache-2.0
#include "models/rotary_embedding.h"

#include <gtest/gtest.h>

#include <cmath>

namespace outrider {
namespace {

RopeScaling scaling_of(RopeScalingKind kind, double factor, int64_t original_context) {
  RopeScaling scaling;
  scaling.kind = kind;
  scaling.factor = factor;
  scaling.original_context = original_context;
  return scaling;
}

TEST(RotaryEmbedding, Llama3KeepsShortWavesAndStretchesLongOnes) {
  RopeTraits traits{.scaling = scaling_of(RopeScalingKind::kLlama3, 8, 128)};
  // Unscaled 1, 0.1, 0.01, 0.001: wavelengths 6.3 (< 128 / 4: kept), 62.8 (between), 628 and 6283 (> 128).
  const auto frequencies = rope_inverse_frequencies(traits, 8);
  ASSERT_EQ(frequencies.size(), 4u);
  EXPECT_FLOAT_EQ(frequencies[0], 1);
  const float kept = (128 / 62.831853f - 1) / 3;
  EXPECT_NEAR(frequencies[1], (1 - kept) * 0.1f / 8 + kept * 0.1f, 1e-7);
  EXPECT_NEAR(frequencies[2], 0.01f / 8, 1e-9);
  EXPECT_NEAR(frequencies[3], 0.001f / 8, 1e-10);
}

TEST(RotaryEmbedding, YarnKeepsFastFrequenciesAndDividesSlowOnes) {
  RopeTraits traits{.scaling = scaling_of(RopeScalingKind::kYarn, 4, 4096)};
  const auto frequencies = rope_inverse_frequencies(traits, 128);
  // 32 turns within 4096 positions are at frequency number 20.9, one turn is at 45.03.
  EXPECT_FLOAT_EQ(frequencies[20], std::pow(10000.0F, -20.0F / 64));
  EXPECT_FLOAT_EQ(frequencies[46], std::pow(10000.0F, -46.0F / 64) / 4);
  const float kept = 1 - (33.0F - 20) / (46 - 20);
  EXPECT_NEAR(frequencies[33], std::pow(10000.0F, -33.0F / 64) * (kept + (1 - kept) / 4), 1e-7);
}

TEST(RotaryEmbedding, LongRopeHasDivisorsForShortAndForLongContexts) {
  RopeTraits traits{.scaling = scaling_of(RopeScalingKind::kLongRope, 4, 64)};
  traits.rotated_dim = 4;
  traits.scaling.frequency_divisors = {1, 2};
  traits.scaling.long_divisors = {3, 5};
  EXPECT_EQ(rope_inverse_frequencies(traits, 8), rope_inverse_frequencies(traits, 8, 64));
  EXPECT_FLOAT_EQ(rope_inverse_frequencies(traits, 8)[1], 0.01F / 2);
  EXPECT_FLOAT_EQ(rope_inverse_frequencies(traits, 8, 65)[1], 0.01F / 5);
}

TEST(RotaryEmbedding, DynamicScalingGrowsTheBaseWithThePositionOfTheRow) {
  const RopeTraits traits{.scaling = scaling_of(RopeScalingKind::kDynamic, 2, 16)};
  const RotaryEmbedding rope(traits, 8, 0);
  ASSERT_EQ(rope.rotated(), 8);
  float rotations[8];
  rope.fill(15, rotations);
  EXPECT_FLOAT_EQ(rotations[1], std::cos(1.5F));
  rope.fill(23, rotations);  // 24 tokens: a stretch of 1.5
  const double base = 10000 * std::pow(2 * 1.5 - 1, 8.0 / 6);
  EXPECT_NEAR(rotations[1], std::cos(23 * std::pow(base, -0.25)), 1e-5);
  EXPECT_NEAR(rotations[4 + 3], std::sin(23 * std::pow(base, -0.75)), 1e-6);
}

}  // namespace
}  // namespace outrider
