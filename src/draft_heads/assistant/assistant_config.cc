// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <string>

#include "draft_heads/assistant/assistant_network.h"
#include "formats/hf/hf_config.h"

namespace outrider {
namespace {

// The target's last layer that makes keys and has a window, or none as `has_window` says; -1: there is
// none.
int64_t last_layer_with_keys(const ModelConfig& target, bool has_window) {
  for (int64_t layer = target.layer_count - 1; layer >= 0; --layer)
    if (target.has_keys(layer) && (target.traits_of(layer).window != 0) == has_window) return layer;
  return -1;
}

int64_t cache_layer_of(const ModelConfig& target, int64_t layer) {
  int64_t place = 0;
  for (int64_t i = 0; i < layer; ++i) place += target.has_keys(i) ? 1 : 0;
  return place;
}

Status find_target_layers(const HeadFile& head, const ModelConfig& target, AssistantConfig& config) {
  for (int64_t i = 0; i < config.layers.layer_count; ++i) {
    const bool has_window = config.layers.traits_of(i).window != 0;
    const int64_t from = last_layer_with_keys(target, has_window);
    if (from < 0 || target.sizes_of(from).head_dim != config.layers.sizes_of(i).head_dim) {
      return head.fail(fmt::format(
          "config.json: expected layers like the target's, found layer {} {} a window and with heads of {}",
          i, has_window ? "with" : "without", config.layers.sizes_of(i).head_dim));
    }
    config.target_layers.push_back(from);
    config.cache_layers.push_back(cache_layer_of(target, from));
  }
  return {};
}

Status read_clusters(const HeadFile& head, AssistantConfig& config) {
  const JsonObject& root = head.config.root();
  OUTRIDER_TRY(const auto orders, root.boolean("use_ordered_embeddings"));
  if (!orders.value_or(false)) return {};
  OUTRIDER_TRY(const auto clusters, root.integer("num_centroids"));
  OUTRIDER_TRY(const auto used, root.integer("centroid_intermediate_top_k"));
  config.clusters = clusters.value_or(2048);
  config.used_clusters = used.value_or(32);
  const bool divides = config.clusters > 0 && config.layers.vocab_size % config.clusters == 0;
  if (divides && config.used_clusters > 0 && config.used_clusters <= config.clusters) return {};
  return head.fail(
      fmt::format("config.json: expected num_centroids that divide vocab_size {} and no larger "
                  "centroid_intermediate_top_k, "
                  "found {} and {}",
                  config.layers.vocab_size, config.clusters, config.used_clusters));
}

Status check_assistant_tensors(const HeadFile& head, const AssistantConfig& config) {
  const int64_t hidden = config.layers.hidden_size, vocab = config.layers.vocab_size;
  std::vector<HeadTensor> expected = {
      {.name = "model.embed_tokens.weight", .shape = {vocab, hidden}},
      {.name = "lm_head.weight", .shape = {vocab, hidden}, .is_optional = true},
      {.name = "model.norm.weight", .shape = {hidden}},
      {.name = "pre_projection.weight", .shape = {hidden, 2 * config.target_hidden}},
      {.name = "post_projection.weight", .shape = {config.target_hidden, hidden}}};
  if (config.clusters > 0) {
    expected.push_back({.name = "masked_embedding.centroids.weight", .shape = {config.clusters, hidden}});
    expected.push_back({.name = "masked_embedding.token_ordering", .shape = {vocab}});
  }
  for (int64_t i = 0; i < config.layers.layer_count; ++i) {
    const LayerSizes sizes = config.layers.sizes_of(i);
    const std::string prefix = fmt::format("model.layers.{}.", i);
    for (const char* norm : {"input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm",
                             "post_feedforward_layernorm"})
      expected.push_back({.name = prefix + norm + ".weight", .shape = {hidden}});
    expected.push_back({.name = prefix + "layer_scalar", .shape = {1}});
    expected.push_back({.name = prefix + "self_attn.q_norm.weight", .shape = {sizes.head_dim}});
    expected.push_back({.name = prefix + "self_attn.q_proj.weight", .shape = {sizes.q_size(), hidden}});
    expected.push_back({.name = prefix + "self_attn.o_proj.weight", .shape = {hidden, sizes.q_size()}});
    for (const char* matrix : {"mlp.gate_proj.weight", "mlp.up_proj.weight"})
      expected.push_back({.name = prefix + matrix, .shape = {sizes.ffn_size, hidden}});
    expected.push_back({.name = prefix + "mlp.down_proj.weight", .shape = {hidden, sizes.ffn_size}});
  }
  return check_head_tensors(head, expected);
}

}  // namespace

Result<AssistantConfig> read_assistant_config(const HeadFile& head, const ModelConfig& target) {
  AssistantConfig config;
  if (target.family != "gemma4")
    return head.fail("is a Gemma 4 assistant; expected a target of the family gemma4, found " +
                     target.family);
  OUTRIDER_TRY(config.layers, read_hf_config(head.config, head.file.path));
  OUTRIDER_TRY(const auto backbone, head.config.root().integer("backbone_hidden_size"));
  config.target_hidden = backbone.value_or(1536);
  if (config.layers.family != "gemma4" || config.layers.layer_inputs.size != 0 ||
      config.layers.experts.count != 0)
    return head.fail("config.json: expected dense layers of Gemma 4 without inputs for every layer");
  if (config.target_hidden != target.hidden_size || config.layers.vocab_size != target.vocab_size) {
    return head.fail(fmt::format(
        "config.json: expected the target's hidden size {} as backbone_hidden_size and its vocab_size {}, "
        "found {} and {}",
        target.hidden_size, target.vocab_size, config.target_hidden, config.layers.vocab_size));
  }
  OUTRIDER_RETURN_IF_ERROR(find_target_layers(head, target, config));
  OUTRIDER_RETURN_IF_ERROR(read_clusters(head, config));
  OUTRIDER_RETURN_IF_ERROR(check_assistant_tensors(head, config));
  return config;
}

}  // namespace outrider
