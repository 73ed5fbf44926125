// SPDX-License-Identifier: Apache-2.0
#include "config/option_setters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "config/message_text.h"
#include "config/option_value.h"

namespace outrider {
namespace {

// "1,2,4"
Result<std::vector<int>> parse_counts(std::string_view text, std::string_view what, int max) {
  std::vector<int> counts;
  for (const std::string_view part : split(text, ',')) {
    const auto count = parse_integer(trimmed(part), 1, max);
    if (!count.ok()) {
      return usage_error(fmt::format("expected {} from 1 to {} separated by commas, as in 1,2,4; found {}",
                                     what, max, quote(text)));
    }
    counts.push_back(static_cast<int>(*count));
  }
  return counts;
}

}  // namespace

Status set_weights(Settings& settings, const OptionValue& value) {
  constexpr std::array<std::pair<std::string_view, WeightPrecision>, 6> kNames = {{
      {"auto", WeightPrecision::kAuto},
      {"f32", WeightPrecision::kF32},
      {"bf16", WeightPrecision::kBF16},
      {"q8_0", WeightPrecision::kQ8_0},
      {"q8", WeightPrecision::kQ8},
      {"q4", WeightPrecision::kQ4},
  }};
  for (const auto& [name, precision] : kNames) {
    if (value.text() == name) settings.engine.weights = precision;
  }
  return {};
}

Status set_pooling(Settings& settings, const OptionValue& value) {
  settings.server.pooling = value.text() == "mean"   ? std::optional(Pooling::kMean)
                            : value.text() == "last" ? std::optional(Pooling::kLast)
                                                     : std::nullopt;
  return {};
}

Status set_kv_cache_type(Settings& settings, const OptionValue& value) {
  constexpr std::array<std::pair<std::string_view, KvCacheType>, 5> kNames = {{
      {"auto", KvCacheType::kAuto},
      {"f32", KvCacheType::kF32},
      {"bf16", KvCacheType::kBF16},
      {"f16", KvCacheType::kF16},
      {"q8_0", KvCacheType::kQ8_0},
  }};
  for (const auto& [name, type] : kNames) {
    if (value.text() == name) settings.engine.kv_cache_type = type;
  }
  return {};
}

Status set_memory(Settings& settings, const OptionValue& value) {
  constexpr std::string_view kUnits = "KMGT";
  const std::string_view text = value.text();
  const size_t unit = text.empty() ? std::string_view::npos : kUnits.find(text.back());
  double number = 0;
  const char* const end = text.data() + text.size() - 1;
  const auto parsed = unit == std::string_view::npos
                          ? std::from_chars_result{text.data(), std::errc::invalid_argument}
                          : std::from_chars(text.data(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end || !(number > 0) || number > 1e6) {
    return usage_error("--memory: expected a size such as 800M or 6G, found '" + std::string(text) + "'");
  }
  settings.engine.memory_limit = static_cast<int64_t>(std::ldexp(number, 10 * (static_cast<int>(unit) + 1)));
  return {};
}

Status set_pinning(Settings& settings, const OptionValue& value) {
  settings.engine.pinning = value.text() == "on"    ? ThreadPinning::kOn
                            : value.text() == "off" ? ThreadPinning::kOff
                                                    : ThreadPinning::kAuto;
  return {};
}

Status set_prompt_ids(Settings& settings, const OptionValue& value) {
  OUTRIDER_TRY(settings.prompt_ids, parse_token_ids(value.text()));
  return {};
}

Status set_row_counts(Settings& settings, const OptionValue& value) {
  settings.row_counts.clear();
  for (const std::string_view part : split(value.text(), ',')) {
    const size_t cross = part.find('x');
    const auto rows = parse_integer(trimmed(part.substr(0, cross)), 1, RowCount::kMaxRows);
    if (!rows.ok()) {
      return usage_error(
          fmt::format("expected row counts from 1 to {} separated by commas, as in 1,2,4; found {}",
                      RowCount::kMaxRows, quote(value.text())));
    }
    RowCount count{.rows = static_cast<int>(*rows)};
    if (cross != std::string_view::npos) {
      const auto width = parse_integer(trimmed(part.substr(cross + 1)), 1, RowCount::kMaxTreeRows);
      if (!width.ok() || count.rows > RowCount::kMaxTreeRows) {
        return usage_error(
            fmt::format("expected ROWSxWIDTH, a tree of up to {} rows whose nodes have WIDTH children, as in "
                        "16x3; found {}",
                        RowCount::kMaxTreeRows, quote(part)));
      }
      count.width = static_cast<int>(*width);
    }
    settings.row_counts.push_back(count);
  }
  return {};
}

Status set_prompt_lengths(Settings& settings, const OptionValue& value) {
  OUTRIDER_TRY(settings.prompt_lengths, parse_counts(value.text(), "numbers of tokens", 1 << 20));
  return {};
}

Status set_batch_sizes(Settings& settings, const OptionValue& value) {
  OUTRIDER_TRY(settings.batch_sizes, parse_counts(value.text(), "numbers of prompts", 1024));
  return {};
}

Status set_acceptance(Settings& settings, const OptionValue& value) {
  const auto name = std::ranges::find(kAcceptanceRuleNames, value.text());
  settings.engine.acceptance = static_cast<AcceptanceRule>(name - std::begin(kAcceptanceRuleNames));
  return {};
}

// "ID=VALUE"; -inf forbids the token.
Status set_logit_bias(Settings& settings, const OptionValue& value) {
  settings.request.sampling.logit_bias.clear();
  for (const std::string& text : value.texts) {
    const size_t equals = text.find('=');
    const std::string_view number =
        equals == std::string::npos ? "" : std::string_view(text).substr(equals + 1);
    const auto id = parse_integer(text.substr(0, equals), 0, std::numeric_limits<TokenId>::max());
    const auto bias = number == "-inf" ? Result<double>(-std::numeric_limits<double>::infinity())
                                       : parse_number(number, -1e4, 1e4);
    if (!id.ok() || !bias.ok()) {
      return usage_error(
          fmt::format("expected ID=VALUE with a value from -10000 to 10000 or -inf, found {}", quote(text)));
    }
    settings.request.sampling.logit_bias.emplace_back(static_cast<TokenId>(*id), static_cast<float>(*bias));
  }
  return {};
}

Status set_stop(Settings& settings, const OptionValue& value) {
  for (const std::string& text : value.texts) {
    if (text.empty()) return usage_error("expected the text to stop at, found nothing");
  }
  settings.request.stop = value.texts;
  return {};
}

}  // namespace outrider
