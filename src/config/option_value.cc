// SPDX-License-Identifier: Apache-2.0
#include "config/option_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
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

Result<std::string_view> parse_choice(std::string_view text, std::string_view choices) {
  const std::vector<std::string_view> names = split(choices, '|');
  const auto match = std::find(names.begin(), names.end(), text);
  if (match != names.end()) return *match;
  return usage_error(fmt::format("expected one of {}, found {}; did you mean '{}'?", joined(names),
                                 quote(text), nearest_name(text, names)));
}

Result<std::vector<TokenId>> parse_token_ids(std::string_view text) {
  std::vector<TokenId> tokens;
  for (std::string_view part : split(text, ',')) {
    const auto token = parse_integer(trimmed(part), 0, std::numeric_limits<TokenId>::max());
    if (!token.ok()) {
      return usage_error(
          fmt::format("expected token ids separated by commas, as in 1,2,3; found {}", quote(text)));
    }
    tokens.push_back(static_cast<TokenId>(*token));
  }
  return tokens;
}

}  // namespace outrider
