// SPDX-License-Identifier: Apache-2.0
#include "config/option_member.h"

#include <limits>

#include "config/message_text.h"
#include "config/option_value.h"

namespace outrider {
namespace {

Status read_list(const ValueRule& rule, std::string_view text, OptionValue& value) {
  const std::vector<std::string_view> parts = list_parts(text);
  bool fits = !parts.empty() || rule.may_be_empty;
  for (const std::string_view part : parts) {
    if (rule.type == OptionType::kNumbers) {
      const auto number = parse_number(part, rule.range.min, rule.range.max);
      fits = fits && number.ok();
      if (fits) value.numbers.push_back(*number);
    } else {
      const auto integer = parse_integer(part, whole_bound(rule.range.min), whole_bound(rule.range.max));
      fits = fits && integer.ok();
      if (fits) value.integers.push_back(*integer);
    }
  }
  if (fits) return {};
  return usage_error(fmt::format("expected {} from {} separated by commas, as in 1,2,4; found {}", rule.noun,
                                 rule.range.text(), quote(text)));
}

Status read_texts(std::span<const std::string> texts, OptionValue& value) {
  for (const std::string& text : texts) {
    if (text.empty()) return usage_error("expected a text, found nothing");
  }
  value.texts.assign(texts.begin(), texts.end());
  return {};
}

Status read_one(const ValueRule& rule, const std::string& text, OptionValue& value) {
  const NumberRange& range = rule.range;
  switch (rule.type) {
    case OptionType::kFlag: {
      OUTRIDER_TRY(value.flag, parse_flag(text));
      return {};
    }
    case OptionType::kInteger: {
      OUTRIDER_TRY(value.integer, parse_integer(text, whole_bound(range.min), whole_bound(range.max)));
      return {};
    }
    case OptionType::kNumber: {
      OUTRIDER_TRY(value.number, parse_number(text, range.min, range.max));
      return {};
    }
    case OptionType::kChoice: {
      OUTRIDER_TRY(const std::string_view choice, parse_choice(text, rule.choices));
      value.texts = {std::string(choice)};
      return {};
    }
    case OptionType::kIntegers:
    case OptionType::kNumbers:
      return read_list(rule, text, value);
    default:
      break;
  }
  if (text.empty() && !rule.may_be_empty) return usage_error("expected text, found nothing");
  value.texts = {text};
  return {};
}

}  // namespace

int64_t whole_bound(double bound) {
  constexpr double kEnd = 9223372036854775808.0;  // 2^63
  if (bound >= kEnd) return std::numeric_limits<int64_t>::max();
  return bound < -kEnd ? std::numeric_limits<int64_t>::min() : static_cast<int64_t>(bound);
}

Result<OptionValue> convert_texts(const ValueRule& rule, std::span<const std::string> texts) {
  OptionValue value;
  if (rule.type == OptionType::kTextList) {
    OUTRIDER_RETURN_IF_ERROR(read_texts(texts, value));
  } else if (texts.size() != 1) {
    return usage_error(fmt::format("expected one value, found {}", texts.size()));
  } else {
    OUTRIDER_RETURN_IF_ERROR(read_one(rule, texts.front(), value));
  }
  return value;
}

}  // namespace outrider
