// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string>

#include "draft_heads/dflash_network.h"
#include "draft_heads/recurrent_head.h"
#include "draft_heads/vocabulary/vocabulary_map.h"
#include "formats/hf/hf_config.h"

namespace outrider {
namespace {

constexpr std::string_view kAuxiliary = "aux_hidden_state_layer_ids";
constexpr std::string_view kLayerIds = "target_layer_ids";

// The keys of a block drafter lie in "dflash_config" (z-lab), or beside all others (DeepSeek, speculators).
Result<JsonObject> block_object(const HeadFile& head) {
  OUTRIDER_TRY(const auto own, head.config.root().object("dflash_config"));
  return own ? *own : head.config.root();
}

Result<std::optional<int64_t>> read_block_size(const HeadFile& head) {
  OUTRIDER_TRY(const JsonObject own, block_object(head));
  OUTRIDER_TRY(const auto nested, own.integer("block_size"));
  return nested ? nested : head.config.root().integer("block_size");
}

// The first place of a block that is drafted: the pending token's own state proposes the token after it, or
// each state the token at its place.
Result<int> read_first_place(const HeadFile& head) {
  const JsonObject& root = head.config.root();
  OUTRIDER_TRY(const auto stated, root.boolean("sample_from_anchor"));
  const bool is_from_speculators = root.contains("transformer_layer_config") || root.contains(kAuxiliary);
  return stated.value_or(head.method == Method::kDSpark && !is_from_speculators) ? 0 : 1;
}

// The published choice where config.json lists none: spread from the second layer to the third from the end.
std::vector<int64_t> default_ids(int64_t target_layers, int64_t count) {
  if (count == 1) return {target_layers / 2};
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < count; ++i) {
    const double place = 1.0 + static_cast<double>(i * (target_layers - 4)) / static_cast<double>(count - 1);
    ids.push_back(static_cast<int64_t>(std::nearbyint(place)));  // halves to even
  }
  return ids;
}

// Layers by their outputs. speculators count them by the layer that reads this output.
Result<std::vector<int64_t>> read_ids(const HeadFile& head, int64_t target_layers, int64_t draft_layers) {
  OUTRIDER_TRY(const JsonObject own, block_object(head));
  OUTRIDER_TRY(auto listed, own.array(kLayerIds));
  const std::string_view key = listed ? kLayerIds : kAuxiliary;
  if (!listed) {
    OUTRIDER_TRY(listed, head.config.root().array(kAuxiliary));
  }
  if (!listed) return default_ids(target_layers, draft_layers);
  const int64_t first = key == kAuxiliary ? 1 : 0;
  std::vector<int64_t> ids;
  for (const simdjson::dom::element id : *listed) {
    int64_t value = -1;
    if (id.get(value) != simdjson::SUCCESS)
      return head.fail(fmt::format("config.json: expected whole numbers in {}", key));
    if (value < first || value >= target_layers + first || (!ids.empty() && value - first <= ids.back())) {
      return head.fail(fmt::format("config.json: expected rising layers from {} to {} in {}, found {}", first,
                                   target_layers - 1 + first, key, value));
    }
    ids.push_back(value - first);
  }
  if (ids.empty()) return head.fail(fmt::format("config.json: expected layers in {}, found none", key));
  return ids;
}

// Layers with a window do not see later places of the block, all others do.
Result<std::vector<bool>> read_causal_layers(const HeadFile& head, const ModelConfig& layers) {
  OUTRIDER_TRY(const JsonObject own, block_object(head));
  const JsonObject& root = head.config.root();
  OUTRIDER_TRY(auto stated, root.boolean("is_causal"));
  if (!stated) {
    OUTRIDER_TRY(stated, own.boolean("causal"));
  }
  OUTRIDER_TRY(const auto non_causal, root.boolean("sliding_window_non_causal"));
  std::vector<bool> causal;
  for (int64_t i = 0; i < layers.layer_count; ++i) {
    const bool has_window = layers.traits_of(i).window != 0;
    causal.push_back(stated.value_or(has_window && !non_causal.value_or(false)));
    if (!has_window || causal.back()) continue;
    return head.fail(
        "config.json: expected layers with a window that see no later places, found is_causal false or "
        "sliding_window_non_causal; this is not supported");
  }
  return causal;
}

// Factors of embeddings and logits belong to targets that scale their own.
Status refuse_scales(const HeadFile& head) {
  OUTRIDER_TRY(const JsonObject own, block_object(head));
  for (const auto& [key, neutral] :
       {std::pair{"output_multiplier", 1.0}, std::pair{"final_logit_softcapping", 0.0},
        std::pair{"input_embedding_scale", 1.0}, std::pair{"attention_value_scale", 1.0}}) {
    for (const JsonObject* object : {&own, &head.config.root()}) {
      OUTRIDER_TRY(const auto stated, object->number(key));
      if (stated && *stated != neutral)
        return head.fail(
            fmt::format("config.json: expected no {}, found {}; it is not supported", key, *stated));
    }
  }
  return {};
}

Status check_block_tensors(const HeadFile& head, const DFlashConfig& config) {
  const int64_t hidden = config.layers.hidden_size, vocab = config.layers.vocab_size;
  const bool maps = config.draft_vocab != vocab;
  std::vector<HeadTensor> expected = {
      {.name = "fc.weight", .shape = {hidden, static_cast<int64_t>(config.ids.size()) * hidden}},
      {.name = "hidden_norm.weight", .shape = {hidden}},
      {.name = "norm.weight", .shape = {hidden}},
      {.name = "lm_head.weight", .shape = {config.draft_vocab, hidden}, .is_optional = !maps},
      {.name = "d2t", .shape = {config.draft_vocab}, .is_optional = !maps},
      {.name = "t2d", .shape = {vocab}, .is_optional = true},
      {.name = "embed_tokens.weight", .shape = {vocab, hidden}, .is_optional = true}};
  if (config.markov) MarkovHead::append_tensors(head, *config.markov, expected);
  if (config.selector) CandidateSelector::append_tensors(*config.selector, expected);
  for (int64_t i = 0; i < config.layers.layer_count; ++i) {
    append_layer_tensors(config.layers, {.prefix = fmt::format("layers.{}.", i), .input_size = hidden},
                         expected);
    if (!config.convolutions) continue;
    for (const char* part : {"attention", "mlp"})
      BlockConvolution::append_tensors(fmt::format("layers.{}.{}_conv.", i, part), *config.convolutions,
                                       expected);
  }
  return check_head_tensors(head, expected);
}

Status read_block(const HeadFile& head, DFlashConfig& config) {
  OUTRIDER_TRY(const auto block_size, read_block_size(head));
  config.block_size = block_size.value_or(0);
  if (config.block_size < 2 || config.block_size > 65)
    return head.fail(
        fmt::format("config.json: expected a block_size of 2 to 65, found {}", config.block_size));
  OUTRIDER_TRY(config.first_place, read_first_place(head));
  OUTRIDER_TRY(const JsonObject own, block_object(head));
  OUTRIDER_TRY(const auto mask, own.integer("mask_token_id"));
  if (!mask || *mask < 0 || *mask >= config.layers.vocab_size) {
    return head.fail(
        fmt::format("config.json: expected a token of the target as mask_token_id, 0 to {}, found {}",
                    config.layers.vocab_size - 1, mask ? std::to_string(*mask) : "none"));
  }
  config.mask = static_cast<TokenId>(*mask);
  return {};
}

// The parts that DFlash2 adds. A head has all of them or none.
Status read_second_version(const HeadFile& head, DFlashConfig& config) {
  if (!CandidateSelector::is_in(head)) return {};
  OUTRIDER_TRY(const JsonObject own, block_object(head));
  const int64_t hidden = config.layers.hidden_size;
  const auto size = [&](std::string_view key, int64_t most) -> Result<int64_t> {
    OUTRIDER_TRY(const auto stated, own.integer(key));
    if (stated && *stated >= 1 && *stated <= most) return *stated;
    return head.fail(fmt::format("config.json: expected a {} of 1 to {}, found {}", key, most,
                                 stated ? std::to_string(*stated) : "none"));
  };
  BlockConvolution::Sizes convolutions{.hidden = hidden};
  CandidateSelector::Sizes selector{.hidden = hidden, .vocab = config.layers.vocab_size};
  OUTRIDER_TRY(convolutions.taps, size("conv_kernel_size", config.block_size));
  OUTRIDER_TRY(convolutions.group, size("conv_group_size", hidden));
  OUTRIDER_TRY(selector.rank, size("selector_rank", hidden));
  OUTRIDER_TRY(selector.candidates, size("selector_top_k", config.layers.vocab_size));
  if (hidden % convolutions.group != 0) {
    return head.fail(
        fmt::format("config.json: expected a conv_group_size that divides hidden_size {}, found {}", hidden,
                    convolutions.group));
  }
  config.convolutions = convolutions;
  config.selector = selector;
  return {};
}

}  // namespace

