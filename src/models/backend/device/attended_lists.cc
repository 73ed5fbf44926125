// SPDX-License-Identifier: Apache-2.0
#include "models/backend/device/attended_lists.h"

#include <algorithm>
#include <map>

namespace outrider {

AttendedLists::AttendedLists(std::span<const AttentionRow> rows, int64_t page_size) {
  std::map<const int32_t*, int64_t> lengths;  // in entries, by the pages of a sequence
  for (const AttentionRow& row : rows) {
    int64_t& length = lengths[row.pages];
    length = std::max<int64_t>(length, row.prefix_len);
    for (int32_t i = 0; i < row.tail_len; ++i) length = std::max<int64_t>(length, row.tail[i] + 1);
  }
  std::map<const int32_t*, int> begins;
  for (const auto& [list, length] : lengths) {
    begins[list] = static_cast<int>(pages.size());
    pages.insert(pages.end(), list, list + (length + page_size - 1) / page_size);
  }
  for (const AttentionRow& row : rows) {
    entries.insert(entries.end(),
                   {begins[row.pages], row.prefix_len, static_cast<int>(tails.size()), row.tail_len});
    tails.insert(tails.end(), row.tail, row.tail + row.tail_len);
  }
}

}  // namespace outrider
