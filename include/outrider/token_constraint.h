// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "outrider/token.h"

namespace outrider {

// Restricts the output of one sequence token by token: an automaton with states that are small numbers, so
// that returning to an earlier state after a rejected draft needs no undo. Not thread-safe.
class TokenConstraint {
 public:
  using State = int32_t;
  static constexpr State kDead = -1;  // no token can follow

  virtual ~TokenConstraint() = default;

  virtual State start() = 0;
  // The state after `token`; kDead if the token is not allowed in `state` or ends the output.
  virtual State advance(State state, TokenId token) = 0;
  // The allowed next tokens as a bit set: bit t % 64 of word t / 64 stands for token t. Ids that end the
  // output are included where it may end. The span is valid until the next call.
  virtual std::span<const uint64_t> allowed(State state) = 0;
  // Whether only tokens that end the output are allowed.
  virtual bool is_complete(State state) = 0;
};

}  // namespace outrider
