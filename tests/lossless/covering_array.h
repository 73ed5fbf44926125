// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <random>
#include <unordered_set>
#include <vector>

namespace outrider {

// Rows of levels, one per factor, in which any kStrength factors take every combination of their levels. The
// greedy search is deterministic.
template <int kStrength, size_t kFactors>
class CoveringArray {
 public:
  using Row = std::array<int, kFactors>;

  explicit CoveringArray(const Row& levels) : levels_(levels) { add_groups(0, kStrength, 0); }

  std::vector<Row> rows() {
    std::vector<Row> rows;
    while (!open_.empty()) {
      rows.push_back(next_row());
      for_each_group(rows.back(), [&](int key) { open_.erase(key); });
    }
    return rows;
  }

 private:
  static constexpr int kMax = 32;  // levels and factors

  // Keys of groups hold a factor and its level per member.
  static int extended(int key, size_t factor, int level) {
    return (key * kMax + static_cast<int>(factor)) * kMax + level;
  }

  void add_groups(size_t begin, int left, int key) {
    if (left == 0) {
      order_.push_back(key);
      open_.insert(key);
      return;
    }
    for (size_t factor = begin; factor < kFactors; ++factor) {
      for (int level = 0; level < levels_[factor]; ++level)
        add_groups(factor + 1, left - 1, extended(key, factor, level));
    }
  }

  // Counts only factors that are set (>= 0).
  template <typename Visit>
  static void for_each_group(const Row& row, Visit&& visit, size_t begin = 0, int left = kStrength,
                             int key = 0) {
    if (left == 0) return visit(key);
    for (size_t factor = begin; factor < kFactors; ++factor) {
      if (row[factor] >= 0)
        for_each_group(row, visit, factor + 1, left - 1, extended(key, factor, row[factor]));
    }
  }

  int gain(const Row& row) const {
    int found = 0;
    for_each_group(row, [&](int key) { found += open_.contains(key) ? 1 : 0; });
    return found;
  }

  // Starts with a group that is missing and sets the other factors one after the other, each to the level
  // that completes most missing groups.
  Row next_row() {
    while (!open_.contains(order_[first_])) ++first_;
    Row row;
    row.fill(-1);
    for (int i = 0, key = order_[first_]; i < kStrength; ++i, key /= kMax * kMax)
      row[static_cast<size_t>(key / kMax % kMax)] = key % kMax;
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

template <int kStrength, size_t kFactors>
std::vector<std::array<int, kFactors>> covering_array(const std::array<int, kFactors>& levels) {
  return CoveringArray<kStrength, kFactors>(levels).rows();
}

}  // namespace outrider
