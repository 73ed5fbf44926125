// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "corpus/open_corpus.h"
#include "outrider/engine.h"
#include "outrider/result.h"
#include "tokenizer/tokenizer.h"

namespace outrider {

// The corpus that the options name, opened or built; null: they name none, or no drafter of theirs reads it.
// The options are resolved. Errors: see open_corpus().
Result<std::shared_ptr<const Corpus>> open_corpus_of(const EngineOptions& options,
                                                     const Tokenizer& tokenizer);

}  // namespace outrider
