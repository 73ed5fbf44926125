// SPDX-License-Identifier: Apache-2.0
#include "draft_heads/moa_config.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "draft_heads/head_layer.h"
#include "draft_heads/vocabulary/output_rows.h"

namespace outrider {
namespace {

// A key of config.json that must be `expected` where it is there.
Status check_key(const HeadFile& head, std::string_view key, int64_t expected, std::string_view whose) {
  OUTRIDER_TRY(const auto found, head.config.root().integer(key));
  if (!found || *found == expected) return {};
  return head.fail(fmt::format("config.json: expected {} {}, {}, found {}", key, expected, whose, *found));
}

// A size that config.json names, or else the tensor's number of rows over `unit`.
Result<int64_t> size_of(const HeadFile& head, const std::string& key, const std::string& tensor,
                        int64_t unit) {
  OUTRIDER_TRY(const auto named, head.config.root().integer(key));
  if (named) return *named;
  const auto found = head.tensors.find(tensor);
  if (found == head.tensors.end() || found->second.shape.empty()) return int64_t{1};  // refused by name later
  return std::max<int64_t>(1, found->second.shape.front() / unit);
}

// The layer `name` with `hidden` numbers a row. It may name another number of heads: a target of 9 heads and
// 3 x 2 x 64 numbers of keys and values has no layer self-attention with as many.
Result<ModelConfig> read_layer(const HeadFile& head, const ModelConfig& base, const std::string& name,
                               int64_t hidden) {
  ModelConfig layer = base;
  layer.hidden_size = hidden;
  OUTRIDER_TRY(const auto heads, head.config.root().integer(name + "_num_attention_heads"));
  layer.head_count = heads.value_or(base.head_count);
  if (layer.head_count < 1 || hidden % layer.head_count != 0) {
    return head.fail(
        fmt::format("expected the number of attention heads of {} to divide its {} numbers, found {}", name,
                    hidden, layer.head_count));
  }
  layer.head_dim = hidden / layer.head_count;
  OUTRIDER_TRY(layer.kv_head_count, size_of(head, name + "_num_key_value_heads",
                                            name + ".self_attn.k_proj.weight", layer.head_dim));
  OUTRIDER_TRY(layer.ffn_size, size_of(head, name + "_intermediate_size", name + ".mlp.gate_proj.weight", 1));
  detect_layer_variant(head, name + ".", layer);
  if (const Status valid = validate(layer); !valid.ok())
    return head.fail(name + ": " + valid.error().message);
  return layer;
}

// The part of the configuration that all layers share: the target's, unless the file names another.
Result<ModelConfig> read_base(const HeadFile& head, const ModelConfig& target) {
  const JsonObject& root = head.config.root();
  ModelConfig base = target;
  base.layer_traits = std::vector<LayerTraits>(1);
  base.ropes = {{.theta = target.ropes.front().theta, .scaling = {}}};
  OUTRIDER_TRY(const auto scaling, root.object("rope_scaling"));
  if (scaling) {
    return head.fail(
        "config.json: expected no rope_scaling of a MoA drafter, found one; it is not supported");
  }
  OUTRIDER_RETURN_IF_ERROR(check_key(head, "hidden_size", target.hidden_size, "the target's"));
  OUTRIDER_RETURN_IF_ERROR(check_key(head, "vocab_size", target.vocab_size, "the target's"));
  OUTRIDER_RETURN_IF_ERROR(check_key(head, "kv_hidden_size", 2 * target.kv_head_count * target.head_dim,
                                     "keys and values of one layer of the target"));
  OUTRIDER_TRY(const auto heads, root.integer("num_attention_heads"));
  OUTRIDER_TRY(const auto epsilon, root.number("rms_norm_eps"));
  OUTRIDER_TRY(const auto theta, root.number("rope_theta"));
  if (heads) base.head_count = *heads;
  if (epsilon) base.norm.epsilon = static_cast<float>(*epsilon);
  if (theta) base.ropes.front().theta = *theta;
  if (base.head_count < 1)
    return head.fail(
        fmt::format("config.json: expected heads, found num_attention_heads {}", base.head_count));
  return base;
}

Status check_tensors(const HeadFile& head, const MoaConfig& config, int64_t vocab_size) {
  std::vector<HeadTensor> expected;
  const int64_t hidden = config.self_attention.hidden_size;
  append_layer_tensors(config.self_attention, {.prefix = "self_attention.", .input_size = hidden}, expected);
  if (config.uses_cross)
    append_layer_tensors(config.cross_attention, {.prefix = "cross_attention.", .input_size = hidden},
                         expected);
  if (config.uses_cross && config.uses_layers) {
    const int64_t kv_hidden = config.layer_self_attention.hidden_size;
    append_layer_tensors(config.layer_self_attention,
                         {.prefix = "layer_self_attention.", .input_size = kv_hidden}, expected);
    expected.push_back({.name = "Ekv2E.weight", .shape = {hidden, kv_hidden}});
    expected.push_back({.name = "Ekv2E.bias", .shape = {hidden}});
  }
  append_map_tensors(head, vocab_size, expected);
  return check_head_tensors(head, expected);
}

}  // namespace

Result<MoaConfig> read_moa_config(const HeadFile& head, const ModelConfig& target) {
  const JsonObject& root = head.config.root();
  OUTRIDER_TRY(const auto disables_layers, root.boolean("disable_LSA"));
  OUTRIDER_TRY(const auto disables_cross, root.boolean("disable_cross_attention"));
  OUTRIDER_TRY(const auto target_layers, root.integer("target_layer_inference"));
  MoaConfig config;
  config.uses_cross = !disables_cross.value_or(false);
  config.uses_layers = config.uses_cross && !disables_layers.value_or(false);
  config.target_layers = target_layers.value_or(0);
  if (config.target_layers < 0 || config.target_layers >= target.layer_count) {
    return head.fail(fmt::format(
        "config.json: expected target_layer_inference 0 to {} for a target of {} layers, found {}",
        target.layer_count - 1, target.layer_count, config.target_layers));
  }
  OUTRIDER_TRY(const ModelConfig base, read_base(head, target));
  OUTRIDER_TRY(config.self_attention, read_layer(head, base, "self_attention", target.hidden_size));
  if (config.uses_cross) {
    OUTRIDER_TRY(config.cross_attention, read_layer(head, base, "cross_attention", target.hidden_size));
    if (config.cross_attention.kv_head_count != config.self_attention.kv_head_count) {
      return head.fail(fmt::format(
          "expected as many key-value heads of cross_attention as of self_attention, {}, found {}",
          config.self_attention.kv_head_count, config.cross_attention.kv_head_count));
    }
  }
  if (config.uses_layers) {
    OUTRIDER_TRY(config.layer_self_attention,
                 read_layer(head, base, "layer_self_attention", 2 * target.kv_head_count * target.head_dim));
  }
  OUTRIDER_RETURN_IF_ERROR(check_tensors(head, config, target.vocab_size));
  return config;
}

}  // namespace outrider
