// SPDX-License-Identifier: Apache-2.0
// The layers of a Decoder's pass: mixer, MLP, and the sums and norms between.
#include "models/decoder.h"

namespace outrider {

void Decoder::run_mixer(int64_t index, bool is_last) {
  if (pass_.rows() == 0) return;
  const LayerBlocks& layer = layer_at(index);
  const int64_t size = config_.hidden_size;
  const FloatAddress input = normalize_input(layer.mixer_norm, index);
  if (is_last && !taps_end()) {
    const bool keeps_normed = config_.block == BlockKind::kParallelNorm;
    pass_.narrow_next({{stream_.hidden(), size}, {stream_.normed(), keeps_normed ? size : 0}});
  }
  layer.mixer->run(pass_, {.input = input,
                           .output = stream_.delta(),
                           .residual = stream_.hidden(),
                           .cache_layer = cache_layers_[static_cast<size_t>(index)]});
  pass_.keep_wanted({{stream_.delta(), size}});  // where the mixer had no reason to
  if (pass_.rows() > 0) stream_.add_delta(layer.mixer_output_norm, pass_.rows());
}

FloatAddress Decoder::mlp_input(const LayerBlocks& layer, bool joins) {
  const Norm& norm = config_.block == BlockKind::kParallelNorm ? layer.mixer_norm : layer.mlp_norm;
  if (!joins) return stream_.normalize(norm, pass_.rows());
  // The mixer's output is not yet added, and normed() has the mixer's input.
  if (config_.block == BlockKind::kParallel) stream_.normalize_again(norm, pass_.rows());
  return stream_.normed();
}

void Decoder::run_mlp(int64_t index, bool joins) {
  if (pass_.rows() == 0) return;
  const LayerBlocks& layer = layer_at(index);
  const FloatAddress input = mlp_input(layer, joins);
  layer.mlp->run(
      pass_,
      {.input = input, .output = joins ? stream_.branch() : stream_.delta(), .residual = stream_.hidden()});
  active_experts_[static_cast<size_t>(index)] = pass_.take_chosen_parts();
  if (joins) {
    stream_.join_branch(layer.mlp_output_norm, pass_.rows());
  } else {
    stream_.add_delta(layer.mlp_output_norm, pass_.rows());
  }
  finish_layer(layer, index);
}

void Decoder::finish_layer(const LayerBlocks& layer, int64_t index) {
  if (layer.input.gate.n != 0) add_layer_input(layer.input, index);
  if (layer.scalar != 1) stream_.scale(layer.scalar, pass_.rows());
}

void Decoder::add_layer_input(const LayerInput& input, int64_t index) {
  const int64_t rows = pass_.rows();
  const int64_t size = input.gate.n;
  const FloatAddress gates = pass_.scratch(0), gated = pass_.scratch(1);
  backend_->project(input.gate, stream_.normalize({}, rows), gates, rows);
  backend_->activate({.x = gates,
                      .y = gated,
                      .rows = rows,
                      .dim = size,
                      .activation = config_.mlp.activation,
                      .is_gated = false});
  backend_->multiply_rows({.x = gated,
                           .dim = size,
                           .rows = pass_.batch_rows(),
                           .factors = layer_inputs_.data() + index * size,
                           .stride = config_.layer_count * size});
  backend_->project(input.projection, gated, stream_.delta(), rows);
  stream_.add_delta(input.norm, rows);
}

FloatAddress Decoder::normalize_input(const Norm& norm, int64_t layer) {
  const FloatAddress normed = stream_.normalize(norm, pass_.rows());
  for (size_t i = 0; captures_ && i < taps_.layers.size(); ++i) {
    if (taps_.layers[i] == layer) copy_feature(stream_.hidden(), static_cast<int64_t>(i));
  }
  return normed;
}

// Writes `states` [rows, hidden_size] as feature number `index` of every row.
void Decoder::copy_feature(FloatAddress states, int64_t index) {
  backend_->copy({.from = states,
                  .from_stride = config_.hidden_size,
                  .rows = pass_.batch_rows(),
                  .to = features_.data() + index * config_.hidden_size,
                  .to_stride = feature_size(),
                  .dim = config_.hidden_size});
}

}  // namespace outrider
