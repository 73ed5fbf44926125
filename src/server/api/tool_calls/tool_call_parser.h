// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/tool_calls/call_reader.h"
#include "server/api/tool_calls/message_delta.h"

namespace outrider {

// Finds calls of known tools in the forms that a model may use. Text that only resembles a call stays text. A
// call is sent from its name on, as its arguments come. If it breaks after that, its arguments are made JSON
// and the rest is text.
class ToolCallParser {
 public:
  struct Options {
    std::vector<const CallForm*> forms;
    bool parallel = true;  // false: drops all calls after the first
  };
  ToolCallParser(Options options, SharedTools tools)
      : options_(std::move(options)), tools_(std::move(tools)) {}

  // Adds text that is no call to `plain`. Text that has to be pushed again, before all other, goes to
  // `again`.
  void push(char next, std::string& plain, MessageDelta& delta, std::string& again);
  // The output ends, unless there is text to be pushed again.
  void finish(std::string& plain, MessageDelta& delta, std::string& again);

  // The next text is a new part of the answer. `may_be_bare`: a call may be its first text, without a mark.
  void begin_part(std::string& plain, bool may_be_bare);
  // The next character belongs to a call or to the text between calls.
  bool is_busy() const { return state_ != State::kContent; }
  int calls() const { return calls_; }
  // A call that was sent is not complete.
  bool is_broken() const { return is_broken_; }

 private:
  enum class State : uint8_t { kContent, kBefore, kCall, kAfter };

  void step_content(char next, std::string& plain, std::string& again);
  bool takes_start(std::string& again);
  bool takes_open(const CallForm& form, std::string_view seen);
  bool may_be_name(std::string_view seen, std::string& again);
  void step_before(char next, std::string& plain, std::string& again);
  void step_call(char next, std::string& plain, MessageDelta& delta, std::string& again);
  void step_after(char next, std::string& again);
  void open(const CallForm& form, std::string raw);
  void begin_call(bool is_object);
  bool takes_mark(std::string_view tail);
  void fail(std::string& plain, std::string& again);
  void break_call(MessageDelta& delta);
  bool is_known(const std::string& name) const;
  void send_arguments(MessageDelta& delta);
  void end_call();
  bool is_dropped() const { return !options_.parallel && calls_ > (is_begun_ ? 1 : 0); }

  Options options_;
  SharedTools tools_;
  State state_ = State::kContent;
  bool at_start_ = true;
  std::string held_;  // kContent: the possible beginning of a call
  std::string raw_;   // text since the call began; it is content if the call fails
  size_t mark_ = 0;   // kBefore: offset in raw_ where the call's mark may begin
  const CallForm* form_ = nullptr;
  bool in_list_ = false;
  std::unique_ptr<CallReader> call_;
  bool is_begun_ = false;  // the call's name was sent
  size_t sent_ = 0;        // bytes of its arguments that were sent
  int calls_ = 0;
  bool is_broken_ = false;
  size_t repeated_ = 0;  // bytes that were pushed again so far
};

}  // namespace outrider
