// SPDX-License-Identifier: Apache-2.0
#include "drafters/draft_target/vocabulary_match.h"

#include <algorithm>
#include <string>

namespace outrider {
namespace {

std::string quoted(std::string_view piece) { return "'" + std::string(piece) + "'"; }

bool same_token(const Tokenizer& target, const Tokenizer& draft, TokenId id) {
  if (target.is_control(id) || draft.is_control(id)) {
    return target.is_control(id) == draft.is_control(id) && target.token_piece(id) == draft.token_piece(id);
  }
  return target.token_bytes(id) == draft.token_bytes(id);
}

}  // namespace

Status check_same_vocabulary(const Tokenizer& target, const Tokenizer& draft) {
  const int shared = std::min(target.vocab_size(), draft.vocab_size());
  for (TokenId id = 0; id < shared; ++id) {
    if (same_token(target, draft, id)) continue;
    return input_error("the draft model's vocabulary does not fit the target's: id " + std::to_string(id) +
                       " is " + quoted(target.token_piece(id)) + " in the target and " +
                       quoted(draft.token_piece(id)) +
                       " in the draft; choose a draft model with the target's tokenizer");
  }
  return {};
}

}  // namespace outrider
