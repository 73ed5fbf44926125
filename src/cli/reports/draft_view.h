// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "outrider/engine.h"

namespace outrider {

// Text as it comes, with accepted drafts, corrections and bonus tokens told apart: by colour, or without
// colour by [accepted], {corrected} and <bonus>. Tokens nothing was drafted for are left as they are.
class MarkedStream {
 public:
  // `engine` must outlive it.
  MarkedStream(const Engine& engine, bool colour) : engine_(engine), colour_(colour) {}

  // The new text with its marks; the last stretch is closed by what follows, or by finish().
  std::string push(const Progress& progress);
  std::string finish();

 private:
  std::string change_to(TokenOrigin origin);

  const Engine& engine_;
  bool colour_;
  std::vector<TokenId> tokens_;
  std::vector<TokenOrigin> origins_;
  size_t token_ = 0;      // tokens up to the one the next byte belongs to
  size_t token_end_ = 0;  // where the text of these ends
  size_t shown_ = 0;      // bytes of text
  TokenOrigin current_ = TokenOrigin::kPlain;
};

// Explains the marks, one line.
std::string mark_legend(bool colour);

// "ngram: 12.3 tok/s; 24 of 40 drafted tokens accepted (60.0%), acceptance length 2.50, ...": one line.
std::string statistics_line(const Completion& completion, double tokens_per_second);

}  // namespace outrider
