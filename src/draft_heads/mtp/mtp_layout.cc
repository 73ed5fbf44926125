// SPDX-License-Identifier: Apache-2.0
#include "draft_heads/mtp/mtp_layout.h"

#include <fmt/format.h>

#include <charconv>

#include "draft_heads/recurrent_head.h"

namespace outrider {

MtpNames MtpLayout::names(int64_t module) const {
  if (is_qwen) {
    return {.embedding_norm = "mtp.pre_fc_norm_embedding.weight",
            .hidden_norm = "mtp.pre_fc_norm_hidden.weight",
            .fc = "mtp.fc",
            .norm = "mtp.norm.weight",
            .layer = "mtp.layers.0.",
            .embed_tokens = {},
            .output = {}};
  }
  const std::string prefix = fmt::format("model.layers.{}.", first_layer + module);
  return {.embedding_norm = prefix + "enorm.weight",
          .hidden_norm = prefix + "hnorm.weight",
          .fc = prefix + "eh_proj",
          .norm = prefix + "shared_head.norm.weight",
          .layer = prefix,
          .embed_tokens = prefix + "embed_tokens",
          .output = prefix + "shared_head.head"};
}

bool MtpLayout::is_targets(std::string_view name) const {
  if (name == "lm_head.weight") return true;
  if (!name.starts_with("model.")) return false;
  constexpr std::string_view kLayers = "model.layers.";
  if (is_qwen || !name.starts_with(kLayers)) return true;
  int64_t layer = 0;
  std::from_chars(name.data() + kLayers.size(), name.data() + name.size(), layer);
  return layer < first_layer;
}

Result<MtpLayout> read_mtp_layout(const HeadFile& head, const Model& target) {
  constexpr int64_t kMax = 16;
  MtpLayout layout{.is_qwen = head.tensors.contains("mtp.fc.weight"),
                   .first_layer = target.config().layer_count};
  OUTRIDER_TRY(const JsonObject config, layer_config_object(head));
  for (const char* key : {"mtp_num_hidden_layers", "num_nextn_predict_layers"}) {
    OUTRIDER_TRY(const auto stated, config.integer(key));
    if (stated) layout.modules = *stated;
  }
  const int64_t max = layout.is_qwen ? 1 : kMax;
  if (layout.modules >= 1 && layout.modules <= max) return layout;
  return head.fail(fmt::format("expected 1 to {} modules ({}), found {}", max,
                               layout.is_qwen ? "mtp_num_hidden_layers" : "num_nextn_predict_layers",
                               layout.modules));
}

}  // namespace outrider
