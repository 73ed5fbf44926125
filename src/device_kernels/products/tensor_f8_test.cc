// SPDX-License-Identifier: Apache-2.0
// Products of F8 on tensor cores, as pack_matrix() and device_matrix() lay the weights out.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "device_kernels/kernel_comparison.h"
#include "device_kernels/kernel_names.h"
#include "device_kernels/products/device_matrix.h"
#include "device_kernels/products/tensor_test_core.h"
#include "kernels/kernel_test_data.h"

namespace outrider::tensor_f8 {
namespace {

constexpr int kBlock = 128;

Floats rounded(Floats x) {
  for (float& number : x) number = bf16_to_f32(f32_to_bf16(number));
  return x;
}

// A block of inputs is a chain of tiles in the tensor core; blocks are added in order, times their scales.
Floats expected_product(const StoredMatrix& weights, const Floats& inputs, int rows) {
  const ReferenceCore core{-126};
  const Floats x = rounded(inputs);
  const auto n = static_cast<int>(weights.n), k = static_cast<int>(weights.k);
  Floats y(static_cast<size_t>(rows * n));
  for (int place = 0; place < rows * n; ++place) {
    const std::byte* block = weights.bytes.data() + place % n * row_bytes(DType::kF8, k);
    for (int begin = 0; begin < k; begin += kBlock, block += block_bytes(DType::kF8)) {
      float scale, numbers[kBlock], sum = 0;
      std::memcpy(&scale, block, sizeof(scale));
      for (int i = 0; i < kBlock; ++i) numbers[i] = e4m3_to_f32(static_cast<uint8_t>(block[4 + i]));
      for (int i = 0; i < kBlock; i += simt::kTileInputs)
        sum = core.add(numbers + i, &x[static_cast<size_t>(place / n * k + begin + i)], sum);
      float& output = y[static_cast<size_t>(place)];
      output = std::fma(sum, scale, output);
    }
  }
  return y;
}

// The product by a kernel; warps 0: by the kernel for many rows. Inputs are packed over stale words.
Floats found_product(const DeviceMatrix& weights, const Floats& x, int rows, int warps) {
  const auto n = static_cast<int>(weights.n), k = static_cast<int>(weights.k);
  const int padded = (rows + 7) / 8 * 8, tiles = k / simt::kTileInputs, panels = (n + 15) / 16;
  std::vector<int> words(static_cast<size_t>(tiles * padded * simt::kTileRowWords), 0x7FC07FC0);
  run_kernel(KernelName::kPackBf16Inputs,
             simt::PackTensorInputsArgs{
                 .x = rows_of(x), .words = rows_of(words), .rows = rows, .padded = padded, .k = k},
             {.blocks = (tiles * padded / 4 + 3) / 4, .warps = 4});
  Floats y(static_cast<size_t>(rows * n), std::nanf(""));
  const simt::TensorProductArgs args{
      .weights = weights.plain<int>(),
      .scales = weights.block_scales(),
      .x = {.words = rows_of(std::as_const(words)), .rows = rows, .padded = padded},
      .y = rows_of(y),
      .n = n,
      .k = k,
      .y_stride = n};
  if (warps > 0) {
    run_kernel(KernelName::kFewRowsTensorF8, args,
               {.blocks = panels * padded / 8, .warps = warps, .shared_bytes = simt::TensorMemory::kBytes});
  } else {
    const int items = panels * ((padded + simt::kTensorRows - 1) / simt::kTensorRows);
    run_kernel(KernelName::kManyRowsTensorF8, args, {.blocks = (items + 3) / 4, .warps = 4});
  }
  return y;
}

DeviceMatrix tensor_matrix(const StoredMatrix& stored) {
  const auto packed = pack_matrix(*compared_tables().front(), stored.view());
  EXPECT_TRUE(packed.ok());
  auto matrix = device_matrix(*packed, nullptr, ProductProfile::kTensorCores);
  EXPECT_TRUE(matrix.ok());
  EXPECT_EQ(matrix->form, WeightForm::kTensorF8);
  return std::move(*matrix);
}

// Eight warps, two, three, and the kernel for many rows.
TEST(TensorF8, EqualsTheReference) {
  OUTRIDER_REQUIRE_TABLES();
  BitComparison comparison;
  for (uint64_t seed = 1; comparison.compared() < kRunsOfProduct * kLeastOutputs; ++seed) {
    for (const auto& [n, k] : {std::pair(16, kBlock), {35, 3 * kBlock}, {20, 9 * kBlock}}) {
      const StoredMatrix stored = random_matrix(DType::kF8, n, k, seed);
      const DeviceMatrix weights = tensor_matrix(stored);
      for (const int rows : {1, 8, 9, 40}) {
        const Floats x = adversarial_floats(static_cast<size_t>(rows * k), seed + 1);
        const Floats expected = expected_product(stored, x, rows);
        for (const int warps : {8, 2, 3, 0}) comparison.add(expected, found_product(weights, x, rows, warps));
      }
    }
  }
  EXPECT_EQ(comparison.differing(), 0);
}

// A row has the same bits by itself and among others, also beside NaN. In the slow suite every one of 512
// rows is computed by itself.
TEST(TensorF8, RowsDoNotSeeEachOther) {
  OUTRIDER_REQUIRE_TABLES();
  constexpr bool kIsSlow = kLeastOutputs > 10'000;
  constexpr int kRows = kIsSlow ? 512 : 70, kApart = kIsSlow ? 1 : 7, kInputs = 5 * kBlock, kOutputs = 20;
  const DeviceMatrix weights = tensor_matrix(random_matrix(DType::kF8, kOutputs, kInputs, 5));
  Floats x = adversarial_floats(kRows * kInputs, 6);
  std::fill_n(x.begin() + 3 * kInputs, kInputs, std::nanf(""));
  const Floats all = found_product(weights, x, kRows, 0);
  for (int row = 0; row < kRows; row += kApart) {
    if (row == 3) continue;
    const Floats own(x.begin() + row * kInputs, x.begin() + (row + 1) * kInputs);
    const Floats expected(all.begin() + row * kOutputs, all.begin() + (row + 1) * kOutputs);
    EXPECT_EQ(found_product(weights, own, 1, 8), expected) << "row " << row;
  }
}

// Every code becomes its number in bf16.
TEST(TensorF8, EveryCodeIsExact) {
  for (int bits = 0; bits < 256; ++bits) {
    const simt::Lanes<int> words(bits << 8 | (bits ^ 0x80) << 24);
    const simt::Lanes<int> pair = simt::TensorF8::widen_pair(words);
    const float number = e4m3_to_f32(static_cast<uint8_t>(bits));
    EXPECT_EQ(bf16_to_f32(static_cast<uint16_t>(pair.v[7])), number);
    EXPECT_EQ(bf16_to_f32(static_cast<uint16_t>(static_cast<uint32_t>(pair.v[7]) >> 16)), -number);
  }
}

}  // namespace
}  // namespace outrider::tensor_f8
