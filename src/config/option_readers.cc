// SPDX-License-Identifier: Apache-2.0
#include "config/option_readers.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "config/message_text.h"
#include "config/option_value.h"

namespace outrider {
namespace {

Result<RowCount> parse_row_count(std::string_view part, std::string_view whole) {
  const size_t cross = part.find('x');
  const auto rows = parse_integer(trimmed(part.substr(0, cross)), 1, RowCount::kMaxRows);
  if (!rows.ok()) {
    return usage_error(
        fmt::format("expected row counts from 1 to {} separated by commas, as in 1,2,4; found {}",
                    RowCount::kMaxRows, quote(whole)));
  }
  RowCount count{.rows = static_cast<int>(*rows)};
  if (cross == std::string_view::npos) return count;
  const auto width = parse_integer(trimmed(part.substr(cross + 1)), 1, RowCount::kMaxTreeRows);
  if (!width.ok() || count.rows > RowCount::kMaxTreeRows) {
    return usage_error(fmt::format(
        "expected ROWSxWIDTH, a tree of up to {} rows whose nodes have WIDTH children, as in 16x3; found {}",
        RowCount::kMaxTreeRows, quote(part)));
  }
  count.width = static_cast<int>(*width);
  return count;
}

}  // namespace

Status read_memory(Settings& settings, const OptionValue& value) {
  constexpr std::string_view kUnits = "KMGT";
  const std::string_view text = value.text();
  const size_t unit = text.empty() ? std::string_view::npos : kUnits.find(text.back());
  const auto number = unit == std::string_view::npos ? parse_number("", 0, 0)
                                                     : parse_number(text.substr(0, text.size() - 1), 0, 1e6);
  if (!number.ok() || *number == 0)
    return usage_error(fmt::format("expected a size such as 800M or 6G, found {}", quote(text)));
  settings.engine.memory_limit = static_cast<int64_t>(std::ldexp(*number, 10 * (static_cast<int>(unit) + 1)));
  return {};
}

Status read_row_counts(Settings& settings, const OptionValue& value) {
  settings.bench.rows.clear();
  for (const std::string_view part : split(value.text(), ',')) {
    OUTRIDER_TRY(settings.bench.rows.emplace_back(), parse_row_count(part, value.text()));
  }
  return {};
}

std::string row_counts_text(const Settings& settings) {
  std::string text;
  for (const RowCount& count : settings.bench.rows) {
    text += fmt::format("{}{}", text.empty() ? "" : ",", count.rows);
    if (count.width > 1) text += fmt::format("x{}", count.width);
  }
  return text;
}

Status read_remote_drafting(Settings& settings, const OptionValue& value) {
  constexpr int kDraftingNodes = 64;  // of a tree that a server verifies for a client
  settings.server.drafting_nodes = settings.engine.offered_nodes = value.flag ? kDraftingNodes : 0;
  return {};
}

// "ID=VALUE"; -inf forbids the token.
Status read_logit_bias(Request& request, const OptionValue& value) {
  request.sampling.logit_bias.clear();
  for (const std::string& text : value.texts) {
    const size_t equals = text.find('=');
    const std::string_view number =
        equals == std::string::npos ? "" : std::string_view(text).substr(equals + 1);
    const auto id = parse_integer(text.substr(0, equals), 0, std::numeric_limits<TokenId>::max());
    const auto bias = number == "-inf" ? Result<double>(-std::numeric_limits<double>::infinity())
                                       : parse_number(number, kLogitBiases.min, kLogitBiases.max);
    if (!id.ok() || !bias.ok()) {
      return usage_error(fmt::format("expected ID=VALUE with a value from {} or -inf, found {}",
                                     kLogitBiases.text(), quote(text)));
    }
    request.sampling.logit_bias.emplace_back(static_cast<TokenId>(*id), static_cast<float>(*bias));
  }
  return {};
}

// One sequence of token ids in each text.
Status read_forbidden(Request& request, const OptionValue& value) {
  std::vector<std::vector<TokenId>>& sequences = request.rules.forbidden;
  sequences.clear();
  const ValueRule rule = {
      .type = OptionType::kIntegers, .range = {0, std::numeric_limits<TokenId>::max()}, .noun = "token ids"};
  for (const std::string& text : value.texts) {
    OUTRIDER_TRY(const OptionValue sequence, convert_texts(rule, std::span(&text, 1)));
    sequences.emplace_back(sequence.integers.begin(), sequence.integers.end());
  }
  return {};
}

}  // namespace outrider
