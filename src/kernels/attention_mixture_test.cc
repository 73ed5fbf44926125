// SPDX-License-Identifier: Apache-2.0
// One call with everything at once, chunks, chains and trees of two sequences, against each row by itself in
// a cache where all that the row does not see is NaN.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/sanitized.h"
#include "kernels/attention_test_data.h"

namespace outrider {
namespace {

// The entries that one row sees: [0, prefix_len), then the tail.
struct Sight {
  int32_t prefix_len = 0;
  std::vector<int32_t> tail;
  bool second_sequence = false;

  bool sees(int32_t entry) const {
    return entry < prefix_len || std::find(tail.begin(), tail.end(), entry) != tail.end();
  }
};

constexpr int32_t kChunk = 21;
constexpr int32_t kNodes = 45;

// After `committed` entries: a chunk, a tree of random shape with deep branches, and a chain.
std::vector<Sight> mixture(int32_t committed, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<Sight> rows;
  for (int32_t i = 1; i <= kChunk; ++i) rows.push_back({committed + i, {}, i % 5 == 0});
  std::vector<std::vector<int32_t>> nodes;
  for (int32_t i = 0; i < kNodes; ++i) {
    std::vector<int32_t> path;
    if (i > 0) path = nodes[random() % 3 == 0 ? random() % nodes.size() : nodes.size() - 1];
    path.push_back(committed + i);
    nodes.push_back(path);
    rows.push_back({committed, path, false});
  }
  std::vector<int32_t> chain;
  for (int32_t i = 0; i < 9; ++i) {
    chain.push_back(committed + i);
    rows.push_back({committed, chain, true});
  }
  return rows;
}

// Two sequences of one length in one cache; the keys of the first are the values of the second.
struct TwoSequences {
  PagedCache cache;
  std::vector<int32_t> second;

  TwoSequences(const AttentionTestShape& shape, const Floats& keys, const Floats& values)
      : cache(shape, keys, values), second(cache.pages) {
    const PagedCache other(shape, values, keys);
    const auto pages =
        static_cast<int32_t>(other.k.size() / static_cast<size_t>(shape.row_bytes() * shape.page_size));
    for (int32_t& page : second) page += pages;
    cache.k.insert(cache.k.end(), other.k.begin(), other.k.end());
    cache.v.insert(cache.v.end(), other.v.begin(), other.v.end());
  }
  AttentionRow row(const Sight& sight) const {
    const auto& pages = sight.second_sequence ? second : cache.pages;
    return {pages.data(), sight.prefix_len, sight.tail.data(), static_cast<int32_t>(sight.tail.size())};
  }
};

class Mixture {
 public:
  Mixture(const AttentionTestShape& shape, int32_t committed)
      : shape_(shape),
        sights_(mixture(committed, static_cast<uint32_t>(committed))),
        entries_(committed + kNodes),
        keys_(random_floats(entries_ * shape.entry_size(), 30)),
        values_(random_floats(entries_ * shape.entry_size(), 31)),
        queries_(random_floats(sights_.size() * static_cast<size_t>(shape.query_size()), 32)) {}

  // Makes one entry's keys NaN and its values infinite.
  void spoil(int32_t entry) {
    spoiled_ = entry;
    for (int64_t i = 0; i < shape_.entry_size(); ++i) {
      keys_[entry * shape_.entry_size() + i] = std::numeric_limits<float>::quiet_NaN();
      values_[entry * shape_.entry_size() + i] = -std::numeric_limits<float>::infinity();
    }
  }

  // The first row of the chunk sums negative numbers too small for tiles and negative zeros; the entries that
  // it does not see are negative.
  void let_sums_vanish() {
    const int64_t small = (entries_ - kNodes - 8) * shape_.entry_size();
    const int64_t zero = (entries_ - kNodes + 1) * shape_.entry_size();
    std::fill(queries_.begin(), queries_.end(), 100.0F);
    std::fill(keys_.begin(), keys_.begin() + small, -0.0734F);  // their weights are near 2^-120
    std::fill(keys_.begin() + small, keys_.end(), 0.0734F);
    std::fill(values_.begin(), values_.begin() + small, -0x1p-20F);
    std::fill(values_.begin() + small, values_.begin() + zero, -0.0F);
    std::fill(values_.begin() + zero, values_.end(), -1.0F);
  }

