// SPDX-License-Identifier: Apache-2.0
// Sets of tokens as TokenConstraint::allowed() gives them: bit t % 64 of word t / 64. Tokens beyond the last
// word are not in the set.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "outrider/token_constraint.h"

namespace outrider {

// Sets with room for the tokens below `count`: none of them, and all.
std::vector<uint64_t> no_tokens(int64_t count);
std::vector<uint64_t> all_tokens(int64_t count);

void add_token(std::span<uint64_t> set, TokenId token);  // the set has room for it
void remove_token(std::span<uint64_t> set, TokenId token);

bool contains(std::span<const uint64_t> set, TokenId token);

// Copies the logits of the tokens in `allowed` to `masked`; all others become -infinity.
void mask_logits(std::span<const float> logits, std::span<const uint64_t> allowed,
                 std::vector<float>& masked);

// The result of advancing a constraint by one token: whether the token is allowed, and the state after it,
// which is kDead also after an allowed token that ends the output.
struct ConstraintMove {
  bool is_allowed = false;
  TokenConstraint::State state = TokenConstraint::kDead;
};
ConstraintMove advanced(TokenConstraint& constraint, TokenConstraint::State state, TokenId token);

}  // namespace outrider
