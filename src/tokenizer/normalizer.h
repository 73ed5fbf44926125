// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "outrider/result.h"
#include "tokenizer/split_pattern.h"
#include "tokenizer/tokenizer_spec.h"

namespace outrider {

// The normalizer of a tokenizer: steps that change the text before anything else looks at it. Thread-safe.
class Normalizer {
 public:
  // Errors: too many steps, or a pattern that does not compile.
  static Result<Normalizer> create(const std::vector<NormalizerStep>& steps);

  // The normalized form of `text` (valid UTF-8).
  std::string apply(std::string_view text) const;

 private:
  struct CompiledStep {
    NormalizerStep step;
    std::optional<SplitPattern> pattern;  // of kReplace
  };
  static std::string apply_step(const CompiledStep& compiled, std::string text);

  std::vector<CompiledStep> steps_;
};

}  // namespace outrider
