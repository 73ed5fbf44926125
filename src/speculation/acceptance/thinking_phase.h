// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "outrider/token.h"

namespace outrider {

// Whether a text is in its thinking phase: after a begin token, up to the end token.
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
