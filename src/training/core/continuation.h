// SPDX-License-Identifier: Apache-2.0
// A teacher's own continuations of prompts: the text on which a draft model has to agree with it.
#pragma once

#include <filesystem>

#include "outrider/result.h"
#include "training/core/continuation_options.h"
#include "training/core/tokenizer_files.h"
#include "training/lm/llama.h"

namespace outrider::training {

// Continues prompts of a token file (each ended by the document end) and writes prompt and continuation as a
// token file of the same format. Batches hold prompts of about the same length, cut on the left to the
// shortest.
Status write_continuations(const Llama& teacher, const LlamaWeights& weights, const TokenizerFacts& tokenizer,
                           const std::filesystem::path& prompt_file, const ContinuationOptions& options,
                           const std::filesystem::path& out);

}  // namespace outrider::training
