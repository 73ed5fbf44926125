// SPDX-License-Identifier: Apache-2.0
#include "device_kernels/rows/columns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/portable_math.h"
#include "device_kernels/kernel_comparison.h"

namespace outrider {
namespace {

constexpr int kRowsOfColumns = 3, kCount = 40, kWidth = 75, kBaseRows = 2;

// Columns in any order, with numbers around them that have none.
void compare_columns(bool has_base, uint64_t seed, BitComparison& comparison) {
  const Floats x = adversarial_floats(kRowsOfColumns * kCount, seed),
               base = adversarial_floats(kBaseRows * kWidth, seed + 1);
  std::vector<int> columns(kWidth), places(kWidth, -1);
  std::iota(columns.begin(), columns.end(), 0);
  std::ranges::shuffle(columns, std::mt19937_64(seed));
  Floats expected, y(kRowsOfColumns * kWidth);
  for (int row = 0; row < kRowsOfColumns; ++row) {
    Floats one(kWidth, -std::numeric_limits<float>::infinity());
    if (has_base) std::copy_n(base.begin() + row % kBaseRows * kWidth, kWidth, one.begin());
    for (size_t i = 0; i < kCount; ++i) {
      const auto column = static_cast<size_t>(columns[i]);
      const float number = x[static_cast<size_t>(row * kCount) + i];
      one[column] = has_base ? one[column] + number : number;
      places[column] = static_cast<int>(i);
    }
    expected.insert(expected.end(), one.begin(), one.end());
  }
  run_kernel(KernelName::kPlaceColumns,
             simt::ColumnsArgs{.x = rows_of(x),
                               .base = has_base ? rows_of(base) : simt::Rows<const float>{},
                               .places = {places.data(), kWidth},
                               .y = rows_of(y),
                               .rows = kRowsOfColumns,
                               .count = kCount,
                               .width = kWidth,
                               .base_rows = kBaseRows},
             {.blocks = 5, .warps = 2}, seed);
  comparison.add(expected, y);
}

TEST(DeviceColumns, EveryColumnHasItsPlace) {
  BitComparison comparison;
  for (uint64_t seed = 1; comparison.compared() < kLeastOutputs; ++seed) {
    compare_columns(false, seed, comparison);
    compare_columns(true, seed, comparison);
  }
  EXPECT_EQ(comparison.differing(), 0);
}

TEST(DeviceColumns, MeansAddQuotients) {
  constexpr int kDim = 50;
  BitComparison comparison;
  for (uint64_t seed = 1; comparison.compared() < kLeastOutputs; ++seed) {
    const int count = static_cast<int>(1 + seed % 7);
    const Floats x = adversarial_floats(static_cast<size_t>(kRowsOfColumns * count * kDim), seed);
    Floats expected(kRowsOfColumns * kDim), y(expected.size());
    for (int row = 0; row < kRowsOfColumns * count; ++row) {
      for (int i = 0; i < kDim; ++i)
        expected[static_cast<size_t>(row / count * kDim + i)] +=
            x[static_cast<size_t>(row * kDim + i)] / static_cast<float>(count);
    }
    run_kernel(KernelName::kMeans,
               simt::MeansArgs{
                   .x = rows_of(x), .y = rows_of(y), .rows = kRowsOfColumns, .count = count, .dim = kDim},
               {.blocks = 3, .warps = 2}, seed);
    comparison.add(expected, y);
  }
  EXPECT_EQ(comparison.differing(), 0);
}

TEST(DeviceColumns, CellsTakeSteps) {
  constexpr int kDim = 50;
  const auto tanh_of = [](float x) { return 2 * portable_sigmoid(2 * x) - 1; };
  BitComparison comparison;
  for (uint64_t seed = 1; comparison.compared() < kLeastOutputs; ++seed) {
    const Floats x = adversarial_floats(kRowsOfColumns * 3 * kDim, seed);
    const Floats before = adversarial_floats(kRowsOfColumns * kDim, seed + 1);
    Floats cells(before.size()), y(before.size()), expected_cells(before.size()), expected(before.size());
    for (size_t i = 0; i < before.size(); ++i) {
      const float* const own = &x[i / kDim * 3 * kDim + i % kDim];
      const float gate = portable_sigmoid(own[0]);
      expected_cells[i] = gate * before[i] + (1 - gate) * tanh_of(own[kDim]);
      expected[i] = tanh_of(own[2 * kDim]);
    }
    run_kernel(KernelName::kStepCells,
               simt::CellStepArgs{.x = rows_of(x),
                                  .before = rows_of(before),
                                  .cells = rows_of(cells),
                                  .y = rows_of(y),
                                  .rows = kRowsOfColumns,
                                  .dim = kDim},
               {.blocks = kRowsOfColumns, .warps = 2}, seed);
    comparison.add(expected_cells, cells);
    comparison.add(expected, y);
  }
  EXPECT_EQ(comparison.differing(), 0);
}

// Seven places in blocks of three or four: the last block is not full.
void compare_block_convolution(int taps, int places, uint64_t seed, BitComparison& comparison) {
  constexpr int kRows = 7, kChannels = 72, kGroup = 8, kWeights = 40;
  const Floats base = adversarial_floats(static_cast<size_t>(taps * kChannels), seed);
  const Floats weights = adversarial_floats(kRows * kWeights, seed + 1);
  Floats x = adversarial_floats(kRows * kChannels, seed + 2), expected(x.size());
  for (int row = 0; row < kRows; ++row) {
    for (int channel = 0; channel < kChannels; ++channel) {
      float sum = 0.0F;
      for (int tap = 0; tap < taps && tap <= row % places; ++tap) {
        const float own =
            weights[static_cast<size_t>(row * kWeights + tap * (kChannels / kGroup) + channel / kGroup)];
        sum += (base[static_cast<size_t>(tap * kChannels + channel)] + own) *
               x[static_cast<size_t>((row - tap) * kChannels + channel)];
      }
      expected[static_cast<size_t>(row * kChannels + channel)] = sum;
    }
  }
  const int blocks = (kRows + places - 1) / places;
  run_kernel(KernelName::kConvolveBlocks,
             simt::BlockConvolutionArgs{.base = weights_of_test(base),
                                        .weights = rows_of(weights),
                                        .x = rows_of(x),
                                        .rows = kRows,
                                        .places = places,
                                        .taps = taps,
                                        .dim = kChannels,
                                        .group = kGroup,
                                        .weight_stride = kWeights},
             {.blocks = blocks * 3, .warps = 1}, seed);
  comparison.add(expected, x);
}

TEST(DeviceColumns, BlocksAreConvolvedInPlace) {
  BitComparison comparison;
  for (uint64_t seed = 1; comparison.compared() < kLeastOutputs; ++seed) {
    for (const int taps : {1, 3, 4}) {
      for (const int places : {1, 3, 4, 7}) compare_block_convolution(taps, places, seed, comparison);
    }
  }
  EXPECT_EQ(comparison.differing(), 0);
}

}  // namespace
}  // namespace outrider
