// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "config/option_table.h"
#include "config/option_value.h"

namespace outrider {
namespace {

std::string upper_snake(std::string_view name) {
  std::string result;
  for (char c : name) result += c == '-' ? '_' : c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return result;
}

template <typename Root>
std::string text_in(const Member<Root>& member, const Root& root) {
  std::string text = member.text == nullptr ? "" : member.text(root);
  return member.type == OptionType::kFlag && text == "false" ? "" : text;
}

template <typename Root>
Status store_in(const OptionRow& row, const Member<Root>& member, Root& root,
                std::span<const std::string> texts) {
  OUTRIDER_TRY(const OptionValue value, convert_texts(row.rule(), texts));
  return member.store(root, value);
}

}  // namespace

std::string OptionRow::environment_name() const {
  return environment.empty() ? "OUTRIDER_" + upper_snake(name) : std::string(environment);
}

std::string OptionRow::config_key() const {
  std::string key(name);
  std::ranges::replace(key, '-', '_');
  return key;
}

std::vector<std::string_view> OptionRow::choice_names() const {
  if (!choices.empty()) return split(choices, '|');
  const auto names = member.is_of_request() ? member.of_request.choices : member.of_settings.choices;
  return names == nullptr ? std::vector<std::string_view>() : names();
}

ValueRule OptionRow::rule() const {
  return {.type = type(),
          .range = range,
          .choices = choice_names(),
          .noun = noun,
          // An empty prompt is a prompt; an empty path or name is a mistake.
          .may_be_empty = command_line_only && type() == OptionType::kText};
}

std::string OptionRow::text(const Settings& settings) const {
  return member.is_of_request() ? text_in(member.of_request, settings.request)
                                : text_in(member.of_settings, settings);
}

Status OptionRow::store(Settings& settings, std::span<const std::string> texts) const {
  if (member.is_of_request()) return store(settings.request, texts);
  return store_in(*this, member.of_settings, settings, texts);
}

Status OptionRow::store(Request& request, std::span<const std::string> texts) const {
  return store_in(*this, member.of_request, request, texts);
}

const OptionRow* find_parameter(std::string_view name) {
  const auto row = std::ranges::find_if(option_table(), [&](const OptionRow& candidate) {
    return candidate.member.is_of_request() && candidate.config_key() == name;
  });
  return row == option_table().end() ? nullptr : &*row;
}

const OptionRow* find_http_field(std::string_view name) {
  const auto row = std::ranges::find_if(
      option_table(), [&](const OptionRow& candidate) { return candidate.http.name == name; });
  return row == option_table().end() || name.empty() ? nullptr : &*row;
}

NumberRange http_range(std::string_view name) {
  const OptionRow& row = *find_http_field(name);
  return row.http.range.value_or(row.range);
}

Status check_sampling(const Request& request) {
  for (const OptionRow& row : option_table()) {
    const Member<Request>& member = row.member.of_request;
    if (row.group != "Sampling" || member.number == nullptr) continue;
    const double value = member.number(request);
    if (!row.range.has(value))
      return usage_error(fmt::format("{} must be {}, found {}", row.config_key(), row.range.text(), value));
  }
  for (const auto& [token, bias] : request.sampling.logit_bias) {
    const bool is_valid =
        token >= 0 && (std::isfinite(bias) || bias == -std::numeric_limits<float>::infinity());
    if (!is_valid) {
      return usage_error(fmt::format(
          "logit_bias must be finite or -infinity, for token ids of 0 or more; found {} for token {}", bias,
          token));
    }
  }
  return {};
}

}  // namespace outrider
