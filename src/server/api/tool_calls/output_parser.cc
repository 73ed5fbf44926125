// SPDX-License-Identifier: Apache-2.0
#include "server/api/tool_calls/output_parser.h"

#include <algorithm>

#include "base/white_space.h"
#include "server/api/tool_calls/call_object_reader.h"
#include "server/api/tool_calls/fenced_call_reader.h"
#include "server/api/tool_calls/tagged_call_reader.h"

namespace outrider {
namespace {

// Qwen 3, DeepSeek R1, SmolLM3 and others; Magistral and Ministral 3; Gemma 4.
constexpr ReasoningFormat kReasoningFormats[] = {
    {"<think>", "</think>"}, {"[THINK]", "[/THINK]"}, {"<|channel>thought", "<channel|>"}};

std::string_view without_leading_space(std::string_view text) {
  while (!text.empty() && is_json_space(text.front())) text.remove_prefix(1);
  return text;
}

// Whether `text` is white space followed by a beginning of `marker`.
bool may_become(std::string_view text, std::string_view marker) {
  return marker.starts_with(without_leading_space(text));
}

// Moves the first characters of `held` to `out` until the rest may become white space and `marker`.
void release(std::string& held, std::string_view marker, std::string& out) {
  size_t count = 0;
  while (!may_become(std::string_view(held).substr(count), marker)) ++count;
  out.append(held, 0, count);
  held.erase(0, count);
}

std::unique_ptr<CallReader> make_call_reader(CallForm form, const SharedTools& tools) {
  switch (form) {
    case CallForm::kObject:
      break;
    case CallForm::kFenced:
      return std::make_unique<FencedCallReader>();
    case CallForm::kTagged:
      return std::make_unique<TaggedCallReader>(tools);
  }
  return std::make_unique<CallObjectReader>();
}

}  // namespace

const ReasoningFormat* reasoning_format(std::string_view chat_template) {
  for (const ReasoningFormat& format : kReasoningFormats) {
    if (chat_template.find(format.close) != std::string_view::npos) return &format;
  }
  return nullptr;
}

void ReasoningSplitter::push(std::string_view text, std::string& reasoning, std::string& content) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (state_ == State::kContent) {
      content += text.substr(i);
      return;
    }
    step(text[i], reasoning, content);
  }
}

void ReasoningSplitter::step(char next, std::string& reasoning, std::string& content) {
  held_ += next;
  switch (state_) {
    case State::kStart:
      if (!may_become(held_, format_.open)) {
        state_ = State::kContent;
        content += std::exchange(held_, {});
      } else if (held_.ends_with(format_.open)) {
        state_ = State::kOpened;
        held_.clear();
      }
      return;
    case State::kOpened:
      if (is_json_space(next)) {
        held_.clear();
        return;
      }
      state_ = State::kInside;
      [[fallthrough]];
    case State::kInside:
      release(held_, format_.close, reasoning);
      if (!held_.ends_with(format_.close)) return;
      state_ = State::kClosed;
      held_.clear();
      return;
    case State::kClosed:
      if (!is_json_space(next)) state_ = State::kContent;
      if (!is_json_space(next)) content += next;
      held_.clear();
      return;
    case State::kContent:
      return;
  }
}

void ReasoningSplitter::finish(std::string& reasoning, std::string& content) {
  const bool is_reasoning = state_ == State::kOpened || state_ == State::kInside;
  (is_reasoning ? reasoning : content) += std::exchange(held_, {});
}

void ToolCallParser::push(std::string_view text, MessageDelta& delta) {
  for (const char next : text) step(next, delta);
}

void ToolCallParser::step(char next, MessageDelta& delta) {
  switch (state_) {
    case State::kContent:
      return options_.format.only_at_start ? step_start(next, delta) : step_content(next, delta);
    case State::kBefore:
      return step_before(next, delta);
    case State::kCall:
      return step_call(next, delta);
    case State::kAfter:
      return step_after(next, delta);
  }
}

void ToolCallParser::open(std::string raw) {
  raw_ = std::move(raw);
  mark_ = raw_.size();
  held_.clear();
  in_array_ = false;
  state_ = State::kBefore;
}

void ToolCallParser::step_content(char next, MessageDelta& delta) {
  held_ += next;
  release(held_, options_.format.open, delta.content);
  if (held_.ends_with(options_.format.open)) open(held_);
}

void ToolCallParser::step_start(char next, MessageDelta& delta) {
  if (!at_start_) {
    delta.content += next;
    return;
  }
  const std::string_view marker = options_.format.open;
  held_ += next;
  const std::string_view seen = without_leading_space(held_);
  if (!seen.empty() && seen == marker) return open(held_);
  if (seen == "{" || seen == "[") {
    open(held_.substr(0, held_.size() - 1));
    return step_before(next, delta);
  }
  if (may_become(held_, marker)) return;
  at_start_ = false;
  delta.content += std::exchange(held_, {});
}

