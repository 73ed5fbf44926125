// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

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

}  // namespace outrider
