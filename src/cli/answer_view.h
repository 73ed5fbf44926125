// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "outrider/engine.h"
#include "server/api/tool_calls/message_delta.h"

namespace outrider {

// Shows an answer of a chat as it comes: the content on standard output, and the thinking apart from it, dim
// on a terminal with colours, else on standard error.
class AnswerView {
 public:
  void show(const MessageDelta& delta);
  void finish();

 private:
  void write_thinking(const std::string& text);

  bool is_thinking_ = false;
};

// A line about an answer that was stopped or cut; empty: it ended by itself. `more_context` tells how to get
// room where the context is full.
std::string ending_text(const Completion& completion, int64_t most_tokens, std::string_view more_context);

}  // namespace outrider
