// SPDX-License-Identifier: Apache-2.0
#include "server/api/tool_calls/channel_parser.h"

#include <algorithm>
#include <array>
#include <utility>

#include "server/api/tool_calls/held_text.h"

namespace outrider {
namespace {

constexpr std::string_view kStart = "<|start|>";
constexpr std::string_view kChannel = "<|channel|>";
constexpr std::string_view kMessage = "<|message|>";
constexpr std::string_view kConstrain = "<|constrain|>";
constexpr std::array<std::string_view, 3> kEnds = {"<|end|>", "<|return|>", "<|call|>"};
constexpr std::array<std::string_view, 4> kHeaderBegins = {kStart, kChannel, kConstrain, "to="};
constexpr std::array<std::string_view, 2> kNextBegins = {kStart, kChannel};
constexpr size_t kMaxChannelHeader = 1024;

template <size_t kCount>
bool is_one_of(const std::array<std::string_view, kCount>& marks, std::string_view text) {
  return std::find(marks.begin(), marks.end(), text) != marks.end();
}

template <size_t kCount>
bool may_be_one_of(const std::array<std::string_view, kCount>& marks, std::string_view text) {
  return std::any_of(marks.begin(), marks.end(),
                     [&](std::string_view mark) { return mark.starts_with(text); });
}

// The word after the last `mark` in a header.
std::string_view word_after(std::string_view header, std::string_view mark) {
  const size_t place = header.rfind(mark);
  if (place == std::string_view::npos) return {};
  const std::string_view word = header.substr(place + mark.size());
  return word.substr(0, word.find_first_of(" \t\r\n<"));
}

}  // namespace

std::vector<std::string_view> channel_marks() {
  std::vector<std::string_view> marks = {kStart, kChannel, kMessage, kConstrain};
  marks.insert(marks.end(), kEnds.begin(), kEnds.end());
  return marks;
}

ChannelParser::ChannelParser(SharedTools tools, bool parallel, std::string_view tail, bool shows_thinking)
    : tools_(std::move(tools)), parallel_(parallel), shows_thinking_(shows_thinking) {
  const size_t start = tail.rfind(kStart);
  if (start == std::string_view::npos) return;
  header_ = tail.substr(start);
  const size_t message = header_.find(kMessage);
  if (message != std::string::npos) {
    header_.resize(message + kMessage.size());
    begin_message();
  } else if (header_.find(kChannel) != std::string::npos) {
    state_ = State::kHeader;
  }
}

void ChannelParser::push(char next, MessageDelta& delta) {
  again_.insert(again_.begin(), next);
  while (!again_.empty()) {
    const char first = again_.front();
    again_.erase(0, 1);
    step(first, delta);
  }
}

void ChannelParser::step(char next, MessageDelta& delta) {
  if (state_ == State::kCall && !arguments_.text().empty()) return step_call(next, delta);
  held_ += next;
  switch (state_) {
    case State::kBetween:
      return step_between();
    case State::kHeader:
      return step_header(delta);
    case State::kText:
      return step_text(delta);
    case State::kCall:
      return begin_call(delta);
  }
}

// Text that begins no message and ends none is content.
void ChannelParser::step_between() {
  const std::string_view seen = without_leading_space(held_);
  if (seen.empty() && held_.size() <= kMaxHeldSpace) return;
  if (is_one_of(kEnds, seen)) {
    held_.clear();
  } else if (is_one_of(kHeaderBegins, seen) || seen == kMessage) {
    state_ = State::kHeader;
    header_.clear();
    if (seen == kMessage) return begin_message();
    header_ = std::exchange(held_, {});
  } else if (seen.empty() || (!may_be_one_of(kEnds, seen) && !may_be_one_of(kHeaderBegins, seen) &&
                              !kMessage.starts_with(seen))) {
    is_thinking_ = false;
    begins_text_ = true;
    state_ = State::kText;
    again_.insert(0, std::exchange(held_, {}));
  }
}

void ChannelParser::step_header(MessageDelta& delta) {
  header_ += std::exchange(held_, {});
  if (header_.ends_with(kMessage)) return begin_message();
  const bool is_ended =
      std::any_of(kEnds.begin(), kEnds.end(), [&](std::string_view mark) { return header_.ends_with(mark); });
  if (!is_ended && header_.size() < kMaxChannelHeader) return;
  is_thinking_ = false;
  begins_text_ = true;
  state_ = is_ended ? State::kBetween : State::kText;
  say(std::exchange(header_, {}), delta);
}

// A message to a function that the request does not know is content, with its header.
void ChannelParser::begin_message() {
  held_.clear();
  std::string_view recipient = word_after(header_, "to=");
  constexpr std::string_view kFunctions = "functions.";
  if (recipient.starts_with(kFunctions)) recipient.remove_prefix(kFunctions.size());
  is_thinking_ = recipient.empty() && word_after(header_, kChannel) == "analysis";
  is_shown_ = is_thinking_ && shows_thinking_;
  if (is_shown_) unsaid_header_ = header_;
  is_thinking_ = is_thinking_ && !is_shown_;
  begins_text_ = true;
  state_ = State::kText;
  if (recipient.empty()) return;
  const bool is_known =
      tools_ != nullptr &&
      std::any_of(tools_->begin(), tools_->end(), [&](const Tool& tool) { return tool.name == recipient; });
  if (!is_known) {
    unsaid_header_ = header_;
    return;
  }
  state_ = State::kCall;
  name_ = recipient;
  arguments_ = {};
  sent_ = 0;
}

void ChannelParser::say(std::string_view text, MessageDelta& delta) {
  if (text.empty()) return;
  std::string& part = is_thinking_ ? delta.reasoning : delta.content;
  bool& has_part = is_thinking_ ? has_reasoning_ : has_content_;
  if (std::exchange(begins_text_, false) && std::exchange(has_part, true)) part += '\n';
  part.append(std::exchange(unsaid_header_, {})).append(text);
}

void ChannelParser::step_text(MessageDelta& delta) {
  size_t count = 0;
  const auto may_be_mark = [](std::string_view text) {
    return may_be_one_of(kEnds, text) || may_be_one_of(kNextBegins, text);
  };
  while (!may_be_mark(std::string_view(held_).substr(count))) ++count;
  say(std::string_view(held_).substr(0, count), delta);
  held_.erase(0, count);
  if (is_one_of(kEnds, held_)) {
    state_ = State::kBetween;
    // The content after shown thinking follows its mark.
    if (is_shown_) say(held_, delta);
    if (std::exchange(is_shown_, false)) has_content_ = false;
    held_.clear();
  } else if (is_one_of(kNextBegins, held_)) {
    state_ = State::kHeader;
    header_ = std::exchange(held_, {});
  }
}

// The text of a message to a function, before its arguments begin.
void ChannelParser::begin_call(MessageDelta& delta) {
  const std::string_view seen = without_leading_space(held_);
  if (seen.empty() && held_.size() <= kMaxHeldSpace) return;
  if (!seen.empty() && !is_one_of(kEnds, seen) && may_be_one_of(kEnds, seen)) return;
  const bool is_empty = is_one_of(kEnds, seen);
  if (is_empty || seen == "{") {
    held_.clear();
    ++calls_;
    if (!is_dropped()) delta.begin_call(calls_ - 1, name_);
    step_call('{', delta);
    if (is_empty) step_call('}', delta);
    return;
  }
  unsaid_header_ = header_;
  state_ = State::kText;
  again_.insert(0, std::exchange(held_, {}));
}

void ChannelParser::step_call(char next, MessageDelta& delta) {
  const ReadState state = arguments_.push(next);
  const std::string_view text = arguments_.text();
  if (!is_dropped()) delta.extend_call(calls_ - 1, text.substr(sent_));
  sent_ = text.size();
  if (state == ReadState::kReading) return;
  if (state == ReadState::kBroken) {
    again_.insert(0, arguments_.held() + next);
    break_call(delta);
  }
  state_ = State::kBetween;
}

void ChannelParser::break_call(MessageDelta& delta) {
  if (is_dropped()) return;
  delta.extend_call(calls_ - 1, arguments_.ending());
  is_broken_ = true;
}

void ChannelParser::finish(MessageDelta& delta) {
  std::string rest = std::exchange(held_, {});
  if (state_ == State::kHeader) rest = header_ + rest;
  if (state_ == State::kCall) {
    if (arguments_.text().empty()) {
      rest = header_ + rest;
    } else {
      rest = arguments_.held();
      break_call(delta);
    }
  }
  if (state_ != State::kText) {
    is_thinking_ = false;
    begins_text_ = true;
    const bool is_space_alone = without_leading_space(rest).empty();
    if (is_space_alone && (has_content_ || has_reasoning_ || calls_ > 0)) return;
  }
  say(rest, delta);
}

}  // namespace outrider
