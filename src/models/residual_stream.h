// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "formats/model_config.h"
#include "models/backend/layer_backend.h"

namespace outrider {

// The residual stream of the rows being computed, and what blocks add to it. An addition waits for the norm
// that follows, which adds it in the same step.
class ResidualStream {
 public:
  ResidualStream(const ModelConfig& config, LayerBackend& backend);

  void reserve(int64_t rows);
  // [rows, hidden_size] each: the stream, its norm, what the next block adds, and the output of an MLP that
  // joins the output of a mixer.
  FloatAddress hidden() const { return hidden_.data(); }
  FloatAddress normed() const { return normed_.data(); }
  FloatAddress delta() const { return delta_.data(); }
  FloatAddress branch() const { return branch_.data(); }

  // The stream is new: nothing waits.
  void begin() { is_delta_pending_ = false; }
  // Adds what waits; returns norm(stream), or the stream itself where the norm is empty.
  FloatAddress normalize(const Norm& norm, int64_t rows);
  // The norm of the stream as it is, in normed().
  void normalize_again(const Norm& norm, int64_t rows);
  // Adds delta() with the next norm, after `norm` and the model's factor.
  void add_delta(const Norm& norm, int64_t rows);
  // Adds branch() to a delta that waits, likewise.
  void join_branch(const Norm& norm, int64_t rows);
  // Multiplies the stream.
  void scale(float factor, int64_t rows);

 private:
  void finish_output(const Norm& norm, FloatAddress output, int64_t rows);

  int64_t size_;     // of a row
  float factor_;     // of what blocks add
  bool adds_first_;  // the norm of an output is the norm of the sum
  bool has_branches_;
  LayerBackend& backend_;
  BackendRows hidden_, normed_, delta_, branch_;
  bool is_delta_pending_ = false;
};

}  // namespace outrider
