// SPDX-License-Identifier: Apache-2.0
#include "server/api/tool_calls/tool_call_parser.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "server/api/tool_calls/call_object_reader.h"
#include "server/api/tool_calls/held_text.h"
#include "server/api/tool_calls/literal_call_reader.h"
#include "server/api/tool_calls/named_call_reader.h"
#include "server/api/tool_calls/tagged_call_reader.h"

namespace outrider {
namespace {

// Text that looked like a call is searched again for calls. Outputs that go on like that are not.
constexpr size_t kMaxRepeated = size_t{1} << 20;

bool may_begin_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
}

bool takes_objects(const CallForm& form) { return form.shape == CallShape::kObject || form.takes_objects; }

bool is_mark(const CallForm& form, std::string_view text) {
  return !text.empty() && std::find(form.open.begin(), form.open.end(), text) != form.open.end();
}

bool may_open(const CallForm& form, std::string_view text) {
  return std::any_of(form.open.begin(), form.open.end(),
                     [&](std::string_view mark) { return !mark.empty() && may_become(text, mark); }) ||
         (form.may_skip_open && may_become(text, form.begin));
}

}  // namespace

std::unique_ptr<CallReader> make_call_reader(const CallForm& form, bool is_object, const SharedTools& tools) {
  if (!is_object && form.shape == CallShape::kNamed) return std::make_unique<NamedCallReader>(form);
  if (!is_object && form.shape == CallShape::kTagged) return std::make_unique<TaggedCallReader>(form, tools);
  if (!is_object && form.shape == CallShape::kLiteral)
    return std::make_unique<LiteralCallReader>(form.literal);
  return std::make_unique<CallObjectReader>();
}

void ToolCallParser::push(char next, std::string& plain, MessageDelta& delta, std::string& again) {
  switch (state_) {
    case State::kContent:
      return step_content(next, plain, again);
    case State::kBefore:
      return step_before(next, plain, again);
    case State::kCall:
      return step_call(next, plain, delta, again);
    case State::kAfter:
      return step_after(next, again);
  }
}

void ToolCallParser::begin_part(std::string& plain, bool may_be_bare) {
  plain += std::exchange(held_, {});
  at_start_ = may_be_bare;
}

void ToolCallParser::open(const CallForm& form, std::string raw) {
  form_ = &form;
  raw_ = std::move(raw);
  mark_ = raw_.size();
  held_.clear();
  in_list_ = false;
  state_ = State::kBefore;
}

void ToolCallParser::step_content(char next, std::string& plain, std::string& again) {
  held_ += next;
  if (at_start_ && takes_start(again)) return;
  at_start_ = false;
  size_t count = 0;
  const auto may_begin = [&](std::string_view text) {
    return std::any_of(options_.forms.begin(), options_.forms.end(),
                       [&](const CallForm* form) { return may_open(*form, text); });
  };
  while (count < held_.size() && !may_begin(std::string_view(held_).substr(count))) ++count;
  plain.append(held_, 0, count);
  held_.erase(0, count);
  for (const CallForm* form : options_.forms) {
    if (takes_open(*form, without_leading_space(held_))) return;
  }
}

// Whether the held text, which ends with `seen`, is the mark before calls or the beginning of a call without
// it.
bool ToolCallParser::takes_open(const CallForm& form, std::string_view seen) {
  const bool is_skipped = form.may_skip_open && seen == form.begin;
  if (!is_skipped && !is_mark(form, seen)) return false;
  open(form, std::exchange(held_, {}));
  if (is_skipped) begin_call(false);
  return true;
}

// At the start of the answer. Returns whether the text so far is the beginning of a call or white space.
bool ToolCallParser::takes_start(std::string& again) {
  const std::string_view seen = without_leading_space(held_);
  if (seen.empty()) return held_.size() <= kMaxHeldSpace;
  for (const CallForm* form : options_.forms) {
    if (takes_open(*form, seen)) return true;
  }
  for (const CallForm* form : options_.forms) {
    if (may_open(*form, seen)) return true;
  }
  if (may_be_name(seen, again)) return true;
  if (seen.front() != '{' && seen.front() != '[') return false;
  for (const CallForm* form : options_.forms) {
    if (!form->may_be_bare) continue;
    again = seen;
    open(*form, held_.substr(0, held_.size() - seen.size()));
    return true;
  }
  return false;
}

// Whether the text so far is the beginning of a call whose name has no mark before it.
bool ToolCallParser::may_be_name(std::string_view seen, std::string& again) {
  for (const CallForm* form : options_.forms) {
    if (!form->begins_with_name) continue;
    for (const Tool& tool : *tools_) {
      const std::string begin = tool.name + std::string(form->separator);
      if (!begin.starts_with(seen)) continue;
      if (begin == seen) {
        again = seen;
        open(*form, held_.substr(0, held_.size() - seen.size()));
      }
      return true;
    }
  }
  return false;
}

void ToolCallParser::begin_call(bool is_object) {
  call_ = make_call_reader(*form_, is_object, tools_);
  is_begun_ = false;
  sent_ = 0;
  state_ = State::kCall;
}

