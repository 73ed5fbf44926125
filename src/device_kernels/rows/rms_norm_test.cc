// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <limits>

#include "device_kernels/kernel_comparison.h"

namespace outrider {
namespace {

struct NormCase {
  int rows;
  int dim;
  bool has_delta;
  int warps;
  uint64_t seed;
};

// x + delta and its norm by the device kernel, for rows between two rows of NaN.
void compare_norm(const ComparedTable& compared, const NormCase& one, BitComparison& comparison) {
  const auto size = static_cast<size_t>(one.rows * one.dim);
  Floats x = adversarial_floats(size, one.seed), delta = adversarial_floats(size, one.seed + 9);
  Floats weight = random_floats(static_cast<size_t>(one.dim), one.seed + 5);
  if (one.rows > 2) std::fill_n(x.begin() + one.dim, one.dim, std::numeric_limits<float>::quiet_NaN());
  Floats sum = x, expected(size);
  for (size_t i = 0; one.has_delta && i < size; ++i) sum[i] += delta[i];
  compared.table->rms_norm({.x = sum.data(),
                            .weight = weight.data(),
                            .y = expected.data(),
                            .rows = one.rows,
                            .dim = one.dim,
                            .epsilon = 1e-5F},
                           Worker{});
  Floats y(size, 7.0F);
  simt::RmsNormArgs args{.x = rows_of(x),
                         .delta = {},
                         .weight = weights_of_test(weight),
                         .y = rows_of(y),
                         .rows = one.rows,
                         .dim = one.dim,
                         .x_stride = one.dim,
                         .y_stride = one.dim,
                         .epsilon = 1e-5F};
  if (one.has_delta) args.delta = rows_of(std::as_const(delta));
  run_kernel(compared.width == 8 ? KernelName::kRmsNorm8 : KernelName::kRmsNorm16, args,
             {.blocks = (one.rows + one.warps - 1) / one.warps, .warps = one.warps}, one.seed);
  comparison.add(expected, y);
  comparison.add(sum, x);
}

TEST(DeviceRmsNorm, EqualsTheTables) {
  OUTRIDER_REQUIRE_TABLES();
  BitComparison comparison;
  for (uint64_t seed = 1; comparison.compared() < kLeastOutputs; ++seed) {
    for (const ComparedTable& table : compared_tables()) {
      for (const int dim : {16, 48, 64, 160, 576, 2048, 2050}) {
        for (const int rows : {1, 5})
          compare_norm(table, {rows, dim, seed % 2 == 0, seed % 3 == 0 ? 2 : 8, seed}, comparison);
      }
    }
  }
  EXPECT_EQ(comparison.differing(), 0);
}

}  // namespace
}  // namespace outrider
