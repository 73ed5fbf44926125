// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "outrider/engine.h"

namespace outrider {

// Marks accepted drafts, corrections and bonus tokens in streamed text: by colour, or without colour as
// [accepted], {corrected} and <bonus>. Tokens for which nothing was drafted have no mark.
class MarkedStream {
 public:
  // `engine` must outlive it.
  MarkedStream(const Engine& engine, bool colour) : engine_(engine), colour_(colour) {}

  // Returns the new text with its marks. The last mark is closed by later text or by finish().
  std::string push(const Progress& progress);
  std::string finish();

 private:
  std::string change_to(TokenOrigin origin);

  const Engine& engine_;
  bool colour_;
  std::vector<TokenId> tokens_;
  std::vector<TokenOrigin> origins_;
  size_t token_ = 0;      // number of tokens up to the next byte's
  size_t token_end_ = 0;  // bytes of text of these tokens
  size_t shown_ = 0;      // bytes of text that were shown
  TokenOrigin current_ = TokenOrigin::kPlain;
};

// A line that explains the marks.
std::string mark_legend(bool colour);

// "ngram: 12.3 tok/s; 24 of 40 drafted tokens accepted (60.0%), acceptance length 2.50, ...", one line.
std::string statistics_line(const Completion& completion, double tokens_per_second);

}  // namespace outrider
