// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/json_reader.h"
#include "outrider/result.h"
#include "tokenizer/tokenizer_spec.h"

namespace outrider {

// Reads normalizer, pre_tokenizer, post_processor and decoder of tokenizer.json (`root`) into `spec`, kind
// included. Errors: a step, or an order of steps, that is not supported.
Status read_pipeline(const JsonField& root, TokenizerSpec& spec);

}  // namespace outrider
