// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "outrider/token.h"

namespace outrider {

// Tracks whether a text is in its thinking phase, which starts after a `begin` token and ends at an `end`
// token; -1: the model has no such token.
struct ThinkingPhase {
  TokenId begin = -1;
  TokenId end = -1;
  bool is_open = false;

  void push(TokenId token) {
    if (token == begin) is_open = true;
    if (token == end) is_open = false;
  }
};

}  // namespace outrider
