// SPDX-License-Identifier: Apache-2.0
#include "models/decoder_weights.h"

#include <cmath>
#include <numeric>
#include <span>
#include <utility>

namespace outrider {
namespace {

Status check_weight_type(std::optional<DType> type) {
  if (!type) return {};
  switch (*type) {
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
    case DType::kQ8_0:
    case DType::kQ4_0:
    case DType::kI8:
      return {};
    default:
      return usage_error("expected a weight type of f32, f16, bf16, i8, q8_0 or q4_0, found " +
                         std::string(dtype_name(*type)) + "; no conversion to it exists");
  }
}

int64_t norm_parameters(const DecoderLayer& layer) {
  auto count = static_cast<int64_t>(layer.q_norm.size() + layer.k_norm.size() + layer.sinks.size());
  count += layer.input.norm.parameter_count();
  count += static_cast<int64_t>(layer.convolution.taps.size() + layer.convolution.bias.size());
  for (const auto* numbers :
       {&layer.delta.taps, &layer.delta.time_bias, &layer.delta.decay, &layer.delta.norm})
    count += std::ssize(*numbers);
  for (const auto* norm :
       {&layer.attention_norm, &layer.attention_output_norm, &layer.mlp_norm, &layer.mlp_output_norm})
    count += norm->parameter_count();
  return count;
}

struct NormedHeads {
  int64_t count = 0;
  int64_t dim = 0;
  std::vector<Range> rows = {};  // of the heads that the shard has, in numbers of a row
};

// Those of the heads that the shard has.
Status load_head_norm(WeightLoader& loader, const ModelConfig& config, const std::string& name,
                      NormedHeads heads, std::vector<float>& weight) {
  if (!config.has_qk_weights()) return {};
  if (config.qk_norm != QkNorm::kEach) {
    const int64_t size = config.qk_norm_size(heads.count, heads.dim);
    return load_norm_weight(loader, config.norm, name + ".weight", size, weight);
  }
  for (const Range& rows : heads.rows) {
    for (int64_t head = rows.begin / heads.dim; head < rows.end / heads.dim; ++head) {
      OUTRIDER_RETURN_IF_ERROR(load_norm_weight(
          loader, config.norm, name + "." + std::to_string(head) + ".weight", heads.dim, weight));
    }
  }
  return {};
}

Status load_norms(WeightLoader& loader, const ModelConfig& config, const LayerPlace& place,
                  DecoderLayer& layer) {
  const auto read = [&](const char* name, int64_t size, Norm& norm) {
    return load_norm(loader, config.norm, place.prefix + name, size, norm);
  };
  const int64_t hidden = config.hidden_size;
  if (config.norm.has_inputs() && place.has_input_norm)
    OUTRIDER_RETURN_IF_ERROR(read("input_layernorm", place.input_size, layer.attention_norm));
  if (config.has_mlp_norm())
    OUTRIDER_RETURN_IF_ERROR(read("post_attention_layernorm", hidden, layer.mlp_norm));
  if (config.norm.has_outputs()) {
    OUTRIDER_RETURN_IF_ERROR(read("post_self_attn_layernorm", hidden, layer.attention_output_norm));
    OUTRIDER_RETURN_IF_ERROR(read("post_mlp_layernorm", hidden, layer.mlp_output_norm));
  }
  if (!config.has_attention(place.index)) return {};
  const std::string attention = place.prefix + "self_attn.";
  const LayerSizes sizes = config.sizes_of(place.index);
  if (config.qk_norm == QkNorm::kPlain && config.traits_of(place.index).rope != LayerTraits::kNoRope)
    layer.q_norm = layer.k_norm = std::vector<float>(static_cast<size_t>(sizes.head_dim), 1.0F);
  const HeadShare heads(sizes, loader.part().shard);
  const NormedHeads queries{sizes.head_count, sizes.head_dim, {heads.query_rows()}};
  OUTRIDER_RETURN_IF_ERROR(load_head_norm(loader, config, attention + "q_norm", queries, layer.q_norm));
  if (config.kv_layer_of(place.index) != place.index) return {};
  const NormedHeads keys{sizes.kv_head_count, sizes.head_dim, heads.kv_rows()};
  return load_head_norm(loader, config, attention + "k_norm", keys, layer.k_norm);
}

// The sinks of the shard's heads.
Status load_sinks(WeightLoader& loader, const std::string& name, const LayerSizes& sizes,
                  std::vector<float>& sinks) {
  const Range heads = HeadShare(sizes, loader.part().shard).query_heads();
  std::vector<float> all;
  OUTRIDER_RETURN_IF_ERROR(loader.read_vector(name, sizes.head_count, all));
  sinks.assign(all.begin() + heads.begin, all.begin() + heads.end);
  return {};
}

Status load_attention(WeightLoader& loader, const ModelConfig& config, const LayerPlace& place,
                      DecoderLayer& layer) {
  const std::string attention = place.prefix + "self_attn.";
  const LayerSizes sizes = config.sizes_of(place.index);
  const Shard shard = loader.part().shard;
  const HeadShare heads(sizes, shard);
  const char* values = config.traits_of(place.index).values_are_keys ? "k_proj" : "v_proj";
  std::vector<WeightLoader::Part> queries = {{attention + "q_proj", sizes.q_size()}};
  std::vector<WeightLoader::Part> others;
  if (config.kv_layer_of(place.index) == place.index)
    others = {{attention + "k_proj", sizes.kv_size()}, {attention + values, sizes.kv_size()}};
  if (!shard.is_whole()) {
    queries.front().rows = {heads.query_rows()};
    for (WeightLoader::Part& part : others) part.rows = heads.kv_rows();
  }
  if (config.attention_sinks)
    OUTRIDER_RETURN_IF_ERROR(load_sinks(loader, attention + "sinks.weight", sizes, layer.sinks));
  if (config.gates_attention)
    OUTRIDER_RETURN_IF_ERROR(loader.plan({{attention + "gate_proj", sizes.q_size()}}, place.input_size,
                                         /*bias=*/false, layer.output_gate));
  if (config.v_norm) layer.v_norm.assign(static_cast<size_t>(sizes.head_dim), 1.0F);
  if (place.splits_queries) {
    OUTRIDER_RETURN_IF_ERROR(loader.plan(others, place.input_size, config.qkv_bias, layer.kv));
  } else {
    queries.insert(queries.end(), others.begin(), others.end());
  }
  OUTRIDER_RETURN_IF_ERROR(loader.plan(queries, place.input_size, config.qkv_bias, layer.qkv));
  return loader.plan_cut({attention + "o_proj", config.hidden_size}, cut_heads(sizes, shard.count),
                         config.output_bias, layer.attention_output);
}

Status load_latent_attention(WeightLoader& loader, const ModelConfig& config, const LayerPlace& place,
                             DecoderLayer& layer) {
  const LatentTraits& traits = config.latent;
  const int64_t hidden = config.hidden_size;
  const std::string name = place.prefix + "self_attn.";
  LatentAttention& latent = layer.latent;
  const bool has_vector = traits.query_rank != 0;
  if (has_vector) {
    OUTRIDER_RETURN_IF_ERROR(
        loader.plan({{name + "q_a_proj", traits.query_rank}}, hidden, /*bias=*/false, latent.query_down));
    OUTRIDER_RETURN_IF_ERROR(
        loader.read_vector(name + "q_a_layernorm.weight", traits.query_rank, latent.query_norm));
  }
  OUTRIDER_RETURN_IF_ERROR(
      loader.plan({{name + (has_vector ? "q_b_proj" : "q_proj"), config.head_count * traits.query_dim()}},
                  has_vector ? traits.query_rank : hidden, /*bias=*/false, latent.queries));
  OUTRIDER_RETURN_IF_ERROR(loader.plan({{name + "kv_a_proj_with_mqa", traits.entry_size()}}, hidden,
                                       /*bias=*/false, latent.entry));
  OUTRIDER_RETURN_IF_ERROR(
      loader.read_vector(name + "kv_a_layernorm.weight", traits.rank, latent.entry_norm));
  latent.keys.resize(static_cast<size_t>(config.head_count));
  latent.values.resize(latent.keys.size());
  for (size_t i = 0; i < latent.keys.size(); ++i) {
    const std::string head = "." + std::to_string(i);
    OUTRIDER_RETURN_IF_ERROR(loader.plan({{name + "k_b_proj" + head, traits.rank}}, traits.plain_dim,
                                         /*bias=*/false, latent.keys[i]));
    OUTRIDER_RETURN_IF_ERROR(loader.plan({{name + "v_b_proj" + head, traits.value_dim}}, traits.rank,
                                         /*bias=*/false, latent.values[i]));
  }
  return loader.plan({{name + "o_proj", hidden}}, config.head_count * traits.value_dim, /*bias=*/false,
                     layer.attention_output);
}

Status load_convolution(WeightLoader& loader, const ModelConfig& config, const std::string& name,
                        ShortConvolution& convolution) {
  const int64_t size = config.hidden_size;
  const auto [taps, bias] = config.convolution;
  convolution.size = size;
  OUTRIDER_RETURN_IF_ERROR(loader.plan({{name + "in_proj", 3 * size}}, size, bias, convolution.input));
  OUTRIDER_RETURN_IF_ERROR(loader.plan({{name + "out_proj", size}}, size, bias, convolution.output));
  OUTRIDER_RETURN_IF_ERROR(loader.read_columns(name + "conv.weight", size, taps, convolution.taps));
  return bias ? loader.read_vector(name + "conv.bias", size, convolution.bias) : Status();
}

Status load_delta_net(WeightLoader& loader, const ModelConfig& config, const std::string& name,
                      DeltaNet& net) {
  const DeltaTraits& delta = config.delta;
  OUTRIDER_RETURN_IF_ERROR(loader.plan({{name + "in_proj_qkv", delta.conv_size()},
                                        {name + "in_proj_b", delta.value_heads},
                                        {name + "in_proj_a", delta.value_heads},
                                        {name + "in_proj_z", delta.value_size()}},
                                       config.hidden_size, /*bias=*/false, net.input));
  OUTRIDER_RETURN_IF_ERROR(loader.plan({{name + "out_proj", config.hidden_size}}, delta.value_size(),
                                       /*bias=*/false, net.output));
  OUTRIDER_RETURN_IF_ERROR(
      loader.read_columns(name + "conv1d.weight", delta.conv_size(), delta.taps, net.taps));
  OUTRIDER_RETURN_IF_ERROR(loader.read_vector(name + "dt.bias", delta.value_heads, net.time_bias));
  OUTRIDER_RETURN_IF_ERROR(loader.read_vector(name + "decay.weight", delta.value_heads, net.decay));
  for (float& decay : net.decay) decay = delta.has_logs ? -std::exp(decay) : decay;
  return loader.read_vector(name + "norm.weight", delta.value_dim, net.norm);
}

// The part of a layer that reads entries before a row: attention or what stands in its place.
Status load_mixer(WeightLoader& loader, const ModelConfig& config, const LayerPlace& place,
                  DecoderLayer& layer) {
  switch (config.traits_of(place.index).kind) {
    case LayerKind::kAttention:
      break;
    case LayerKind::kShortConvolution:
      return load_convolution(loader, config, place.prefix + "conv.", layer.convolution);
    case LayerKind::kDeltaNet:
      return load_delta_net(loader, config, place.prefix + "linear_attn.", layer.delta);
  }
  return config.latent.rank != 0 ? load_latent_attention(loader, config, place, layer)
                                 : load_attention(loader, config, place, layer);
}

// Where an expert's number ends the names of its matrices, it is `end`.
struct MlpPlace {
  std::string begin;
  std::string end;
  int64_t ffn_size = 0;
  bool bias = false;
};

Status load_mlp(WeightLoader& loader, const ModelConfig& config, const MlpPlace& place, Projection& gate_up,
                Projection& down) {
  const Shard shard = loader.part().shard;
  std::vector<WeightLoader::Part> inputs = {{place.begin + "up_proj" + place.end, place.ffn_size}};
  if (config.mlp.is_gated)
    inputs.insert(inputs.begin(), {place.begin + "gate_proj" + place.end, place.ffn_size});
  for (WeightLoader::Part& part : inputs) {
    if (!shard.is_whole()) part.rows = {shard.of(place.ffn_size)};
  }
  OUTRIDER_RETURN_IF_ERROR(loader.plan(inputs, config.hidden_size, place.bias, gate_up));
  return loader.plan_cut({place.begin + "down_proj" + place.end, config.hidden_size},
                         shard.cut(place.ffn_size), place.bias, down);
}

// The norms of a mixture of experts that has its own, and the factors of its weights.
Status load_expert_norms(WeightLoader& loader, const ModelConfig& config, const std::string& mlp,
                         ExpertLayer& layer) {
  const int64_t hidden = config.hidden_size;
  OUTRIDER_RETURN_IF_ERROR(load_norm(loader, config.norm, mlp + "gate_norm", hidden, layer.router_norm));
  const float scale = 1 / std::sqrt(static_cast<float>(hidden));
  for (float& weight : layer.router_norm.weight) weight *= scale;
  OUTRIDER_RETURN_IF_ERROR(load_norm(loader, config.norm, mlp + "experts_norm", hidden, layer.input_norm));
  OUTRIDER_RETURN_IF_ERROR(
      load_norm(loader, config.norm, mlp + "experts_output_norm", hidden, layer.output_norm));
  OUTRIDER_RETURN_IF_ERROR(
      load_norm(loader, config.norm, mlp + "dense_output_norm", hidden, layer.dense_output_norm));
  return loader.read_vector(mlp + "expert_scales.weight", config.experts.count, layer.scales);
}

Status load_experts(WeightLoader& loader, const ModelConfig& config, const LayerPlace& place,
                    ExpertLayer& layer) {
  const ExpertTraits& traits = config.experts;
  const std::string mlp = place.prefix + "mlp.";
  // Routing in less than f32 would choose other experts.
  OUTRIDER_RETURN_IF_ERROR(loader.plan({{mlp + "gate", traits.count, DType::kF32}}, config.hidden_size,
                                       traits.router_bias, layer.router));
  if (config.has_dense_mlp(place.index) && traits.gates_dense) {
    OUTRIDER_RETURN_IF_ERROR(loader.plan({{mlp + "shared_expert_gate", 1, DType::kF32}}, config.hidden_size,
                                         /*bias=*/false, layer.dense_gate));
  }
  if (traits.choice_bias)
    OUTRIDER_RETURN_IF_ERROR(loader.read_vector(mlp + "choice.bias", traits.count, layer.choice_bias));
  if (traits.has_own_norms) OUTRIDER_RETURN_IF_ERROR(load_expert_norms(loader, config, mlp, layer));
  layer.experts.resize(static_cast<size_t>(traits.count));
  for (size_t i = 0; i < layer.experts.size(); ++i) {
    Expert& expert = layer.experts[i];
    OUTRIDER_RETURN_IF_ERROR(
        load_mlp(loader, config, {mlp + "experts.", "." + std::to_string(i), traits.ffn_size, traits.bias},
                 expert.gate_up, expert.down));
  }
  return {};
}

Status load_layer_end(WeightLoader& loader, const ModelConfig& config, const LayerPlace& place,
                      DecoderLayer& layer) {
  const std::string& prefix = place.prefix;
  const int64_t size = config.layer_inputs.size;
  if (config.layer_scalars) {
    std::vector<float> scalar;
    OUTRIDER_RETURN_IF_ERROR(loader.read_vector(prefix + "layer_scalar.weight", 1, scalar));
    layer.scalar = scalar.front();
  }
  if (size == 0) return {};
  LayerInput& input = layer.input;
  OUTRIDER_RETURN_IF_ERROR(
      loader.plan({{prefix + "per_layer_input_gate", size}}, config.hidden_size, /*bias=*/false, input.gate));
  OUTRIDER_RETURN_IF_ERROR(loader.plan({{prefix + "per_layer_projection", config.hidden_size}}, size,
                                       /*bias=*/false, input.projection));
  return load_norm(loader, config.norm, prefix + "post_per_layer_input_norm", config.hidden_size, input.norm);
}

Status load_layer_inputs(WeightLoader& loader, const ModelConfig& config, LayerInputTable& inputs) {
  const int64_t size = config.layer_inputs.size;
  const int64_t all_layers = config.layer_count * size;
  OUTRIDER_RETURN_IF_ERROR(loader.plan_table({"model.embed_tokens_per_layer", config.layer_inputs.vocab_size},
                                             all_layers, inputs.table));
  OUTRIDER_RETURN_IF_ERROR(loader.plan({{"model.per_layer_model_projection", all_layers}}, config.hidden_size,
                                       /*bias=*/false, inputs.projection));
  return load_norm(loader, config.norm, "model.per_layer_projection_norm", size, inputs.norm);
}

}  // namespace

int64_t DecoderWeights::parameter_count() const {
  int64_t count = final_norm.parameter_count();
  for (const auto* projection : {&lm_head, &input_projection, &output_projection})
    count += projection->parameter_count();
  for (const auto* rows : {&table, &positions}) count += *rows ? (*rows)->n * (*rows)->k : 0;
  if (layer_inputs) {
    count += layer_inputs->table.n * layer_inputs->table.k + layer_inputs->projection.parameter_count() +
             layer_inputs->norm.parameter_count();
  }
  for (const DecoderLayer& layer : layers) count += layer.parameter_count();
  return count;
}

int64_t DecoderLayer::parameter_count() const {
  int64_t count = norm_parameters(*this) + experts.parameter_count() + latent.parameter_count();
  for (const Projection* projection : projections()) count += projection->parameter_count();
  return count;
}

int64_t DecoderLayer::bytes() const {
  int64_t total =
      norm_parameters(*this) * static_cast<int64_t>(sizeof(float)) + experts.bytes() + latent.bytes();
  for (const Projection* projection : projections()) total += projection->bytes();
  return total;
}

int64_t DecoderWeights::bytes() const {
  int64_t total = final_norm.parameter_count() * static_cast<int64_t>(sizeof(float));
  for (const auto* projection : {&lm_head, &input_projection, &output_projection})
    total += projection->bytes();
  for (const auto* rows : {&table, &positions})
    total += *rows ? static_cast<int64_t>((*rows)->data.size()) : 0;
  if (layer_inputs)
    total += static_cast<int64_t>(layer_inputs->table.data.size()) + layer_inputs->projection.bytes();
  for (const DecoderLayer& layer : layers) total += layer.bytes();
  return total;
}

int64_t DecoderWeights::streamed_bytes(int64_t used) const {
  int64_t total = bytes();
  for (const DecoderLayer& layer : layers) {
    const auto count = std::ssize(layer.experts.experts);
    if (count > 0) total -= layer.experts.bytes_of_expert() * (count - used);
  }
  for (const auto* rows : {&table, &positions})
    total -= *rows ? static_cast<int64_t>((*rows)->data.size()) : 0;
  if (layer_inputs) total -= static_cast<int64_t>(layer_inputs->table.data.size());
  return total;
}

Status load_decoder_layer(WeightLoader& loader, const ModelConfig& config, const LayerPlace& place,
                          DecoderLayer& layer) {
  OUTRIDER_RETURN_IF_ERROR(load_norms(loader, config, place, layer));
  OUTRIDER_RETURN_IF_ERROR(load_mixer(loader, config, place, layer));
  OUTRIDER_RETURN_IF_ERROR(load_layer_end(loader, config, place, layer));
  if (config.has_dense_mlp(place.index)) {
    const int64_t ffn_size = config.sizes_of(place.index).ffn_size;
    OUTRIDER_RETURN_IF_ERROR(load_mlp(loader, config, {place.prefix + "mlp.", "", ffn_size, config.mlp.bias},
                                      layer.gate_up, layer.down));
  }
  return config.has_experts(place.index) ? load_experts(loader, config, place, layer.experts) : Status();
}

namespace {

// The embedding of the first stage and the output head of the last, which may be one matrix.
Status load_vocabulary(WeightLoader& loader, const ModelConfig& config, DecoderWeights& weights) {
  const ModelPart& part = loader.part();
  const std::string embedding = "model.embed_tokens";
  WeightLoader::Part table{embedding, config.vocab_size};
  WeightLoader::Part output{config.tied_embeddings ? embedding : "lm_head", config.vocab_size};
  if (!part.shard.is_whole()) {
    table.rows = output.rows = {part.shard.of(config.vocab_size)};
    weights.lm_head.cut = {.outputs = part.shard.cut(config.vocab_size), .only_first = true};
  }
  if (!config.tied_embeddings && part.is_first_stage())
    OUTRIDER_RETURN_IF_ERROR(loader.plan_table(table, config.token_size(), weights.table.emplace()));
  if (config.tied_embeddings ? part.is_first_stage() || part.is_last_stage() : part.is_last_stage())
    OUTRIDER_RETURN_IF_ERROR(loader.plan({output}, config.token_size(), /*bias=*/false, weights.lm_head));
  weights.lm_head.name = "output head";
  return {};
}

// The parts outside of layers.
Status load_ends(WeightLoader& loader, const ModelConfig& config, DecoderWeights& weights) {
  const int64_t hidden = config.hidden_size;
  const int64_t token_size = config.token_size();
  if (config.learned_positions.count > 0) {
    OUTRIDER_RETURN_IF_ERROR(loader.plan_table({"model.embed_positions", config.learned_positions.rows()},
                                               hidden, weights.positions.emplace()));
  }
  if (token_size != hidden) {
    OUTRIDER_RETURN_IF_ERROR(
        loader.plan({{"model.project_in", hidden}}, token_size, /*bias=*/false, weights.input_projection));
    OUTRIDER_RETURN_IF_ERROR(
        loader.plan({{"model.project_out", token_size}}, hidden, /*bias=*/false, weights.output_projection));
  }
  if (config.norm.has_final)
    OUTRIDER_RETURN_IF_ERROR(load_norm(loader, config.norm, "model.norm", hidden, weights.final_norm));
  return load_vocabulary(loader, config, weights);
}

// Where the parts of a layer end that are read by themselves, in matrices planned: all but its experts, which
// are planned last, then every expert.
void list_ends(const DecoderLayer& layer, size_t planned, std::vector<size_t>& ends) {
  std::vector<size_t> counts;
  for (const Expert& expert : layer.experts.experts)
    counts.push_back(expert.gate_up.parts.size() + expert.down.parts.size());
  size_t end = planned - std::accumulate(counts.begin(), counts.end(), size_t{0});
  ends.push_back(end);
  for (const size_t count : counts) ends.push_back(end += count);
}

Result<std::unique_ptr<WeightStream>> open_stream(WeightLoader& loader, const ModelConfig& config,
                                                  const std::vector<DecoderLayer>& layers,
                                                  std::span<const size_t> ends) {
  OUTRIDER_TRY(StoredWeights stored, loader.store_all(ends));
  std::vector<StoredPart> rest;
  ExpertStream::Experts experts;
  auto part = stored.parts.begin();
  for (const DecoderLayer& layer : layers) {
    rest.push_back(std::move(*part++));
    std::vector<StoredPart>& own = experts.emplace_back();
    for (size_t i = 0; i < layer.experts.experts.size(); ++i) own.push_back(std::move(*part++));
  }
  return WeightStream::open(stored.path, std::move(rest), std::move(experts), config.experts.used);
}

}  // namespace

Result<DecoderWeights> load_decoder_weights(const ModelFile& file, const ModelOptions& options) {
  OUTRIDER_RETURN_IF_ERROR(check_weight_type(options.weights));
  const ModelConfig& config = file.config;
  WeightLoader loader(file, options);
  DecoderWeights weights;
  weights.layers.resize(static_cast<size_t>(config.layer_count));
  std::vector<size_t> ends;
  const Range own = options.own_layers(config.layer_count);
  for (int64_t i = own.begin; i < own.end; ++i) {
    const LayerPlace place{
        .prefix = "model.layers." + std::to_string(i) + ".", .index = i, .input_size = config.hidden_size};
    DecoderLayer& layer = weights.layers[static_cast<size_t>(i)];
    OUTRIDER_RETURN_IF_ERROR(load_decoder_layer(loader, config, place, layer));
    list_ends(layer, loader.planned(), ends);
  }
  if (config.layer_inputs.size != 0)
    OUTRIDER_RETURN_IF_ERROR(load_layer_inputs(loader, config, weights.layer_inputs.emplace()));
  OUTRIDER_RETURN_IF_ERROR(load_ends(loader, config, weights));
  if (options.streams_layers) {
    OUTRIDER_TRY(weights.stream, open_stream(loader, config, weights.layers, ends));
  } else {
    OUTRIDER_TRY(weights.memory, loader.pack_all());
  }
  return weights;
}

}  // namespace outrider
