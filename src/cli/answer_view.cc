// SPDX-License-Identifier: Apache-2.0
#include "cli/answer_view.h"

#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "cli/terminal.h"

namespace outrider {
namespace {

constexpr std::string_view kDim = "\x1b[2m", kNormal = "\x1b[22m";

}  // namespace

void AnswerView::show(const MessageDelta& delta) {
  if (!delta.reasoning.empty()) {
    is_thinking_ = true;
    write_thinking(delta.reasoning);
  }
  if (delta.content.empty()) return;
  finish();
  write_output(delta.content);
  std::fflush(stdout);
}

void AnswerView::finish() {
  if (!std::exchange(is_thinking_, false)) return;
  write_thinking("\n\n");
}

void AnswerView::write_thinking(const std::string& text) {
  if (!output_takes_colour()) return write_error_text(text);
  write_output(std::string(kDim) + text + std::string(kNormal));
  std::fflush(stdout);
}

}  // namespace outrider
