// SPDX-License-Identifier: Apache-2.0
#include "device_kernels/rows/elementwise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "base/portable_math.h"
#include "device_kernels/kernel_comparison.h"

namespace outrider {
namespace {

using Operation = std::function<float(float x, const Floats& y, int row, int i)>;

// Rows of 50 numbers, 60 apart, with 70 numbers of y for each; what is between rows stays as it is.
void compare_elementwise(KernelName kernel, const Operation& one, uint64_t seed, BitComparison& comparison) {
  constexpr int kRows = 7, kDim = 50, kStride = 60, kOther = 70;
  Floats x = adversarial_floats(kRows * kStride, seed), expected = x;
  const Floats y = adversarial_floats(kRows * kOther, seed + 1);
  x[3] = expected[3] = std::numeric_limits<float>::quiet_NaN();
  for (int row = 0; row < kRows; ++row) {
    for (int i = 0; i < kDim; ++i) {
      float& number = expected[static_cast<size_t>(row * kStride + i)];
      number = one(number, y, row * kOther, i);
    }
  }
  run_kernel(kernel,
             simt::ElementwiseArgs{.x = rows_of(x),
                                   .y = rows_of(y),
                                   .rows = kRows,
                                   .dim = kDim,
                                   .x_stride = kStride,
                                   .y_stride = kOther,
                                   .number = 0.7F},
             {.blocks = kRows, .warps = 2}, seed);
  comparison.add(expected, x);
}

void expect_elementwise(KernelName kernel, const Operation& one) {
  BitComparison comparison;
  for (uint64_t seed = 1; comparison.compared() < kLeastOutputs; ++seed)
    compare_elementwise(kernel, one, seed, comparison);
  EXPECT_EQ(comparison.differing(), 0);
}

TEST(DeviceElementwise, Add) {
  expect_elementwise(KernelName::kAddRows, [](float x, const Floats& y, int row, int i) {
    return x + y[static_cast<size_t>(row + i)];
  });
}
TEST(DeviceElementwise, AddScaledRows) {
  expect_elementwise(KernelName::kAddScaledRows, [](float x, const Floats& y, int row, int i) {
    return x + 0.7F * y[static_cast<size_t>(row + i)];
  });
}
TEST(DeviceElementwise, MultiplyRows) {
  expect_elementwise(KernelName::kMultiplyRows, [](float x, const Floats& y, int row, int i) {
    return x * y[static_cast<size_t>(row + i)];
  });
}
TEST(DeviceElementwise, MultiplySigmoid) {
  expect_elementwise(KernelName::kMultiplySigmoid, [](float x, const Floats& y, int row, int i) {
    return x * portable_sigmoid(y[static_cast<size_t>(row + i)]);
  });
}
TEST(DeviceElementwise, GateRows) {
  expect_elementwise(KernelName::kGateRows, [](float x, const Floats& y, int row, int) {
    return x * portable_sigmoid(y[static_cast<size_t>(row)]);
  });
}
TEST(DeviceElementwise, AddPortableSilu) {
  expect_elementwise(KernelName::kAddPortableSilu, [](float x, const Floats& y, int row, int i) {
    const float number = y[static_cast<size_t>(row + i)];
    return x + number / (1.0F + portable_exp(-number));
  });
}
TEST(DeviceElementwise, MultiplySilu) {
  OUTRIDER_REQUIRE_TABLES();
  expect_elementwise(KernelName::kMultiplySilu, [](float x, const Floats& y, int row, int i) {
    float silu = 0.0F;
    compared_tables().front()->activate(
        {.x = &y[static_cast<size_t>(row + i)], .y = &silu, .rows = 1, .dim = 1, .is_gated = false},
        Worker{});
    return x * silu;
  });
}
TEST(DeviceElementwise, ScaleNumbers) {
  expect_elementwise(KernelName::kScaleNumbers, [](float x, const Floats&, int, int) { return x * 0.7F; });
}
TEST(DeviceElementwise, ScaleRows) {
  expect_elementwise(KernelName::kScaleRows,
                     [](float x, const Floats& y, int row, int) { return x * y[static_cast<size_t>(row)]; });
}
TEST(DeviceElementwise, ClampNumbers) {
  expect_elementwise(KernelName::kClampNumbers,
                     [](float x, const Floats&, int, int) { return std::clamp(x, -0.7F, 0.7F); });
}

}  // namespace
}  // namespace outrider
