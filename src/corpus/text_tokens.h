// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "corpus/corpus.h"
#include "corpus/scratch_file.h"
#include "corpus/text_sources.h"
#include "corpus/token_text.h"
#include "outrider/result.h"
#include "tokenizer/tokenizer.h"

namespace outrider {

// The tokens of all texts, as TokenText has them. A text is cut behind lines into pieces that threads
// tokenize side by side. A spelling of a control token counts as that token, as in a log of chats. A line of
// JSON is a text, an object with a "text", or one with "messages", each of which is a document. `progress` is
// called with the bytes read. Errors: as of TextReader; a line of another form.
Result<ScratchFile> tokenize_texts(const TextSources& sources, const Tokenizer& tokenizer,
                                   const std::filesystem::path& folder, int threads, CorpusFacts& facts,
                                   const std::function<void(int64_t)>& progress);

}  // namespace outrider
