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

TEST(LayerNorm, AgreesWithDoublePrecision) {
  for (const KernelTable* table : tables_to_test()) {
    for (int64_t dim : {2, 7, 16, 63, 64, 65, 576, 1031}) {
      constexpr int64_t kRows = 5;
      constexpr float kEpsilon = 1e-5F;
      Floats x = random_floats(kRows * dim, 1, 3);
      for (float& number : x) number += 2;
      const Floats weight = random_floats(dim, 2), bias = random_floats(dim, 3);
      Floats y(x.size());
      run_shares(2, [&](Worker worker) {
        table->layer_norm({x.data(), weight.data(), y.data(), kRows, dim, kEpsilon, bias.data()}, worker);
      });
      for (int64_t r = 0; r < kRows; ++r) {
        double mean = 0, variance = 0;
        for (int64_t i = 0; i < dim; ++i) mean += x[r * dim + i] / static_cast<double>(dim);
        for (int64_t i = 0; i < dim; ++i) variance += std::pow(x[r * dim + i] - mean, 2) / dim;
        for (int64_t i = 0; i < dim; ++i) {
          const double expected =
              (x[r * dim + i] - mean) / std::sqrt(variance + kEpsilon) * weight[i] + bias[i];
          ASSERT_NEAR(y[r * dim + i], expected, 1e-5) << table->name << " dim " << dim;
        }
      }
    }
  }
}

TEST(LayerNorm, WorksInPlaceAndWithoutBias) {
  for (const KernelTable* table : tables_to_test()) {
    constexpr int64_t kDim = 100;
    Floats x = random_floats(kDim, 3);
    const Floats weight = random_floats(kDim, 4), zeros(kDim);
    Floats y(kDim);
    table->layer_norm({x.data(), weight.data(), y.data(), 1, kDim, 1e-6F, zeros.data()}, {});
    table->layer_norm({x.data(), weight.data(), x.data(), 1, kDim, 1e-6F}, {});
    EXPECT_EQ(x, y) << table->name;
  }
}

// This holds also where the state is written over, and where the value size is no multiple of a vector. The
// numbers of steps of one head, with states as matrices in the order of DeltaArgs::place.
struct DeltaSteps {
  static constexpr int64_t kKeyDim = 20;

  DeltaSteps(int count, int64_t value_dim)
      : value_dim(value_dim),
        k(random_floats(count * kKeyDim, 2, 0.3F)),
        q(random_floats(count * kKeyDim, 3)),
        v(random_floats(count * value_dim, 4)),
        y(v.size()) {}

  DeltaArgs at(int step, const Floats& state, Floats& new_state) {
    return {.state = state.data(),
            .new_state = new_state.data(),
            .y = y.data() + step * value_dim,
            .q = q.data() + step * kKeyDim,
            .k = k.data() + step * kKeyDim,
            .v = v.data() + step * value_dim,
            .decay = 0.9F,
            .rate = 0.4F,
            .key_dim = kKeyDim,
            .value_dim = value_dim};
  }

  int64_t value_dim;
  Floats k, q, v, y;
};

TEST(DeltaSteps, AgreeWithDoublePrecision) {
  for (const KernelTable* table : tables_to_test()) {
    for (const int64_t value_dim : {1, 12, 64, 129}) {
      constexpr int64_t kKeyDim = DeltaSteps::kKeyDim;
      const Floats state = random_floats(kKeyDim * value_dim, 1);
      Floats after(state.size());
      DeltaSteps one(1, value_dim);
      const DeltaArgs args = one.at(0, state, after);
      table->delta_steps(&args, 1);
      for (int64_t j = 0; j < value_dim; ++j) {
        double known = 0, sum = 0;
        for (int64_t i = 0; i < kKeyDim; ++i) known += 0.9 * state[args.place(i, j)] * one.k[i];
        for (int64_t i = 0; i < kKeyDim; ++i) {
          const double expected = 0.9 * state[args.place(i, j)] + one.k[i] * 0.4 * (one.v[j] - known);
          ASSERT_NEAR(after[args.place(i, j)], expected, 1e-5) << table->name << " size " << value_dim;
          sum += expected * one.q[i];
        }
        ASSERT_NEAR(one.y[j], sum, 1e-4) << table->name << " size " << value_dim;
      }
    }
  }
}

