// SPDX-License-Identifier: Apache-2.0
#include "server/api/answers/message_parser.h"

#include <memory>
#include <utility>
#include <vector>

namespace outrider {

MessageParser::MessageParser(const ChatPrompt& prompt, std::string_view chat_template, bool incremental) {
  if (prompt.reasoning != nullptr) reasoning_.emplace(*prompt.reasoning, prompt.begins_thinking);
  const ToolUse& tools = prompt.tools;
  if (tools.choice == ToolChoice::kNone) return;
  const ToolFormat& format = tools.must_call() ? plain_tool_format() : tool_format(chat_template);
  calls_.emplace(
      ToolCallParser::Options{.format = format, .incremental = incremental, .parallel = tools.parallel},
      std::make_shared<const std::vector<Tool>>(tools.tools));
}

MessageDelta MessageParser::push(std::string_view text, bool is_last) {
  MessageDelta output;
  std::string said;
  if (reasoning_) {
    reasoning_->push(text, output.reasoning, said);
    if (is_last) reasoning_->finish(output.reasoning, said);
  } else {
    said = text;
  }
  if (!calls_) {
    output.content = std::move(said);
    return output;
  }
  calls_->push(said, output);
  if (is_last) calls_->finish(output);
  return output;
}

}  // namespace outrider
