// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "outrider/speculative_options.h"
#include "tokenizer/tokenizer.h"

namespace outrider {

// Completes the options with the tokens that begin and end the thinking in texts of this tokenizer. Tokens
// that were given stay, and without such marks in the vocabulary the others stay -1.
void take_thinking_tokens(const Tokenizer& tokenizer, RelaxedOptions& options);

}  // namespace outrider