// Two branches of three steps each: first both from one state, then each in its own place. A single step is
// not in place.
TEST(DeltaSteps, HaveTheBitsOfStepsOneByOne) {
  for (const KernelTable* table : tables_to_test()) {
    for (const int64_t value_dim : {12, 64, 128, 129}) {
      const Floats state = random_floats(DeltaSteps::kKeyDim * value_dim, 1);
      Floats left(state.size()), right(state.size()), left_alone(state.size()), right_alone(state.size());
      DeltaSteps steps(6, value_dim), alone(6, value_dim);
      const std::vector<DeltaArgs> together = {steps.at(0, state, left), steps.at(1, state, right),
                                               steps.at(2, left, left),  steps.at(3, right, right),
                                               steps.at(4, left, left),  steps.at(5, right, right)};
      table->delta_steps(together.data(), std::ssize(together));
      for (int step = 0; step < 6; ++step) {
        Floats& after = step % 2 == 0 ? left_alone : right_alone;
        const Floats before = step < 2 ? state : after;
        const DeltaArgs args = alone.at(step, before, after);
        table->delta_steps(&args, 1);
      }
      EXPECT_EQ(left, left_alone) << table->name << " size " << value_dim;
      EXPECT_EQ(right, right_alone) << table->name << " size " << value_dim;
      EXPECT_EQ(steps.y, alone.y) << table->name << " size " << value_dim;
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
        fill_rotations(positions[r], frequency, 1, rotations.data() + r * head_dim);
      Floats y = x;
      run_shares(2, [&](Worker worker) {
        table->rope({y.data(), rotations.data(), rows, kHeads, head_dim, head_dim}, worker);
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

// Numbers after the rotated ones stay, and a factor scales the others.
TEST(Rope, TurnsAndScalesTheFirstNumbersOfAHead) {
  constexpr int64_t kHeads = 2, kHeadDim = 20, kRotated = 10;
  const Floats frequency = {1, 0.5F, 0.25F, 0.1F, 0.01F};
  Floats rotations(kRotated);
  fill_rotations(7, frequency, 1.25F, rotations.data());
  const Floats x = random_floats(kHeads * kHeadDim, 11);
  for (const KernelTable* table : tables_to_test()) {
    Floats y = x;
    table->rope({y.data(), rotations.data(), 1, kHeads, kHeadDim, kRotated}, {});
    for (int64_t i = 0; i < kHeads * kHeadDim; ++i) {
      const int64_t place = i % kHeadDim;
      const int64_t pair = place % (kRotated / 2);
      const double angle = 7.0 * static_cast<double>(frequency[pair]);
      const double sign = place < kRotated / 2 ? -1 : 1;
      const double other = place < kRotated ? x[i - static_cast<int64_t>(sign) * (kRotated / 2)] : 0;
      const double turned = 1.25 * (x[i] * std::cos(angle) + sign * other * std::sin(angle));
      ASSERT_NEAR(y[i], place < kRotated ? turned : x[i], 1e-6) << table->name << " " << i;
    }
  }
}

TEST(Softcap, AgreesWithDoublePrecision) {
  constexpr double kCap = 30;
  for (const KernelTable* table : tables_to_test()) {
    Floats x;
    for (float number = -400; number < 400; number += 0.317F) x.push_back(number);
    Floats y = x;
    run_shares(3, [&](Worker worker) {
      table->softcap({y.data(), std::ssize(y), static_cast<float>(kCap)}, worker);
    });
    for (size_t i = 0; i < x.size(); ++i)
      ASSERT_NEAR(y[i], kCap * std::tanh(x[i] / kCap), 3e-7 * kCap) << table->name << " " << x[i];
  }
}

constexpr Activation kActivations[] = {Activation::kSilu, Activation::kGelu, Activation::kGeluTanh,
                                       Activation::kRelu};

double activated_exactly(Activation activation, double x) {
  switch (activation) {
    case Activation::kSilu:
      return x / (1 + std::exp(-x));
    case Activation::kGelu:
      return x * std::erfc(-x / std::sqrt(2.0)) / 2;
    case Activation::kGeluTanh:
      return x * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x))) / 2;
    case Activation::kRelu:
      return std::max(x, 0.0);
    case Activation::kClampedSwiglu:
      return std::min(x, 7.0) / (1 + std::exp(-1.702 * std::min(x, 7.0)));
  }
  return 0;
}

float activate_one(const KernelTable& table, Activation activation, float x) {
  float y = 0;
  table.activate({.x = &x, .y = &y, .rows = 1, .dim = 1, .activation = activation, .is_gated = false}, {});
  return y;
}

TEST(Activate, AgreesWithDoublePrecision) {
  for (const KernelTable* table : tables_to_test()) {
    for (const Activation activation : kActivations) {
      for (int64_t dim : {1, 17, 64, 333}) {
        constexpr int64_t kRows = 7;
        const Floats x = random_floats(kRows * 2 * dim, 6, 2);
        Floats gated(kRows * dim), plain(2 * kRows * dim);
        run_shares(3, [&](Worker worker) {
          table->activate({x.data(), gated.data(), kRows, dim, activation, true}, worker);
          table->activate({x.data(), plain.data(), 2 * kRows, dim, activation, false}, worker);
        });
        for (int64_t i = 0; i < std::ssize(x); ++i) {
          const double expected = activated_exactly(activation, x[i]);
          // Relative to x: where x is negative, f32 cannot tell GELU's result more exactly.
          ASSERT_NEAR(plain[i], expected, 5e-7 * std::abs(x[i])) << table->name << " " << x[i];
        }
        for (int64_t i = 0; i < std::ssize(gated); ++i) {
          const int64_t at = i / dim * 2 * dim + i % dim;
          const double up = x[at + dim];
          ASSERT_NEAR(gated[i], activated_exactly(activation, x[at]) * up, 5e-7 * std::abs(x[at] * up))
              << table->name << " " << x[at];
        }
      }
    }
  }
}

TEST(Activate, ClampedSwigluAgreesWithDoublePrecision) {
  constexpr auto kActivation = Activation::kClampedSwiglu;
  for (const KernelTable* table : tables_to_test()) {
    for (float gate = -40; gate < 12; gate += 0.37F) {
      for (float up = -12; up < 12; up += 0.71F) {
        const float x[] = {gate, up};
        float y = 0;
        table->activate({x, &y, 1, 1, kActivation, true}, {});
        const double factor = 1 + std::clamp<double>(up, -7, 7);
        ASSERT_NEAR(y, activated_exactly(kActivation, gate) * factor, 5e-7 * std::abs(gate * factor) + 1e-7)
            << table->name << " " << gate << " " << up;
      }
    }
    const float nan = std::nanf("");
    const float x[] = {nan, 1, 1, nan};
    float y[2] = {};
    table->activate({x, y, 1, 2, kActivation, true}, {});
    EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[1])) << table->name;
  }
}

