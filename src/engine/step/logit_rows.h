// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "models/model.h"

namespace outrider {

// Rows of logits of one forward pass, which come from where they are when they are asked for.
struct LogitRows {
  Model* model = nullptr;
  int first = 0;          // row of the pass
  size_t vocab_size = 0;  // entries of a row that belong to tokens

  // The logits that a token is chosen from.
  std::span<const float> row(int index) const { return whole_row(index).first(vocab_size); }
  std::span<const float> whole_row(int index) const { return model->logits_at(first + index); }
  // The rows from number `from` on.
  LogitRows from(int from) const { return {model, first + from, vocab_size}; }
};

}  // namespace outrider
