// SPDX-License-Identifier: Apache-2.0
#include "config/speculative_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <utility>

#include "config/message_text.h"
#include "config/option_value.h"

namespace outrider {
namespace {

struct Method {
  std::string_view name;
  bool built;
};

// TensorRT-LLM's names; UserProvided exists, but only a program that links the library can provide the
// drafter.
constexpr std::array kMethods = {
    Method{"None", true},       Method{"NGram", true},   Method{"DraftTarget", true},
    Method{"SpecInfer", false}, Method{"Suffix", false}, Method{"EarlyExit", false},
    Method{"Medusa", false},    Method{"Eagle", false},  Method{"Eagle3", false},
    Method{"MTP", false},       Method{"MoA", false},
};
constexpr std::string_view kBuiltMethods = "None, NGram, DraftTarget";

Result<std::string> canonical_method(std::string_view text) {
  const std::string folded = folded_name(text);
  const std::string_view wanted = folded == "draftmodel" ? "drafttarget" : std::string_view(folded);
  for (const Method& method : kMethods) {
    if (folded_name(method.name) != wanted) continue;
    if (method.built) return std::string(method.name);
    return usage_error(
        fmt::format("{} is not available in this version; use one of {}", method.name, kBuiltMethods));
  }
  if (wanted == "auto") {
    return usage_error(fmt::format(
        "choosing a method by itself (auto) is not available in this version; use one of {}", kBuiltMethods));
  }
  if (wanted == "userprovided") {
    return usage_error(
        fmt::format("UserProvided needs a drafter from a C++ program (EngineOptions::user_drafter); "
                    "use one of {}",
                    kBuiltMethods));
  }
  std::vector<std::string_view> names;
  for (const Method& method : kMethods) names.push_back(method.name);
  return usage_error(fmt::format("expected a method ({}), found {}; did you mean '{}'?", kBuiltMethods,
                                 quote(text), nearest_name(text, names)));
}

using Assign = Status (*)(SpeculativeConfig& config, std::string_view text);

template <int64_t kMin, int64_t kMax, auto kMember>
Status assign_integer(SpeculativeConfig& config, std::string_view text) {
  OUTRIDER_TRY(const int64_t value, parse_integer(text, kMin, kMax));
  config.options.*kMember = static_cast<std::remove_reference_t<decltype(config.options.*kMember)>>(value);
  return {};
}

template <auto kMember>
Status assign_flag(SpeculativeConfig& config, std::string_view text) {
  OUTRIDER_TRY(config.options.*kMember, parse_flag(text));
  return {};
}

Status assign_method(SpeculativeConfig& config, std::string_view text) {
  OUTRIDER_TRY(config.options.decoding_type, canonical_method(text));
  return {};
}

Status assign_model(SpeculativeConfig& config, std::string_view text) {
  if (text.empty()) return usage_error("expected the path of a draft model, found nothing");
  config.options.speculative_model = std::string(text);
  return {};
}

Status warn_shortest_pattern(SpeculativeConfig& config, std::string_view text) {
  OUTRIDER_TRY(const int64_t value, parse_integer(text, 1, 16));
  if (value > 1) {
    config.warnings.push_back("prompt_lookup_min has no effect: NGram looks up every length down to 1");
  }
  return {};
}

struct KeyRow {
  SpeculativeKey key;
  Assign assign;
};

// decoding_type comes first.
constexpr std::array kKeys = {
    KeyRow{{"decoding_type", "method", "", "None", "None, NGram or DraftTarget; case, - and _ do not matter"},
           assign_method},
    KeyRow{{"max_draft_len", "num_speculative_tokens", "", "4",
            "drafted tokens per step, 0 to 64; 0 drafts nothing"},
           assign_integer<0, 64, &SpeculativeOptions::max_draft_len>},
    KeyRow{{"speculative_model", "speculative_model_dir|model", "DraftTarget", "",
            "the draft model; with the default target, the default draft"},
           assign_model},
    KeyRow{
        {"max_matching_ngram_size", "prompt_lookup_max", "NGram", "2", "longest pattern looked up, 1 to 16"},
        assign_integer<1, 16, &SpeculativeOptions::max_matching_ngram_size>},
    KeyRow{{"is_keep_all", "", "NGram", "true",
            "keep every continuation of a pattern, else the longest newest one"},
           assign_flag<&SpeculativeOptions::is_keep_all>},
    KeyRow{{"is_use_oldest", "", "NGram", "true", "propose the oldest continuation kept, else the newest"},
           assign_flag<&SpeculativeOptions::is_use_oldest>},
    KeyRow{{"is_public_pool", "", "NGram", "false",
            "one pool for all sequences, which shows one request's text to others; else one each"},
           assign_flag<&SpeculativeOptions::is_public_pool>},
    KeyRow{{"max_pool_patterns", "", "NGram", "1048576",
            "patterns kept in a pool, 1 to 2^30; the oldest leave first"},
           assign_integer<1, int64_t{1} << 30, &SpeculativeOptions::max_pool_patterns>},
    KeyRow{{"prompt_lookup_min", "", "NGram", "", "vLLM's; read and without effect"}, warn_shortest_pattern},
};

bool names_key(const SpeculativeKey& key, std::string_view name) {
  const std::string folded = folded_name(name);
  if (folded == folded_name(key.name)) return true;
  const std::vector<std::string_view> aliases = split(key.aliases, '|');
  return std::any_of(aliases.begin(), aliases.end(),
                     [&](std::string_view alias) { return !alias.empty() && folded == folded_name(alias); });
}

Result<const KeyRow*> find_key(std::string_view name) {
  for (const KeyRow& row : kKeys) {
    if (names_key(row.key, name)) return &row;
  }
  std::vector<std::string_view> names;
  for (const KeyRow& row : kKeys) names.push_back(row.key.name);
  return usage_error(fmt::format("unknown key {}; did you mean '{}'? valid: {}", quote(name),
                                 nearest_name(name, names), joined(names)));
}

// A key as given, wherever it was given.
struct Setting {
  std::string place;  // "--speculative" or "draft.yaml:3"
  std::string key;
  std::optional<std::string> value;  // none: the default
};

Error located(const Setting& setting, const Error& error) {
  return {error.kind, fmt::format("{}: {}: {}", setting.place, setting.key, error.message)};
}

Status check_belongs(const Setting& setting, const KeyRow& row, std::string_view method) {
  const std::vector<std::string_view> methods = split(row.key.methods, '|');
  if (row.key.methods.empty() || method == "None" ||
      std::find(methods.begin(), methods.end(), method) != methods.end()) {
    return {};
  }
  return located(setting, usage_error(fmt::format("belongs to {}, found decoding_type {}; leave it out",
                                                  joined(methods), method)));
}

Result<SpeculativeConfig> assemble(const std::vector<Setting>& settings) {
  SpeculativeConfig config;
  std::vector<const KeyRow*> rows;
  for (const Setting& setting : settings) {
    auto row = find_key(setting.key);
    if (!row.ok()) return Error{row.error().kind, fmt::format("{}: {}", setting.place, row.error().message)};
    if (std::find(rows.begin(), rows.end(), *row) != rows.end()) {
      return located(setting, usage_error("is given twice; keep one"));
    }
    rows.push_back(*row);
    if (!setting.value) continue;
    const Status assigned = (*row)->assign(config, *setting.value);
    if (!assigned.ok()) return located(setting, assigned.error());
  }
  const auto gives_method = [](const Setting& setting) {
    return setting.value && names_key(kKeys[0].key, setting.key);
  };
  if (std::none_of(settings.begin(), settings.end(), gives_method)) {
    if (config.options.speculative_model.empty()) {
      return usage_error(
          fmt::format("{}: expected a method, as in ngram,max_draft_len=8, found none; use one of {}",
                      settings.empty() ? "--speculative" : settings.front().place, kBuiltMethods));
    }
    config.options.decoding_type = "DraftTarget";  // a draft model alone says what to do with it
  }
  for (size_t i = 0; i < settings.size(); ++i) {
    OUTRIDER_RETURN_IF_ERROR(check_belongs(settings[i], *rows[i], config.options.decoding_type));
  }
  if (config.options.max_draft_len == 0) {
    config.options.decoding_type = "None";
    config.options.max_draft_len = SpeculativeOptions{}.max_draft_len;
  }
  return config;
}

Result<SpeculativeConfig> parse_inline(std::string_view text) {
  constexpr std::string_view kPlace = "--speculative";
  std::vector<Setting> settings;
  for (std::string_view part : split(text, ',')) {
    part = trimmed(part);
    const size_t equals = part.find('=');
    if (equals != std::string_view::npos) {
      settings.push_back({.place = std::string(kPlace),
                          .key = std::string(trimmed(part.substr(0, equals))),
                          .value = std::string(trimmed(part.substr(equals + 1)))});
    } else if (settings.empty()) {
      settings.push_back({.place = std::string(kPlace), .key = "decoding_type", .value = std::string(part)});
    } else {
      return usage_error(fmt::format(
          "{}: expected key=value, found {}; a value with a comma needs a YAML file", kPlace, quote(part)));
    }
  }
  return assemble(settings);
}

bool looks_like_file(const std::string& text) {
  const std::string extension = std::filesystem::path(text).extension().string();
  return extension == ".yaml" || extension == ".yml" || extension == ".json";
}

}  // namespace

Result<SpeculativeConfig> speculative_from_config(const ConfigNode& node, std::string_view name) {
  const auto wrapped = std::find_if(node.members.begin(), node.members.end(), [](const ConfigMember& member) {
    return folded_name(member.key) == "speculativeconfig";
  });
  if (wrapped != node.members.end()) {
    OUTRIDER_TRY(SpeculativeConfig config, speculative_from_config(wrapped->value, name));
    for (const ConfigMember& member : node.members) {
      if (&member == &*wrapped) continue;
      config.warnings.push_back(fmt::format("{}:{}: {} is outside speculative_config and not read", name,
                                            member.line, quote(member.key)));
    }
    return config;
  }
  if (node.kind == ConfigNode::Kind::kNull) return SpeculativeConfig{};
  if (node.kind != ConfigNode::Kind::kMap) {
    return usage_error(fmt::format("{}:{}: expected a map of speculative_config keys, found {}", name,
                                   node.line, config_kind_name(node.kind)));
  }
  std::vector<Setting> settings;
  for (const ConfigMember& member : node.members) {
    Setting setting = {.place = fmt::format("{}:{}", name, member.line), .key = member.key, .value = {}};
    if (member.value.kind == ConfigNode::Kind::kScalar) {
      setting.value = member.value.text;
    } else if (member.value.kind != ConfigNode::Kind::kNull) {
      return located(setting, usage_error(fmt::format("expected a single value, found {}",
                                                      config_kind_name(member.value.kind))));
    }
    settings.push_back(std::move(setting));
  }
  if (settings.empty()) {
    return usage_error(
        fmt::format("{}:{}: expected speculative_config keys, found an empty map", name, node.line));
  }
  return assemble(settings);
}

Result<SpeculativeConfig> parse_speculative(const std::string& text) {
  if (trimmed(text).starts_with('{')) {
    OUTRIDER_TRY(const ConfigNode node, parse_config(text, "--speculative"));
    return speculative_from_config(node, "--speculative");
  }
  if (text.find('=') == std::string::npos && looks_like_file(text)) {
    OUTRIDER_TRY(const ConfigNode node, read_config_file(text));
    return speculative_from_config(node, text);
  }
  return parse_inline(text);
}

std::vector<SpeculativeKey> speculative_keys() {
  std::vector<SpeculativeKey> keys;
  for (const KeyRow& row : kKeys) keys.push_back(row.key);
  return keys;
}

}  // namespace outrider
