// SPDX-License-Identifier: Apache-2.0
#include "formats/kinds/latent_attention.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <string_view>

#include "base/portable_math.h"
#include "base/quote.h"
#include "formats/expert_traits.h"
#include "formats/family_traits.h"
#include "formats/gguf/architecture_keys.h"
#include "formats/number_limit.h"
#include "formats/tensor_list.h"

namespace outrider {
namespace {

Result<int64_t> positive(const JsonObject& root, std::string_view key, int64_t usual) {
  OUTRIDER_TRY(const auto value, root.integer(key));
  return value.value_or(usual);
}

// Error: the key has another value than the supported ones.
Status expect_one_of(const JsonObject& root, std::string_view key,
                     std::span<const std::string_view> supported) {
  OUTRIDER_TRY(const auto found, root.string(key));
  if (!found || std::ranges::find(supported, *found) != supported.end()) return {};
  std::string names;
  for (const std::string_view name : supported) names += (names.empty() ? "" : " or ") + quote(name);
  return root.fail(quote(key) + " must be " + names + ", found " + quote(*found));
}

// Error: experts are chosen by another rule, or layers from the first sparse one on take turns with dense
// ones.
Status check_choice(const JsonObject& root, std::string_view scores,
                    std::span<const std::string_view> methods) {
  OUTRIDER_RETURN_IF_ERROR(expect_one_of(root, "scoring_func", {&scores, 1}));
  OUTRIDER_RETURN_IF_ERROR(expect_one_of(root, "topk_method", methods));
  OUTRIDER_TRY(const auto period, root.integer("moe_layer_freq"));
  if (period.value_or(1) == 1) return {};
  return root.fail("'moe_layer_freq' must be 1, found " + std::to_string(*period));
}

// Fills in what follows from the traits. magnitude: mscale_all_dim of YaRN; 0: there is none.
void derive_latent_attention(double magnitude, ModelConfig* config) {
  const LatentTraits& latent = config->of_kinds.of<LatentTraits>();
  for (LayerTraits& layer : config->layer_traits) layer.kind = &kLatentAttentionKind;
  config->head_dim = latent.entry_size();
  config->kv_head_count = 1;
  RopeTraits& rope = config->ropes.front();
  rope.rotated_dim = latent.rope_dim;
  double scale = 1 / std::sqrt(static_cast<double>(latent.query_dim()));
  if (magnitude != 0 && rope.scaling.kind != RopeScalingKind::kNone && rope.scaling.factor > 1) {
    const double mscale = 0.1 * magnitude * portable_log(rope.scaling.factor) + 1;
    scale *= mscale * mscale;
  }
  config->scales.attention = scale;
}

Status read_latent(const JsonObject& root, ModelConfig* config) {
  LatentTraits& latent = config->of_kinds.edit<LatentTraits>();
  OUTRIDER_RETURN_IF_ERROR(refuse(root, "attention_bias"));
  OUTRIDER_TRY(const bool has_pairs, flag(root, "rope_interleave", true));
  if (!has_pairs) return root.fail("'rope_interleave' must be true");
  OUTRIDER_TRY(const auto query_rank, root.integer("q_lora_rank"));
  latent.query_rank = query_rank.value_or(0);
  OUTRIDER_TRY(latent.rank, positive(root, "kv_lora_rank", 512));
  OUTRIDER_TRY(latent.plain_dim, positive(root, "qk_nope_head_dim", 128));
  OUTRIDER_TRY(latent.rope_dim, positive(root, "qk_rope_head_dim", 64));
  OUTRIDER_TRY(latent.value_dim, positive(root, "v_head_dim", 128));
  if (latent.rank < 1) return root.fail("'kv_lora_rank' must be positive");
  OUTRIDER_TRY(auto rope, root.object("rope_parameters"));
  if (!rope) {
    OUTRIDER_TRY(rope, root.object("rope_scaling"));
  }
  double magnitude = 0;
  if (rope) {
    OUTRIDER_TRY(const auto stated, rope->number("mscale_all_dim"));
    magnitude = stated.value_or(0);
  }
  derive_latent_attention(magnitude, config);
  return {};
}

void append_latent_attention(const ModelConfig& config, int64_t /*layer*/, const std::string& prefix,
                             TensorList& list) {
  const std::string attention = prefix + "self_attn.";
  const LatentTraits& latent = config.of_kinds.of<LatentTraits>();
  const int64_t heads = config.head_count;
  const bool has_query_vector = latent.query_rank != 0;
  if (has_query_vector) {
    list.matrix(attention + "q_a_proj", latent.query_rank, config.hidden_size);
    list.vector(attention + "q_a_layernorm", latent.query_rank);
  }
  list.matrix(attention + (has_query_vector ? "q_b_proj" : "q_proj"), heads * latent.query_dim(),
              has_query_vector ? latent.query_rank : config.hidden_size);
  list.matrix(attention + "kv_a_proj_with_mqa", latent.entry_size(), config.hidden_size);
  list.vector(attention + "kv_a_layernorm", latent.rank);
  for (int64_t head = 0; head < heads; ++head) {
    list.matrix(attention + "k_b_proj." + std::to_string(head), latent.rank, latent.plain_dim);
    list.matrix(attention + "v_b_proj." + std::to_string(head), latent.value_dim, latent.rank);
  }
  list.matrix(attention + "o_proj", config.hidden_size, heads * latent.value_dim);
}

Status validate_latent(const ModelConfig& config) {
  const LatentTraits& latent = config.of_kinds.of<LatentTraits>();
  const NumberLimit limits[] = {{"the rank of latent attention", latent.rank, 1, 1024},
                                {"the rank of queries", latent.query_rank, 0, int64_t{1} << 16},
                                {"the plain numbers of a query", latent.plain_dim, 1, 1024},
                                {"the turning numbers of a query", latent.rope_dim, 2, 1024},
                                {"the value size of latent attention", latent.value_dim, 1, 1024}};
  OUTRIDER_RETURN_IF_ERROR(check_limits(limits));
  if (config.head_dim == latent.entry_size() && config.kv_head_count == 1) return {};
  return input_error("model configuration: latent attention needs one head of keys, as large as its entries");
}

// YaRN's multiplier is a tenth of what configurations state.
Status read_gguf_latent(const ArchitectureKeys& keys, ModelConfig* config) {
  OUTRIDER_TRY(const auto rank, keys.integer("attention.kv_lora_rank"));
  if (!rank) return {};
  LatentTraits& latent = config->of_kinds.edit<LatentTraits>();
  OUTRIDER_TRY(const auto query_rank, keys.integer("attention.q_lora_rank"));
  OUTRIDER_TRY(const auto query_dim, keys.integer("attention.key_length_mla"));
  OUTRIDER_TRY(const auto value_dim, keys.integer("attention.value_length_mla"));
  OUTRIDER_TRY(const auto multiplier, keys.number("rope.scaling.yarn_log_multiplier"));
  OUTRIDER_TRY(const auto attention_factor, keys.number("rope.scaling.attn_factor"));
  if (!query_dim || !value_dim) {
    return keys.fail(keys.full("attention.key_length_mla") +
                     " is missing: the file is older than latent attention in GGUF; convert the model again");
  }
  OUTRIDER_TRY(latent.rope_dim, keys.require_integer("rope.dimension_count"));
  latent.rank = *rank;
  latent.query_rank = query_rank.value_or(0);
  latent.plain_dim = *query_dim - latent.rope_dim;
  latent.value_dim = *value_dim;
  config->ropes.front().scaling.attention_factor = attention_factor.value_or(1);
  config->experts.ranks_groups_by_best = config->experts.weights == RouterWeights::kSoftmax;
  derive_latent_attention(10 * multiplier.value_or(0), config);
  return {};
}

// As in DeepSeek V2 Lite.
void set_published_latent(ModelConfig* config) {
  config->of_kinds.edit<LatentTraits>() = {.rank = 512, .plain_dim = 128, .rope_dim = 64, .value_dim = 128};
  derive_latent_attention(/*magnitude=*/0, config);
}

// The rows of one head of latent attention; the matrix has the rows of keys and values of each head.
Result<TensorView> rows_of_head(const FusedTensor& fused, const LatentTraits& latent) {
  const int64_t rows = latent.plain_dim + latent.value_dim;
  const int64_t begin = fused.index * rows;
  if (fused.view.shape.size() != 2 || fused.view.rows() < begin + rows)
    return input_error("tensor " + fused.name + ": expected " + std::to_string(begin + rows) +
                       " rows or more by the model's configuration");
  return fused.view.rows_from(begin, rows);
}

}  // namespace

constinit const LayerKind kLatentAttentionKind = {.name = "latent_attention",
                                                  .reads_entries = true,
                                                  .validate = validate_latent,
                                                  .append_tensors = append_latent_attention,
                                                  .read_gguf = read_gguf_latent,
                                                  .set_published = set_published_latent};

Result<TensorView> cut_latent_keys(const FusedTensor& fused, const ModelConfig& config,
                                   ModelStorage* storage) {
  const LatentTraits& latent = config.of_kinds.of<LatentTraits>();
  OUTRIDER_TRY(const TensorView rows, rows_of_head(fused, latent));
  return transpose(rows.rows_from(0, latent.plain_dim), fused.name, storage);
}

Result<TensorView> cut_latent_values(const FusedTensor& fused, const ModelConfig& config,
                                     ModelStorage* /*storage*/) {
  const LatentTraits& latent = config.of_kinds.of<LatentTraits>();
  OUTRIDER_TRY(const TensorView rows, rows_of_head(fused, latent));
  return rows.rows_from(latent.plain_dim, latent.value_dim);
}

Status read_deepseek_v2_traits(const JsonObject& root, ModelConfig* config) {
  constexpr std::string_view kMethods[] = {"greedy", "group_limited_greedy"};
  OUTRIDER_RETURN_IF_ERROR(refuse(root, "norm_topk_prob"));
  OUTRIDER_RETURN_IF_ERROR(check_choice(root, "softmax", kMethods));
  OUTRIDER_RETURN_IF_ERROR(read_glm4_moe_traits(root, config));
  OUTRIDER_TRY(const auto method, root.string("topk_method"));
  ExpertTraits& experts = config->experts;
  experts.weights = RouterWeights::kSoftmax;
  experts.ranks_groups_by_best = true;
  if (method.value_or("greedy") == "greedy") experts.groups = experts.used_groups = 1;
  return read_latent(root, config);
}

Status read_deepseek_v3_traits(const JsonObject& root, ModelConfig* config) {
  constexpr std::string_view kMethods[] = {"noaux_tc"};
  OUTRIDER_RETURN_IF_ERROR(check_choice(root, "sigmoid", kMethods));
  OUTRIDER_RETURN_IF_ERROR(read_glm4_moe_traits(root, config));
  return read_latent(root, config);
}

}  // namespace outrider
