// SPDX-License-Identifier: Apache-2.0
#include "config/option_readers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/config_tree.h"
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

constexpr double kMaxContext = 1 << 24;  // tokens

// "800M" or "6G" in bytes.
Result<int64_t> parse_size(std::string_view text) {
  constexpr std::string_view kUnits = "KMGT";
  const size_t unit = text.empty() ? std::string_view::npos : kUnits.find(text.back());
  const auto number = unit == std::string_view::npos ? parse_number("", 0, 0)
                                                     : parse_number(text.substr(0, text.size() - 1), 0, 1e6);
  if (!number.ok() || *number == 0)
    return usage_error(fmt::format("expected a size such as 800M or 6G, found {}", quote(text)));
  return static_cast<int64_t>(std::ldexp(*number, 10 * (static_cast<int>(unit) + 1)));
}

Status read_layers(std::string_view text, std::optional<int>& layers) {
  constexpr int64_t kMostLayers = 1'000'000;
  layers.reset();
  if (text == "auto") return {};
  const auto number = text == "all" ? Result<int64_t>(EngineOptions::kAllLayers)
                                    : parse_integer(text, EngineOptions::kAllLayers, kMostLayers);
  if (!number.ok())
    return usage_error(fmt::format("expected a number of layers, all or auto, found {}", quote(text)));
  layers = static_cast<int>(*number);
  return {};
}

std::string layers_text(const std::optional<int>& layers) {
  if (!layers) return "auto";
  return *layers == EngineOptions::kAllLayers ? "all" : std::to_string(*layers);
}

// The texts between commas, in order.
std::vector<std::string> parts_of_texts(std::span<const std::string> texts) {
  std::vector<std::string> parts;
  for (const std::string& text : texts) {
    for (const std::string_view part : split(text, ',')) parts.emplace_back(trimmed(part));
  }
  return parts;
}

std::string comma_text(std::span<const std::string> parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ",") + part;
  return text;
}

Result<std::vector<std::string>> json_texts(const std::string& text) {
  const auto list = parse_config(text, "list");  // JSON is YAML
  const auto is_text = [](const ConfigNode& item) { return item.kind == ConfigNode::Kind::kScalar; };
  if (!list.ok() || !std::ranges::all_of(list->items, is_text))
    return usage_error(fmt::format("expected a list of texts in JSON, found {}", quote(text)));
  std::vector<std::string> texts;
  for (const ConfigNode& item : list->items) texts.push_back(item.text);
  return texts;
}

// The name of a folder, or of a GGUF file without its ending.
std::string name_of(const std::filesystem::path& path) {
  const std::filesystem::path given = path.has_filename() ? path : path.parent_path();
  return (given.extension() == ".gguf" ? given.stem() : given.filename()).string();
}

// Cuts ":SCALE" off the end of a text; nullopt: it has none.
std::optional<double> take_scale(std::string& text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) return std::nullopt;
  const auto scale = parse_number(std::string_view(text).substr(colon + 1), -1e4, 1e4);
  if (!scale.ok()) return std::nullopt;
  text.resize(colon);
  return *scale;
}

// {"name": ..., "path": ...}, as vLLM takes it.
Result<AdapterSource> adapter_of_map(const std::string& text) {
  const auto map = parse_config(text, "adapter");
  AdapterSource adapter;
  for (size_t i = 0; map.ok() && i < map->members.size(); ++i) {
    const ConfigMember& member = map->members[i];
    if (member.key == "name") adapter.name = member.value.text;
    if (member.key == "path") adapter.path = member.value.text;
  }
  if (adapter.name.empty() || adapter.path.empty())
    return usage_error(fmt::format("expected a map with \"name\" and \"path\", found {}", quote(text)));
  return adapter;
}

Result<AdapterSource> parse_adapter(const std::string& given) {
  if (given.starts_with('{')) return adapter_of_map(given);
  std::string text = given;
  AdapterSource adapter;
  adapter.scale = take_scale(text).value_or(1);
  const size_t sign = text.find('=');
  adapter.is_default = sign == std::string::npos;
  adapter.path = adapter.is_default ? text : text.substr(sign + 1);
  adapter.name = adapter.is_default ? name_of(text) : text.substr(0, sign);
  if (adapter.name.empty() || adapter.path.empty())
    return usage_error(fmt::format("expected PATH or NAME=PATH of an adapter, found {}", quote(given)));
  return adapter;
}

}  // namespace

Status read_adapters(Settings& settings, const OptionValue& value) {
  settings.engine.adapters.clear();
  for (const std::string& text : value.texts) {
    const std::vector<std::string> parts =
        text.starts_with('{') ? std::vector{text} : parts_of_texts({&text, 1});
    for (const std::string& part : parts) {
      OUTRIDER_TRY(settings.engine.adapters.emplace_back(), parse_adapter(part));
    }
  }
  return {};
}

std::string adapters_text(const Settings& settings) {
  std::string text;
  for (const AdapterSource& adapter : settings.engine.adapters)
    text += fmt::format("{}{}={}:{}", text.empty() ? "" : ",", adapter.name, adapter.path.string(),
                        adapter.scale);
  return text;
}

