// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/backend/attention_shape.h"

namespace outrider {

// Hides the first entries of sequences from the rows of a pass. Its lists must live as long as the rows.
class EntryHiding {
 public:
  // Makes room for so many rows, `tree_rows` of them in trees, over sequences of that length.
  void reserve(int64_t rows, int64_t tree_rows, int64_t entries);
  // Changes what the rows see: no entry before `first`, except that each row sees itself.
  void hide_before(int32_t first, std::span<AttentionRow> rows);

 private:
  // 0, 1, ...; what rows with a tail see, and where each of them begins
  std::vector<int32_t> in_order_, listed_;
  std::vector<size_t> starts_;
};

}  // namespace outrider
