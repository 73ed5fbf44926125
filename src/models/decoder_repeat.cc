// SPDX-License-Identifier: Apache-2.0
// Passes that a backend repeats, and what they leave in layers that keep states.
#include <algorithm>
#include <functional>

#include "models/backend/repeated_pass.h"
#include "models/blocks/device_state_lists.h"
#include "models/decoder.h"

namespace outrider {

// All layers of a repeated pass read the same lists, so their states must hold the same entries.
bool Decoder::can_repeat(const ForwardBatch& batch, const KvCache& cache) const {
  if (!backend_->repeats(batch)) return false;
  return !keeps_states() || std::ranges::all_of(batch.states, [&](const ForwardBatch::StatePlace& place) {
    return cache.states().min_entries(place.id) == cache.states().max_entries(place.id);
  });
}

void Decoder::repeat(const ForwardBatch& batch, KvCache& cache, const LayerSubset& layers) {
  for (const TokenId token : batch.tokens) OUTRIDER_CHECK(token >= 0 && token < config_.vocab_size);
  const bool keeps_features = taps_.count() > 0;
  pass_.place(batch);
  std::function<StateLists(const DeviceStates&)> lister;
  if (keeps_states()) {
    pass_.plan_states(batch, cache);
    lister = [&](const DeviceStates& numbers) {
      return list_states(pass_.states(), {.store = cache.states(), .numbers = numbers, .layer = 0});
    };
  }
  backend_->repeat({.batch = batch,
                    .cache = cache,
                    .layers = layers,
                    .keeps_features = keeps_features,
                    .rotations = pass_.rotations(),
                    .query_factors = pass_.query_factors(),
                    .list_states = lister,
                    .operations = [&](const ForwardBatch& rows) { compute(rows, cache, layers); }});
  note_states(cache, layers);
  feature_rows_ = keeps_features ? batch.rows() : 0;
  logit_count_ = part_.is_last_stage() ? std::ssize(batch.logits_rows) : 0;
}

// As the layers that keep states do where each operation runs by itself.
void Decoder::note_states(KvCache& cache, const LayerSubset& layers) const {
  for (int64_t i = 0; keeps_states() && i < layers.count; ++i) {
    if (layers.runs_attention(i) && !config_.has_attention(i))
      pass_.states().note_applied(cache_layers_[static_cast<size_t>(i)], cache.states());
  }
}

}  // namespace outrider
