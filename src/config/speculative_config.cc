// SPDX-License-Identifier: Apache-2.0
#include "config/speculative_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "config/message_text.h"
#include "config/methods.h"
#include "config/option_value.h"

namespace outrider {
namespace {

bool names_key(const SpeculativeKey& key, std::string_view name) {
  const std::string folded = folded_name(name);
  if (folded == folded_name(key.name)) return true;
  const std::vector<std::string_view> aliases = split(key.aliases, '|');
  return std::any_of(aliases.begin(), aliases.end(),
                     [&](std::string_view alias) { return !alias.empty() && folded == folded_name(alias); });
}

Result<const SpeculativeKey*> find_key(std::string_view name) {
  for (const SpeculativeKey& key : speculative_key_table()) {
    if (names_key(key, name)) return &key;
  }
  std::vector<std::string_view> names;
  for (const SpeculativeKey& key : speculative_key_table()) names.push_back(key.name);
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

Status check_belongs(const Setting& setting, const SpeculativeKey& key, Method method) {
  if (method == Method::kNone || key.belongs_to(method)) return {};
  return located(setting, usage_error(fmt::format("belongs to {}, found decoding_type {}; leave it out",
                                                  methods_of(key), method_name(method))));
}

// The keys of one configuration, each beside its row of the table.
class GivenKeys {
 public:
  explicit GivenKeys(const std::vector<Setting>& settings) : settings_(settings) {}

  // Errors: an unknown key; one that is given twice; a value that its row refuses.
  Status assign_all(SpeculativeConfig& config) {
    for (const Setting& setting : settings_) OUTRIDER_RETURN_IF_ERROR(assign(setting, config));
    return {};
  }

  // Error: a key that is another method's.
  Status check_belong(Method method) const {
    for (size_t i = 0; i < keys_.size(); ++i)
      OUTRIDER_RETURN_IF_ERROR(check_belongs(settings_[i], *keys_[i], method));
    return {};
  }

  // Whether the key has a value.
  bool has(std::string_view name) const {
    for (size_t i = 0; i < keys_.size(); ++i) {
      if (settings_[i].value && keys_[i]->name == name) return true;
    }
    return false;
  }

 private:
  Status assign(const Setting& setting, SpeculativeConfig& config) {
    auto key = find_key(setting.key);
    if (!key.ok()) return Error{key.error().kind, fmt::format("{}: {}", setting.place, key.error().message)};
    if (std::find(keys_.begin(), keys_.end(), *key) != keys_.end())
      return located(setting, usage_error("is given twice; keep one"));
    keys_.push_back(*key);
    if (!setting.value) return {};
    const Status assigned = (*key)->assign(config, *setting.value);
    return assigned.ok() ? Status() : located(setting, assigned.error());
  }

  const std::vector<Setting>& settings_;
  std::vector<const SpeculativeKey*> keys_;  // by setting
};

// The kind of tree that keys of its shape stand for, where `tree` does not name one.
std::optional<TreeKind> inferred_kind(const GivenKeys& given) {
  if (given.has("medusa_choices")) return TreeKind::kChoices;
  if (given.has("expansion")) return TreeKind::kStatic;
  if (given.has("dynamic_tree_max_topK") || given.has("max_total_draft_tokens")) return TreeKind::kDynamic;
  return std::nullopt;
}

// Completes the shape of the tree by the keys that were given, and for the rest by what is usual for the
// method.
void complete_shape(const GivenKeys& given, SpeculativeOptions& options) {
  const std::optional<TreeKind> inferred = inferred_kind(given);
  if (inferred && !given.has("tree")) options.tree.kind = *inferred;
  const GivenShape shape{.kind = inferred.has_value() || given.has("tree"),
                         .max_draft_len = given.has("max_draft_len"),
                         .dynamic_tree_max_top_k = given.has("dynamic_tree_max_topK"),
                         .max_total_draft_tokens = given.has("max_total_draft_tokens")};
  options.shape_unset = !shape.kind && !shape.max_draft_len;
  if (!options.method_unset) take_usual_tree(options, shape);
  if (options.tree.kind == TreeKind::kStatic && !options.tree.expansion.empty() && options.max_draft_len > 0)
    options.max_draft_len = std::min(static_cast<int>(options.tree.expansion.size()), kMaxDraftLen);
}

// The method, where no key names one: that of `combine`, else that of the files in speculative_model.
Status infer_method(std::string_view place, SpeculativeOptions& options) {
  options.method_unset = options.combine.empty();
  options.decoding_type = options.method_unset ? Method::kDraftTarget : Method::kCombined;
  if (!options.method_unset || !options.speculative_model.empty()) return {};
  return usage_error(
      fmt::format("{}: expected a method, as in ngram,max_draft_len=8, found none; use one of {}", place,
                  method_names()));
}

Result<SpeculativeConfig> assemble(const std::vector<Setting>& settings) {
  SpeculativeConfig config;
  SpeculativeOptions& options = config.options;
  GivenKeys given(settings);
  OUTRIDER_RETURN_IF_ERROR(given.assign_all(config));
  if (!given.has("decoding_type")) {
    OUTRIDER_RETURN_IF_ERROR(
        infer_method(settings.empty() ? "--speculative" : settings.front().place, options));
  }
  if (!options.method_unset) OUTRIDER_RETURN_IF_ERROR(given.check_belong(options.decoding_type));
  if (options.decoding_type == Method::kAuto) options.is_auto = true;
  complete_shape(given, options);
  if (options.max_draft_len == 0) {
    options.decoding_type = Method::kNone;
    options.max_draft_len = SpeculativeOptions{}.max_draft_len;
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

}  // namespace outrider
