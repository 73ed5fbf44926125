// SPDX-License-Identifier: Apache-2.0
#include "outrider/drafter.h"

#include <algorithm>

namespace outrider {

void Drafter::begin(uint64_t /*sequence*/, std::span<const TokenId> /*prompt*/, uint64_t /*scope*/) {}

void Drafter::observe(uint64_t /*sequence*/, const TokenTree& /*tree*/, const Verdict& /*verdict*/) {}

void Drafter::order(std::span<const DraftRequest> /*requests*/) {}

void Drafter::absorb(std::span<const CommittedFeatures> /*committed*/) {}

void Drafter::collect_states(const CommittedFeatures& committed, const TargetAccess& /*target*/, float* out) {
  for (size_t i = 0; i < committed.rows.size(); ++i) {
    const std::span<const float> features = committed.at(i);
    out = std::copy(features.begin(), features.end(), out);
  }
}

int64_t Drafter::known_tokens(std::span<const TokenId> tokens, uint64_t /*scope*/) {
  return traits().features.count() == 0 ? static_cast<int64_t>(tokens.size()) : 0;
}

void Drafter::end(uint64_t /*sequence*/) {}

bool Drafter::restore(uint64_t /*sequence*/, std::span<const TokenId> /*tokens*/, uint64_t /*scope*/,
                      double /*limit_ms*/) {
  return false;
}

bool Drafter::save(bool /*everything*/) { return false; }

}  // namespace outrider
