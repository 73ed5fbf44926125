// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "formats/model_config.h"

namespace outrider {

// The angles per position, theta^(-2i / rotated) with the scaling of the traits, for heads of `head_dim`
// numbers in contexts of up to `context` positions; 0: the context that the model was first trained for. They
// are rounded to f32 step by step as in Hugging Face transformers, because models are trained with these
// angles.
std::vector<float> rope_inverse_frequencies(const RopeTraits& traits, int64_t head_dim, int64_t context = 0);

// The rotation of rows by their positions. It depends on a row's own position only. Under dynamic
// scaling each row has the angles of the last row of its text, as in decoding one token at a
// time.
class RotaryEmbedding {
 public:
  RotaryEmbedding(const RopeTraits& traits, int64_t head_dim, int64_t context);

  int64_t rotated() const { return 2 * static_cast<int64_t>(frequencies_.size()); }
  // Writes the rotation of one row, [rotated()], as the rope kernel reads it.
  void fill(int32_t position, float* rotations) const;

 private:
  RopeTraits traits_;
  int64_t head_dim_;
  std::vector<float> frequencies_;
};

}  // namespace outrider
