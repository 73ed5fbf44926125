// SPDX-License-Identifier: Apache-2.0
#include "device_kernels/attention/attention_test_lists.h"

#include <gtest/gtest.h>

#include <string>

#include "device_kernels/kernel_comparison.h"

namespace outrider {
namespace {

struct AttentionCase {
  AttentionTestShape shape;
  int length;  // of the prefix
  uint64_t seed;
};

struct AttentionLaunch {
  KernelName kernel;
  int blocks;  // see AttentionLaunches
  uint64_t seed;
};

constexpr int kNodes = 9;

template <typename Cached>
Floats attend_on_device(const AttentionTestShape& shape, const PagedCache& cache, const RowLists& lists,
                        const Floats& q, const AttentionLaunch& launch) {
  const EmulationOptions options{.seed = launch.seed, .checks_races = true};
  AttentionLaunches<Cached> launches(shape, cache, lists);
  Floats y(q.size(), std::nanf(""));
  const auto report = launches.attend({launch.kernel, launch.blocks, options}, q, y);
  EXPECT_TRUE(report.is_clean()) << report.first;
  EXPECT_EQ(std::ranges::count(launches.arrivals, 0), std::ssize(launches.arrivals));
  return y;
}

template <typename Cached>
void compare_attention(const KernelTable& compared, const AttentionCase& one, KernelName kernel,
                       BitComparison& comparison) {
  const AttentionTestShape& shape = one.shape;
  const auto numbers = static_cast<size_t>((one.length + kNodes) * shape.entry_size());
  const PagedCache cache(shape, random_floats(numbers, one.seed, 1.5F), random_floats(numbers, one.seed + 1));
  const TreeRows tree(cache, one.length, kNodes, one.seed);
  const Floats q = random_floats(tree.rows.size() * static_cast<size_t>(shape.query_size()), one.seed + 2);
  const Floats expected = attend(compared.attention, shape, cache, q, tree.rows, 1);
  const RowLists lists(tree.rows, cache.pages);
  comparison.add(expected, attend_on_device<Cached>(shape, cache, lists, q,
                                                    {kernel, static_cast<int>(one.seed % 3), one.seed}));
}

std::vector<AttentionTestShape> attention_shapes(DType type, uint64_t seed) {
  std::vector<AttentionTestShape> shapes = {
      {.head_count = 8, .kv_head_count = 2, .head_dim = 128},
      {.head_count = 4, .kv_head_count = 2, .head_dim = 16, .window = 70},
      {.head_count = 6, .kv_head_count = 6, .head_dim = 80, .slopes = random_floats(6, seed)},
      {.head_count = 3, .kv_head_count = 1, .head_dim = 256, .softcap = 20},
      {.head_count = 4, .kv_head_count = 4, .head_dim = 40, .window = 100, .sinks = random_floats(4, seed)},
      {.head_count = 4, .kv_head_count = 1, .head_dim = 64, .chunk = 96},
      {.head_count = 2, .kv_head_count = 1, .head_dim = 576},  // latent vectors
  };
  for (AttentionTestShape& shape : shapes) {
    shape.type = type;
    shape.page_size = seed % 2 == 0 ? 16 : 1;
  }
  return shapes;
}

template <typename Cached>
void expect_equal_attention(DType type, KernelName kernel) {
  OUTRIDER_REQUIRE_TABLES();
  BitComparison comparison;
  for (uint64_t seed = 1; comparison.compared() < kLeastOutputs; ++seed) {
    for (const KernelTable* table : compared_tables()) {
      for (const AttentionTestShape& shape : attention_shapes(type, seed)) {
        SCOPED_TRACE("heads of " + std::to_string(shape.head_dim) + ", " + std::string(table->name));
        const int lengths[] = {1, 63, 64, 130, 250, 256, 600, 1290};
        compare_attention<Cached>(*table,
                                  {shape, lengths[(seed + static_cast<uint64_t>(shape.head_dim)) % 8], seed},
                                  kernel, comparison);
      }
    }
  }
  EXPECT_EQ(comparison.differing(), 0);
}

TEST(DeviceAttention, F32EqualsTheTables) {
  expect_equal_attention<simt::CachedF32>(DType::kF32, KernelName::kAttentionF32);
}
TEST(DeviceAttention, Bf16EqualsTheTables) {
  expect_equal_attention<simt::CachedBf16>(DType::kBF16, KernelName::kAttentionBf16);
}
TEST(DeviceAttention, F16EqualsTheTables) {
  expect_equal_attention<simt::CachedF16>(DType::kF16, KernelName::kAttentionF16);
}
TEST(DeviceAttention, E4m3EqualsTheTables) {
  expect_equal_attention<simt::CachedE4m3>(DType::kE4M3, KernelName::kAttentionE4m3);
}
TEST(DeviceAttention, Q8EqualsTheTables) {
  expect_equal_attention<simt::CachedQ8>(DType::kQ8_0, KernelName::kAttentionQ8);
}

// Outputs that become codes as they are merged are the codes of these outputs, with rows of padding.
TEST(DeviceAttention, MergedRowsArePacked) {
  OUTRIDER_REQUIRE_TABLES();
  const AttentionTestShape shape{.head_count = 4, .kv_head_count = 2, .head_dim = 40, .type = DType::kBF16};
  constexpr int kLength = 600;
  const auto numbers = static_cast<size_t>((kLength + 9) * shape.entry_size());
  const PagedCache cache(shape, random_floats(numbers, 1, 1.5F), random_floats(numbers, 2));
  const TreeRows tree(cache, kLength, 9, 3);
  const RowLists lists(tree.rows, cache.pages);
  const auto rows = static_cast<int>(tree.rows.size()), dim = static_cast<int>(shape.query_size());
  const Floats q = random_floats(static_cast<size_t>(rows * dim), 4);
  AttentionLaunches<simt::CachedBf16> launches(shape, cache, lists);
  Floats plain(q.size()), whole(q.size());
  EXPECT_TRUE(launches.attend({KernelName::kAttentionBf16}, q, plain).is_clean());
  PackedInputs packed(rows, dim);
  EXPECT_TRUE(launches
                  .attend({.kernel = KernelName::kAttentionBf16,
                           .options = {.seed = 5, .checks_races = true},
                           .packed = &packed},
                          q, whole)
                  .is_clean());
  EXPECT_EQ(whole, plain);
  const PackedInputs expected(plain, rows, dim, 1);
  EXPECT_EQ(packed.codes, expected.codes);
  EXPECT_EQ(packed.scales, expected.scales);
  EXPECT_EQ(packed.sums, expected.sums);
}

// Windows and attention chunks that leave out whole chunks of 256, and sinks in front of them.
std::vector<AttentionTestShape> shapes_of_long_texts() {
  const Floats sinks = random_floats(4, 3);
  std::vector<AttentionTestShape> shapes = {
      {.head_count = 4, .kv_head_count = 2, .head_dim = 64},
      {.head_count = 4, .kv_head_count = 1, .head_dim = 40, .sinks = sinks},
      {.head_count = 4, .kv_head_count = 4, .head_dim = 16, .window = 300, .sinks = sinks},
      {.head_count = 4, .kv_head_count = 2, .head_dim = 32, .window = 1},
      {.head_count = 4, .kv_head_count = 2, .head_dim = 24, .window = 258},
      {.head_count = 4, .kv_head_count = 2, .head_dim = 16, .sinks = sinks, .chunk = 700},
      {.head_count = 2, .kv_head_count = 1, .head_dim = 288, .softcap = 20, .chunk = 256},
  };
  for (AttentionTestShape& shape : shapes) shape.type = DType::kBF16;
  return shapes;
}

// One launch has rows of all lengths, more of them than a warp has lanes. Each number of warps takes all
// chunks.
TEST(DeviceAttention, RowsOfAllLengthsInGridsOfAllSizes) {
  OUTRIDER_REQUIRE_TABLES();
  constexpr int kLongest = 2900;
  BitComparison comparison;
  for (const AttentionTestShape& shape : shapes_of_long_texts()) {
    SCOPED_TRACE("heads of " + std::to_string(shape.head_dim));
    const auto numbers = static_cast<size_t>(kLongest * shape.entry_size());
    const PagedCache cache(shape, random_floats(numbers, 1, 1.5F), random_floats(numbers, 2));
    std::vector<AttentionRow> rows;
    for (const int length : {0, 1, 255, 256, 257, 511, 513, 700, 769, 1024, 1026, kLongest})
      rows.insert(rows.end(), 3, {cache.pages.data(), length, nullptr, 0});
    const RowLists lists(rows, cache.pages);
    const Floats q = random_floats(rows.size() * static_cast<size_t>(shape.query_size()), 4);
    Floats expected = attend(compared_tables().back()->attention, shape, cache, q, rows, 1);
    // Lists have rows that nobody uses, which get zeros. Tables get no such rows.
    std::fill_n(expected.begin(), 3 * shape.query_size(), 0.0F);
    for (const int blocks : {1, 2, 7, 0}) {
      comparison.add(expected, attend_on_device<simt::CachedBf16>(
                                   shape, cache, lists, q,
                                   {KernelName::kAttentionBf16, blocks, static_cast<uint64_t>(blocks)}));
    }
  }
  EXPECT_EQ(comparison.differing(), 0);
}

TEST(DeviceAttention, LongTextsEqualTheTables) {
  OUTRIDER_REQUIRE_TABLES();
  AttentionTestShape shape{.head_count = 2, .kv_head_count = 1, .head_dim = 64};
  BitComparison comparison;
  for (const KernelTable* table : compared_tables()) {
    shape.type = DType::kBF16;
    compare_attention<simt::CachedBf16>(*table, {shape, kLongText, 1}, KernelName::kAttentionBf16,
                                        comparison);
    shape.type = DType::kE4M3;
    compare_attention<simt::CachedE4m3>(*table, {shape, kLongText, 2}, KernelName::kAttentionE4m3,
                                        comparison);
  }
  EXPECT_EQ(comparison.differing(), 0);
}

}  // namespace
}  // namespace outrider
