// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

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
std::vector<double> expected_attention(const AttentionShape& shape, const Floats& keys, const Floats& values,
                                       const Floats& q, std::vector<int32_t> list) {
  const auto size = static_cast<int64_t>(list.size());
  if (shape.window > 0 && size > shape.window) list.erase(list.begin(), list.end() - shape.window);
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
      scores.push_back(dot / std::sqrt(static_cast<double>(shape.head_dim)));
    }
    const double largest = *std::max_element(scores.begin(), scores.end());
    double total = 0;
    for (double& score : scores) total += score = std::exp(score - largest);
    for (int64_t d = 0; d < shape.head_dim; ++d) {
      double sum = 0;
      for (size_t i = 0; i < list.size(); ++i) sum += scores[i] * number(values, list[i], d);
      y[head * shape.head_dim + d] = sum / total;
    }
  }
  return y;
}

void expect_near(const Floats& y, const std::vector<double>& expected, const std::string& where) {
  ASSERT_EQ(y.size(), expected.size());
  for (size_t i = 0; i < y.size(); ++i)
    ASSERT_NEAR(y[i], expected[i], 2e-6 * (1 + std::abs(expected[i]))) << where;
}

TEST(Attention, AgreesWithDoublePrecision) {
  const std::pair<int64_t, int64_t> head_counts[] = {{1, 1}, {6, 2}, {4, 4}, {70, 1}};
  for (const KernelTable* table : tables_to_test()) {
    for (int64_t head_dim : {1, 8, 20, 33, 64, 96, 128, 256}) {
      for (auto [heads, kv_heads] : head_counts) {
        for (int64_t window : {0, 1, 70}) {
          const AttentionShape shape = {heads, kv_heads, head_dim, 16, window};
          const int32_t length = 150;
          const Floats keys = random_floats(length * shape.entry_size(), 1);
          const Floats values = random_floats(length * shape.entry_size(), 2);
          const PagedCache cache(shape, keys, values);
          const Floats q = random_floats(shape.query_size(), 3, 2);
          const Floats y =
              attend(table->attention, shape, cache, q, {{cache.pages.data(), length, nullptr, 0}}, 1);
          expect_near(y, expected_attention(shape, keys, values, q, numbers_from(0, length)),
                      std::string(table->name) + " head_dim " + std::to_string(head_dim));
        }
      }
    }
  }
}

// Two branches of a tree over a common prefix: each sees its ancestors only.
TEST(Attention, TreeRowsSeeTheirAncestorsOnly) {
  const AttentionShape shape;
  const int32_t prefix = 60;
  const std::vector<int32_t> left = {60, 61, 64};
  const std::vector<int32_t> right = {60, 62, 63, 65};
  const Floats keys = random_floats(66 * shape.entry_size(), 4);
  const Floats values = random_floats(66 * shape.entry_size(), 5);
  const PagedCache cache(shape, keys, values);
  const Floats q = random_floats(2 * shape.query_size(), 6);
  const int32_t* pages = cache.pages.data();
  for (const KernelTable* table : tables_to_test()) {
    const Floats y = attend(table->attention, shape, cache, q,
                            {{pages, prefix, left.data(), 3}, {pages, prefix, right.data(), 4}}, 2);
    const auto half = static_cast<std::ptrdiff_t>(y.size() / 2);
    int row = 0;
    for (const std::vector<int32_t>& tail : {left, right}) {
      std::vector<int32_t> list = numbers_from(0, prefix);
      list.insert(list.end(), tail.begin(), tail.end());
      const Floats q_row(q.begin() + row * half, q.begin() + (row + 1) * half);
      const Floats y_row(y.begin() + row * half, y.begin() + (row + 1) * half);
      expect_near(y_row, expected_attention(shape, keys, values, q_row, list), std::string(table->name));
      ++row;
    }
  }
}

// Committing an accepted path moves its entries next to the prefix; the bits must stay.
TEST(Attention, ACompactedPathKeepsItsBits) {
  const AttentionShape shape;
  const int32_t prefix = 62;
  const std::vector<int32_t> path = {62, 65, 66, 70};
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
    EXPECT_EQ(std::memcmp(staged.data(), committed.data(), staged.size() * sizeof(float)), 0) << table->name;
  }
}

TEST(Attention, LargeScoresDoNotOverflow) {
  const AttentionShape shape = {1, 1, 8, 16, 0};
  const int32_t length = 100;
  Floats keys = random_floats(length * shape.entry_size(), 10, 1000);
  const Floats values = random_floats(length * shape.entry_size(), 11);
  const PagedCache cache(shape, keys, values);
  const Floats q = random_floats(shape.query_size(), 12, 1000);
  for (const KernelTable* table : tables_to_test()) {
    const Floats y = attend(table->attention, shape, cache, q, {{cache.pages.data(), length, nullptr, 0}}, 1);
    expect_near(y, expected_attention(shape, keys, values, q, numbers_from(0, length)),
                std::string(table->name));
  }
}

}  // namespace
}  // namespace outrider
