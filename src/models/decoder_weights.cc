// SPDX-License-Identifier: Apache-2.0
#include "models/decoder_weights.h"

#include "models/rope_frequencies.h"

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

}  // namespace

int64_t DecoderWeights::parameter_count() const {
  int64_t count = lm_head.parameter_count() + static_cast<int64_t>(final_norm.size());
  if (table) count += table->n * table->k;
  for (const DecoderLayer& layer : layers) {
    for (const auto* projection : {&layer.qkv, &layer.attention_output, &layer.gate_up, &layer.down}) {
      count += projection->parameter_count();
    }
    for (const auto* norm : {&layer.attention_norm, &layer.q_norm, &layer.k_norm, &layer.mlp_norm}) {
      count += static_cast<int64_t>(norm->size());
    }
  }
  return count;
}

int64_t DecoderLayer::bytes() const {
  const size_t norms = attention_norm.size() + q_norm.size() + k_norm.size() + mlp_norm.size();
  return qkv.bytes() + kv.bytes() + attention_output.bytes() + gate_up.bytes() + down.bytes() +
         static_cast<int64_t>(norms * sizeof(float));
}

int64_t DecoderWeights::bytes() const {
  int64_t total = lm_head.bytes() + (table ? static_cast<int64_t>(table->data.size()) : 0) +
                  static_cast<int64_t>(final_norm.size() * sizeof(float));
  for (const DecoderLayer& layer : layers) total += layer.bytes();
  return total;
}

Status load_decoder_layer(WeightLoader& loader, const ModelConfig& config, const LayerPlace& place,
                          DecoderLayer& layer) {
  const std::string& prefix = place.prefix;
  const std::string attention = prefix + "self_attn.";
  const std::string mlp = prefix + "mlp.";
  const int64_t hidden = config.hidden_size;
  const int64_t q_size = config.head_count * config.head_dim;
  const int64_t kv_size = config.kv_head_count * config.head_dim;
  if (place.has_input_norm) {
    OUTRIDER_RETURN_IF_ERROR(
        loader.read_vector(prefix + "input_layernorm.weight", place.input_size, layer.attention_norm));
  }
  std::vector<WeightLoader::Part> queries = {{attention + "q_proj", q_size}};
  const std::vector<WeightLoader::Part> others = {{attention + "k_proj", kv_size},
                                                  {attention + "v_proj", kv_size}};
  if (place.splits_queries) {
    OUTRIDER_RETURN_IF_ERROR(loader.plan(others, place.input_size, config.qkv_bias, layer.kv));
  } else {
    queries.insert(queries.end(), others.begin(), others.end());
  }
  OUTRIDER_RETURN_IF_ERROR(loader.plan(queries, place.input_size, config.qkv_bias, layer.qkv));
  if (config.qk_norm) {
    const int64_t dim = config.head_dim;
    OUTRIDER_RETURN_IF_ERROR(loader.read_vector(attention + "q_norm.weight", dim, layer.q_norm));
    OUTRIDER_RETURN_IF_ERROR(loader.read_vector(attention + "k_norm.weight", dim, layer.k_norm));
  }
  OUTRIDER_RETURN_IF_ERROR(
      loader.plan({{attention + "o_proj", hidden}}, q_size, config.output_bias, layer.attention_output));
  OUTRIDER_RETURN_IF_ERROR(
      loader.read_vector(prefix + "post_attention_layernorm.weight", hidden, layer.mlp_norm));
  OUTRIDER_RETURN_IF_ERROR(
      loader.plan({{mlp + "gate_proj", config.ffn_size}, {mlp + "up_proj", config.ffn_size}}, hidden,
                  config.mlp_bias, layer.gate_up));
  return loader.plan({{mlp + "down_proj", hidden}}, config.ffn_size, config.mlp_bias, layer.down);
}

Result<DecoderWeights> load_decoder_weights(const ModelFile& file, const ModelOptions& options) {
  OUTRIDER_RETURN_IF_ERROR(check_weight_type(options.weights));
  const ModelConfig& config = file.config;
  const std::string embedding = "model.embed_tokens";
  WeightLoader loader(file, options);
  DecoderWeights weights;
  weights.layers.resize(static_cast<size_t>(config.layer_count));
  if (!config.tied_embeddings) {
    OUTRIDER_RETURN_IF_ERROR(
        loader.plan_table(embedding, config.vocab_size, config.hidden_size, weights.table.emplace()));
  }
  for (int64_t i = 0; i < config.layer_count; ++i) {
    const LayerPlace place{.prefix = "model.layers." + std::to_string(i) + ".",
                           .input_size = config.hidden_size};
    OUTRIDER_RETURN_IF_ERROR(
        load_decoder_layer(loader, config, place, weights.layers[static_cast<size_t>(i)]));
  }
  OUTRIDER_RETURN_IF_ERROR(loader.read_vector("model.norm.weight", config.hidden_size, weights.final_norm));
  OUTRIDER_RETURN_IF_ERROR(loader.plan({{config.tied_embeddings ? embedding : "lm_head", config.vocab_size}},
                                       config.hidden_size,
                                       /*bias=*/false, weights.lm_head));
  OUTRIDER_TRY(weights.packed_file, loader.pack_all());
  weights.inverse_frequency = rope_inverse_frequencies(config);
  return weights;
}

}  // namespace outrider
