// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "device_kernels/products/product_test_data.h"

namespace outrider {
namespace {

struct NormCase {
  int rows;
  int dim;
  bool has_delta;
  int warps;
  uint64_t seed;
};

simt::NormParts parts_of(const NormCase& one) {
  return {.rows = one.rows,
          .parts = 1,
          .dim = one.dim,
          .x_stride = one.dim,
          .y_stride = one.dim,
          .weight_stride = 0,
          .epsilon = 1e-5F};
}

// The norm by the device kernel, for rows beside a row of NaN.
void compare_norm(const KernelTable& compared, const NormCase& one, BitComparison& comparison) {
  const auto size = static_cast<size_t>(one.rows * one.dim);
  Floats x = adversarial_floats(size, one.seed), expected(size), y(size, 7.0F);
  const Floats weight = random_floats(static_cast<size_t>(one.dim), one.seed + 5);
  if (one.rows > 2) std::fill_n(x.begin() + one.dim, one.dim, std::numeric_limits<float>::quiet_NaN());
  compared.rms_norm({.x = x.data(),
                     .weight = weight.data(),
                     .y = expected.data(),
                     .rows = one.rows,
                     .dim = one.dim,
                     .epsilon = 1e-5F},
                    Worker{});
  const simt::RmsNormArgs args{.x = rows_of(std::as_const(x)),
                               .weight = weights_of_test(weight),
                               .y = rows_of(y),
                               .of = parts_of(one)};
  run_kernel(KernelName::kRmsNorm, args,
             {.blocks = (one.rows + one.warps - 1) / one.warps, .warps = one.warps}, one.seed);
  comparison.add(expected, y);
}

// x + delta, its norm and the codes of the norm by one kernel, for rows beside a row of NaN. In every other
// case y is x.
void compare_norm_rows(const KernelTable& compared, const NormCase& one, BitComparison& comparison) {
  const auto size = static_cast<size_t>(one.rows * one.dim);
  Floats x = adversarial_floats(size, one.seed), y(size, 7.0F), expected(size);
  const Floats delta = adversarial_floats(size, one.seed + 9);
  const Floats weight = random_floats(static_cast<size_t>(one.dim), one.seed + 5);
  if (one.rows > 2) std::fill_n(x.begin() + one.dim, one.dim, std::numeric_limits<float>::quiet_NaN());
  Floats sum = x;
  for (size_t i = 0; one.has_delta && i < size; ++i) sum[i] += delta[i];
  compared.rms_norm({.x = sum.data(),
                     .weight = weight.data(),
                     .y = expected.data(),
                     .rows = one.rows,
                     .dim = one.dim,
                     .epsilon = 1e-5F},
                    Worker{});
  const bool packs = one.dim % simt::kChunk == 0, in_place = one.seed % 4 < 2;
  PackedInputs packed(one.rows, packs ? one.dim : 0);
  run_kernel(KernelName::kNormRows,
             simt::NormRowsArgs{.x = rows_of(x),
                                .delta = one.has_delta ? rows_of(delta) : simt::Rows<const float>{},
                                .weight = weights_of_test(weight),
                                .y = in_place ? rows_of(x) : rows_of(y),
                                .packed = packs ? packed.to() : simt::InputCodes{},
                                .rows = one.rows,
                                .dim = one.dim,
                                .epsilon = 1e-5F},
             {.blocks = packs ? packed.padded : one.rows,
              .warps = one.warps,
              .shared_bytes = simt::NormRowMemory::bytes(one.dim)},
             one.seed);
  comparison.add(expected, in_place ? x : y);
  if (!in_place) comparison.add(sum, x);
  if (!packs) return;
  const PackedInputs codes(expected, one.rows, one.dim, one.seed);
  comparison.add(codes.scales, packed.scales);
  EXPECT_EQ(codes.codes, packed.codes);
  EXPECT_EQ(codes.sums, packed.sums);
}

// The norm of rows around their mean, in place.
void compare_layer_norm(const KernelTable& compared, const NormCase& one, BitComparison& comparison) {
  const auto size = static_cast<size_t>(one.rows * one.dim);
  Floats x = adversarial_floats(size, one.seed), expected(size);
  const Floats weight = random_floats(static_cast<size_t>(one.dim), one.seed + 5);
  const Floats bias = random_floats(static_cast<size_t>(one.dim), one.seed + 6);
  compared.layer_norm({.x = x.data(),
                       .weight = weight.data(),
                       .y = expected.data(),
                       .rows = one.rows,
                       .dim = one.dim,
                       .epsilon = 1e-5F,
                       .bias = one.has_delta ? bias.data() : nullptr},
                      Worker{});
  const simt::LayerNormArgs args{.x = rows_of(std::as_const(x)),
                                 .weight = weights_of_test(weight),
                                 .bias = one.has_delta ? weights_of_test(bias) : simt::Weights<float>{},
                                 .y = rows_of(x),
                                 .of = parts_of(one)};
  run_kernel(KernelName::kLayerNorm, args,
             {.blocks = (one.rows + one.warps - 1) / one.warps, .warps = one.warps}, one.seed);
  comparison.add(expected, x);
}

using CompareNorm = void (*)(const KernelTable&, const NormCase&, BitComparison&);

int warps_of(uint64_t seed) { return std::array{8, 1, 3}[seed % 3]; }

void expect_equal_norms(CompareNorm compare) {
  BitComparison comparison;
  for (uint64_t seed = 1; comparison.compared() < kLeastOutputs; ++seed) {
    for (const KernelTable* table : compared_tables()) {
      for (const int dim : {16, 48, 64, 160, 576, 2048, 2050}) {
        for (const int rows : {1, 5})
          compare(*table, {rows, dim, seed % 2 == 0, warps_of(seed), seed}, comparison);
      }
    }
  }
  EXPECT_EQ(comparison.differing(), 0);
}

TEST(DeviceNorms, RmsNormEqualsTheTables) {
  OUTRIDER_REQUIRE_TABLES();
  expect_equal_norms(compare_norm);
}

TEST(DeviceNorms, RowsAndTheirCodesEqualTheTables) {
  OUTRIDER_REQUIRE_TABLES();
  expect_equal_norms(compare_norm_rows);
}

TEST(DeviceNorms, LongestRows) {
  OUTRIDER_REQUIRE_TABLES();
  constexpr int kDim = simt::NormRowMemory::kMostNumbers;
  BitComparison comparison;
  compare_norm_rows(*compared_tables().back(), {2, kDim, true, simt::NormRowMemory::warps(kDim), 7},
                    comparison);
  EXPECT_EQ(comparison.differing(), 0);
  EXPECT_LT(simt::NormRowMemory::bytes(kDim), 96 << 10);  // of a block on the smallest GPU
}

// Heads within rows, each with its own weights, in place.
TEST(DeviceNorms, PartsOfRows) {
  OUTRIDER_REQUIRE_TABLES();
  constexpr int kRows = 3, kParts = 4, kDim = 48, kStride = 250;
  const KernelTable& compared = *compared_tables().back();
  Floats x = random_floats(kRows * kStride, 1), expected = x;
  const Floats weight = random_floats(kParts * kDim, 2);
  for (int item = 0; item < kRows * kParts; ++item) {
    float* part = expected.data() + item / kParts * kStride + item % kParts * kDim;
    compared.rms_norm({.x = part,
                       .weight = weight.data() + item % kParts * kDim,
                       .y = part,
                       .rows = 1,
                       .dim = kDim,
                       .epsilon = 1e-5F},
                      Worker{});
  }
  const simt::RmsNormArgs args{.x = rows_of(std::as_const(x)),
                               .weight = weights_of_test(weight),
                               .y = rows_of(x),
                               .of = {.rows = kRows,
                                      .parts = kParts,
                                      .dim = kDim,
                                      .x_stride = kStride,
                                      .y_stride = kStride,
                                      .weight_stride = kDim,
                                      .epsilon = 1e-5F}};
  run_kernel(KernelName::kRmsNorm, args, {.blocks = 6, .warps = 2});
  BitComparison comparison;
  comparison.add(expected, x);
  EXPECT_EQ(comparison.differing(), 0);
}

TEST(DeviceNorms, LayerNormEqualsTheTables) {
  OUTRIDER_REQUIRE_TABLES();
  expect_equal_norms(compare_layer_norm);
}

}  // namespace
}  // namespace outrider
