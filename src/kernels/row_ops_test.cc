// SPDX-License-Identifier: Apache-2.0
// Normalisation, rotation and activation against double precision.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/kernel_test_data.h"

namespace outrider {
namespace {

TEST(RmsNorm, AgreesWithDoublePrecision) {
  for (const KernelTable* table : tables_to_test()) {
    for (int64_t dim : {1, 7, 16, 63, 64, 65, 576, 1031}) {
      constexpr int64_t kRows = 5;
      constexpr float kEpsilon = 1e-5F;
      const Floats x = random_floats(kRows * dim, 1, 3);
      const Floats weight = random_floats(dim, 2);
      Floats y(x.size());
      run_shares(2, [&](Worker worker) {
        table->rms_norm({x.data(), weight.data(), y.data(), kRows, dim, kEpsilon}, worker);
      });
      for (int64_t r = 0; r < kRows; ++r) {
        double sum = 0;
        for (int64_t i = 0; i < dim; ++i) sum += std::pow(static_cast<double>(x[r * dim + i]), 2);
        for (int64_t i = 0; i < dim; ++i) {
          const double expected = x[r * dim + i] / std::sqrt(sum / dim + kEpsilon) * weight[i];
          ASSERT_NEAR(y[r * dim + i], expected, 1e-6 * std::abs(expected)) << table->name << " dim " << dim;
        }
      }
    }
  }
}

TEST(RmsNorm, WorksInPlace) {
  for (const KernelTable* table : tables_to_test()) {
    constexpr int64_t kDim = 100;
    Floats x = random_floats(kDim, 3);
    const Floats weight = random_floats(kDim, 4);
    Floats y(kDim);
    table->rms_norm({x.data(), weight.data(), y.data(), 1, kDim, 1e-6F}, {});
    table->rms_norm({x.data(), weight.data(), x.data(), 1, kDim, 1e-6F}, {});
    EXPECT_EQ(x, y) << table->name;
  }
}

// The angle is a product of two f32 rounded to f32, as in Hugging Face's models; the rest is exact
// mathematics.
TEST(Rope, AgreesWithDoublePrecisionAtFarPositions) {
  for (const KernelTable* table : tables_to_test()) {
    for (int64_t head_dim : {2, 64, 80, 256}) {
      constexpr int64_t kHeads = 3;
      const std::vector<int32_t> positions = {0, 1, 500, 8192, 131071};
      const auto rows = static_cast<int64_t>(positions.size());
      Floats frequency(static_cast<size_t>(head_dim / 2));
      for (int64_t i = 0; i < head_dim / 2; ++i)
        frequency[i] = static_cast<float>(std::pow(10000.0, -2.0 * i / head_dim));
      const Floats x = random_floats(rows * kHeads * head_dim, 5);
      Floats rotations(static_cast<size_t>(rows * head_dim));
      for (int64_t r = 0; r < rows; ++r)
        fill_rotations(positions[r], frequency, rotations.data() + r * head_dim);
      Floats y = x;
      run_shares(2, [&](Worker worker) {
        table->rope({y.data(), rotations.data(), rows, kHeads, head_dim}, worker);
      });
      for (int64_t i = 0; i < rows * kHeads * (head_dim / 2); ++i) {
        const int64_t pair = i % (head_dim / 2);
        const int64_t head = i / (head_dim / 2);
        const double a = x[head * head_dim + pair];
        const double b = x[head * head_dim + head_dim / 2 + pair];
        const float angle = static_cast<float>(positions[head / kHeads]) * frequency[pair];
        const double cosine = std::cos(static_cast<double>(angle)),
                     sine = std::sin(static_cast<double>(angle));
        ASSERT_NEAR(y[head * head_dim + pair], a * cosine - b * sine, 1e-6) << table->name;
        ASSERT_NEAR(y[head * head_dim + head_dim / 2 + pair], b * cosine + a * sine, 1e-6) << table->name;
      }
    }
  }
}

TEST(Swiglu, AgreesWithDoublePrecision) {
  for (const KernelTable* table : tables_to_test()) {
    for (int64_t dim : {1, 17, 64, 333}) {
      constexpr int64_t kRows = 7;
      Floats gate_up = random_floats(kRows * 2 * dim, 6, 10);
      Floats y(kRows * dim);
      run_shares(3, [&](Worker worker) { table->swiglu(gate_up.data(), y.data(), kRows, dim, worker); });
      for (int64_t i = 0; i < kRows * dim; ++i) {
        const double gate = gate_up[i / dim * 2 * dim + i % dim];
        const double up = gate_up[i / dim * 2 * dim + dim + i % dim];
        const double expected = gate / (1 + std::exp(-gate)) * up;
        ASSERT_NEAR(y[i], expected, 5e-7 * std::abs(expected)) << table->name << " gate " << gate;
      }
    }
  }
}

// The exponential on its whole range, seen through silu(-x) * 1.
TEST(Swiglu, ExponentialIsAccurateEverywhere) {
  for (const KernelTable* table : tables_to_test()) {
    for (float gate = -100; gate < 100; gate += 0.0371F) {
      const float gate_up[] = {gate, 1};
      float y = 0;
      table->swiglu(gate_up, &y, 1, 1, {});
      const double expected = gate / (1 + std::exp(-static_cast<double>(gate)));
      // Below -87 the exponential's reciprocal is subnormal, or zero once the exponential overflows.
      ASSERT_NEAR(y, expected, 4e-7 * std::abs(expected) + (gate < -86 ? 2e-36 : 0))
          << table->name << " " << gate;
    }
  }
}

TEST(Swiglu, ExtremesStayInTheirPlace) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const KernelTable* table : tables_to_test()) {
    const float gate_up[] = {1e30F, -1e30F, kInfinity, std::nanf(""), 0, 1, 1, 1, 1, 1};
    float y[5] = {};
    table->swiglu(gate_up, y, 1, 5, {});
    EXPECT_EQ(y[0], 1e30F) << table->name;
    EXPECT_EQ(y[1], 0) << table->name;
    EXPECT_EQ(y[2], kInfinity) << table->name;
    EXPECT_TRUE(std::isnan(y[3])) << table->name;
    EXPECT_EQ(y[4], 0) << table->name;
  }
}

}  // namespace
}  // namespace outrider
