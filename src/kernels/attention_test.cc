// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cfenv>
#include <cmath>
#include <cstring>

#include "kernels/attention_test_data.h"

namespace outrider {
namespace {

std::vector<int32_t> numbers_from(int32_t first, int32_t count) {
  std::vector<int32_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

// Textbook softmax in double precision over a list of entries.
std::vector<double> expected_attention(const AttentionTestShape& shape, const Floats& keys,
                                       const Floats& values, const Floats& q, std::vector<int32_t> list) {
  const auto size = static_cast<int64_t>(list.size());
  if (shape.window > 0 && size > shape.window) list.erase(list.begin(), list.end() - shape.window);
  if (shape.chunk > 0) list.erase(list.begin(), list.begin() + (size - 1) / shape.chunk * shape.chunk);
  std::vector<double> y(static_cast<size_t>(shape.query_size()));
  for (int64_t head = 0; head < shape.head_count; ++head) {
    const int64_t kv_head = head / (shape.head_count / shape.kv_head_count);
    const auto number = [&](const Floats& cache, int32_t entry, int64_t d) {
      return static_cast<double>(cache[entry * shape.entry_size() + kv_head * shape.head_dim + d]);
    };
    std::vector<double> scores;
    for (int32_t entry : list) {
      double dot = 0;
      for (int64_t d = 0; d < shape.head_dim; ++d)
        dot += q[head * shape.head_dim + d] * number(keys, entry, d);
      const double score = dot / std::sqrt(static_cast<double>(shape.head_dim));
      const double cap = shape.softcap;
      scores.push_back(cap > 0 ? cap * std::tanh(score / cap) : score);
    }
    for (size_t i = 0; i < scores.size() && !shape.slopes.empty(); ++i)
      scores[i] -= shape.slopes[head] * static_cast<double>(scores.size() - 1 - i);
    const double sink = shape.sinks.empty() ? -HUGE_VAL : shape.sinks[head];
    const double largest = std::max(sink, *std::max_element(scores.begin(), scores.end()));
    double total = std::exp(sink - largest);
    for (double& score : scores) total += score = std::exp(score - largest);
    for (int64_t d = 0; d < shape.head_dim; ++d) {
      double sum = 0;
      for (size_t i = 0; i < list.size(); ++i) sum += scores[i] * number(values, list[i], d);
      y[head * shape.head_dim + d] = sum / total;
    }
  }
  return y;
}

// Whether the table multiplies pairs of bf16 numbers.
bool in_pairs(const KernelTable& table, const AttentionTestShape& shape) {
  const bool has_pairs = table.name == "amx" || table.name == "avx512_bf16";
  const bool has_type = shape.type == DType::kBF16 || shape.type == DType::kQ8_0;
  return has_pairs && has_type && shape.slopes.empty() && shape.head_dim % 32 == 0;
}

// Against the numbers that the cache holds. Products of pairs round queries, probabilities and the numbers of
// Q8_0 as well.
double tolerance(const KernelTable& table, const AttentionTestShape& shape) {
  return in_pairs(table, shape) ? 1e-2 : 2e-6;
}

void expect_near(const Floats& y, const std::vector<double>& expected, const KernelTable& table,
                 const AttentionTestShape& shape) {
  ASSERT_EQ(y.size(), expected.size());
  const double allowed = tolerance(table, shape);
  for (size_t i = 0; i < y.size(); ++i)
    ASSERT_NEAR(y[i], expected[i], allowed * (1 + std::abs(expected[i])))
        << table.name << " " << dtype_name(shape.type) << " head_dim " << shape.head_dim;
}

// A cache, and the numbers it holds.
struct RoundedCache {
  PagedCache cache;
  Floats keys;
  Floats values;

  RoundedCache(const AttentionTestShape& shape, int32_t length, uint64_t seed, float key_scale = 1)
      : cache(shape, random_floats(length * shape.entry_size(), seed, key_scale),
              random_floats(length * shape.entry_size(), seed + 1)),
        keys(rounded_to_cache(shape, random_floats(length * shape.entry_size(), seed, key_scale))),
        values(rounded_to_cache(shape, random_floats(length * shape.entry_size(), seed + 1))) {}
  const int32_t* pages() const { return cache.pages.data(); }
};

TEST(Attention, AgreesWithDoublePrecision) {
  const std::pair<int64_t, int64_t> head_counts[] = {{1, 1}, {6, 2}, {4, 4}, {70, 1}};
  for (const DType type : kKvTypes) {
    for (int64_t head_dim : {1, 8, 20, 33, 64, 96, 128, 256}) {
      for (auto [heads, kv_heads] : head_counts) {
        for (int64_t window : {0, 1, 70}) {
          const float softcap = window == 70 ? 1.5F : 0.0F;
          const AttentionTestShape shape = {heads, kv_heads, head_dim, 16, window, type, {}, softcap};
          const int32_t length = 150;
          const RoundedCache cache(shape, length, 1);
          const Floats q = random_floats(shape.query_size(), 3, 2);
          const auto expected =
              expected_attention(shape, cache.keys, cache.values, q, numbers_from(0, length));
          for (const KernelTable* table : tables_to_test()) {
            const Floats y =
                attend(table->attention, shape, cache.cache, q, {{cache.pages(), length, nullptr, 0}}, 1);
            expect_near(y, expected, *table, shape);
          }
        }
      }
    }
  }
}

TEST(Attention, DistanceBiasAgreesWithDoublePrecision) {
  const int32_t length = 150;
  for (const DType type : kKvTypes) {
    for (const int64_t window : {0, 70}) {
      AttentionTestShape shape = {
          6, 2, 64, 16, window, type, {0.5F, 0.25F, 0.125F, 0.0625F, 0.03125F, 0.0078125F}};
      const RoundedCache cache(shape, length, 1);
      const Floats q = random_floats(shape.query_size(), 3, 2);
      const auto expected = expected_attention(shape, cache.keys, cache.values, q, numbers_from(0, length));
      const std::vector<int32_t> tail = numbers_from(length - 5, 5);
      for (const KernelTable* table : tables_to_test()) {
        const Floats y =
            attend(table->attention, shape, cache.cache, q, {{cache.pages(), length - 5, tail.data(), 5}}, 1);
        expect_near(y, expected, *table, shape);
      }
    }
  }
}

// Several chunks of entries, with borders inside a window and at the end of a list.
TEST(Attention, LongListsAgreeWithDoublePrecision) {
  for (const DType type : kKvTypes) {
    for (const int32_t length : {256, 257, 512, 700}) {
      for (const int64_t window : {0, 70, 300}) {
        AttentionTestShape shape = {6, 2, 64, 16, window, type};
        if (window == 70) shape.sinks = {-2, 0.5F, 1, 3, -40, 20};
        const RoundedCache cache(shape, length, 1);
        const Floats q = random_floats(shape.query_size(), 3, 2);
        const auto expected = expected_attention(shape, cache.keys, cache.values, q, numbers_from(0, length));
        for (const KernelTable* table : tables_to_test()) {
          const Floats y =
              attend(table->attention, shape, cache.cache, q, {{cache.pages(), length, nullptr, 0}}, 1);
          expect_near(y, expected, *table, shape);
        }
      }
    }
  }
}

TEST(Attention, SinksAndChunksAgreeWithDoublePrecision) {
  const int32_t length = 150;
  for (const DType type : kKvTypes) {
    for (const int64_t chunk : {0, 1, 64, 75, 149}) {
      for (const int64_t window : {0, 70}) {
        AttentionTestShape shape = {6, 2, 64, 16, chunk == 0 ? window : 0, type};
        shape.sinks = {-2, 0.5F, 1, 3, -40, 20};
        shape.softcap = window == 70 ? 1.5F : 0;
        shape.chunk = chunk;
        const RoundedCache cache(shape, length, 1);
        const Floats q = random_floats(shape.query_size(), 3, 2);
        const auto expected = expected_attention(shape, cache.keys, cache.values, q, numbers_from(0, length));
        const std::vector<int32_t> tail = numbers_from(length - 5, 5);
        for (const KernelTable* table : tables_to_test()) {
          const Floats y = attend(table->attention, shape, cache.cache, q,
                                  {{cache.pages(), length - 5, tail.data(), 5}}, 1);
          expect_near(y, expected, *table, shape);
        }
      }
    }
  }
}

// Two branches of a tree over a common prefix: each sees its ancestors only.
TEST(Attention, TreeRowsSeeTheirAncestorsOnly) {
  const int32_t prefix = 60;
  const std::vector<int32_t> left = {60, 61, 64};
  const std::vector<int32_t> right = {60, 62, 63, 65};
  for (const DType type : kKvTypes) {
    for (const int64_t head_dim : {40, 64}) {
      const AttentionTestShape shape = {6, 2, head_dim, 16, 0, type};
      const RoundedCache cache(shape, 66, 4);
      const Floats q = random_floats(2 * shape.query_size(), 6);
      for (const KernelTable* table : tables_to_test()) {
        const Floats y =
            attend(table->attention, shape, cache.cache, q,
                   {{cache.pages(), prefix, left.data(), 3}, {cache.pages(), prefix, right.data(), 4}}, 2);
        const auto half = static_cast<std::ptrdiff_t>(y.size() / 2);
        int row = 0;
        for (const std::vector<int32_t>& tail : {left, right}) {
          std::vector<int32_t> list = numbers_from(0, prefix);
          list.insert(list.end(), tail.begin(), tail.end());
          const Floats q_row(q.begin() + row * half, q.begin() + (row + 1) * half);
          const Floats y_row(y.begin() + row * half, y.begin() + (row + 1) * half);
          expect_near(y_row, expected_attention(shape, cache.keys, cache.values, q_row, list), *table, shape);
          ++row;
        }
      }
    }
  }
}

// Committing an accepted path moves its entries next to the prefix; the bits must stay.
TEST(Attention, ACompactedPathKeepsItsBits) {
  const int32_t prefix = 62;
  const std::vector<int32_t> path = {62, 65, 66, 70};
  for (const DType type : kKvTypes) {
    for (const int64_t head_dim : {40, 64}) {
      const AttentionTestShape shape = {6, 2, head_dim, 16, 0, type};
      const auto size = static_cast<std::ptrdiff_t>(shape.entry_size());
      const Floats keys = random_floats(71 * shape.entry_size(), 7);
      const Floats values = random_floats(71 * shape.entry_size(), 8);
      const auto compacted = [&](const Floats& from) {
        Floats to(from.begin(), from.begin() + prefix * size);
        for (int32_t entry : path)
          to.insert(to.end(), from.begin() + entry * size, from.begin() + (entry + 1) * size);
        return to;
      };
      const PagedCache tree(shape, keys, values);
      const PagedCache chain(shape, compacted(keys), compacted(values));
      const Floats q = random_floats(shape.query_size(), 9);
      for (const KernelTable* table : tables_to_test()) {
        const Floats staged =
            attend(table->attention, shape, tree, q, {{tree.pages.data(), prefix, path.data(), 4}}, 1);
        const Floats committed =
            attend(table->attention, shape, chain, q, {{chain.pages.data(), prefix + 4, nullptr, 0}}, 1);
        EXPECT_EQ(std::memcmp(staged.data(), committed.data(), staged.size() * sizeof(float)), 0)
            << table->name << " " << dtype_name(type);
      }
    }
  }
}

TEST(Attention, LargeScoresDoNotOverflow) {
  for (const DType type : kKvTypes) {
    // Queries and keys are so large that one entry takes all; on tiles rounding may not change which one.
    const AttentionTestShape shape = {1, 1, 32, 16, 0, type};
    const int32_t length = 100;
    const RoundedCache cache(shape, length, 10, 1000);
    Floats q = random_floats(shape.query_size(), 12, 1000);
    for (float& number : q) number = bf16_to_f32(f32_to_bf16(number));
    const auto expected = expected_attention(shape, cache.keys, cache.values, q, numbers_from(0, length));
    for (const KernelTable* table : tables_to_test()) {
      const Floats y =
          attend(table->attention, shape, cache.cache, q, {{cache.pages(), length, nullptr, 0}}, 1);
      expect_near(y, expected, *table, shape);
    }
  }
}

// Scores 95 below the largest have subnormal weights, which cost a hundred cycles each and count for nothing.
TEST(Attention, WeightsAreZeroBeforeTheyAreSubnormal) {
  for (const DType type : kKvTypes) {
    const AttentionTestShape shape = {1, 1, 64, 16, 0, type};
    const int32_t length = 100;
    Floats keys(static_cast<size_t>(length * shape.entry_size()));
    for (int32_t entry = 1; entry < length; ++entry) keys[entry * shape.entry_size()] = -95;
    const Floats values = random_floats(length * shape.entry_size(), 14);
    const PagedCache cache(shape, keys, values);
    Floats q(static_cast<size_t>(shape.query_size()));
    q[0] = 8;  // the root of head_dim
    const Floats expected = rounded_to_cache(shape, {values.begin(), values.begin() + shape.entry_size()});
    for (const KernelTable* table : tables_to_test()) {
      if (table->name == "reference") continue;
      std::feclearexcept(FE_UNDERFLOW);
      const Floats y =
          attend(table->attention, shape, cache, q, {{cache.pages.data(), length, nullptr, 0}}, 1);
      EXPECT_FALSE(std::fetestexcept(FE_UNDERFLOW)) << table->name << " " << dtype_name(type);
      for (size_t i = 0; i < y.size(); ++i) {
        const float read = in_pairs(*table, shape) ? bf16_to_f32(f32_to_bf16(expected[i])) : expected[i];
        EXPECT_NEAR(y[i], read, 3e-6 * std::abs(read));
      }
    }
  }
}

}  // namespace
}  // namespace outrider
