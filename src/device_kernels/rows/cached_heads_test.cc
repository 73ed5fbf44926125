// SPDX-License-Identifier: Apache-2.0
#include "device_kernels/rows/cached_heads.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "device_kernels/kernel_comparison.h"

namespace outrider {
namespace {

TEST(DeviceRope, EqualsTheTables) {
  OUTRIDER_REQUIRE_TABLES();
  BitComparison comparison;
  for (uint64_t seed = 1; comparison.compared() < kLeastOutputs; ++seed) {
    for (const KernelTable* table : compared_tables()) {
      for (const auto& [dim, rotated] : {std::pair(16, 16), {80, 40}, {128, 128}, {64, 50}}) {
        const int rows = 3, heads = static_cast<int>(1 + seed % 5);
        Floats x = adversarial_floats(static_cast<size_t>(rows * heads * dim), seed), expected = x;
        const Floats rotations = random_floats(static_cast<size_t>(rows * rotated), seed + 1);
        table->rope({.x = expected.data(),
                     .rotations = rotations.data(),
                     .rows = rows,
                     .heads = heads,
                     .head_dim = dim,
                     .rotated = rotated},
                    Worker{});
        run_kernel(KernelName::kRope,
                   simt::RopeArgs{.x = rows_of(x),
                                  .rotations = {rotations.data(), std::ssize(rotations)},
                                  .rows = rows,
                                  .heads = heads,
                                  .head_dim = dim,
                                  .rotated = rotated,
                                  .x_stride = heads * dim},
                   {.blocks = rows * heads, .warps = 2}, seed);
        comparison.add(expected, x);
      }
    }
  }
  EXPECT_EQ(comparison.differing(), 0);
}

struct StoreCase {
  DType type;
  KernelName kernel;
  int heads, dim;
  uint64_t seed;
};

// Heads of three rows in the slots 4, 0 and 2, as f32; other slots stay as they are.
template <typename Cached>
void compare_stores(const KernelTable& table, const StoreCase& one, BitComparison& comparison) {
  using Stored = typename Cached::Stored;
  const int units = (one.dim + 31) / 32;
  const int64_t row_bytes = one.heads * cached_head_bytes(one.type, one.dim);
  std::vector<Stored> expected(static_cast<size_t>(5 * one.heads * units * Cached::kUnitNumbers), Stored{3});
  ASSERT_EQ(expected.size() * sizeof(Stored), static_cast<size_t>(5 * row_bytes));
  std::vector<Stored> found = expected;
  Floats x = adversarial_floats(static_cast<size_t>(3 * one.heads * one.dim), one.seed);
  x[one.seed % x.size()] = std::numeric_limits<float>::infinity();
  x[one.seed * 7 % x.size()] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<int> slots = {4, 0, 2};
  for (int row = 0; row < 3; ++row) {
    table.store_kv({.x = x.data() + row * one.heads * one.dim,
                    .out = reinterpret_cast<std::byte*>(expected.data()) + slots[row] * row_bytes,
                    .type = one.type,
                    .heads = one.heads,
                    .head_dim = one.dim});
  }
  run_kernel(one.kernel,
             simt::StoreHeadsArgs<Cached>{.x = rows_of(std::as_const(x)),
                                          .cache = rows_of(found),
                                          .slots = {slots.data(), 3},
                                          .rows = 3,
                                          .heads = one.heads,
                                          .head_dim = one.dim,
                                          .x_stride = one.heads * one.dim},
             {.blocks = (3 * one.heads + 1) / 2, .warps = 2}, one.seed);
  // Blocks of Q8_0 with a NaN have any codes.
  Floats numbers[2];
  for (auto& [stored, out] : {std::pair(&expected, &numbers[0]), {&found, &numbers[1]}}) {
    out->resize(static_cast<size_t>(5 * one.heads * units * 32));
    dequantize_row(one.type, reinterpret_cast<const std::byte*>(stored->data()), out->data(),
                   std::ssize(*out));
  }
  comparison.add(numbers[0], numbers[1]);
}

template <typename Cached>
void expect_equal_stores(DType type, KernelName kernel) {
  OUTRIDER_REQUIRE_TABLES();
  BitComparison comparison;
  for (uint64_t seed = 1; comparison.compared() < kLeastOutputs; ++seed) {
    for (const KernelTable* table : compared_tables()) {
      for (const int dim : {16, 64, 80, 256}) {
        compare_stores<Cached>(*table, {type, kernel, static_cast<int>(1 + seed % 4), dim, seed}, comparison);
      }
    }
  }
  EXPECT_EQ(comparison.differing(), 0);
}

TEST(DeviceStore, F32EqualsTheTables) {
  expect_equal_stores<simt::CachedF32>(DType::kF32, KernelName::kStoreF32);
}
TEST(DeviceStore, Bf16EqualsTheTables) {
  expect_equal_stores<simt::CachedBf16>(DType::kBF16, KernelName::kStoreBf16);
}
TEST(DeviceStore, F16EqualsTheTables) {
  expect_equal_stores<simt::CachedF16>(DType::kF16, KernelName::kStoreF16);
}
TEST(DeviceStore, Q8EqualsTheTables) {
  expect_equal_stores<simt::CachedQ8>(DType::kQ8_0, KernelName::kStoreQ8);
}

// Heads of the slots 4, 0 and 4, with their neighbours in a row of the output.
template <typename Cached>
void compare_reads(const StoreCase& one, BitComparison& comparison) {
  using Stored = typename Cached::Stored;
  const int units = (one.dim + 31) / 32, head_stride = 2 * one.dim, y_stride = one.heads * head_stride + 5;
  std::vector<Stored> cache(static_cast<size_t>(5 * one.heads * units * Cached::kUnitNumbers));
  const Floats numbers = adversarial_floats(static_cast<size_t>(5 * one.heads * units * 32), one.seed);
  quantize_row(one.type, numbers.data(), reinterpret_cast<std::byte*>(cache.data()), std::ssize(numbers));
  Floats stored(numbers.size()), y(static_cast<size_t>(3 * y_stride), 0.25F), expected = y;
  dequantize_row(one.type, reinterpret_cast<const std::byte*>(cache.data()), stored.data(),
                 std::ssize(stored));
  const std::vector<int> slots = {4, 0, 4};
  for (int row = 0; row < 3; ++row) {
    for (int head = 0; head < one.heads; ++head)
      std::copy_n(stored.begin() + (slots[static_cast<size_t>(row)] * one.heads + head) * units * 32, one.dim,
                  expected.begin() + row * y_stride + head * head_stride);
  }
  run_kernel(one.kernel,
             simt::ReadHeadsArgs<Cached>{.cache = rows_of(std::as_const(cache)),
                                         .slots = {slots.data(), 3},
                                         .y = rows_of(y),
                                         .rows = 3,
                                         .heads = one.heads,
                                         .head_dim = one.dim,
                                         .y_stride = y_stride,
                                         .head_stride = head_stride},
             {.blocks = (3 * one.heads + 1) / 2, .warps = 2}, one.seed);
  comparison.add(expected, y);
}

template <typename Cached>
void expect_equal_reads(DType type, KernelName kernel) {
  BitComparison comparison;
  for (uint64_t seed = 1; comparison.compared() < kLeastOutputs; ++seed) {
    for (const int dim : {16, 64, 80, 256})
      compare_reads<Cached>({type, kernel, static_cast<int>(1 + seed % 4), dim, seed}, comparison);
  }
  EXPECT_EQ(comparison.differing(), 0);
}

TEST(DeviceRead, F32IsWhatWasStored) {
  expect_equal_reads<simt::CachedF32>(DType::kF32, KernelName::kReadF32);
}
TEST(DeviceRead, Bf16IsWhatWasStored) {
  expect_equal_reads<simt::CachedBf16>(DType::kBF16, KernelName::kReadBf16);
}
TEST(DeviceRead, F16IsWhatWasStored) {
  expect_equal_reads<simt::CachedF16>(DType::kF16, KernelName::kReadF16);
}
TEST(DeviceRead, Q8IsWhatWasStored) { expect_equal_reads<simt::CachedQ8>(DType::kQ8_0, KernelName::kReadQ8); }

}  // namespace
}  // namespace outrider
