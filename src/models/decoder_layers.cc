// SPDX-License-Identifier: Apache-2.0
// The layers of a Decoder's pass: attention or what stands in its place, MLP, and the sums and norms between.
#include "models/decoder.h"

#include <algorithm>
#include <cmath>

namespace outrider {

void Decoder::run_attention(const ForwardBatch& batch, int64_t index, bool is_last, KvCache& cache) {
  if (row_count() == 0) return;
  const DecoderLayer& layer = weights_.layers[static_cast<size_t>(index)];
  const AttentionShape& attention = attention_[static_cast<size_t>(index)];
  const int64_t cache_layer = cache_layers_[static_cast<size_t>(index)];
  const float* input = add_and_normalize(layer.attention_norm, index);
  project_qkv(layer, input);
  if (config_.qkv_limit != 0)
    ops_.clamp(static_cast<float>(config_.qkv_limit), qkv_.data(), row_count() * attention.qkv_size());
  ops_.rotate_and_store(attention, {.qkv = qkv_.data(),
                                    .rows = rows_,
                                    .slots = batch.slots,
                                    .rotations = rotations_of(index),
                                    .query_factors = query_factors_of(index),
                                    .q_norm = layer.q_norm,
                                    .k_norm = layer.k_norm,
                                    .v_norm = layer.v_norm,
                                    .cache = &cache,
                                    .layer = cache_layer});
  if (config_.gates_attention) ops_.project(layer.output_gate, input, output_gates_.data(), row_count());
  if (is_last && !taps_end())
    keep_wanted_rows({{qkv_.data(), attention.qkv_size()}, {output_gates_.data(), layer.output_gate.n}});
  if (row_count() == 0) return;
  ops_.attend(attention, {.qkv = qkv_.data(),
                          .rows = attention_rows_,
                          .cache = &cache,
                          .layer = cache_layer,
                          .sinks = layer.sinks,
                          .y = attended_.data()});
  if (config_.gates_attention)
    ops_.gate(output_gates_.data(), attended_.data(), row_count() * attention.q_size());
  const float* output = attended_.data();
  if (latent_ops_) {
    latent_ops_->read_values(layer.latent, output, values_.data(), row_count());
    output = values_.data();
  }
  ops_.project(layer.attention_output, output, delta_.data(), row_count());
  submit_delta(layer.attention_output_norm);
}

void Decoder::project_qkv(const DecoderLayer& layer, const float* input) {
  if (latent_ops_) return latent_ops_->make_queries(layer.latent, input, qkv_.data(), row_count());
  ops_.project(layer.qkv, input, qkv_.data(), row_count());
}

void Decoder::run_recurrence(int64_t index, bool is_last, KvCache& cache) {
  if (row_count() == 0) return;
  const DecoderLayer& layer = weights_.layers[static_cast<size_t>(index)];
  const bool convolves = config_.traits_of(index).kind == LayerKind::kShortConvolution;
  const Projection& input = convolves ? layer.convolution.input : layer.delta.input;
  const Projection& output = convolves ? layer.convolution.output : layer.delta.output;
  const int64_t state_layer = cache_layers_[static_cast<size_t>(index)];
  ops_.project(input, add_and_normalize(layer.attention_norm, index), qkv_.data(), row_count());
  if (convolves) {
    convolve(ops_, layer.convolution, states_,
             {.projected = qkv_.data(), .y = attended_.data(), .rows = row_count(), .layer = state_layer},
             cache.states());
  } else {
    delta_ops_->run(layer.delta, states_,
                    {.projected = qkv_.data(), .y = attended_.data(), .layer = state_layer}, cache.states());
  }
  if (is_last && !taps_end()) keep_wanted_rows({{attended_.data(), output.k}});
  if (row_count() == 0) return;
  ops_.project(output, attended_.data(), delta_.data(), row_count());
  submit_delta(layer.attention_output_norm);
}

const float* Decoder::mlp_input(const DecoderLayer& layer, bool joins) {
  const Norm& norm = config_.block == BlockKind::kParallelNorm ? layer.attention_norm : layer.mlp_norm;
  if (!joins) return add_and_normalize(norm);
  // The attention's output is not yet added, and normed_ has its input.
  if (config_.block == BlockKind::kParallel)
    ops_.normalize(hidden_.data(), norm, normed_.data(), row_count());
  return normed_.data();
}

void Decoder::run_mlp(int64_t index, bool joins) {
  const DecoderLayer& layer = weights_.layers[static_cast<size_t>(index)];
  const int64_t rows = row_count();
  if (rows == 0) return;
  float* output = joins ? branch_.data() : delta_.data();
  compute_mlp(index, mlp_input(layer, joins), output);
  if (joins) {
    finish_output(layer.mlp_output_norm, output);
    ops_.add(output, delta_.data(), rows * config_.hidden_size);
  } else {
    submit_delta(layer.mlp_output_norm);
  }
  finish_layer(layer, index);
}

void Decoder::compute_mlp(int64_t index, const float* input, float* output) {
  const DecoderLayer& layer = weights_.layers[static_cast<size_t>(index)];
  if (layer.experts.experts.empty()) return compute_dense_mlp(layer, input, output);
  const ExpertLayer& experts = layer.experts;
  const bool has_dense = layer.down.k != 0;  // a shard may have none of its outputs
  if (has_dense) compute_dense_mlp(layer, input, dense_.data());
  if (experts.dense_gate.n != 0) gate_dense_mlp(experts.dense_gate, input);
  ExpertOps::Inputs inputs{.router = input, .x = input};
  if (!experts.input_norm.empty()) {  // `input` is no longer needed, and may be normed_
    ops_.normalize(hidden_.data(), experts.router_norm, router_inputs_.data(), row_count());
    ops_.normalize(hidden_.data(), experts.input_norm, normed_.data(), row_count());
    inputs = {.router = router_inputs_.data(), .x = normed_.data()};
  }
  ExpertStream* const stream = weights_.stream ? weights_.stream->experts() : nullptr;
  experts_.run(experts, inputs, output, row_count(), {stream, index});
  woken_[static_cast<size_t>(index)] = experts_.woken();
  if (!has_dense) return;
  if (!experts.output_norm.empty()) {
    ops_.normalize(output, experts.output_norm, output, row_count());
    ops_.normalize(dense_.data(), experts.dense_output_norm, dense_.data(), row_count());
  }
  ops_.add(dense_.data(), output, row_count() * config_.hidden_size);
}

void Decoder::compute_dense_mlp(const DecoderLayer& layer, const float* input, float* output) {
  ops_.project(layer.gate_up, input, gate_up_.data(), row_count());
  ops_.activate({.x = gate_up_.data(),
                 .y = gated_.data(),
                 .rows = row_count(),
                 .dim = layer.gate_up.n / (config_.mlp.is_gated ? 2 : 1),
                 .activation = config_.mlp.activation,
                 .is_gated = config_.mlp.is_gated});
  ops_.project(layer.down, gated_.data(), output, row_count());
}

void Decoder::gate_dense_mlp(const Projection& gate, const float* input) {
  ops_.project(gate, input, dense_gates_.data(), row_count());
  for (int64_t i = 0; i < row_count(); ++i) {
    float* row = dense_.data() + i * config_.hidden_size;
    const float factor = 1 / (1 + std::exp(-dense_gates_.data()[i]));
    for (int64_t d = 0; d < config_.hidden_size; ++d) row[d] *= factor;
  }
}

void Decoder::finish_layer(const DecoderLayer& layer, int64_t index) {
  if (layer.input.gate.n != 0) add_layer_input(layer.input, index);
  if (layer.scalar == 1) return;
  add_and_normalize({});
  ops_.scale(layer.scalar, hidden_.data(), row_count() * config_.hidden_size);
}

void Decoder::add_layer_input(const LayerInput& input, int64_t index) {
  const int64_t rows = row_count();
  const int64_t size = input.gate.n;
  const int64_t width = config_.layer_count * size;
  ops_.project(input.gate, add_and_normalize({}), gate_up_.data(), rows);
  ops_.activate({.x = gate_up_.data(),
                 .y = gated_.data(),
                 .rows = rows,
                 .dim = size,
                 .activation = config_.mlp.activation,
                 .is_gated = false});
  for (int64_t i = 0; i < rows; ++i) {
    const float* own = layer_inputs_.data() + rows_[static_cast<size_t>(i)] * width + index * size;
    for (int64_t d = 0; d < size; ++d) gated_.data()[i * size + d] *= own[d];
  }
  ops_.project(input.projection, gated_.data(), delta_.data(), rows);
  submit_delta(input.norm);
}

void Decoder::finish_output(const Norm& norm, float* output) {
  if (!norm.empty()) ops_.normalize(output, norm, output, row_count());
  if (config_.scales.residual != 1)
    ops_.scale(static_cast<float>(config_.scales.residual), output, row_count() * config_.hidden_size);
}

void Decoder::submit_delta(const Norm& output_norm) {
  is_delta_pending_ = true;
  if (config_.norm.placement != NormPlacement::kSum) return finish_output(output_norm, delta_.data());
  ops_.add_and_normalize({.x = hidden_.data(),
                          .delta = delta_.data(),
                          .norm = &output_norm,
                          .y = hidden_.data(),
                          .rows = row_count(),
                          .dim = config_.hidden_size});
  is_delta_pending_ = false;
}

const float* Decoder::add_and_normalize(const Norm& norm, int64_t tapped_layer) {
  ops_.add_and_normalize({.x = hidden_.data(),
                          .delta = is_delta_pending_ ? delta_.data() : nullptr,
                          .norm = &norm,
                          .y = normed_.data(),
                          .rows = row_count(),
                          .dim = config_.hidden_size});
  is_delta_pending_ = false;
  const float* normed = norm.empty() ? hidden_.data() : normed_.data();
  if (tapped_layer < 0 || !captures_) return normed;
  for (size_t i = 0; i < taps_.layers.size(); ++i) {
    if (taps_.layers[i] == tapped_layer) copy_feature(hidden_.data(), static_cast<int64_t>(i));
  }
  return normed;
}

// Writes `states` [rows, hidden_size] as feature number `index` of every row.
void Decoder::copy_feature(const float* states, int64_t index) {
  const int64_t dim = config_.hidden_size;
  for (int64_t row = 0; row < row_count(); ++row)
    std::copy_n(states + row * dim, dim, features_.data() + row * feature_size() + index * dim);
}

}  // namespace outrider
