// SPDX-License-Identifier: Apache-2.0
// Continuations of prompts by a teacher: the text on which a draft model has to agree with it.
#pragma once

#include <cstdint>
#include <filesystem>

#include "outrider/result.h"
#include "training/core/tokenizer_files.h"
#include "training/lm/llama.h"

namespace outrider::training {

struct ContinuationOptions {
  int64_t prompts = 2048;       // taken from the file at random
  int64_t new_tokens = 128;     // at most, per prompt
  int64_t max_prompt = 384;     // tokens; longer prompts lose their beginning
  int64_t batch = 128;          // sequences decoded together
  double sampled_share = 0.25;  // share of the batches sampled at `temperature`; the others are greedy
  double temperature = 0.8;
  uint64_t seed = 1;
};

// Continues prompts of a token file (each ends with the document end) and writes prompts and continuations as
// a token file. A batch holds prompts of similar length; their beginnings are cut to the shortest one's
// length.
Status write_continuations(const Llama& teacher, const LlamaWeights& weights, const TokenizerFacts& tokenizer,
                           const std::filesystem::path& prompt_file, const ContinuationOptions& options,
                           const std::filesystem::path& out);

}  // namespace outrider::training
