// SPDX-License-Identifier: Apache-2.0
#include "device_kernels/rows/cached_heads.h"

#include <gtest/gtest.h>

#include <limits>
#include <span>
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
  int queries = 0, heads = 1, dim = 1;
  int rotated = 0;  // 0: nothing turns
  bool stores_values = false;
  uint64_t seed = 1;

  int x_stride() const { return (queries + heads * (stores_values ? 2 : 1)) * dim; }
  int64_t row_bytes() const { return heads * cached_head_bytes(type, dim); }
};

// Rows of queries, keys and values, rotated and stored by a table in the slots of a cache.
void store_here(const KernelTable& table, const StoreCase& one, const Floats& rotations,
                std::span<const int> slots, Floats& x, std::span<std::byte* const> caches) {
  for (size_t row = 0; row < slots.size(); ++row) {
    float* const begin = x.data() + static_cast<int64_t>(row) * one.x_stride();
    if (one.rotated > 0) {
      table.rope({.x = begin,
                  .rotations = rotations.data() + static_cast<int64_t>(row) * one.rotated,
                  .rows = 1,
                  .heads = one.queries + one.heads,
                  .head_dim = one.dim,
                  .rotated = one.rotated},
                 Worker{});
    }
    if (slots[row] < 0) continue;
    for (size_t i = 0; i < caches.size(); ++i) {
      table.store_kv({.x = begin + (one.queries + static_cast<int>(i) * one.heads) * one.dim,
                      .out = caches[i] + slots[row] * one.row_bytes(),
                      .type = one.type,
                      .heads = one.heads,
                      .head_dim = one.dim});
    }
  }
}

// A cache as f32. Blocks of Q8_0 with a NaN have any codes.
template <typename Stored>
Floats numbers_of(const StoreCase& one, const std::vector<Stored>& cache) {
  Floats numbers(static_cast<size_t>(5 * one.heads * ((one.dim + 31) / 32) * 32));
  dequantize_row(one.type, reinterpret_cast<const std::byte*>(cache.data()), numbers.data(),
                 std::ssize(numbers));
  return numbers;
}

// Four rows, of which one is stored nowhere; other slots stay as they are.
template <typename Cached>
void compare_stores(const KernelTable& table, const StoreCase& one, BitComparison& comparison) {
  using Stored = typename Cached::Stored;
  const std::vector<int> slots = {4, 0, -1, 2};
  const auto numbers = static_cast<size_t>(5 * one.row_bytes()) / sizeof(Stored);
  std::vector<Stored> expected[2] = {std::vector<Stored>(numbers, Stored{3}),
                                     std::vector<Stored>(numbers, Stored{3})};
  std::vector<Stored> found[2] = {expected[0], expected[1]};
  Floats x = adversarial_floats(4 * static_cast<size_t>(one.x_stride()), one.seed);
  x[one.seed % x.size()] = std::numeric_limits<float>::infinity();
  x[one.seed * 7 % x.size()] = std::numeric_limits<float>::quiet_NaN();
  const Floats rotations = random_floats(4 * static_cast<size_t>(one.rotated), one.seed + 1);
  Floats turned = x;
  std::vector<std::byte*> caches = {reinterpret_cast<std::byte*>(expected[0].data())};
  if (one.stores_values) caches.push_back(reinterpret_cast<std::byte*>(expected[1].data()));
  store_here(table, one, rotations, slots, turned, caches);
  const int heads = one.x_stride() / one.dim;
  run_kernel(one.kernel,
             simt::RotateAndStoreArgs<Cached>{
                 .rope = {.x = rows_of(x),
                          .rotations = {one.rotated > 0 ? rotations.data() : nullptr, std::ssize(rotations)},
                          .rows = 4,
                          .heads = one.queries + one.heads,
                          .head_dim = one.dim,
                          .rotated = one.rotated,
                          .x_stride = one.x_stride()},
                 .kv_heads = one.heads,
                 .keys = rows_of(found[0]),
                 .values = one.stores_values ? rows_of(found[1]) : simt::Rows<Stored>{},
                 .slots = {slots.data(), 4}},
             {.blocks = 2 * heads, .warps = 2}, one.seed);
  comparison.add(turned, x);
  for (int i = 0; i < 2; ++i) comparison.add(numbers_of(one, expected[i]), numbers_of(one, found[i]));
}

template <typename Cached>
void expect_equal_stores(DType type, KernelName kernel) {
  OUTRIDER_REQUIRE_TABLES();
  BitComparison comparison;
  for (uint64_t seed = 1; comparison.compared() < kLeastOutputs; ++seed) {
    for (const KernelTable* table : compared_tables()) {
      for (const int dim : {16, 64, 80, 256}) {
        const auto heads = static_cast<int>(1 + seed % 4);
        const int rotated = seed % 3 == 0 ? 0 : dim / (seed % 2 == 0 ? 1 : 2);
        compare_stores<Cached>(*table, {type, kernel, heads * 2, heads, dim, rotated, seed % 5 != 0, seed},
                               comparison);
      }
    }
  }
  EXPECT_EQ(comparison.differing(), 0);
}

TEST(DeviceStore, F32EqualsTheTables) {
  expect_equal_stores<simt::CachedF32>(DType::kF32, KernelName::kRotateAndStoreF32);
}
TEST(DeviceStore, Bf16EqualsTheTables) {
  expect_equal_stores<simt::CachedBf16>(DType::kBF16, KernelName::kRotateAndStoreBf16);
}
TEST(DeviceStore, F16EqualsTheTables) {
  expect_equal_stores<simt::CachedF16>(DType::kF16, KernelName::kRotateAndStoreF16);
}
TEST(DeviceStore, E4m3EqualsTheTables) {
  expect_equal_stores<simt::CachedE4m3>(DType::kE4M3, KernelName::kRotateAndStoreE4m3);
}
TEST(DeviceStore, Q8EqualsTheTables) {
  expect_equal_stores<simt::CachedQ8>(DType::kQ8_0, KernelName::kRotateAndStoreQ8);
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
      compare_reads<Cached>(
          {.type = type, .kernel = kernel, .heads = static_cast<int>(1 + seed % 4), .dim = dim, .seed = seed},
          comparison);
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
TEST(DeviceRead, E4m3IsWhatWasStored) {
  expect_equal_reads<simt::CachedE4m3>(DType::kE4M3, KernelName::kReadE4m3);
}
TEST(DeviceRead, Q8IsWhatWasStored) { expect_equal_reads<simt::CachedQ8>(DType::kQ8_0, KernelName::kReadQ8); }

}  // namespace
}  // namespace outrider
