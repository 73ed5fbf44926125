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

constexpr int kNodes = 9;

template <typename Cached>
void compare_attention(const KernelTable& compared, const AttentionCase& one, KernelName kernel,
                       BitComparison& comparison) {
  const AttentionTestShape& shape = one.shape;
  const auto numbers = static_cast<size_t>((one.length + kNodes) * shape.entry_size());
  const PagedCache cache(shape, random_floats(numbers, one.seed, 1.5F), random_floats(numbers, one.seed + 1));
  const TreeRows tree(cache, one.length, kNodes, one.seed);
  const Floats q = random_floats(tree.rows.size() * static_cast<size_t>(shape.query_size()), one.seed + 2);
  const Floats expected = attend(compared.attention, shape, cache, q, tree.rows, 1);
  Floats y(q.size(), std::nanf(""));
  const RowLists lists(tree.rows, cache.pages);
  auto args = device_args<Cached>(shape, cache, lists);
  args.q = rows_of(q);
  args.y = rows_of(y);
  const int items = args.rows * args.heads * ((args.head_dim + simt::kWarpOutputs - 1) / simt::kWarpOutputs);
  run_kernel(kernel, args, {.blocks = (items + 3) / 4, .warps = 4}, one.seed);
  comparison.add(expected, y);
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
        const int lengths[] = {1, 63, 64, 130, 250, 256, 600};
        compare_attention<Cached>(*table,
                                  {shape, lengths[(seed + static_cast<uint64_t>(shape.head_dim)) % 7], seed},
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
TEST(DeviceAttention, Q8EqualsTheTables) {
  expect_equal_attention<simt::CachedQ8>(DType::kQ8_0, KernelName::kAttentionQ8);
}

}  // namespace
}  // namespace outrider
