// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

namespace outrider {

// Rows of logits of one forward pass.
struct LogitRows {
  std::span<const float> values;  // [rows, row_size]
  size_t row_size = 0;
  size_t vocab_size = 0;  // entries of a row that belong to tokens, at most row_size

  // The logits that a token is chosen from.
  std::span<const float> row(int index) const { return whole_row(index).first(vocab_size); }
  std::span<const float> whole_row(int index) const {
    return values.subspan(static_cast<size_t>(index) * row_size, row_size);
  }
  // The rows from number `first` on.
  LogitRows from(int first) const {
    return {values.subspan(static_cast<size_t>(first) * row_size), row_size, vocab_size};
  }
};

}  // namespace outrider
