// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "outrider/result.h"

namespace outrider {

// A stretch of text, in bytes, that a pattern matched or left over.
struct Segment {
  size_t begin = 0;
  size_t end = 0;
  bool is_match = false;
};

// A regular expression of a tokenizer file, compiled. Thread-safe.
class SplitPattern {
 public:
  // `pattern` is in Oniguruma's syntax. Errors: it does not compile, is longer than 64 KiB, or has syntax
  // that means something else in PCRE2 and is not translated (back references, set intersection, named groups
  // ...).
  static Result<SplitPattern> compile(std::string_view pattern);
  ~SplitPattern();
  SplitPattern(SplitPattern&&) noexcept;
  SplitPattern& operator=(SplitPattern&&) noexcept;

  // Cuts `text` (valid UTF-8) into matches and gaps, in order and without holes; appends to `segments`.
  // The steps of matching are limited: after the limit, the rest of the text is one gap.
  void find_segments(std::string_view text, std::vector<Segment>& segments) const;

 private:
  struct Impl;
  explicit SplitPattern(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Translates an expression to PCRE2's syntax, with Oniguruma's meaning of \s, \w and $.
Result<std::string> translate_to_pcre2(std::string_view pattern);

}  // namespace outrider
