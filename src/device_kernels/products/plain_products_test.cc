// SPDX-License-Identifier: Apache-2.0
// Products with one scale for each feature, and with plain numbers.
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "device_kernels/products/product_test_data.h"

namespace outrider {
namespace {

struct PlainCase {
  DType type;
  int n, k, rows;
  uint64_t seed;
};

// Eight warps, two warps, and the kernel for many rows.
void add_channel_outputs(const DeviceMatrix& matrix, const Floats& x, const PlainCase& one,
                         const Floats& expected, BitComparison& comparison) {
  const PackedChannelInputs packed(x, one.rows, one.k, one.seed);
  const int panels = (one.n + 15) / 16;
  for (const int warps : {8, 2, 4}) {
    Floats y(expected.size(), std::nanf(""));
    const simt::ChannelProductArgs args{
        .weights = matrix.channels(), .x = packed.inputs(), .y = rows_of(y), .y_stride = one.n};
    const int tiles = panels * packed.padded / 8;
    if (warps == 4) {
      run_kernel(KernelName::kManyChannelRows, args, {.blocks = (tiles + 3) / 4, .warps = 4}, one.seed);
    } else {
      run_kernel(KernelName::kFewChannelRows, args,
                 {.blocks = tiles, .warps = warps, .shared_bytes = simt::ChannelMemory::kBytes}, one.seed);
    }
    comparison.add(expected, y);
  }
}

template <typename Numbers>
void add_plain_outputs(const DeviceMatrix& matrix, const Floats& x, const PlainCase& one, KernelName kernel,
                       const Floats& expected, BitComparison& comparison) {
  for (const int warps : {8, 2, 3}) {
    Floats y(expected.size(), std::nanf(""));
    const simt::FloatProductArgs<Numbers> args{.weights = matrix.plain<typename Numbers::Stored>(),
                                               .scales = matrix.block_scales(),
                                               .x = rows_of(x),
                                               .y = rows_of(y),
                                               .rows = one.rows,
                                               .n = one.n,
                                               .k = one.k,
                                               .y_stride = one.n};
    run_kernel(kernel, args,
               {.blocks = (one.n + 15) / 16 * ((one.rows + 7) / 8),
                .warps = warps,
                .shared_bytes = simt::FloatMemory::kBytes},
               one.seed);
    comparison.add(expected, y);
  }
}

void compare_plain(const KernelTable& table, const PlainCase& one, BitComparison& comparison) {
  SCOPED_TRACE(std::string(dtype_name(one.type)) + " " + std::to_string(one.n) + " x " +
               std::to_string(one.k) + ", " + std::to_string(one.rows) + " rows");
  const auto packed = pack_matrix(table, random_matrix(one.type, one.n, one.k, one.seed).view());
  ASSERT_TRUE(packed.ok()) << packed.error().message;
  const auto matrix = device_matrix(*packed);
  ASSERT_TRUE(matrix.ok()) << matrix.error().message;
  Floats x = adversarial_floats(static_cast<size_t>(one.rows * one.k), one.seed + 3);
  if (one.rows > 2) std::fill_n(x.begin() + one.k, one.k, 0.0F);
  const Floats expected = product(table, *packed, x, one.rows, 1);
  switch (one.type) {
    case DType::kI8:
      return add_channel_outputs(*matrix, x, one, expected, comparison);
    case DType::kF32:
      return add_plain_outputs<simt::F32Weights>(*matrix, x, one, KernelName::kF32Rows, expected, comparison);
    case DType::kF16:
      return add_plain_outputs<simt::F16Weights>(*matrix, x, one, KernelName::kF16Rows, expected, comparison);
    case DType::kF8:
      return add_plain_outputs<simt::F8Weights>(*matrix, x, one, KernelName::kF8Rows, expected, comparison);
    default:
      return add_plain_outputs<simt::Bf16Weights>(*matrix, x, one, KernelName::kBf16Rows, expected,
                                                  comparison);
  }
}

class DevicePlainProduct : public testing::TestWithParam<DType> {};

TEST_P(DevicePlainProduct, EqualsTheTables) {
  OUTRIDER_REQUIRE_TABLES();
  BitComparison comparison;
  for (uint64_t seed = 1; comparison.compared() < kRunsOfProduct * kLeastOutputs; ++seed) {
    for (const KernelTable* table : compared_tables()) {
      for (const auto& [n, inputs] : {std::pair(16, 31), {33, 300}, {70, 1100}}) {
        const auto block = static_cast<int>(block_elements(GetParam())),
                   k = (inputs + block - 1) / block * block;
        for (const int rows : {1, 2, 8, 9, 40})
          compare_plain(*table, {GetParam(), n, k, rows, seed}, comparison);
      }
    }
  }
  EXPECT_EQ(comparison.differing(), 0);
}

INSTANTIATE_TEST_SUITE_P(Types, DevicePlainProduct,
                         testing::Values(DType::kI8, DType::kF32, DType::kF16, DType::kBF16, DType::kF8),
                         [](const auto& info) { return std::string(dtype_name(info.param)); });

}  // namespace
}  // namespace outrider
