// SPDX-License-Identifier: Apache-2.0
#include "device_kernels/rows/listed_rows.h"

#include <gtest/gtest.h>

#include "device_kernels/kernel_comparison.h"
#include "device_kernels/rows/split_pairs.h"

namespace outrider {
namespace {

constexpr int kListed = 11, kDim = 50, kFromStride = 60, kToStride = 70;

struct ListedCopy {
  bool lists_from, lists_to, has_factors;
};

// Rows of x by their numbers; some are zeros, and some are not written.
void compare_copies(const ListedCopy& one, uint64_t seed, BitComparison& comparison) {
  const Floats x = adversarial_floats(kListed * kFromStride, seed);
  const Floats factors = adversarial_floats(kListed, seed + 1);
  std::vector<int> from, to;
  for (int i = 0; i < kListed; ++i) {
    from.push_back(i % 4 == 1 ? -1 : (i * 7 + static_cast<int>(seed)) % kListed);
    to.push_back(i % 5 == 2 ? -1 : (i * 3 + static_cast<int>(seed)) % kListed);
  }
  Floats y(kListed * kToStride, 0.25F), expected = y;
  for (int i = 0; i < kListed; ++i) {
    const int source = one.lists_from ? from[static_cast<size_t>(i)] : i;
    const int target = one.lists_to ? to[static_cast<size_t>(i)] : i;
    for (int d = 0; d < kDim && target >= 0; ++d) {
      float number = source < 0 ? 0.0F : x[static_cast<size_t>(source * kFromStride + d)];
      if (one.has_factors && source >= 0) number *= factors[static_cast<size_t>(i)];
      expected[static_cast<size_t>(target * kToStride + d)] = number;
    }
  }
  const simt::ListedCopyArgs args{
      .x = rows_of(x),
      .y = rows_of(y),
      .from = one.lists_from ? rows_of(std::as_const(from)) : simt::Rows<const int>{},
      .to = one.lists_to ? rows_of(std::as_const(to)) : simt::Rows<const int>{},
      .factors = one.has_factors ? rows_of(factors) : simt::Rows<const float>{},
      .rows = kListed,
      .dim = kDim,
      .x_stride = kFromStride,
      .y_stride = kToStride};
  run_kernel(KernelName::kCopyListedRows, args, {.blocks = kListed, .warps = 2}, seed);
  comparison.add(expected, y);
}

TEST(DeviceListedRows, CopiesGoFromListToList) {
  BitComparison comparison;
  for (uint64_t seed = 1; comparison.compared() < kLeastOutputs; ++seed) {
    for (int kind = 0; kind < 8; ++kind)
      compare_copies({(kind & 1) != 0, (kind & 2) != 0, (kind & 4) != 0}, seed, comparison);
  }
  EXPECT_EQ(comparison.differing(), 0);
}

template <typename Operation>
void expect_operand(KernelName kernel, Operation&& operation) {
  BitComparison comparison;
  for (uint64_t seed = 1; comparison.compared() < kLeastOutputs; ++seed) {
    for (const int together : {1, 4}) {
      Floats x = adversarial_floats(kListed * kFromStride, seed), expected = x;
      const Floats y = adversarial_floats(kListed * kToStride, seed + 1);
      std::vector<int> list;
      for (int i = 0; i < kListed; ++i) list.push_back(i % 4 == 1 ? -1 : (i * 7) % kListed);
      for (int i = 0; i < kListed; ++i) {
        const int other = list[static_cast<size_t>(i / together)];
        for (int d = 0; d < kDim && other >= 0; ++d) {
          float& number = expected[static_cast<size_t>(i * kFromStride + d)];
          number = operation(number, y[static_cast<size_t>(other * kToStride + d)]);
        }
      }
      run_kernel(kernel,
                 simt::ListedOperandArgs{.x = rows_of(x),
                                         .y = rows_of(y),
                                         .list = rows_of(std::as_const(list)),
                                         .rows = kListed,
                                         .dim = kDim,
                                         .x_stride = kFromStride,
                                         .y_stride = kToStride,
                                         .together = together},
                 {.blocks = kListed, .warps = 2}, seed);
      comparison.add(expected, x);
    }
  }
  EXPECT_EQ(comparison.differing(), 0);
}

TEST(DeviceListedRows, Sums) {
  expect_operand(KernelName::kAddListedRows, [](float a, float b) { return a + b; });
}
TEST(DeviceListedRows, Products) {
  expect_operand(KernelName::kMultiplyListedRows, [](float a, float b) { return a * b; });
}

// Queries of three heads, whose last numbers turn, go to places of another size.
TEST(DeviceListedRows, PairsBecomeHalves) {
  for (const int dim : {2, 8, 64, 70}) {
    constexpr int kRows = 5, kParts = 3;
    const int x_part = dim + 7, y_part = dim + 30;
    const Floats x = adversarial_floats(static_cast<size_t>(kRows * kParts * x_part), 1);
    Floats y(static_cast<size_t>(kRows * (kParts + 1) * y_part), 0.25F), expected = y;
    for (int row = 0; row < kRows; ++row) {
      for (int part = 0; part < kParts; ++part) {
        const float* from = &x[static_cast<size_t>((row * kParts + part) * x_part)];
        float* to = &expected[static_cast<size_t>((row * (kParts + 1) + part) * y_part)];
        for (int i = 0; i < dim; ++i) to[i % 2 * (dim / 2) + i / 2] = from[i];
      }
    }
    run_kernel(KernelName::kSplitPairs,
               simt::SplitPairsArgs{.x = rows_of(x),
                                    .y = rows_of(y),
                                    .rows = kRows,
                                    .parts = kParts,
                                    .dim = dim,
                                    .x_row_stride = kParts * x_part,
                                    .x_part_stride = x_part,
                                    .y_row_stride = (kParts + 1) * y_part,
                                    .y_part_stride = y_part},
               {.blocks = 4, .warps = 4});
    EXPECT_EQ(y, expected) << dim;
  }
}

}  // namespace
}  // namespace outrider
