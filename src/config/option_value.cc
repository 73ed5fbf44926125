// SPDX-License-Identifier: Apache-2.0
#include "config/option_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>

#include "config/message_text.h"

namespace outrider {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string_view> list_parts(std::string_view text) {
  text = trimmed(text);
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  if (trimmed(text).empty()) return {};
  std::vector<std::string_view> parts = split(text, ',');
  for (std::string_view& part : parts) part = trimmed(part);
  return parts;
}

std::vector<std::string_view> split_outside_brackets(std::string_view text) {
  std::vector<std::string_view> parts;
  size_t begin = 0;
  int open = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    open += text[i] == '[' || text[i] == '{' ? 1 : text[i] == ']' || text[i] == '}' ? -1 : 0;
    if (text[i] != ',' || open > 0) continue;
    parts.push_back(text.substr(begin, i - begin));
    begin = i + 1;
  }
  parts.push_back(text.substr(begin));
  return parts;
}

Result<int64_t> parse_integer(std::string_view text, int64_t min, int64_t max) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || value < min || value > max) {
    return usage_error(fmt::format("expected a whole number from {} to {}, found {}", min, max, quote(text)));
  }
  return value;
}

Result<double> parse_number(std::string_view text, double min, double max) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || !(value >= min && value <= max)) {
    return usage_error(fmt::format("expected a number from {} to {}, found {}", min, max, quote(text)));
  }
  return value;
}

Result<bool> parse_flag(std::string_view text) {
  constexpr std::array<std::string_view, 4> kTrue = {"true", "yes", "on", "1"};
  constexpr std::array<std::string_view, 4> kFalse = {"false", "no", "off", "0"};
  const std::string folded = folded_name(text);
  if (std::find(kTrue.begin(), kTrue.end(), folded) != kTrue.end()) return true;
  if (std::find(kFalse.begin(), kFalse.end(), folded) != kFalse.end()) return false;
  return usage_error(fmt::format("expected true or false, found {}", quote(text)));
}

Result<std::string_view> parse_choice(std::string_view text, std::span<const std::string_view> choices) {
  for (const std::string_view choice : choices) {
    if (folded_name(choice) == folded_name(text)) return choice;
  }
  return usage_error(
      fmt::format("expected one of {}, found {}{}", joined(choices), quote(text), suggestion(text, choices)));
}

}  // namespace outrider
