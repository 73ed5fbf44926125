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
#include "config/speculative_key_table.h"

namespace outrider {
namespace {

bool names_key(const SpeculativeKey& key, std::string_view name) {
  const std::string folded = folded_name(name);
  if (folded == folded_name(key.name)) return true;
  const std::vector<std::string_view> aliases = split(key.aliases, '|');
  return std::any_of(aliases.begin(), aliases.end(),
                     [&](std::string_view alias) { return !alias.empty() && folded == folded_name(alias); });
}

Result<const SpeculativeKeyRow*> find_key(std::string_view name) {
  for (const SpeculativeKeyRow& row : speculative_key_table()) {
    if (names_key(row.key, name)) return &row;
  }
  std::vector<std::string_view> names;
  for (const SpeculativeKeyRow& row : speculative_key_table()) names.push_back(row.key.name);
  return usage_error(fmt::format("unknown key {}; did you mean '{}'? docs/options.md lists all", quote(name),
                                 nearest_name(name, names)));
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

Status check_belongs(const Setting& setting, const SpeculativeKeyRow& row, std::string_view method) {
  const std::vector<std::string_view> methods = split(row.key.methods, '|');
  if (row.key.methods.empty() || method == "None" ||
      std::find(methods.begin(), methods.end(), method) != methods.end()) {
    return {};
  }
  return located(setting, usage_error(fmt::format("belongs to {}, found decoding_type {}; leave it out",
                                                  joined(methods), method)));
}

// What keys say about each other. `gives(key)`: whether it was given.
template <typename Gives>
void settle(SpeculativeConfig& config, Gives&& gives) {
  SpeculativeOptions& options = config.options;
  if (gives("expansion") && !gives("tree")) options.tree = TreeKind::kStatic;
  const bool gives_shape = gives("tree") || gives("expansion") || gives("dynamic_tree_max_topK") ||
                           gives("max_total_draft_tokens");
  if (options.decoding_type == "Auto") {
    options.is_auto = true;
    if (!gives("max_draft_len")) options.max_draft_len = 8;
  }
  if (options.decoding_type == "SpecInfer" && !gives_shape) options.tree = TreeKind::kStatic;
  if (options.tree == TreeKind::kStatic && !options.expansion.empty() && options.max_draft_len > 0)
    options.max_draft_len = static_cast<int>(std::min<size_t>(options.expansion.size(), 64));
  if (gives("medusa_choices") && !gives("tree")) options.tree = TreeKind::kChoices;
  options.shape_unset = !gives_shape && !gives("medusa_choices") && !gives("max_draft_len");
  const bool gives_dynamic = gives("dynamic_tree_max_topK") || gives("max_total_draft_tokens");
  if (gives_dynamic && !gives("tree") && !gives("expansion") && !gives("medusa_choices"))
    options.tree = TreeKind::kDynamic;
  if (options.decoding_type != "MoA" || options.tree != TreeKind::kDynamic) return;
  // What its authors measured with.
  if (!gives("dynamic_tree_max_topK")) options.dynamic_tree_max_top_k = 8;
  if (!gives("max_total_draft_tokens")) options.max_total_draft_tokens = 62;
  if (!gives("max_draft_len")) options.max_draft_len = 6;
}

Result<SpeculativeConfig> assemble(const std::vector<Setting>& settings) {
  SpeculativeConfig config;
  std::vector<const SpeculativeKeyRow*> rows;
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
  const auto gives = [&](std::string_view key) {
    for (size_t i = 0; i < settings.size(); ++i) {
      if (settings[i].value && rows[i]->key.name == key) return true;
    }
    return false;
  };
  if (!gives("decoding_type") && !config.options.combine.empty()) {
    config.options.decoding_type = "Combined";
  } else if (!gives("decoding_type")) {
    if (config.options.speculative_model.empty()) {
      return usage_error(
          fmt::format("{}: expected a method, as in ngram,max_draft_len=8, found none; use one of {}",
                      settings.empty() ? "--speculative" : settings.front().place, speculative_methods()));
    }
    config.options.decoding_type = "DraftTarget";  // what the files are says what to do with them
    config.options.method_unset = true;
  }
  for (size_t i = 0; i < settings.size(); ++i) {
    if (config.options.method_unset) break;
    OUTRIDER_RETURN_IF_ERROR(check_belongs(settings[i], *rows[i], config.options.decoding_type));
  }
  settle(config, gives);
  if (config.options.max_draft_len == 0) {
    config.options.decoding_type = "None";
    config.options.max_draft_len = SpeculativeOptions{}.max_draft_len;
  }
  return config;
}

// [a, [b]] of a YAML or JSON file as the text of an inline value.
std::optional<std::string> list_text(const ConfigNode& node) {
  std::string text = "[";
  for (const ConfigNode& item : node.items) {
    std::optional<std::string> part;
    if (item.kind == ConfigNode::Kind::kScalar) part = item.text;
    if (item.kind == ConfigNode::Kind::kList) part = list_text(item);
    if (!part) return std::nullopt;
    text += (text.size() > 1 ? "," : "") + *part;
  }
  return text + "]";
}

Result<SpeculativeConfig> parse_inline(std::string_view text) {
  constexpr std::string_view kPlace = "--speculative";
  std::vector<Setting> settings;
  for (std::string_view part : split_outside_brackets(text)) {
    part = trimmed(part);
    const size_t equals = part.find('=');
    if (equals != std::string_view::npos) {
      settings.push_back({.place = std::string(kPlace),
                          .key = std::string(trimmed(part.substr(0, equals))),
                          .value = std::string(trimmed(part.substr(equals + 1)))});
    } else if (settings.empty()) {
      settings.push_back({.place = std::string(kPlace), .key = "decoding_type", .value = std::string(part)});
    } else {
      return usage_error(fmt::format("{}: expected key=value, found {}; put a value with commas in brackets",
                                     kPlace, quote(part)));
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
    } else if (member.value.kind == ConfigNode::Kind::kList && list_text(member.value)) {
      setting.value = list_text(member.value);
    } else if (member.value.kind != ConfigNode::Kind::kNull) {
      return located(setting, usage_error(fmt::format("expected a value or a list of values, found {}",
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
  for (const SpeculativeKeyRow& row : speculative_key_table()) keys.push_back(row.key);
  return keys;
}

}  // namespace outrider
