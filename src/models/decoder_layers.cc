// SPDX-License-Identifier: Apache-2.0
// The layers of a Decoder's pass: attention or what stands in its place, MLP, and the sums and norms between.
#include "models/decoder.h"

namespace outrider {

void Decoder::run_attention(const ForwardBatch& batch, int64_t index, bool is_last, KvCache& cache) {
  if (row_count() == 0) return;
  const DecoderLayer& layer = weights_.layers[static_cast<size_t>(index)];
  const AttentionShape& shape = attention_[static_cast<size_t>(index)];
  const LayerBackend::Attention attention{.shape = &shape,
                                          .weights = &layer,
                                          .cache = &cache,
                                          .layer = cache_layers_[static_cast<size_t>(index)],
                                          .qkv = qkv_.data()};
  const FloatAddress input = add_and_normalize(layer.attention_norm, index);
  project_qkv(layer, input);
  if (config_.qkv_limit != 0)
    backend_->clamp(static_cast<float>(config_.qkv_limit), qkv_.data(), row_count() * shape.qkv_size());
  backend_->rotate_and_store(attention, {.rows = rows_,
                                         .slots = batch.slots,
                                         .rotations = rotations_of(index),
                                         .query_factors = query_factors_of(index)});
  if (config_.gates_attention) backend_->project(layer.output_gate, input, output_gates_.data(), row_count());
  if (is_last && !taps_end())
    keep_wanted_rows({{qkv_.data(), shape.qkv_size()}, {output_gates_.data(), layer.output_gate.n}});
  if (row_count() == 0) return;
  backend_->attend(attention, attention_rows_, attended_.data());
  if (config_.gates_attention)
    backend_->gate(output_gates_.data(), attended_.data(), row_count() * shape.q_size());
  FloatAddress output = attended_.data();
  if (config_.latent.rank != 0) {
    backend_->read_latent_values(layer.latent, output, values_.data(), row_count());
    output = values_.data();
  }
  backend_->project(layer.attention_output, output, delta_.data(), row_count());
  submit_delta(layer.attention_output_norm);
}

void Decoder::project_qkv(const DecoderLayer& layer, FloatAddress input) {
  if (config_.latent.rank != 0)
    return backend_->make_latent_queries(layer.latent, input, qkv_.data(), row_count());
  backend_->project(layer.qkv, input, qkv_.data(), row_count());
}

void Decoder::run_recurrence(int64_t index, bool is_last, KvCache& cache) {
  if (row_count() == 0) return;
  const DecoderLayer& layer = weights_.layers[static_cast<size_t>(index)];
  const bool convolves = config_.traits_of(index).kind == LayerKind::kShortConvolution;
  const Projection& input = convolves ? layer.convolution.input : layer.delta.input;
  const Projection& output = convolves ? layer.convolution.output : layer.delta.output;
  const int64_t cache_layer = cache_layers_[static_cast<size_t>(index)];
  backend_->project(input, add_and_normalize(layer.attention_norm, index), qkv_.data(), row_count());
  backend_->recur({.weights = &layer,
                   .plan = &states_,
                   .store = &cache.states(),
                   .storage = &cache.storage().states(),
                   .layer = cache_layer,
                   .projected = qkv_.data(),
                   .y = attended_.data(),
                   .rows = row_count()});
  states_.note_applied(cache_layer, cache.states());
  if (is_last && !taps_end()) keep_wanted_rows({{attended_.data(), output.k}});
  if (row_count() == 0) return;
  backend_->project(output, attended_.data(), delta_.data(), row_count());
  submit_delta(layer.attention_output_norm);
}

FloatAddress Decoder::mlp_input(const DecoderLayer& layer, bool joins) {
  const Norm& norm = config_.block == BlockKind::kParallelNorm ? layer.attention_norm : layer.mlp_norm;
  if (!joins) return add_and_normalize(norm);
  // The attention's output is not yet added, and normed_ has its input.
  if (config_.block == BlockKind::kParallel)
    backend_->normalize(hidden_.data(), norm, normed_.data(), row_count());
  return normed_.data();
}

void Decoder::run_mlp(int64_t index, bool joins) {
  const DecoderLayer& layer = weights_.layers[static_cast<size_t>(index)];
  const int64_t rows = row_count();
  if (rows == 0) return;
  const FloatAddress output = joins ? branch_.data() : delta_.data();
  compute_mlp(index, mlp_input(layer, joins), output);
  if (joins) {
    finish_output(layer.mlp_output_norm, output);
    backend_->add(output, delta_.data(), rows * config_.hidden_size);
  } else {
    submit_delta(layer.mlp_output_norm);
  }
  finish_layer(layer, index);
}

void Decoder::compute_mlp(int64_t index, FloatAddress input, FloatAddress output) {
  const DecoderLayer& layer = weights_.layers[static_cast<size_t>(index)];
  if (layer.experts.experts.empty()) return compute_dense_mlp(layer, input, output);
  const ExpertLayer& experts = layer.experts;
  const bool has_dense = layer.down.k != 0;  // a shard may have none of its outputs
  if (has_dense) compute_dense_mlp(layer, input, dense_.data());
  if (experts.dense_gate.n != 0) {
    backend_->project(experts.dense_gate, input, dense_gates_.data(), row_count());
    backend_->gate_rows(dense_gates_.data(), dense_.data(), row_count(), config_.hidden_size);
  }
  LayerBackend::Experts inputs{.layer = index, .router = input, .x = input, .y = output, .rows = row_count()};
  if (!experts.input_norm.empty()) {  // `input` is no longer needed, and may be normed_
    backend_->normalize(hidden_.data(), experts.router_norm, router_inputs_.data(), row_count());
    backend_->normalize(hidden_.data(), experts.input_norm, normed_.data(), row_count());
    inputs.router = router_inputs_.data();
    inputs.x = normed_.data();
  }
  woken_[static_cast<size_t>(index)] = backend_->run_experts(inputs);
  if (!has_dense) return;
  if (!experts.output_norm.empty()) {
    backend_->normalize(output, experts.output_norm, output, row_count());
    backend_->normalize(dense_.data(), experts.dense_output_norm, dense_.data(), row_count());
  }
  backend_->add(dense_.data(), output, row_count() * config_.hidden_size);
}

void Decoder::compute_dense_mlp(const DecoderLayer& layer, FloatAddress input, FloatAddress output) {
  backend_->project(layer.gate_up, input, gate_up_.data(), row_count());
  backend_->activate({.x = gate_up_.data(),
                      .y = gated_.data(),
                      .rows = row_count(),
                      .dim = layer.gate_up.n / (config_.mlp.is_gated ? 2 : 1),
                      .is_gated = config_.mlp.is_gated});
  backend_->project(layer.down, gated_.data(), output, row_count());
}

void Decoder::finish_layer(const DecoderLayer& layer, int64_t index) {
  if (layer.input.gate.n != 0) add_layer_input(layer.input, index);
  if (layer.scalar == 1) return;
  add_and_normalize({});
  backend_->scale(layer.scalar, hidden_.data(), row_count() * config_.hidden_size);
}

void Decoder::add_layer_input(const LayerInput& input, int64_t index) {
  const int64_t rows = row_count();
  const int64_t size = input.gate.n;
  backend_->project(input.gate, add_and_normalize({}), gate_up_.data(), rows);
  backend_->activate(
      {.x = gate_up_.data(), .y = gated_.data(), .rows = rows, .dim = size, .is_gated = false});
  backend_->multiply_rows({.x = gated_.data(),
                           .dim = size,
                           .rows = rows_,
                           .factors = layer_inputs_.data() + index * size,
                           .stride = config_.layer_count * size});
  backend_->project(input.projection, gated_.data(), delta_.data(), rows);
  submit_delta(input.norm);
}

void Decoder::finish_output(const Norm& norm, FloatAddress output) {
  if (!norm.empty()) backend_->normalize(output, norm, output, row_count());
  if (config_.scales.residual != 1)
    backend_->scale(static_cast<float>(config_.scales.residual), output, row_count() * config_.hidden_size);
}

void Decoder::submit_delta(const Norm& output_norm) {
  is_delta_pending_ = true;
  if (config_.norm.placement != NormPlacement::kSum) return finish_output(output_norm, delta_.data());
  backend_->add_and_normalize({.x = hidden_.data(),
                               .has_delta = true,
                               .delta = delta_.data(),
                               .norm = &output_norm,
                               .y = hidden_.data(),
                               .rows = row_count(),
                               .dim = config_.hidden_size});
  is_delta_pending_ = false;
}

FloatAddress Decoder::add_and_normalize(const Norm& norm, int64_t tapped_layer) {
  backend_->add_and_normalize({.x = hidden_.data(),
                               .has_delta = is_delta_pending_,
                               .delta = delta_.data(),
                               .norm = &norm,
                               .y = normed_.data(),
                               .rows = row_count(),
                               .dim = config_.hidden_size});
  is_delta_pending_ = false;
  const FloatAddress normed = norm.empty() ? hidden_.data() : normed_.data();
  if (tapped_layer < 0 || !captures_) return normed;
  for (size_t i = 0; i < taps_.layers.size(); ++i) {
    if (taps_.layers[i] == tapped_layer) copy_feature(hidden_.data(), static_cast<int64_t>(i));
  }
  return normed;
}

// Writes `states` [rows, hidden_size] as feature number `index` of every row.
void Decoder::copy_feature(FloatAddress states, int64_t index) {
  backend_->copy({.from = states,
                  .from_stride = config_.hidden_size,
                  .rows = rows_,
                  .to = features_.data() + index * config_.hidden_size,
                  .to_stride = feature_size(),
                  .dim = config_.hidden_size});
}

}  // namespace outrider
