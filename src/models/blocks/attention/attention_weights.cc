// SPDX-License-Identifier: Apache-2.0
#include "models/blocks/attention/attention_weights.h"

#include <string>

namespace outrider {
namespace {

struct NormedHeads {
  int64_t count = 0;
  int64_t dim = 0;
  std::vector<Range> rows = {};  // of the heads that the shard has, in numbers of a row
};

// The norm of the heads that the shard has.
Status load_head_norm(WeightLoader& loader, const ModelConfig& config, const std::string& name,
                      const NormedHeads& heads, std::vector<float>& weight) {
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

Status load_head_norms(WeightLoader& loader, const ModelConfig& config, const LayerPlace& place,
                       AttentionWeights& weights) {
  const std::string attention = place.prefix + "self_attn.";
  const LayerSizes sizes = config.sizes_of(place.index);
  if (config.qk_norm == QkNorm::kPlain && config.traits_of(place.index).rope != LayerTraits::kNoRope)
    weights.q_norm = weights.k_norm = std::vector<float>(static_cast<size_t>(sizes.head_dim), 1.0F);
  if (config.v_norm) weights.v_norm.assign(static_cast<size_t>(sizes.head_dim), 1.0F);
  const HeadShare heads(sizes, loader.part().shard);
  const NormedHeads queries{sizes.head_count, sizes.head_dim, {heads.query_rows()}};
  OUTRIDER_RETURN_IF_ERROR(load_head_norm(loader, config, attention + "q_norm", queries, weights.q_norm));
  if (config.kv_layer_of(place.index) != place.index) return {};
  const NormedHeads keys{sizes.kv_head_count, sizes.head_dim, heads.kv_rows()};
  return load_head_norm(loader, config, attention + "k_norm", keys, weights.k_norm);
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

}  // namespace

void AttentionWeights::list(WeightList& weights) const {
  for (const Projection* projection : {&qkv, &kv, &attention_output, &output_gate})
    weights.projections.push_back(projection);
  for (const std::vector<float>* numbers : {&q_norm, &k_norm, &sinks}) weights.numbers.push_back(numbers);
}

Status load_attention(WeightLoader& loader, const ModelConfig& config, const LayerPlace& place,
                      AttentionWeights& weights) {
  OUTRIDER_RETURN_IF_ERROR(load_head_norms(loader, config, place, weights));
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
    OUTRIDER_RETURN_IF_ERROR(load_sinks(loader, attention + "sinks.weight", sizes, weights.sinks));
  if (config.gates_attention)
    OUTRIDER_RETURN_IF_ERROR(loader.plan({{attention + "gate_proj", sizes.q_size()}}, place.input_size,
                                         /*bias=*/false, weights.output_gate));
  if (place.splits_queries) {
    OUTRIDER_RETURN_IF_ERROR(loader.plan(others, place.input_size, config.qkv_bias, weights.kv));
  } else {
    queries.insert(queries.end(), others.begin(), others.end());
  }
  OUTRIDER_RETURN_IF_ERROR(loader.plan(queries, place.input_size, config.qkv_bias, weights.qkv));
  return loader.plan_cut({attention + "o_proj", config.hidden_size}, cut_heads(sizes, shard.count),
                         config.output_bias, weights.attention_output);
}

}  // namespace outrider
