// SPDX-License-Identifier: Apache-2.0
// The target's state of the last token computed, by sequence: all that some drafters read of the past.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "drafters/draft_state.h"
#include "outrider/drafter.h"

namespace outrider {

class LastStates {
 public:
  struct Sequence {
    RequestHistory history;
    std::vector<float> state;  // [hidden size of the target], after its final norm
    int64_t length = 0;        // tokens, up to and with the token of the state
  };

  // `max_length` is the length of the longest sequence, in tokens.
  explicit LastStates(size_t max_length) : max_length_(max_length) {}

  void absorb(std::span<const CommittedFeatures> committed);

  // The request's sequence, or null where the state of the token before the pending one is not known.
  Sequence* find(const DraftRequest& request);

  // The state of a known sequence, after so many tokens.
  void set(uint64_t sequence, std::vector<float> state, int64_t length);

  // Tokens of a prompt that need not be absorbed: the state of the one before the last is.
  static int64_t known_tokens(std::span<const TokenId> tokens);

  void end(uint64_t sequence) { sequences_.erase(sequence); }

 private:
  size_t max_length_;
  std::unordered_map<uint64_t, Sequence> sequences_;
};

}  // namespace outrider
