// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/tool_calls/call_reader.h"
#include "server/api/tool_calls/json_object_text.h"
#include "server/api/tool_calls/message_delta.h"

namespace outrider {

// All marks of harmony: as control tokens they must stay in the text of the output.
std::vector<std::string_view> channel_marks();

// Reads an answer in OpenAI's harmony format: messages, each with a header that names its channel and perhaps
// the function that it is for. The channel "analysis" is thinking, messages to known functions are calls, and
// all others are content.
class ChannelParser {
 public:
  // No tools: null. `tail`: the end of the prompt, of which the header of the answer's first message is a
  // part.
  // `shows_thinking`: thinking stays in the content, with its marks.
  ChannelParser(SharedTools tools, bool parallel, std::string_view tail, bool shows_thinking = false);

  void push(char next, MessageDelta& delta);
  void finish(MessageDelta& delta);
  int calls() const { return calls_; }
  // A call that was sent is not complete.
  bool is_broken() const { return is_broken_; }

 private:
  enum class State : uint8_t { kBetween, kHeader, kText, kCall };

  void step(char next, MessageDelta& delta);
  void step_between();
  void step_header(MessageDelta& delta);
  void step_text(MessageDelta& delta);
  void begin_call(MessageDelta& delta);
  void step_call(char next, MessageDelta& delta);
  void begin_message();
  void say(std::string_view text, MessageDelta& delta);
  void break_call(MessageDelta& delta);
  bool is_dropped() const { return !parallel_ && calls_ > 1; }

  SharedTools tools_;
  bool parallel_;
  bool shows_thinking_;
  bool is_shown_ = false;  // the message is thinking that stays in the content
  State state_ = State::kBetween;
  std::string again_;          // text to be read again, before all other
  std::string held_;           // text that is not decided yet
  std::string header_;         // of the message, with its marks
  std::string unsaid_header_;  // comes before the text of the message
  bool is_thinking_ = false;
  bool begins_text_ = true;  // the message has no text yet
  bool has_content_ = false, has_reasoning_ = false;
  std::string name_;  // of the function that the message is for
  JsonObjectText arguments_;
  size_t sent_ = 0;  // bytes of its arguments that were sent
  int calls_ = 0;
  bool is_broken_ = false;
};

}  // namespace outrider
