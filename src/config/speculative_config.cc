// SPDX-License-Identifier: Apache-2.0
#include "config/speculative_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "config/foreign/foreign_names.h"
#include "config/message_text.h"
#include "config/methods.h"
#include "config/option_value.h"

namespace outrider {
namespace {

const SpeculativeKey* own_key(std::string_view name) {
  const std::string folded = folded_name(name);
  for (const SpeculativeKey& key : speculative_key_table()) {
    if (folded == folded_name(key.name)) return &key;
  }
  return nullptr;
}

Error unknown_key(std::string_view name) {
  std::vector<std::string_view> names;
  for (const SpeculativeKey& key : speculative_key_table()) names.push_back(key.name);
  return usage_error(fmt::format("unknown key {}{}; docs/reference/options.md lists all", quote(name),
                                 suggestion(name, names)));
}

using Setting = SpeculationSetting;

Error located(const Setting& setting, const Error& error) {
  return {error.kind, fmt::format("{}: {}: {}", setting.place, setting.key, error.message)};
}

Status check_belongs(const Setting& setting, const SpeculativeKey& key, Method method, bool with_suffix) {
  if (method == Method::kNone || key.belongs_to(method)) return {};
  if (with_suffix && key.belongs_to(Method::kSuffix)) return {};
  return located(setting, usage_error(fmt::format("belongs to {}, found decoding_type {}; leave it out",
                                                  methods_of(key), method_name(method))));
}

// The keys of one configuration, each beside its row of the table.
class GivenKeys {
 public:
  // Errors: an unknown key; one that is given twice with different values; a value that its row refuses.
  Status assign_all(const std::vector<Setting>& settings, SpeculativeConfig& config) {
    for (const Setting& setting : settings) OUTRIDER_RETURN_IF_ERROR(take(setting, config));
    for (const Given& given : keys_) OUTRIDER_RETURN_IF_ERROR(assign(given, config));
    return {};
  }

  // Error: a key that is another method's. `with_suffix`: Suffix shares the method's trees.
  Status check_belong(Method method, bool with_suffix) const {
    for (const Given& given : keys_)
      OUTRIDER_RETURN_IF_ERROR(check_belongs(given.setting, *given.key, method, with_suffix));
    return {};
  }

  // Whether the key has a value.
  bool has(std::string_view name) const {
    return std::ranges::any_of(
        keys_, [&](const Given& given) { return given.setting.value && given.key->name == name; });
  }

 private:
  struct Given {
    Setting setting;  // its value as it is written here
    const SpeculativeKey* key = nullptr;
  };

  Status take(const Setting& setting, SpeculativeConfig& config) {
    if (const SpeculativeKey* key = own_key(setting.key)) return add({setting, key});
    const ForeignName* foreign = find_foreign(foreign_keys(), setting.key);
    if (foreign == nullptr) {
      const Error error = unknown_key(setting.key);
      return Error{error.kind, fmt::format("{}: {}", setting.place, error.message)};
    }
    Setting translated = setting;
    if (setting.value) {
      auto value = value_here(*foreign, *setting.value);
      if (!value.ok()) return located(setting, value.error());
      translated.value = *std::move(value);
    }
    if (foreign->here.empty()) {
      config.warnings.push_back(fmt::format("{}: {} {}", setting.place, setting.key, no_effect(*foreign)));
      return {};
    }
    if (translated.value && translated.value->empty() && !foreign->values.empty()) return {};
    return add({std::move(translated), own_key(foreign->here)});
  }

  Status add(Given given) {
    const auto earlier = std::ranges::find(keys_, given.key, &Given::key);
    if (earlier == keys_.end()) {
      keys_.push_back(std::move(given));
    } else if (earlier->setting.rank < given.setting.rank) {
      *earlier = std::move(given);
    } else if (earlier->setting.rank == given.setting.rank && !says_again(earlier->setting, given.setting)) {
      return located(given.setting, usage_error(fmt::format("is given twice{}; keep one",
                                                            earlier->setting.key == given.setting.key
                                                                ? ""
                                                                : ", also as " + earlier->setting.key)));
    }
    return {};
  }

  static bool says_again(const Setting& a, const Setting& b) { return a.key != b.key && a.value == b.value; }

  static Status assign(const Given& given, SpeculativeConfig& config) {
    if (!given.setting.value) return {};
    const Status assigned = given.key->assign(config, *given.setting.value);
    return assigned.ok() ? Status() : located(given.setting, assigned.error());
  }

