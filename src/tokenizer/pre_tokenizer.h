// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "outrider/result.h"
#include "tokenizer/split_pattern.h"
#include "tokenizer/tokenizer_spec.h"

namespace outrider {

// Cuts text into the words that BPE merges do not cross.
class PreTokenizer {
 public:
  static Result<PreTokenizer> create(const std::vector<SplitRule>& rules);

  // The words of `text` (valid UTF-8) in order, none empty. They are views of `text`; rules on mapped bytes
  // may cut through characters.
  std::vector<std::string_view> split(std::string_view text) const;

 private:
  struct CompiledRule {
    SplitPattern pattern;
    SplitBehavior behavior;
    bool invert;
    bool on_mapped_bytes;
  };
  static std::vector<Segment> split_once(const CompiledRule& rule, std::string_view text);

  std::vector<CompiledRule> rules_;
};

}  // namespace outrider