// The exponential on its whole range, seen through silu(x).
TEST(Activate, ExponentialIsAccurateEverywhere) {
  for (const KernelTable* table : tables_to_test()) {
    for (float x = -100; x < 100; x += 0.0371F) {
      const double expected = activated_exactly(Activation::kSilu, x);
      // Below -87 the exponential's reciprocal is subnormal, or zero once the exponential overflows.
      ASSERT_NEAR(activate_one(*table, Activation::kSilu, x), expected,
                  4e-7 * std::abs(expected) + (x < -86 ? 2e-36 : 0))
          << table->name << " " << x;
    }
  }
}

TEST(Activate, GeluIsAccurateInItsTail) {
  for (const KernelTable* table : tables_to_test()) {
    for (float x = -10; x < 10; x += 0.0371F) {
      const double expected = activated_exactly(Activation::kGelu, x);
      ASSERT_NEAR(activate_one(*table, Activation::kGelu, x), expected, 2e-5 * std::abs(expected))
          << table->name << " " << x;
    }
  }
}

TEST(Activate, ExtremesStayInTheirPlace) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const KernelTable* table : tables_to_test()) {
    for (const Activation activation : kActivations) {
      const float x[] = {1e30F, -1e30F, kInfinity, std::nanf(""), 0, 1, 1, 1, 1, 1};
      float y[5] = {};
      table->activate({x, y, 1, 5, activation, true}, {});
      EXPECT_EQ(y[0], 1e30F) << table->name;
      EXPECT_EQ(y[1], 0) << table->name;
      EXPECT_EQ(y[2], kInfinity) << table->name;
      EXPECT_TRUE(std::isnan(y[3])) << table->name;
      EXPECT_EQ(y[4], 0) << table->name;
    }
  }
}

}  // namespace
}  // namespace outrider
