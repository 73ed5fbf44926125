// SPDX-License-Identifier: Apache-2.0
#include "models/backend/entry_hiding.h"

#include <algorithm>
#include <utility>

namespace outrider {

void EntryHiding::reserve(int64_t rows, int64_t tree_rows, int64_t entries) {
  in_order_.reserve(static_cast<size_t>(entries));
  listed_.reserve(static_cast<size_t>(tree_rows * entries));
  starts_.reserve(static_cast<size_t>(rows));
}

// Lists of entries are seen in their order, however they are told: as a prefix or one by one.
void EntryHiding::hide_before(int32_t first, std::span<AttentionRow> rows) {
  listed_.clear();
  starts_.clear();
  for (const AttentionRow& row : rows) {
    while (std::cmp_less(in_order_.size(), row.prefix_len))
      in_order_.push_back(static_cast<int32_t>(in_order_.size()));
    starts_.push_back(listed_.size());
    if (row.tail_len == 0) continue;
    for (int32_t entry = first; entry < row.prefix_len; ++entry) listed_.push_back(entry);
    for (int32_t i = 0; i < row.tail_len; ++i) {
      if (row.tail[i] >= first) listed_.push_back(row.tail[i]);
    }
    if (listed_.size() == starts_.back()) listed_.push_back(row.tail[row.tail_len - 1]);
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    AttentionRow& row = rows[i];
    if (row.tail_len == 0) {
      const int32_t begin = std::min(first, row.prefix_len - 1);
      row.tail = in_order_.data() + begin;
      row.tail_len = row.prefix_len - begin;
    } else {
      const size_t end = i + 1 < starts_.size() ? starts_[i + 1] : listed_.size();
      row.tail = listed_.data() + starts_[i];
      row.tail_len = static_cast<int32_t>(end - starts_[i]);
    }
    row.prefix_len = 0;
  }
}

}  // namespace outrider
