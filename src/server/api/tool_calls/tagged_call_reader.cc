// SPDX-License-Identifier: Apache-2.0
#include "server/api/tool_calls/tagged_call_reader.h"

#include <utility>

#include "server/api/json_text.h"
#include "server/api/tool_calls/argument_text.h"
#include "server/api/tool_calls/held_text.h"

namespace outrider {
namespace {

constexpr size_t kMaxKey = 256;
constexpr size_t kMaxSpace = 64;  // white space between two marks

bool is_tag_key(std::string_view text) {
  return !text.empty() && text.find_first_of(" \t\r\n<>=\"") == std::string_view::npos;
}

}  // namespace

ReadState TaggedCallReader::push(char next) {
  taken_ += next;
  held_ += next;
  const ReadState state = step();
  if (state == ReadState::kBroken && !taken_.empty()) taken_.pop_back();
  return state;
}

ReadState TaggedCallReader::step() {
  switch (phase_) {
    case Phase::kName:
      return push_name();
    case Phase::kBetween:
      return push_between();
    case Phase::kKey:
      return push_key();
    case Phase::kGap:
      return push_gap();
    case Phase::kValue:
      return push_value();
  }
  return ReadState::kBroken;
}

ReadState TaggedCallReader::push_name() {
  const TagMarks& tags = form_.tags;
  const bool has_end = !tags.name_end.empty();
  const std::string_view end = has_end                          ? tags.name_end
                               : held_.ends_with(tags.key_open) ? tags.key_open
                                                                : tags.call_end;
  if (!held_.ends_with(end)) return held_.size() > kMaxKey ? ReadState::kBroken : ReadState::kReading;
  held_.resize(held_.size() - end.size());
  name_ = trimmed(held_);
  held_.clear();
  phase_ = Phase::kBetween;
  if (has_end) return ReadState::kReading;
  return end == tags.key_open ? begin_key() : end_call();
}

// How the text, white space and then a mark, fits the end of an argument: another one, or the end of the
// call.
TaggedCallReader::Fit TaggedCallReader::fit_marks(std::string_view text) const {
  const std::string_view seen = without_leading_space(text);
  if (seen == form_.tags.call_end) return Fit::kCall;
  if (seen == form_.tags.key_open) return Fit::kArgument;
  if (text.size() - seen.size() > kMaxSpace) return Fit::kNone;
  const bool may_go_on = form_.tags.call_end.starts_with(seen) || form_.tags.key_open.starts_with(seen);
  return may_go_on ? Fit::kBeginning : Fit::kNone;
}

// How the text fits the end of a value: its mark comes first. A value without it ends at the end of
// the call, if the end of all calls follows.
TaggedCallReader::Fit TaggedCallReader::fit_end(std::string_view text) const {
  const TagMarks& tags = form_.tags;
  if (tags.has_lines && text.starts_with('\n')) text.remove_prefix(1);
  if (text.starts_with(tags.value_close)) return fit_marks(text.substr(tags.value_close.size()));
  if (tags.value_close.starts_with(text)) return Fit::kBeginning;
  if (form_.close.empty()) return Fit::kNone;
  if (tags.call_end.starts_with(text)) return Fit::kBeginning;
  if (!text.starts_with(tags.call_end)) return Fit::kNone;
  const std::string_view rest = text.substr(tags.call_end.size());
  const std::string_view seen = without_leading_space(rest);
  if (seen == form_.close) return Fit::kCall;
  return rest.size() - seen.size() <= kMaxSpace && form_.close.starts_with(seen) ? Fit::kBeginning
                                                                                 : Fit::kNone;
}

ReadState TaggedCallReader::push_between() {
  const Fit fit = fit_marks(held_);
  if (fit == Fit::kNone) return ReadState::kBroken;
  if (fit == Fit::kBeginning) return ReadState::kReading;
  return fit == Fit::kCall ? end_call() : begin_key();
}

ReadState TaggedCallReader::begin_key() {
  held_.clear();
  phase_ = Phase::kKey;
  return ReadState::kReading;
}

ReadState TaggedCallReader::end_call() {
  if (arguments_.empty()) arguments_ = "{";
  arguments_ += '}';
  taken_.clear();
  return ReadState::kDone;
}

ReadState TaggedCallReader::push_key() {
  const std::string_view end = form_.tags.key_close;
  if (!held_.ends_with(end)) return held_.size() > kMaxKey ? ReadState::kBroken : ReadState::kReading;
  std::string_view key = std::string_view(held_).substr(0, held_.size() - end.size());
  const std::string_view mark = form_.tags.kind;
  const size_t place = mark.empty() ? std::string_view::npos : key.rfind(mark);
  kind_.clear();
  if (place != std::string_view::npos) {
    kind_ = key.substr(place + mark.size());
    key = key.substr(0, place);
  }
  key_ = trimmed(key);
  if (!is_tag_key(key_) || !keys_.insert(key_).second) return ReadState::kBroken;
  held_.clear();
  if (form_.tags.value_open.empty()) {
    begin_value();
  } else {
    phase_ = Phase::kGap;
  }
  return ReadState::kReading;
}

ReadState TaggedCallReader::push_gap() {
  const std::string_view seen = without_leading_space(held_);
  if (seen == form_.tags.value_open) {
    begin_value();
    return ReadState::kReading;
  }
  const bool is_long = held_.size() - seen.size() > kMaxSpace;
  return !is_long && form_.tags.value_open.starts_with(seen) ? ReadState::kReading : ReadState::kBroken;
}

// A string is sent as it comes; of other values the type is known at their end.
void TaggedCallReader::begin_value() {
  held_.clear();
  is_first_ = true;
  phase_ = Phase::kValue;
  kinds_ = kind_ == "true" ? kStringKind : argument_kinds(*tools_, *name_, key_);
  if (kind_ == "false" && kinds_ == kStringKind) kinds_ = kOtherKinds;
  if (kinds_ != kStringKind) return;
  arguments_ += arguments_.empty() ? "{" : ", ";
  append_json_string(arguments_, key_);
  arguments_ += ": \"";
  taken_.clear();
}

ReadState TaggedCallReader::push_value() {
  if (std::exchange(is_first_, false) && form_.tags.has_lines && held_ == "\n") {
    held_.clear();
    if (kinds_ == kStringKind) taken_.clear();
    return ReadState::kReading;
  }
  Fit fit = fit_end(held_);
  size_t count = 0;
  while (fit == Fit::kNone) {
    if (kinds_ == kStringKind) {
      append_string_byte(arguments_, held_[count]);
    } else {
      value_ += held_[count];
    }
    ++count;
    fit = fit_end(std::string_view(held_).substr(count));
  }
  held_.erase(0, count);
  if (kinds_ == kStringKind) taken_ = held_;
  if (fit == Fit::kBeginning) return ReadState::kReading;
  end_value();
  if (fit == Fit::kCall) return end_call();
  taken_ = form_.tags.key_open;
  return begin_key();
}

void TaggedCallReader::end_value() {
  if (kinds_ == kStringKind) {
    arguments_ += '"';
    return;
  }
  arguments_ += arguments_.empty() ? "{" : ", ";
  append_json_string(arguments_, key_);
  arguments_ += ": " + argument_json(std::exchange(value_, {}), kinds_);
}

// The mark that ends all calls may be missing where the output ends.
bool TaggedCallReader::finish() {
  if (phase_ != Phase::kValue || form_.close.empty()) return false;
  if (trimmed(held_) != form_.tags.call_end) return false;
  end_value();
  end_call();
  return true;
}

std::string TaggedCallReader::ending() const {
  if (arguments_.empty()) return "{}";
  const bool in_string = phase_ == Phase::kValue && kinds_ == kStringKind;
  return in_string ? "\"}" : "}";
}

}  // namespace outrider