Result<std::optional<int>> drafted_places(const HeadFile& head) {
  OUTRIDER_TRY(const auto block_size, read_block_size(head));
  if (!block_size) return std::optional<int>();
  OUTRIDER_TRY(const int first, read_first_place(head));
  return std::optional(static_cast<int>(std::clamp<int64_t>(*block_size, 2, 65)) - first);
}

Result<DFlashConfig> read_dflash_config(const HeadFile& head, const ModelConfig& target) {
  const JsonObject& root = head.config.root();
  DFlashConfig config;
  OUTRIDER_TRY(const JsonObject layers, layer_config_object(head));
  OUTRIDER_TRY(config.layers, read_layer_config(layers));
  detect_layer_variant(head, "layers.0.", config.layers);
  if (config.layers.hidden_size != target.hidden_size || config.layers.vocab_size != target.vocab_size) {
    return head.fail(fmt::format(
        "config.json: expected the target's hidden_size {} and vocab_size {}, found {} and {}",
        target.hidden_size, target.vocab_size, config.layers.hidden_size, config.layers.vocab_size));
  }
  OUTRIDER_TRY(const auto target_layers, root.integer("num_target_layers"));
  if (target_layers && *target_layers != target.layer_count) {
    return head.fail(fmt::format("config.json: expected num_target_layers {}, the target's, found {}",
                                 target.layer_count, *target_layers));
  }
  OUTRIDER_RETURN_IF_ERROR(refuse_scales(head));
  OUTRIDER_RETURN_IF_ERROR(read_block(head, config));
  OUTRIDER_TRY(config.is_causal, read_causal_layers(head, config.layers));
  OUTRIDER_TRY(const auto draft_vocab, root.integer("draft_vocab_size"));
  config.draft_vocab = draft_vocab.value_or(target.vocab_size);
  if (head.method == Method::kDSpark) {
    OUTRIDER_TRY(config.markov,
                 MarkovHead::read_sizes(head, target.hidden_size, target.vocab_size, config.draft_vocab));
  }
  OUTRIDER_RETURN_IF_ERROR(read_second_version(head, config));
  OUTRIDER_TRY(config.ids, read_ids(head, target.layer_count, config.layers.layer_count));
  OUTRIDER_RETURN_IF_ERROR(check_block_tensors(head, config));
  OUTRIDER_TRY(config.vocabulary, read_vocabulary_map(head, config.draft_vocab, target.vocab_size));
  return config;
}

}  // namespace outrider
