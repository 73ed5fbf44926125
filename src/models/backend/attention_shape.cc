// SPDX-License-Identifier: Apache-2.0
#include "models/backend/attention_shape.h"

#include <cmath>

#include "base/portable_math.h"

namespace outrider {

float query_factor(const QueryTemperature& temperature, int32_t position) {
  const auto periods = static_cast<float>((position + temperature.offset) / temperature.original_context);
  return 1 + static_cast<float>(temperature.beta) *
                 static_cast<float>(portable_log1p(static_cast<double>(periods)));
}

AttentionShape AttentionShape::of(const ModelConfig& config, int64_t layer, Shard shard) {
  const LayerSizes sizes = config.sizes_of(layer);
  const HeadShare heads(sizes, shard);
  const Range queries = heads.query_heads();
  const auto slopes = std::span(config.alibi_slopes);
  const float usual = 1.0F / std::sqrt(static_cast<float>(sizes.head_dim));
  const float scale = config.scales.attention != 0 ? static_cast<float>(config.scales.attention) : usual;
  return {.head_count = queries.end - queries.begin,
          .kv_head_count = heads.kv_heads(),
          .head_dim = sizes.head_dim,
          .window = config.traits_of(layer).window,
          .chunk = config.traits_of(layer).chunk,
          .scale = config.scales.attention_by_layer ? scale / static_cast<float>(layer + 1) : scale,
          .softcap = static_cast<float>(config.attention_softcap),
          .slopes = slopes.empty() ? slopes
                                   : slopes.subspan(static_cast<size_t>(queries.begin),
                                                    static_cast<size_t>(queries.end - queries.begin)),
          .stores = config.kv_layer_of(layer) == layer,
          .epsilon = config.norm.epsilon,
          .norm_kind = config.norm.kind,
          .qk_norm = config.qk_norm};
}

AttentionRow attention_row(const ForwardBatch& batch, int32_t row) {
  const auto r = static_cast<size_t>(row);
  const auto sequence = static_cast<size_t>(batch.sequences[r]);
  return {.pages = batch.pages.data() + batch.page_begin[sequence],
          .prefix_len = batch.prefix_len[r],
          .tail = batch.tails.data() + batch.tail_begin[r],
          .tail_len = batch.tail_begin[r + 1] - batch.tail_begin[r]};
}

}  // namespace outrider
