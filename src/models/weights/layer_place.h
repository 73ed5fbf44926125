// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace outrider {

// The place of a layer's tensors, and what its configuration leaves open.
struct LayerPlace {
  std::string prefix;      // "model.layers.3."
  int64_t index = 0;       // of its traits
  int64_t input_size = 0;  // numbers per input row of queries, keys and values
  bool has_input_norm = true;
  bool splits_queries = false;  // from keys and values, which come from other rows
};

}  // namespace outrider
