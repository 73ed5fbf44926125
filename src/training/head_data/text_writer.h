// SPDX-License-Identifier: Apache-2.0
// Texts that the target writes: answers to prompts, and questions.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "outrider/result.h"
#include "outrider/token.h"
#include "training/head_data/generation_progress.h"

namespace outrider::training {

struct WritingTask {
  std::span<const TokenId> prompt;  // not empty
  int64_t max_tokens = 0;           // > 0
  double temperature = 0.0;         // 0: greedy
  double top_p = 1.0;
  uint64_t seed = 0;
};

// Takes the text of tasks[index], without its prompt. One that ended by itself ends with a stop token.
using TextSink = std::function<void(size_t index, std::vector<TokenId> text)>;

class TextWriter {
 public:
  virtual ~TextWriter() = default;
  // Tasks that keep it busy. A caller that keeps what was written asks for no more at once.
  virtual int64_t preferred_tasks() const = 0;
  // Writes all texts, several at a time, and hands each to the sink when it is complete, in any order. A text
  // is a function of only its task, except for the rounding of products on a GPU.
  virtual Status write(std::span<const WritingTask> tasks, const TextSink& sink,
                       GenerationProgress& shown) = 0;
};

}  // namespace outrider::training