  std::vector<Given> keys_;
};

// The key here that a setting stands for; empty: none.
std::string_view key_here(const Setting& setting) {
  if (const SpeculativeKey* key = own_key(setting.key)) return key->name;
  const ForeignName* foreign = find_foreign(foreign_keys(), setting.key);
  return foreign == nullptr ? std::string_view() : foreign->here;
}

bool names_suffix(const std::vector<Setting>& settings) {
  return std::ranges::any_of(settings, [](const Setting& setting) {
    return key_here(setting) == "decoding_type" && setting.value &&
           find_method(*setting.value) == Method::kSuffix;
  });
}

// TensorRT-LLM's SA has a key of NGram for the length of its matches; -1 asks for the longest, which are
// found here. Takes it out of the settings. Error: no length.
Status take_match_length(std::vector<Setting>& settings, std::vector<std::string>& warnings) {
  constexpr int64_t kMostTokens = 1 << 20;
  if (!names_suffix(settings)) return {};
  const auto is_length = [](const Setting& setting) {
    return key_here(setting) == "max_matching_ngram_size";
  };
  for (const Setting& setting : settings) {
    if (!is_length(setting) || !setting.value || *setting.value == "-1") continue;
    if (const auto length = parse_integer(*setting.value, 1, kMostTokens); !length.ok())
      return located(setting, length.error());
    warnings.push_back(fmt::format("{}: {} has no effect here: the suffix tree finds the longest match",
                                   setting.place, setting.key));
  }
  std::erase_if(settings, is_length);
  return {};
}

// The kind of tree that keys of its shape stand for, where `tree` does not name one.
std::optional<TreeKind> inferred_kind(const GivenKeys& given) {
  if (given.has("medusa_choices") || given.has("tree_accuracies")) return TreeKind::kChoices;
  if (given.has("expansion")) return TreeKind::kStatic;
  for (const std::string_view key : {"dynamic_tree_max_topK", "max_total_draft_tokens", "verified_tokens"}) {
    if (given.has(key)) return TreeKind::kDynamic;
  }
  return std::nullopt;
}

// Completes the shape of the tree by the keys that were given; the rest stays unset.
void complete_shape(const GivenKeys& given, SpeculativeOptions& options) {
  const std::optional<TreeKind> inferred = inferred_kind(given);
  if (inferred && !given.has("tree")) options.tree.kind = *inferred;
  const bool names_nodes = given.has("verified_tokens");
  const bool names_length = given.has("max_draft_len") || given.has("draft_block_size");
  if (names_nodes && !names_length)
    options.max_draft_len = std::min(options.tree.max_total_draft_tokens, kMaxDraftLen);
  if (options.max_draft_len > 0) take_expansion_length(options);
  options.shape_unset = {
      .kind = !inferred && !given.has("tree"),
      .max_draft_len = !names_length && !names_nodes && options.tree.kind != TreeKind::kStatic,
      .dynamic_tree_max_top_k = !given.has("dynamic_tree_max_topK"),
      .max_total_draft_tokens = !given.has("max_total_draft_tokens") && !names_nodes};
}

// The method, where no key names one: from `combine`, else from the files in speculative_model.
Status infer_method(std::string_view place, SpeculativeOptions& options) {
  options.method_unset = options.combine.empty();
  options.decoding_type = options.method_unset ? Method::kDraftTarget : Method::kCombined;
  if (!options.method_unset || !options.speculative_model.empty()) return {};
  return usage_error(
      fmt::format("{}: expected a method, as in ngram,max_draft_len=8, found none; use one of {}", place,
                  method_names()));
}

Status take_user_method(std::string_view place, const GivenKeys& given, SpeculativeOptions& options) {
  if (given.has("decoding_type")) {
    return usage_error(fmt::format("{}: expected a method or a drafter of the program's own, found both ({})",
                                   place, method_name(options.decoding_type)));
  }
  options.decoding_type = Method::kUserProvided;
  return {};
}

// Makes Suffix share the trees of the method. Error: the method is not known yet.
Status add_suffix(std::string_view place, SpeculativeOptions& options) {
  if (options.method_unset) {
    return usage_error(fmt::format("{}: use_sa_spec needs decoding_type beside it, found none", place));
  }
  options.combine = {Method::kSuffix, options.decoding_type};
  options.decoding_type = Method::kCombined;
  return {};
}

// A value of a YAML or JSON file as the text of an inline value: 4, [a,[b]] or {4:2,8:1}.
std::string inline_text(const ConfigNode& node) {
  std::string text;
  switch (node.kind) {
    case ConfigNode::Kind::kNull:
      return "";
    case ConfigNode::Kind::kScalar:
      return node.text;
    case ConfigNode::Kind::kList:
      for (const ConfigNode& item : node.items) text += (text.empty() ? "" : ",") + inline_text(item);
      return "[" + text + "]";
    case ConfigNode::Kind::kMap:
      for (const ConfigMember& member : node.members)
        text += (text.empty() ? "" : ",") + member.key + ":" + inline_text(member.value);
      return "{" + text + "}";
  }
  return text;
}

Setting setting_of(const ConfigMember& member, std::string_view file) {
  Setting setting = {.place = place_in(file, member.line), .key = member.key, .value = {}};
  if (member.value.kind != ConfigNode::Kind::kNull) setting.value = inline_text(member.value);
  return setting;
}

// TensorRT-LLM's map `sa_config` asks for a suffix tree beside the method. Its keys mean something else
// outside.
void add_suffix_settings(const ConfigMember& map, std::string_view file, std::vector<Setting>& settings) {
  settings.push_back({.place = place_in(file, map.line), .key = "use_sa_spec", .value = "true"});
  for (const ConfigMember& member : map.value.members) {
    settings.push_back(setting_of(member, file));
    settings.back().key = map.key + "." + member.key;
  }
}

Result<GivenSpeculation> read_inline(std::string_view text) {
  constexpr std::string_view kPlace = "--speculative";
  GivenSpeculation given;
  std::vector<Setting>& settings = given.settings;
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
  return given;
}

bool looks_like_file(const std::string& text) {
  const std::string extension = std::filesystem::path(text).extension().string();
  return extension == ".yaml" || extension == ".yml" || extension == ".json";
}

using KeyTexts = std::vector<std::pair<std::string_view, std::string>>;

// Whether a key of the tree's shape was asked for; nullopt: it is no such key. A static tree is as deep as
// its expansion.
std::optional<bool> asks_for_shape(const SpeculativeOptions& options, std::string_view key) {
  const UnsetShape& unset = options.shape_unset;
  if (key == "tree") return !unset.kind;
  if (key == "max_draft_len") return !unset.max_draft_len && options.tree.kind != TreeKind::kStatic;
  if (key == "dynamic_tree_max_topK") return !unset.dynamic_tree_max_top_k;
  if (key == "max_total_draft_tokens") return !unset.max_total_draft_tokens;
  return std::nullopt;
}

// The keys to be given, with their values.
KeyTexts texts_of(const SpeculativeOptions& options) {
  const SpeculativeConfig config{.options = options, .warnings = {}};
  SpeculativeConfig plain;
  plain.options.is_auto = true;  // where no policy is given
  KeyTexts texts;
  if (!options.method_unset && options.combine.empty())
    texts.emplace_back("decoding_type", method_key(options.decoding_type));
  for (const SpeculativeKey& key : speculative_key_table()) {
    const std::string text = key.member.text(config);
    if (!asks_for_shape(options, key.name).value_or(text != key.member.text(plain))) continue;
    texts.emplace_back(key.name, key.member.type == OptionType::kIntegers ? "[" + text + "]" : text);
  }
  return texts;
}

// Paths may have the marks that separate keys.
bool needs_quotes(const KeyTexts& texts) {
  for (const auto& [name, text] : texts) {
    const bool is_path = name == "speculative_model" || name == "speculative_token_map";
    if (is_path && text.find_first_of(",[]{} ") != std::string::npos) return true;
  }
  return false;
}

std::string json_string(std::string_view text) {
  std::string word = "\"";
  for (const char c : text) word += c == '"' || c == '\\' ? std::string{'\\', c} : std::string{c};
  return word + "\"";
}

}  // namespace

Result<GivenSpeculation> read_speculation(const ConfigNode& node, std::string_view name) {
  const auto wrapped = std::find_if(node.members.begin(), node.members.end(), [](const ConfigMember& member) {
    return folded_name(member.key) == "speculativeconfig";
  });
  if (wrapped != node.members.end()) {
    OUTRIDER_TRY(GivenSpeculation given, read_speculation(wrapped->value, name));
    for (const ConfigMember& member : node.members) {
      if (&member == &*wrapped) continue;
      given.warnings.push_back(fmt::format("{}: {} is outside speculative_config and not read",
                                           place_in(name, member.line), quote(member.key)));
    }
    return given;
  }
  GivenSpeculation given;
  if (node.kind == ConfigNode::Kind::kNull) {
    given.settings.push_back({.place = std::string(name), .key = "decoding_type", .value = "none"});
    return given;
  }
  if (node.kind != ConfigNode::Kind::kMap) {
    return usage_error(fmt::format("{}: expected a map of speculative_config keys, found {}",
                                   place_in(name, node.line), config_kind_name(node.kind)));
  }
  for (const ConfigMember& member : node.members) {
    if (folded_name(member.key) == "saconfig" && member.value.kind == ConfigNode::Kind::kMap) {
      add_suffix_settings(member, name, given.settings);
    } else {
      given.settings.push_back(setting_of(member, name));
    }
  }
  if (given.settings.empty()) {
    return usage_error(
        fmt::format("{}: expected speculative_config keys, found an empty map", place_in(name, node.line)));
  }
  return given;
}

Result<GivenSpeculation> read_speculation(const std::string& text) {
  if (trimmed(text).starts_with('{')) {
    OUTRIDER_TRY(const ConfigNode node, parse_config(text, "--speculative"));
    return read_speculation(node, "--speculative");
  }
  if (text.find('=') == std::string::npos && looks_like_file(text)) {
    OUTRIDER_TRY(const ConfigNode node, read_config_file(text));
    return read_speculation(node, text);
  }
  return read_inline(text);
}

Result<SpeculativeConfig> assemble_speculation(const GivenSpeculation& given_speculation) {
  std::vector<Setting> settings = given_speculation.settings;
  const std::string place = settings.empty() ? "--speculative" : settings.front().place;
  SpeculativeConfig config;
  config.warnings = given_speculation.warnings;
  SpeculativeOptions& options = config.options;
  GivenKeys given;
  OUTRIDER_RETURN_IF_ERROR(take_match_length(settings, config.warnings));
  OUTRIDER_RETURN_IF_ERROR(given.assign_all(settings, config));
  for (const auto& [key, other] :
       {std::pair("max_draft_len", "draft_block_size"), std::pair("medusa_choices", "tree_accuracies")}) {
    if (given.has(key) && given.has(other))
      return usage_error(
          fmt::format("{}: expected one of {} and {}, found both; keep one", place, key, other));
  }
  const bool lists_methods = given.has("decoding_type") && !options.combine.empty() && !given.has("combine");
  if (given_speculation.has_user_drafter) {
    OUTRIDER_RETURN_IF_ERROR(take_user_method(place, given, options));
  } else if (!given.has("decoding_type") || lists_methods) {
    OUTRIDER_RETURN_IF_ERROR(infer_method(place, options));
  }
  if (!options.method_unset)
    OUTRIDER_RETURN_IF_ERROR(given.check_belong(options.decoding_type, config.with_suffix));
  if (config.with_suffix) OUTRIDER_RETURN_IF_ERROR(add_suffix(place, options));
  // A drafter of the program's own is asked in every step, because the program may want to see that.
  if (!given.has("policy")) options.is_auto = options.decoding_type != Method::kUserProvided;
  complete_shape(given, options);
  if (options.max_draft_len == 0) {
    options.decoding_type = Method::kNone;
    options.max_draft_len = SpeculativeOptions{}.max_draft_len;
  }
  return config;
}

Result<SpeculativeConfig> parse_speculative(const std::string& text) {
  OUTRIDER_TRY(const GivenSpeculation given, read_speculation(text));
  return assemble_speculation(given);
}

std::string speculative_text(const SpeculativeOptions& options) {
  const KeyTexts texts = texts_of(options);
  const bool is_json = needs_quotes(texts);
  std::vector<std::string> parts;
  for (const auto& [name, text] : texts) {
    if (is_json) {
      parts.push_back(json_string(name) + ":" + json_string(text));
    } else {
      parts.push_back(name == "decoding_type" ? text : fmt::format("{}={}", name, text));
    }
  }
  const std::string text = fmt::format("{}", fmt::join(parts, ","));
  return is_json ? "{" + text + "}" : text;
}

}  // namespace outrider
