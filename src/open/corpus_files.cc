// SPDX-License-Identifier: Apache-2.0
#include "open/corpus_files.h"

#include "config/methods.h"

namespace outrider {

Result<std::shared_ptr<const Corpus>> open_corpus_of(const EngineOptions& options,
                                                     const Tokenizer& tokenizer) {
  if (options.corpus.empty() || !reads_corpus(options.speculation)) return std::shared_ptr<const Corpus>();
  return open_corpus({.texts = options.corpus, .cache = options.corpus_cache, .threads = options.threads},
                     tokenizer);
}

}  // namespace outrider
