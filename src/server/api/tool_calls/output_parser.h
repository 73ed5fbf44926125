// SPDX-License-Identifier: Apache-2.0
// The text of a chat answer, taken apart as it comes: reasoning, content, calls of tools.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/tool_calls/call_reader.h"

namespace outrider {

// What is new in an answer.
struct OutputDelta {
  struct Call {
    int index = 0;
    std::string name;  // with the first news of a call
    std::string arguments;
  };
  std::string reasoning;
  std::string content;
  std::vector<Call> calls;

  bool empty() const { return reasoning.empty() && content.empty() && calls.empty(); }
};

// Tells <think> ... </think> at the start of an answer from what follows it. White space around both is left
// out.
class ReasoningSplitter {
 public:
  // `is_inside`: the prompt ended with <think>.
  explicit ReasoningSplitter(bool is_inside) : state_(is_inside ? State::kOpened : State::kStart) {}

  // `content` gets what is none.
  void push(std::string_view text, std::string& reasoning, std::string& content);
  void finish(std::string& reasoning, std::string& content);

 private:
  enum class State : uint8_t { kStart, kOpened, kInside, kClosed, kContent };
  void step(char next, std::string& reasoning, std::string& content);

  State state_;
  std::string held_;  // may be the beginning of a tag, or the white space before one
};

// Finds calls of known tools, written in one format. What only looks like a call stays content.
class ToolCallParser {
 public:
  struct Options {
    ToolFormat format;
    bool incremental = false;  // a call is told as soon as its name is known, else when it is complete
    bool parallel = true;      // false: calls behind the first are left out
  };
  ToolCallParser(const Options& options, SharedTools tools) : options_(options), tools_(std::move(tools)) {}

  void push(std::string_view text, OutputDelta& delta);
  void finish(OutputDelta& delta);
  int calls() const { return calls_; }

 private:
  enum class State : uint8_t { kContent, kBefore, kCall, kBehind };
  void step(char next, OutputDelta& delta);
  void step_content(char next, OutputDelta& delta);
  void step_start(char next, OutputDelta& delta);
  void step_before(char next, OutputDelta& delta);
  void step_call(char next, OutputDelta& delta);
  void step_behind(char next, OutputDelta& delta);
  void open(std::string raw);
  void begin_call();
  bool takes_mark(std::string_view tail);
  void fail(OutputDelta& delta);
  bool is_known(const std::string& name) const;
  void send_arguments(OutputDelta& delta);
  void complete(OutputDelta& delta);
  bool is_dropped() const { return !options_.parallel && calls_ > (is_begun_ ? 1 : 0); }

  Options options_;
  SharedTools tools_;
  State state_ = State::kContent;
  bool at_start_ = true;
  std::string held_;  // kContent: may begin a call
  std::string raw_;   // since the call began: content, should it turn out to be none
  size_t mark_ = 0;   // kBefore: where the beginning of the call is looked for in raw_
  bool in_array_ = false;
  std::unique_ptr<CallReader> call_;
  bool is_begun_ = false;  // the call's name has been told
  size_t sent_ = 0;        // bytes of its arguments
  int calls_ = 0;
};

}  // namespace outrider
