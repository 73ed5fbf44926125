// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "outrider/token.h"

namespace outrider {

// What an output may be, token by token: an automaton whose states are small numbers, so that going back to
// an earlier one, when a draft is rejected, needs nothing undone. Serves one sequence; not thread-safe.
class TokenConstraint {
 public:
  using State = int32_t;
  static constexpr State kDead = -1;  // nothing more can come

  virtual ~TokenConstraint() = default;

  virtual State start() = 0;
  // The state after `token`, kDead where it may not come. Tokens that end the output lead to kDead too.
  virtual State advance(State state, TokenId token) = 0;
  // Bit t % 64 of word t / 64: token t may come next. Ids that end the output are among them where it may
  // end. Lives until the next call.
  virtual std::span<const uint64_t> allowed(State state) = 0;
  // Nothing may come but the end.
  virtual bool is_complete(State state) = 0;
};

}  // namespace outrider
