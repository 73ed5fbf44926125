// SPDX-License-Identifier: Apache-2.0
#include "device_kernels/rows/activation.h"

#include <gtest/gtest.h>

#include <limits>

#include "device_kernels/products/product_test_data.h"

namespace outrider {
namespace {

struct ActivationCase {
  Activation activation;
  KernelName kernel;
  int rows, dim;
  bool is_gated;
  uint64_t seed;
};

// Rows of chunks are packed, too.
void compare_activation(const KernelTable& table, const ActivationCase& one, BitComparison& comparison) {
  const auto size = static_cast<size_t>(one.rows * one.dim);
  Floats x = adversarial_floats(one.is_gated ? 2 * size : size, one.seed), expected(size), y(size, 7.0F);
  for (size_t i = 0; i < x.size(); i += 3) x[i] *= 20;  // where the exponential ends
  x[0] = std::numeric_limits<float>::quiet_NaN();
  table.activate({.x = x.data(),
                  .y = expected.data(),
                  .rows = one.rows,
                  .dim = one.dim,
                  .activation = one.activation,
                  .is_gated = one.is_gated},
                 Worker{});
  const bool packs = one.dim % simt::kChunk == 0;
  PackedInputs packed(one.rows, packs ? one.dim : 0);
  const int items = (packs ? packed.padded : one.rows) * ((one.dim + 31) / 32);
  run_kernel(one.kernel,
             simt::ActivationArgs{.x = rows_of(std::as_const(x)),
                                  .y = rows_of(y),
                                  .rows = one.rows,
                                  .dim = one.dim,
                                  .is_gated = one.is_gated ? 1 : 0,
                                  .packed = packs ? packed.to() : simt::InputCodes{}},
             {.blocks = (items + 3) / 4, .warps = 4}, one.seed);
  comparison.add(expected, y);
  if (!packs) return;
  const PackedInputs codes(expected, one.rows, one.dim, one.seed);
  comparison.add(codes.scales, packed.scales);
  EXPECT_EQ(codes.codes, packed.codes);
  EXPECT_EQ(codes.sums, packed.sums);
}

TEST(DeviceActivation, EqualsTheTables) {
  OUTRIDER_REQUIRE_TABLES();
  for (const auto& [activation, kernel] : {std::pair(Activation::kSilu, KernelName::kSilu),
                                           {Activation::kGelu, KernelName::kGelu},
                                           {Activation::kGeluTanh, KernelName::kGeluTanh},
                                           {Activation::kRelu, KernelName::kRelu},
                                           {Activation::kClampedSwiglu, KernelName::kClampedSwiglu}}) {
    BitComparison comparison;
    for (uint64_t seed = 1; comparison.compared() < kLeastOutputs; ++seed) {
      for (const KernelTable* table : compared_tables()) {
        for (const int dim : {16, 33, 160, 2050}) {
          const int rows = static_cast<int>(1 + seed % 4);
          compare_activation(*table, {activation, kernel, rows, dim, seed % 2 == 0, seed}, comparison);
        }
      }
    }
    EXPECT_EQ(comparison.differing(), 0) << static_cast<int>(activation);
  }
}

TEST(DeviceSoftcap, EqualsTheTables) {
  OUTRIDER_REQUIRE_TABLES();
  BitComparison comparison;
  for (uint64_t seed = 1; comparison.compared() < kLeastOutputs; ++seed) {
    for (const KernelTable* table : compared_tables()) {
      const int count = static_cast<int>(1000 + seed);
      Floats x = adversarial_floats(static_cast<size_t>(count), seed), expected = x;
      table->softcap({expected.data(), count, 30.0F}, Worker{});
      run_kernel(KernelName::kSoftcap, simt::SoftcapArgs{rows_of(x), count, 30.0F},
                 {.blocks = count / 128 + 1, .warps = 4}, seed);
      comparison.add(expected, x);
    }
  }
  EXPECT_EQ(comparison.differing(), 0);
}

}  // namespace
}  // namespace outrider