Status read_request_adapters(Request& request, const OptionValue& value) {
  request.adapters.emplace();
  if (value.texts == std::vector<std::string>{"none"}) return {};
  for (const std::string& given : value.texts) {
    std::string name = given;
    const std::optional<double> scale = take_scale(name);
    if (name.empty()) return usage_error(fmt::format("expected NAME or NAME:SCALE, found {}", quote(given)));
    request.adapters->push_back({std::move(name), scale});
  }
  return {};
}

Status read_memory(Settings& settings, const OptionValue& value) {
  OUTRIDER_TRY(settings.engine.memory_limit, parse_size(value.text()));
  return {};
}

Status read_prompt_cache_size(Settings& settings, const OptionValue& value) {
  OUTRIDER_TRY(settings.engine.prompt_cache_size, parse_size(value.text()));
  return {};
}

std::string prompt_cache_size_text(const Settings& settings) {
  return fmt::format("{}M", settings.engine.prompt_cache_size >> 20);
}

Status read_models_memory(Settings& settings, const OptionValue& value) {
  OUTRIDER_TRY(settings.server.models_memory, parse_size(value.text()));
  return {};
}

std::string models_memory_text(const Settings& settings) {
  const int64_t bytes = settings.server.models_memory;
  return bytes == 0 ? "" : fmt::format("{}K", bytes >> 10);
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

Status read_context(Settings& settings, const OptionValue& value) {
  const std::string_view text = value.text();
  const std::string_view digits = text.substr(0, text.find_last_not_of("kKmM") + 1);
  const std::string_view unit = text.substr(digits.size());
  const double scale = unit.empty()  ? 1
                       : unit == "k" ? 1e3
                       : unit == "K" ? 1 << 10
                       : unit == "m" ? 1e6
                                     : 1 << 20;
  const auto number = parse_number(digits, 0, kMaxContext);
  const bool is_number = number.ok() && unit.size() <= 1;
  const double tokens = is_number ? *number * scale : -1;
  if (text == "auto" || text == "-1") {
    settings.engine.context = 0;
  } else if (tokens < 0 || tokens > kMaxContext || tokens != std::floor(tokens)) {
    return usage_error(fmt::format(
        "expected a whole number of tokens from 0 to {:.0f}, as in 8192, 8k, 8K or auto, found {}",
        kMaxContext, quote(text)));
  } else {
    settings.engine.context = static_cast<int64_t>(tokens);
  }
  return {};
}

std::string context_text(const Settings& settings) { return std::to_string(settings.engine.context); }

Status read_gpu_layers(Settings& settings, const OptionValue& value) {
  return read_layers(value.text(), settings.engine.gpu_layers);
}

std::string gpu_layers_text(const Settings& settings) { return layers_text(settings.engine.gpu_layers); }

Status read_cpu_experts(Settings& settings, const OptionValue& value) {
  return read_layers(value.text(), settings.engine.cpu_experts);
}

std::string cpu_experts_text(const Settings& settings) { return layers_text(settings.engine.cpu_experts); }

Status read_root_path(Settings& settings, const OptionValue& value) {
  std::string_view path = value.text();
  while (path.ends_with('/')) path.remove_suffix(1);
  const bool is_path =
      path.empty() || (path.starts_with('/') && path.find_first_of("?#% ") == std::string_view::npos);
  if (!is_path)
    return usage_error(fmt::format("expected a path such as /llm, found {}", quote(value.text())));
  settings.server.root_path = path;
  return {};
}

std::string root_path_text(const Settings& settings) { return settings.server.root_path; }

Status read_api_keys(Settings& settings, const OptionValue& value) {
  settings.server.api_keys = parts_of_texts(value.texts);
  return {};
}

Status read_model_names(Settings& settings, const OptionValue& value) {
  settings.server.model_names = parts_of_texts(value.texts);
  return {};
}

std::string model_names_text(const Settings& settings) { return comma_text(settings.server.model_names); }

Status read_origins(Settings& settings, const OptionValue& value) {
  std::vector<std::string> origins;
  for (const std::string& text : value.texts) {
    const bool is_list = text.starts_with('[');
    OUTRIDER_TRY(
        const std::vector<std::string> read,
        is_list ? json_texts(text) : Result<std::vector<std::string>>(parts_of_texts(std::span(&text, 1))));
    origins.insert(origins.end(), read.begin(), read.end());
  }
  for (const std::string& origin : origins) {
    if (origin == "*" || origin.find("://") != std::string::npos) continue;
    return usage_error(
        fmt::format("expected origins such as https://example.org or *, found {}", quote(origin)));
  }
  settings.server.cors_origins = std::move(origins);
  return {};
}

std::string origins_text(const Settings& settings) { return comma_text(settings.server.cors_origins); }

Status read_routes(Settings& settings, const OptionValue& value) {
  settings.server.no_log_routes = parts_of_texts(value.texts);
  return {};
}

std::string routes_text(const Settings& settings) { return comma_text(settings.server.no_log_routes); }

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