void ToolCallParser::begin_call() {
  call_ = make_call_reader(options_.format.form, tools_);
  is_begun_ = false;
  sent_ = 0;
  state_ = State::kCall;
}

void ToolCallParser::step_before(char next, MessageDelta& delta) {
  raw_ += next;
  if (const std::string_view begin = options_.format.begin; !begin.empty()) {
    const std::string_view tail = without_leading_space(std::string_view(raw_).substr(mark_));
    if (!begin.starts_with(tail)) return fail(delta);
    if (tail == begin) begin_call();
    return;
  }
  if (is_json_space(next)) return;
  if (next == '[' && !in_array_) {
    in_array_ = true;
  } else if (next == '{') {
    begin_call();
    call_->push(next);
  } else {
    fail(delta);
  }
}

void ToolCallParser::step_call(char next, MessageDelta& delta) {
  raw_ += next;
  const CallReader::State state = call_->push(next);
  const bool is_foreign = call_->name() && !is_known(*call_->name());
  if (state == CallReader::State::kBroken || is_foreign) return fail(delta);
  if (options_.incremental) send_arguments(delta);
  if (state == CallReader::State::kDone) complete(delta);
}

bool ToolCallParser::is_known(const std::string& name) const {
  return std::any_of(tools_->begin(), tools_->end(), [&](const Tool& tool) { return tool.name == name; });
}

void ToolCallParser::send_arguments(MessageDelta& delta) {
  const std::string_view arguments = call_->arguments();
  if (!call_->name() || arguments.empty()) return;
  const bool is_first = !is_begun_;
  if (is_first) {
    is_begun_ = true;
    ++calls_;
  }
  if (is_dropped()) return;
  if (is_first) delta.calls.push_back({.index = calls_ - 1, .name = *call_->name(), .arguments = {}});
  if (arguments.size() == sent_) return;
  if (delta.calls.empty() || delta.calls.back().index != calls_ - 1) {
    delta.calls.push_back({.index = calls_ - 1, .name = {}, .arguments = {}});
  }
  delta.calls.back().arguments += arguments.substr(sent_);
  sent_ = arguments.size();
}

void ToolCallParser::complete(MessageDelta& delta) {
  auto arguments = call_->finished_arguments();
  if (!is_begun_) {
    if (!arguments) return fail(delta);
    if (!is_dropped()) {
      delta.calls.push_back({.index = calls_, .name = *call_->name(), .arguments = *std::move(arguments)});
      ++calls_;
    }
  }
  raw_.clear();
  is_begun_ = false;
  at_start_ = false;
  state_ = State::kAfter;
}

// The text that looked like a call becomes content, unless the call's name was already sent.
void ToolCallParser::fail(MessageDelta& delta) {
  if (!is_begun_) delta.content += raw_;
  raw_.clear();
  is_begun_ = false;
  at_start_ = false;
  state_ = State::kContent;
}

// Whether `tail`, the text after a call, is a mark of the format or may become one.
bool ToolCallParser::takes_mark(std::string_view tail) {
  const ToolFormat& format = options_.format;
  if (!format.close.empty() && tail == format.close) {
    state_ = State::kContent;
    raw_.clear();
    return true;
  }
  if (!format.begin.empty() && tail == format.begin) {
    begin_call();
    return true;
  }
  if (std::find(format.after_call.begin(), format.after_call.end(), tail) != format.after_call.end()) {
    raw_.clear();
    return true;
  }
  const auto may_become = [&](std::string_view mark) { return mark.starts_with(tail); };
  return may_become(format.close) || may_become(format.begin) ||
         std::any_of(format.after_call.begin(), format.after_call.end(), may_become);
}

void ToolCallParser::step_after(char next, MessageDelta& delta) {
  raw_ += next;
  const std::string_view tail = without_leading_space(raw_);
  if (tail.empty() || takes_mark(tail)) return;
  if (tail == "]" && in_array_) {
    in_array_ = false;
    raw_.clear();
    return;
  }
  const bool is_object = options_.format.form == CallForm::kObject;
  if (is_object && (tail == "," || tail == ";" || tail == "{")) {
    state_ = State::kBefore;
    raw_.pop_back();
    if (next == '{') step_before(next, delta);
    return;
  }
  state_ = State::kContent;
  for (const char c : std::exchange(raw_, {})) step(c, delta);
}

void ToolCallParser::finish(MessageDelta& delta) {
  const bool is_space_alone = without_leading_space(held_).empty();
  if (state_ == State::kContent && !(is_space_alone && calls_ > 0)) delta.content += held_;
  if (state_ == State::kBefore || state_ == State::kCall) fail(delta);
  held_.clear();
}

}  // namespace outrider
