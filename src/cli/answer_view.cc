// SPDX-License-Identifier: Apache-2.0
#include "cli/answer_view.h"

#include <fmt/format.h>

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

std::string ending_text(const Completion& completion, int64_t most_tokens, std::string_view more_context) {
  if (completion.finish_reason == FinishReason::kCancelled) return "(stopped)\n";
  if (completion.finish_reason != FinishReason::kLength) return {};
  const auto count = static_cast<int64_t>(completion.tokens.size());
  return count >= most_tokens ? fmt::format("(cut after {} tokens; --max-tokens allows more)\n", count)
                              : fmt::format("(cut where the context ends; {})\n", more_context);
}

}  // namespace outrider
