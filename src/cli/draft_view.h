// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "outrider/engine.h"

namespace outrider {

// The text of a completion with accepted drafts, corrections and bonus tokens told apart: by colour, or
// without colour by [accepted], {corrected} and <bonus>. Tokens nothing was drafted for are left as they are.
std::string marked_text(const Engine& engine, const Completion& completion, bool colour);

// Explains the marks, one line.
std::string mark_legend(bool colour);

// "ngram: 12.3 tok/s; 24 of 40 drafted tokens accepted (60.0%), acceptance length 2.50, ...": one line.
std::string statistics_line(const Completion& completion, double tokens_per_second);

}  // namespace outrider
