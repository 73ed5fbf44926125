// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <random>
#include <unordered_set>
#include <vector>

namespace outrider {

// Rows of levels, one per factor, in which any three factors take every combination of their levels. Greedy,
// and the same every time.
template <size_t kFactors>
class CoveringArray {
 public:
  using Row = std::array<int, kFactors>;

  explicit CoveringArray(const Row& levels) : levels_(levels) {
    for (size_t a = 0; a < kFactors; ++a) {
      for (size_t b = a + 1; b < kFactors; ++b) {
        for (size_t c = b + 1; c < kFactors; ++c) add_triples(a, b, c);
      }
    }
  }

  std::vector<Row> rows() {
    std::vector<Row> rows;
    while (!open_.empty()) {
      rows.push_back(next_row());
      for_each_triple(rows.back(), [&](int key) { open_.erase(key); });
    }
    return rows;
  }

 private:
  static constexpr int kMost = 16;  // levels and factors

  static int key_of(size_t a, size_t b, size_t c, int x, int y, int z) {
    const auto number = [](size_t i) { return static_cast<int>(i); };
    return ((((number(a) * kMost + number(b)) * kMost + number(c)) * kMost + x) * kMost + y) * kMost + z;
  }

  void add_triples(size_t a, size_t b, size_t c) {
    for (int x = 0; x < levels_[a]; ++x) {
      for (int y = 0; y < levels_[b]; ++y) {
        for (int z = 0; z < levels_[c]; ++z) add(key_of(a, b, c, x, y, z));
      }
    }
  }

  void add(int key) {
    order_.push_back(key);
    open_.insert(key);
  }

  // Of the factors that are set (>= 0).
  template <typename Visit>
  void for_each_triple(const Row& row, Visit&& visit) const {
    for (size_t a = 0; a < kFactors; ++a) {
      for (size_t b = a + 1; row[a] >= 0 && b < kFactors; ++b) {
        for (size_t c = b + 1; row[b] >= 0 && c < kFactors; ++c) {
          if (row[c] >= 0) visit(key_of(a, b, c, row[a], row[b], row[c]));
        }
      }
    }
  }

  int gain(const Row& row) const {
    int found = 0;
    for_each_triple(row, [&](int key) { found += open_.contains(key) ? 1 : 0; });
    return found;
  }

  // Starts with a triple that is missing and sets the other factors one after the other, each to the level
  // that completes most missing triples.
  Row next_row() {
    while (!open_.contains(order_[first_])) ++first_;
    Row row;
    row.fill(-1);
    const int key = order_[first_];
    const auto digit = [&](int place) { return key >> (4 * place) & (kMost - 1); };
    for (int i = 0; i < 3; ++i) row[static_cast<size_t>(digit(5 - i))] = digit(2 - i);
    for (size_t factor = 0; factor < kFactors; ++factor) {
      if (row[factor] >= 0) continue;
      int best = -1;
      Row chosen = row;
      const int start = static_cast<int>(random_() % static_cast<unsigned>(levels_[factor]));
      for (int i = 0; i < levels_[factor]; ++i) {
        Row candidate = row;
        candidate[factor] = (start + i) % levels_[factor];
        const int found = gain(candidate);
        if (found <= best) continue;
        best = found;
        chosen = candidate;
      }
      row = chosen;
    }
    return row;
  }

  Row levels_;
  std::vector<int> order_;
  size_t first_ = 0;
  std::unordered_set<int> open_;
  std::mt19937 random_{1};
};

template <size_t kFactors>
std::vector<std::array<int, kFactors>> covering_array(const std::array<int, kFactors>& levels) {
  return CoveringArray<kFactors>(levels).rows();
}

}  // namespace outrider
