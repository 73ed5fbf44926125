// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "server/api/requests/chat_prompt.h"
#include "server/api/tool_calls/output_parser.h"

namespace outrider {

// Splits the text of a chat answer into reasoning, content and calls, as its prompt makes them possible.
class MessageParser {
 public:
  // `incremental`: calls are sent from their names on, else once they are complete.
  MessageParser(const ChatPrompt& prompt, std::string_view chat_template, bool incremental);

  MessageDelta push(std::string_view text, bool is_last);
  bool has_calls() const { return calls_ && calls_->calls() > 0; }

 private:
  std::optional<ReasoningSplitter> reasoning_;
  std::optional<ToolCallParser> calls_;
};

}  // namespace outrider
