// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/backend/attention_shape.h"
#include "models/forward_batch.h"
#include "models/rotary_embedding.h"

namespace outrider {

// The numbers that the positions of rows decide in layers with attention: rotations of queries and keys, and
// factors of queries.
class RowPositions {
 public:
  // context: positions of the longest sequence; 0: the positions of training
  RowPositions(const ModelConfig& config, int64_t context);

  void reserve(int64_t rows);
  void place(const ForwardBatch& batch);
  int rope_count() const { return static_cast<int>(ropes_.size()); }
  // rope: index in ModelConfig::ropes, or LayerTraits::kNoRope
  RowRotations rotations(int rope);
  // Empty: queries of layers with this RoPE do not depend on temperatures.
  QueryFactors query_factors(int rope) const;

 private:
  QueryTemperature temperature_;
  std::vector<RotaryEmbedding> ropes_;
  std::vector<std::vector<float>> rotations_;  // for each of ropes_, see RowRotations
  std::vector<float> query_factors_;           // [batch rows], or empty
};

}  // namespace outrider
