// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string>

#include "draft_heads/dflash_network.h"
#include "formats/hf/hf_config.h"

namespace outrider {
namespace {

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

Result<std::vector<int64_t>> read_ids(const HeadFile& head, const JsonObject& own, int64_t target_layers,
                                      int64_t draft_layers) {
  OUTRIDER_TRY(const auto listed, own.array("target_layer_ids"));
  std::vector<int64_t> ids;
  if (listed) {
    for (const simdjson::dom::element id : *listed) {
      int64_t value = -1;
      if (id.get(value) != simdjson::SUCCESS)
        return head.fail("config.json: expected whole numbers in dflash_config.target_layer_ids");
      ids.push_back(value);
    }
  } else {
    ids = default_ids(target_layers, draft_layers);
  }
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && ids[i] < target_layers && (i == 0 || ids[i] > ids[i - 1])) continue;
    return head.fail(fmt::format(
        "config.json: expected rising layers from 0 to {} in dflash_config.target_layer_ids, found {}",
        target_layers - 1, ids[i]));
  }
  if (ids.empty())
    return head.fail("config.json: expected layers in dflash_config.target_layer_ids, found none");
  return ids;
}

// Blocks see everything before them: layers with a window are another network.
Status refuse_windows(const HeadFile& head) {
  OUTRIDER_TRY(const auto types, head.config.root().array("layer_types"));
  if (!types) return {};
  for (const simdjson::dom::element type : *types) {
    std::string_view name;
    if (type.get(name) == simdjson::SUCCESS && name == "full_attention") continue;
    return head.fail(fmt::format(
        "config.json: expected full_attention in layer_types of a DFlash drafter, found {}; windows are not "
        "supported",
        name));
  }
  return {};
}

Status check_tensors(const HeadFile& head, const DFlashConfig& config) {
  const int64_t hidden = config.layers.hidden_size;
  std::vector<HeadTensor> expected = {
      {.name = "fc.weight", .shape = {hidden, static_cast<int64_t>(config.ids.size()) * hidden}},
      {.name = "hidden_norm.weight", .shape = {hidden}},
      {.name = "norm.weight", .shape = {hidden}}};
  for (int64_t i = 0; i < config.layers.layer_count; ++i) {
    append_layer_tensors(config.layers, {.prefix = fmt::format("layers.{}.", i), .input_size = hidden},
                         expected);
  }
  return check_head_tensors(head, expected);
}

}  // namespace

Result<DFlashConfig> read_dflash_config(const HeadFile& head, const ModelConfig& target) {
  const JsonObject& root = head.config.root();
  DFlashConfig config;
  OUTRIDER_RETURN_IF_ERROR(refuse_windows(head));
  OUTRIDER_TRY(config.layers, read_layer_config(root));
  detect_layer_variant(head, "layers.0.", config.layers);
  if (config.layers.hidden_size != target.hidden_size || config.layers.vocab_size != target.vocab_size) {
    return head.fail(fmt::format(
        "config.json: expected the target's hidden_size {} and vocab_size {}, found {} and {}",
        target.hidden_size, target.vocab_size, config.layers.hidden_size, config.layers.vocab_size));
  }
  const int64_t window = config.layers.layer_traits.front().window;
  if (window != 0) {
    return head.fail(fmt::format(
        "config.json: expected no sliding_window of a DFlash drafter, found {}; windows are not supported",
        window));
  }
  OUTRIDER_TRY(const auto target_layers, root.integer("num_target_layers"));
  if (target_layers && *target_layers != target.layer_count) {
    return head.fail(fmt::format("config.json: expected num_target_layers {}, the target's, found {}",
                                 target.layer_count, *target_layers));
  }
  OUTRIDER_TRY(const auto block_size, root.integer("block_size"));
  config.block_size = block_size.value_or(0);
  if (config.block_size < 2 || config.block_size > 65)
    return head.fail(
        fmt::format("config.json: expected a block_size of 2 to 65, found {}", config.block_size));
  OUTRIDER_TRY(const auto own, root.object("dflash_config"));
  if (!own) return head.fail("config.json: expected dflash_config with mask_token_id, found none");
  OUTRIDER_TRY(const auto mask, own->integer("mask_token_id"));
  if (!mask || *mask < 0 || *mask >= target.vocab_size) {
    return head.fail(fmt::format(
        "config.json: expected a token of the target as dflash_config.mask_token_id, 0 to {}, found {}",
        target.vocab_size - 1, mask ? std::to_string(*mask) : "none"));
  }
  config.mask = static_cast<TokenId>(*mask);
  OUTRIDER_TRY(config.ids, read_ids(head, *own, target.layer_count, config.layers.layer_count));
  OUTRIDER_RETURN_IF_ERROR(check_tensors(head, config));
  return config;
}

}  // namespace outrider
