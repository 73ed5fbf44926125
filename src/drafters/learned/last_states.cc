// SPDX-License-Identifier: Apache-2.0
#include "drafters/learned/last_states.h"

#include <algorithm>

namespace outrider {

void LastStates::absorb(std::span<const CommittedFeatures> committed) {
  for (const CommittedFeatures& features : committed) {
    if (features.rows.empty()) continue;
    auto [found, is_new] = sequences_.try_emplace(features.sequence);
    Sequence& sequence = found->second;
    if (is_new) sequence.history.reserve(max_length_);
    const std::span<const float> state = features.at(features.rows.size() - 1);
    sequence.state.assign(state.begin(), state.end());
    sequence.length = features.first + std::ssize(features.rows);
  }
}

LastStates::Sequence* LastStates::find(const DraftRequest& request) {
  const auto found = sequences_.find(request.sequence);
  if (found == sequences_.end() || found->second.length != std::ssize(request.tokens) - 1) return nullptr;
  return &found->second;
}

void LastStates::set(uint64_t sequence, std::vector<float> state, int64_t length) {
  Sequence& of = sequences_.at(sequence);
  of.state = std::move(state);
  of.length = length;
}

int64_t LastStates::known_tokens(std::span<const TokenId> tokens) {
  return std::max<int64_t>(0, std::ssize(tokens) - 2);
}

}  // namespace outrider
