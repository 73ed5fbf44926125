// SPDX-License-Identifier: Apache-2.0
#include "server/api/tool_calls/named_call_reader.h"

#include "base/white_space.h"

namespace outrider {
namespace {

constexpr std::string_view kFence = "```json";
constexpr size_t kMaxHeader = 512;

// "functions.NAME:0" or "NAME[CALL_ID]ID" without what is not the name.
std::string_view name_in(std::string_view header) {
  constexpr std::string_view kPrefix = "functions.";
  header = header.substr(0, header.find("[CALL_ID]"));
  const size_t colon = header.rfind(':');
  const bool has_number = colon != std::string_view::npos && colon + 1 < header.size() &&
                          header.find_first_not_of("0123456789", colon + 1) == std::string_view::npos;
  if (has_number) header = header.substr(0, colon);
  header = trimmed(header);
  if (header.starts_with(kPrefix)) header.remove_prefix(kPrefix.size());
  return header;
}

}  // namespace

ReadState NamedCallReader::push(char next) {
  if (phase_ == Phase::kArguments) return push_argument(next);
  if (held_.size() >= kMaxHeader) return ReadState::kBroken;
  held_ += next;
  switch (phase_) {
    case Phase::kHeader:
      return push_header();
    case Phase::kName:
      return push_name();
    default:
      return push_fence();
  }
}

ReadState NamedCallReader::push_header() {
  if (may_skip_separator_ && held_.back() == '{') {
    name_ = name_in(std::string_view(held_).substr(0, held_.size() - 1));
    phase_ = Phase::kArguments;
    return push_argument('{');
  }
  if (!held_.ends_with(separator_)) return ReadState::kReading;
  const std::string_view header =
      trimmed(std::string_view(held_).substr(0, held_.size() - separator_.size()));
  phase_ = header == "function" ? Phase::kName : Phase::kFence;
  if (phase_ == Phase::kFence) name_ = name_in(header);
  held_.clear();
  return ReadState::kReading;
}

ReadState NamedCallReader::push_name() {
  if (held_.back() != '\n') return ReadState::kReading;
  name_ = trimmed(held_);
  phase_ = Phase::kFence;
  held_.clear();
  return ReadState::kReading;
}

ReadState NamedCallReader::push_fence() {
  const std::string_view seen = trimmed(held_);
  if (kFence.starts_with(seen)) return ReadState::kReading;
  const bool is_fenced = seen.starts_with(kFence);
  if (trimmed(seen.substr(is_fenced ? kFence.size() : 0)) != "{") return ReadState::kBroken;
  phase_ = Phase::kArguments;
  return push_argument('{');
}

ReadState NamedCallReader::push_argument(char next) { return arguments_.push(next); }

}  // namespace outrider
