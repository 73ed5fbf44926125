// SPDX-License-Identifier: Apache-2.0
#include "outrider/drafter.h"

namespace outrider {

void Drafter::begin(uint64_t /*sequence*/, std::span<const TokenId> /*prompt*/, uint64_t /*scope*/) {}

void Drafter::observe(uint64_t /*sequence*/, const TokenTree& /*tree*/, const Verdict& /*verdict*/) {}

void Drafter::absorb(std::span<const CommittedFeatures> /*committed*/) {}

int64_t Drafter::known_tokens(std::span<const TokenId> tokens, uint64_t /*scope*/) {
  return traits().features.count() == 0 ? static_cast<int64_t>(tokens.size()) : 0;
}

void Drafter::end(uint64_t /*sequence*/) {}

}  // namespace outrider
