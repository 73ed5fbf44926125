// SPDX-License-Identifier: Apache-2.0
#include "server/api/tool_calls/fenced_call_reader.h"

#include "base/white_space.h"
#include "server/api/json_text.h"

namespace outrider {
namespace {

constexpr std::string_view kSeparator = "<｜tool▁sep｜>";
constexpr std::string_view kFence = "```json";
constexpr size_t kMaxFenceName = 256;

}  // namespace

using State = CallReader::State;

State FencedCallReader::push(char next) {
  if (phase_ == Phase::kArguments) return push_argument(next);
  held_ += next;
  if (held_.size() > kMaxFenceName) return State::kBroken;
  switch (phase_) {
    case Phase::kType:
      return push_type();
    case Phase::kName:
      return push_name();
    default:
      return push_fence();
  }
}

State FencedCallReader::push_type() {
  if (!held_.ends_with(kSeparator)) return State::kReading;
  const std::string_view type = trimmed(std::string_view(held_).substr(0, held_.size() - kSeparator.size()));
  phase_ = type == "function" ? Phase::kName : Phase::kFence;
  if (phase_ == Phase::kFence) name_ = type;
  held_.clear();
  return State::kReading;
}

State FencedCallReader::push_name() {
  if (held_.back() != '\n') return State::kReading;
  name_ = trimmed(held_);
  phase_ = Phase::kFence;
  held_.clear();
  return State::kReading;
}

State FencedCallReader::push_fence() {
  const std::string_view seen = trimmed(held_);
  if (seen == kFence || kFence.starts_with(seen)) return State::kReading;
  const bool is_fenced = seen.starts_with(kFence);
  if (trimmed(seen.substr(is_fenced ? kFence.size() : 0)) != "{") return State::kBroken;
  phase_ = Phase::kArguments;
  return push_argument('{');
}

State FencedCallReader::push_argument(char next) {
  arguments_ += next;
  if (string_.push(next)) return State::kReading;
  if (next == '{' || next == '[') ++depth_;
  if (next != '}' && next != ']') return State::kReading;
  if (--depth_ > 0) return State::kReading;
  return is_json_object(arguments_) ? State::kDone : State::kBroken;
}

std::optional<std::string> FencedCallReader::finished_arguments() const { return arguments_; }

}  // namespace outrider