void ToolCallParser::step_before(char next, std::string& plain, std::string& again) {
  raw_ += next;
  const std::string_view tail = without_leading_space(std::string_view(raw_).substr(mark_));
  if (tail.empty()) {
    if (raw_.size() - mark_ > kMaxHeldSpace) fail(plain, again);
    return;
  }
  if (tail == "[" && !in_list_) {
    in_list_ = true;
    mark_ = raw_.size();
    return;
  }
  if (tail == "{" && takes_objects(*form_)) {
    begin_call(true);
    call_->push(next);
    return;
  }
  if (form_->shape == CallShape::kObject) return fail(plain, again);
  if (const std::string_view begin = form_->begin; !begin.empty()) {
    if (!begin.starts_with(tail)) return fail(plain, again);
    if (tail == begin) begin_call(false);
    return;
  }
  if (!may_begin_name(next)) return fail(plain, again);
  begin_call(false);
  if (call_->push(next) == ReadState::kBroken) fail(plain, again);
}

void ToolCallParser::step_call(char next, std::string& plain, MessageDelta& delta, std::string& again) {
  raw_ += next;
  const ReadState state = call_->push(next);
  if (!is_begun_ && call_->name() && !is_known(*call_->name())) return fail(plain, again);
  if (state == ReadState::kBroken) {
    if (!is_begun_) return fail(plain, again);
    send_arguments(delta);
    again = call_->held() + next;
    return break_call(delta);
  }
  send_arguments(delta);
  if (state == ReadState::kDone) end_call();
}

bool ToolCallParser::is_known(const std::string& name) const {
  return std::any_of(tools_->begin(), tools_->end(), [&](const Tool& tool) { return tool.name == name; });
}

void ToolCallParser::send_arguments(MessageDelta& delta) {
  const std::string_view arguments = call_->arguments();
  if (!call_->name() || arguments.empty()) return;
  const bool is_first = !std::exchange(is_begun_, true);
  if (is_first) ++calls_;
  if (is_dropped()) return;
  if (is_first) delta.begin_call(calls_ - 1, *call_->name());
  delta.extend_call(calls_ - 1, arguments.substr(sent_));
  sent_ = arguments.size();
}

void ToolCallParser::end_call() {
  raw_.clear();
  at_start_ = false;
  state_ = State::kAfter;
}

// A call that was sent goes no further: its name cannot be taken back.
void ToolCallParser::break_call(MessageDelta& delta) {
  if (!is_dropped()) {
    delta.extend_call(calls_ - 1, call_->ending());
    is_broken_ = true;
  }
  raw_.clear();
  at_start_ = false;
  state_ = State::kContent;
}

// The text that looked like a call is text. Only behind its mark it may hold a call.
void ToolCallParser::fail(std::string& plain, std::string& again) {
  const std::string raw = std::exchange(raw_, {});
  const size_t kept = repeated_ > kMaxRepeated ? raw.size() : std::min(mark_, raw.size());
  repeated_ += raw.size() - kept;
  plain.append(raw, 0, kept);
  again = raw.substr(kept);
  at_start_ = false;
  state_ = State::kContent;
}

// Whether `tail`, the text after a call, is a mark of the form or may become one.
bool ToolCallParser::takes_mark(std::string_view tail) {
  const CallForm& form = *form_;
  if (tail == form.close) {
    state_ = State::kContent;
    raw_.clear();
    return true;
  }
  if (is_mark(form, tail)) {
    open(form, std::exchange(raw_, {}));
    return true;
  }
  if (tail == form.begin) {
    mark_ = 0;
    begin_call(false);
    return true;
  }
  if (std::find(form.after_call.begin(), form.after_call.end(), tail) != form.after_call.end()) {
    raw_.clear();
    return true;
  }
  const auto may_be = [&](std::string_view mark) { return mark.starts_with(tail); };
  return may_be(form.close) || may_be(form.begin) ||
         std::any_of(form.open.begin(), form.open.end(), may_be) ||
         std::any_of(form.after_call.begin(), form.after_call.end(), may_be);
}

void ToolCallParser::step_after(char next, std::string& again) {
  raw_ += next;
  const std::string_view tail = without_leading_space(raw_);
  const bool is_space = tail.empty() && raw_.size() <= kMaxHeldSpace;
  if (is_space || (!tail.empty() && takes_mark(tail))) return;
  if (tail == "]" && in_list_) {
    in_list_ = false;
    raw_.clear();
    return;
  }
  const bool is_literal = form_->shape == CallShape::kLiteral && form_->begin.empty();
  const bool is_listed = is_literal || takes_objects(*form_);
  const bool is_separator = is_listed && (tail == "," || tail == ";");
  const bool is_next = (tail == "{" && takes_objects(*form_)) || (is_literal && may_begin_name(next));
  if (is_separator || is_next) {
    mark_ = is_separator ? raw_.size() : 0;
    state_ = State::kBefore;
    if (is_next) again = std::exchange(raw_, {});
    return;
  }
  state_ = State::kContent;
  again = std::exchange(raw_, {});
}

void ToolCallParser::finish(std::string& plain, MessageDelta& delta, std::string& again) {
  const State state = std::exchange(state_, State::kContent);
  if (state == State::kContent && !(without_leading_space(held_).empty() && calls_ > 0)) plain += held_;
  held_.clear();
  if (state == State::kBefore) fail(plain, again);
  if (state != State::kCall) return;
  const bool is_complete = call_->finish();
  if (is_complete) send_arguments(delta);
  if (!is_begun_) return fail(plain, again);
  again = call_->held();
  if (!is_complete) return break_call(delta);
  if (without_leading_space(again).empty()) again.clear();
}

}  // namespace outrider
