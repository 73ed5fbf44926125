// SPDX-License-Identifier: Apache-2.0
// Splits the text of a chat answer, while it is generated, into reasoning, content and tool calls.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/tool_calls/call_reader.h"

namespace outrider {

// The parts of a chat message that some new text added: the fields of OpenAI's "delta".
struct MessageDelta {
  struct Call {
    int index = 0;
    std::string name;  // only in the first delta of a call
    std::string arguments;
  };
  std::string reasoning;
  std::string content;
  std::vector<Call> calls;

  bool empty() const { return reasoning.empty() && content.empty() && calls.empty(); }
};

// The marks around the reasoning of a model family.
struct ReasoningFormat {
  std::string_view open;   // "<think>"
  std::string_view close;  // "</think>"
};

// The format with a closing mark that the template contains; null: none.
const ReasoningFormat* reasoning_format(std::string_view chat_template);

// Separates reasoning between its marks at the start of an answer from the content after it, and drops white
// space around the marks.
class ReasoningSplitter {
 public:
  // `is_inside`: the prompt ended with the opening mark, so the answer begins with reasoning.
  ReasoningSplitter(const ReasoningFormat& format, bool is_inside)
      : format_(format), state_(is_inside ? State::kOpened : State::kStart) {}

  // Appends the parts of `text` to `reasoning` and `content`.
  void push(std::string_view text, std::string& reasoning, std::string& content);
  void finish(std::string& reasoning, std::string& content);

 private:
  enum class State : uint8_t { kStart, kOpened, kInside, kClosed, kContent };
  void step(char next, std::string& reasoning, std::string& content);

  ReasoningFormat format_;
  State state_;
  std::string held_;  // the possible beginning of a mark, or white space before one
};

// Finds calls of known tools in one format. Text that only resembles a call stays content.
class ToolCallParser {
 public:
  struct Options {
    ToolFormat format;
    bool incremental = false;  // sends a call from its name on, else once it is complete
    bool parallel = true;      // false: drops all calls after the first
  };
  ToolCallParser(const Options& options, SharedTools tools) : options_(options), tools_(std::move(tools)) {}

  void push(std::string_view text, MessageDelta& delta);
  void finish(MessageDelta& delta);
  int calls() const { return calls_; }

 private:
  enum class State : uint8_t { kContent, kBefore, kCall, kAfter };
  void step(char next, MessageDelta& delta);
  void step_content(char next, MessageDelta& delta);
  void step_start(char next, MessageDelta& delta);
  void step_before(char next, MessageDelta& delta);
  void step_call(char next, MessageDelta& delta);
  void step_after(char next, MessageDelta& delta);
  void open(std::string raw);
  void begin_call();
  bool takes_mark(std::string_view tail);
  void fail(MessageDelta& delta);
  bool is_known(const std::string& name) const;
  void send_arguments(MessageDelta& delta);
  void complete(MessageDelta& delta);
  bool is_dropped() const { return !options_.parallel && calls_ > (is_begun_ ? 1 : 0); }

  Options options_;
  SharedTools tools_;
  State state_ = State::kContent;
  bool at_start_ = true;
  std::string held_;  // kContent: the possible beginning of a call
  std::string raw_;   // text since the call began; it is content if the call fails
  size_t mark_ = 0;   // kBefore: offset in raw_ where the call's mark may begin
  bool in_array_ = false;
  std::unique_ptr<CallReader> call_;
  bool is_begun_ = false;  // the call's name was sent
  size_t sent_ = 0;        // bytes of its arguments that were sent
  int calls_ = 0;
};

}  // namespace outrider
