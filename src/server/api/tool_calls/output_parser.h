// SPDX-License-Identifier: Apache-2.0
// Splits the text of a chat answer, while it is generated, into thinking, content and tool calls.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "server/api/tool_calls/channel_parser.h"
#include "server/api/tool_calls/message_delta.h"
#include "server/api/tool_calls/thinking.h"
#include "server/api/tool_calls/tool_call_parser.h"

namespace outrider {

// The parts that an answer may consist of.
struct OutputParts {
  const ThinkingForm* thinking = nullptr;  // null: thinking is not told from content
  ThinkingState begins = ThinkingState::kMayBegin;
  std::vector<const CallForm*> calls = {};  // empty: the text is not searched for calls
  bool parallel = true;                     // false: only the first call counts
  std::string prompt_tail = {};             // the end of the prompt
  bool shows_thinking = false;              // it stays in the content
};

// The result does not depend on how the text is cut: whole answers and streams are the same.
class OutputParser {
 public:
  OutputParser(OutputParts parts, SharedTools tools);

  // `is_last`: the answer ends with this text.
  MessageDelta push(std::string_view text, bool is_last);
  // The answer has calls, and all of them are complete.
  bool has_calls() const;

 private:
  void step(char next, MessageDelta& delta);
  void say(std::string_view text, std::string& plain, MessageDelta& delta);
  void finish(MessageDelta& delta);
  void run(MessageDelta& delta);
  bool is_thinking() const { return thinking_ && thinking_->is_thinking(); }

  std::optional<ChannelParser> channels_;
  std::optional<ThinkingSplitter> thinking_;
  std::optional<ToolCallParser> calls_;
  std::string pending_;  // text to be read, the next character last
};

}  // namespace outrider
