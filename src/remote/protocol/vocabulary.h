// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "remote/protocol/messages.h"
#include "tokenizer/tokenizer.h"

namespace outrider {

// Equal for two tokenizers if and only if every id means the same in both.
VocabularyFingerprint fingerprint_of(const Tokenizer& tokenizer);

}  // namespace outrider
