// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "config/message_text.h"
#include "config/option_table.h"
#include "config/option_value.h"
#include "config/resolve_settings.h"
#include "outrider/open.h"

namespace outrider {
namespace {

using Values = std::span<const std::string>;

constexpr int64_t kMaxCount = int64_t{1} << 24;
constexpr int64_t kMaxScope = std::numeric_limits<int64_t>::max();
constexpr int kMaxLogprobs = 20;

template <typename Number>
Status read_number(Values values, int64_t min, int64_t max, Number& number) {
  OUTRIDER_TRY(const int64_t value, parse_integer(values.front(), min, max));
  number = static_cast<Number>(value);
  return {};
}

Status read_flag(Values values, bool& flag) {
  OUTRIDER_TRY(flag, parse_flag(values.front()));
  return {};
}

Status read_ids(Values values, std::vector<TokenId>& ids) {
  OUTRIDER_TRY(ids, parse_token_ids(values.front()));
  return {};
}

Status read_texts(Values values, std::vector<std::string>& texts) {
  texts.assign(values.begin(), values.end());
  return {};
}

// One sequence of token ids for each value.
Status read_sequences(Values values, std::vector<std::vector<TokenId>>& sequences) {
  sequences.clear();
  for (const std::string& value : values) {
    OUTRIDER_TRY(std::vector<TokenId> sequence, parse_token_ids(value));
    sequences.push_back(std::move(sequence));
  }
  return {};
}

Status read_policy(Values values, std::optional<bool>& is_auto) {
  OUTRIDER_TRY(const std::string_view policy, parse_choice(values.front(), "auto|fixed"));
  is_auto = policy == "auto";
  return {};
}

// A parameter that is no option of the command line.
struct ParameterRow {
  std::string_view name;
  Status (*assign)(Request& request, Values values);
  bool is_list = false;
};

// One parameter is a line or two, so that the table can be read as one.
// clang-format off
constexpr std::array kParameters = {
    ParameterRow{"min_tokens", [](Request& r, Values v) { return read_number(v, 0, kMaxCount, r.rules.min_tokens); }},
    ParameterRow{"stop_token_ids", [](Request& r, Values v) { return read_ids(v, r.stop_tokens); }},
    ParameterRow{"allowed_token_ids", [](Request& r, Values v) { return read_ids(v, r.rules.allowed); }},
    ParameterRow{"forbidden_token_ids", [](Request& r, Values v) { return read_sequences(v, r.rules.forbidden); }, true},
    ParameterRow{"prompt_logprobs", [](Request& r, Values v) { return read_number(v, -1, kMaxLogprobs, r.prompt_logprobs); }},
    ParameterRow{"skip_special_tokens", [](Request& r, Values v) { return read_flag(v, r.skip_special); }},
    ParameterRow{"sample_index", [](Request& r, Values v) { return read_number(v, 0, kMaxCount, r.sample_index); }},
    ParameterRow{"cache_scope", [](Request& r, Values v) { return read_number(v, 0, kMaxScope, r.cache_scope); }},
    ParameterRow{"speculation", [](Request& r, Values v) { return read_flag(v, r.speculation.enabled); }},
    ParameterRow{"policy", [](Request& r, Values v) { return read_policy(v, r.speculation.is_auto); }},
    ParameterRow{"max_draft_tokens",
                 [](Request& r, Values v) { return read_number(v, 0, kMaxCount, r.speculation.max_draft_tokens); }},
    ParameterRow{"max_draft_len", [](Request& r, Values v) { return read_number(v, 0, kMaxCount, r.speculation.max_draft_len); }},
    ParameterRow{"max_children", [](Request& r, Values v) { return read_number(v, 0, kMaxCount, r.speculation.max_children); }},
    ParameterRow{"methods", [](Request& r, Values v) { return read_texts(v, r.speculation.methods); }, true},
};
// clang-format on

// Whether an option of `generate` is a property of only its request.
bool is_of_request(const OptionRow& row) {
  constexpr std::array<std::string_view, 2> kGroups = {"Sampling", "Length and stopping"};
  return row.belongs_to(Command::kGenerate) &&
         (std::ranges::find(kGroups, row.group) != kGroups.end() || row.name == "logprobs");
}

Status assign_option(const OptionRow& row, Request& request, Values values) {
  Settings settings;
  OUTRIDER_TRY(const OptionValue value, convert_texts(row, values));
  settings.request = std::move(request);
  const Status applied = row.apply(settings, value);
  request = std::move(settings.request);
  return applied;
}

Status assign(Request& request, std::string_view name, Values values) {
  std::vector<std::string> names;
  for (const OptionRow& row : option_table()) {
    if (!is_of_request(row)) continue;
    if (row.config_key() == name) return assign_option(row, request, values);
    names.push_back(row.config_key());
  }
  for (const ParameterRow& row : kParameters) {
    if (row.name != name) {
      names.emplace_back(row.name);
    } else if (values.size() != 1 && !row.is_list) {
      return usage_error(fmt::format("expected one value, found {}", values.size()));
    } else {
      return row.assign(request, values);
    }
  }
  const std::vector<std::string_view> views(names.begin(), names.end());
  return usage_error(fmt::format("no such parameter; did you mean '{}'?", nearest_name(name, views)));
}

}  // namespace

Status set_parameter(Request& request, std::string_view name, Values values) {
  const Status assigned = assign(request, name, values);
  if (assigned.ok()) return {};
  return Error{assigned.error().kind, fmt::format("{}: {}", name, assigned.error().message)};
}

}  // namespace outrider