  void expect_rows_as_alone(const std::vector<const KernelTable*>& tables) const {
    const TwoSequences all(shape_, keys_, values_);
    std::vector<AttentionRow> rows;
    for (const Sight& sight : sights_) rows.push_back(all.row(sight));
    std::vector<Floats> together;
    for (const KernelTable* table : tables)
      together.push_back(attend(table->attention, shape_, all.cache, queries_, rows, 3));
    for (size_t r = 0; r < sights_.size(); ++r) {
      if (spoiled_ >= 0 && sights_[r].sees(spoiled_)) continue;
      const TwoSequences own = seen_by(sights_[r]);
      const auto size = shape_.query_size();
      const Floats q(queries_.begin() + r * size, queries_.begin() + (r + 1) * size);
      for (size_t t = 0; t < tables.size(); ++t) {
        const Floats alone = attend(tables[t]->attention, shape_, own.cache, q, {own.row(sights_[r])}, 1);
        for (const float number : alone) ASSERT_TRUE(std::isfinite(number));
        ASSERT_EQ(std::memcmp(alone.data(), together[t].data() + r * size, size * sizeof(float)), 0)
            << tables[t]->name << " " << dtype_name(shape_.type) << " head_dim " << shape_.head_dim
            << " window " << shape_.window << " page " << shape_.page_size << ": row " << r << " of "
            << sights_.size() << " after " << entries_ - kNodes << " entries";
      }
    }
  }

 private:
  TwoSequences seen_by(const Sight& sight) const {
    Floats keys = keys_;
    Floats values = values_;
    const auto length = sight.prefix_len + static_cast<int32_t>(sight.tail.size());
    for (int32_t e = 0; e < entries_; ++e) {
      const int64_t chunk = shape_.chunk > 0 ? (length - 1) / shape_.chunk * shape_.chunk : 0;
      const int64_t first = std::max(chunk, shape_.window > 0 ? length - shape_.window : 0);
      const bool before_window = sight.tail.empty() && e < first;
      if (sight.sees(e) && !before_window) continue;
      for (auto* numbers : {&keys, &values}) {
        std::fill_n(numbers->begin() + e * shape_.entry_size(), shape_.entry_size(),
                    std::numeric_limits<float>::quiet_NaN());
      }
    }
    return {shape_, keys, values};
  }

  AttentionTestShape shape_;
  std::vector<Sight> sights_;
  int32_t entries_;
  Floats keys_;
  Floats values_;
  Floats queries_;
  int32_t spoiled_ = -1;
};

TEST(AttentionMixture, RowsAreAsIfAlone) {
  const auto tables = tables_to_test();
  constexpr int64_t kPages[] = {1, 16, 64};
  int turn = 0;
  for (const DType type : kKvTypes) {
    for (const auto& [heads, kv_heads, head_dim] :
         {std::array<int64_t, 3>{8, 2, 32}, std::array<int64_t, 3>{3, 3, 64},
          std::array<int64_t, 3>{6, 2, 40}}) {
      for (const int32_t committed : {1, 31, 50, 64, 100}) {
        if (kIsSanitized && committed != 31 && committed != 64) continue;
        const int64_t window = turn % 3 == 2 ? 37 : 0;
        const float softcap = turn % 2 == 1 ? 0.7F : 0.0F;
        AttentionTestShape shape = {heads, kv_heads, head_dim, kPages[turn % 3], window, type, {}, softcap};
        shape.chunk = turn % 5 == 3 ? 40 : 0;
        if (turn % 4 == 1) shape.sinks = random_floats(heads, 33, 3);
        Mixture mixture(shape, committed);
        ASSERT_NO_FATAL_FAILURE(mixture.expect_rows_as_alone(tables));
        mixture.spoil(committed + 7);
        ASSERT_NO_FATAL_FAILURE(mixture.expect_rows_as_alone(tables));
        ++turn;
      }
    }
  }
}

TEST(AttentionMixture, ZerosKeepTheirSign) {
  for (const DType type : kKvTypes) {
    Mixture mixture({8, 2, 32, 16, 0, type}, 92);  // a step of 32 ends soon after
    mixture.let_sums_vanish();
    ASSERT_NO_FATAL_FAILURE(mixture.expect_rows_as_alone(tables_to_test()));
  }
}

}  // namespace
}  // namespace outrider
