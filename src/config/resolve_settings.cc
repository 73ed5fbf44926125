// SPDX-License-Identifier: Apache-2.0
#include "config/resolve_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "config/config_tree.h"
#include "config/message_text.h"
#include "config/option_table.h"
#include "config/option_value.h"

namespace outrider {
namespace {

constexpr std::string_view kSpeculativeBlock = "speculative_config";

// A value as found: texts, or a node of the YAML file.
struct FoundValue {
  Origin origin = {};
  std::vector<std::string> texts = {};
  const ConfigNode* node = nullptr;  // kFile only
};

FoundValue found_at(OriginKind kind, std::string place, std::vector<std::string> texts) {
  FoundValue found;
  found.origin.kind = kind;
  found.origin.place = std::move(place);
  found.texts = std::move(texts);
  return found;
}

Result<SpeculativeConfig> convert_speculation(const FoundValue& found, std::string_view file) {
  if (found.node != nullptr && found.node->kind != ConfigNode::Kind::kScalar) {
    return speculative_from_config(*found.node, file);
  }
  return parse_speculative(found.texts.front());
}

Error at_origin(const Origin& origin, const Error& error) {
  return {error.kind, fmt::format("{}: {}", origin.place, error.message)};
}

Result<OptionValue> convert(const OptionRow& row, const FoundValue& found, std::string_view file) {
  OptionValue value;
  if (row.type == OptionType::kSpeculation) {
    OUTRIDER_TRY(value.speculation, convert_speculation(found, file));
    return value;
  }
  if (row.type == OptionType::kTextList) {
    value.texts = found.texts;
    return value;
  }
  if (found.texts.size() != 1) {
    return usage_error(fmt::format("expected one value, found {}", found.texts.size()));
  }
  const std::string& text = found.texts.front();
  value.texts = {text};
  switch (row.type) {
    case OptionType::kFlag: {
      OUTRIDER_TRY(value.flag, parse_flag(text));
      break;
    }
    case OptionType::kInteger: {
      OUTRIDER_TRY(value.integer,
                   parse_integer(text, static_cast<int64_t>(row.min), static_cast<int64_t>(row.max)));
      break;
    }
    case OptionType::kNumber: {
      OUTRIDER_TRY(value.number, parse_number(text, row.min, row.max));
      break;
    }
    case OptionType::kChoice: {
      OUTRIDER_TRY(const std::string_view choice, parse_choice(text, row.choices));
      value.texts = {std::string(choice)};
      break;
    }
    default: {
      // An empty prompt is a prompt; an empty path or name is a mistake.
      if (text.empty() && !row.command_line_only) return usage_error("expected text, found nothing");
    }
  }
  return value;
}

bool same_key(std::string_view key, const OptionRow& row) {
  std::string folded(key);
  std::replace(folded.begin(), folded.end(), '-', '_');
  return folded == row.config_key() || (row.type == OptionType::kSpeculation && folded == kSpeculativeBlock);
}

// The scalars of a node; lists only where the option takes several values.
Result<std::vector<std::string>> node_texts(const OptionRow& row, const ConfigNode& node) {
  if (node.kind == ConfigNode::Kind::kScalar) return std::vector<std::string>{node.text};
  if (row.type == OptionType::kSpeculation && node.kind == ConfigNode::Kind::kMap)
    return std::vector<std::string>{};
  if (row.type != OptionType::kTextList || node.kind != ConfigNode::Kind::kList) {
    return usage_error(fmt::format("expected a single value, found {}", config_kind_name(node.kind)));
  }
  std::vector<std::string> texts;
  for (const ConfigNode& item : node.items) {
    if (item.kind != ConfigNode::Kind::kScalar) {
      return usage_error(
          fmt::format("expected a list of values, found {} in it", config_kind_name(item.kind)));
    }
    texts.push_back(item.text);
  }
  return texts;
}

class Resolver {
 public:
  explicit Resolver(const GivenOptions& given) : given_(given) {}

  Result<Settings> run() {
    settings_.command = given_.command;
    OUTRIDER_RETURN_IF_ERROR(load_file());
    warn_of_unknown_variables();
    for (const OptionRow& row : option_table()) {
      if (row.belongs_to(given_.command)) OUTRIDER_RETURN_IF_ERROR(resolve(row));
    }
    warn_of_loss();
    return std::move(settings_);
  }

 private:
  Status load_file() {
    const auto path = given_.command_line.find("config");
    if (path == given_.command_line.end()) return {};
    file_name_ = path->second.back();
    OUTRIDER_TRY(file_, read_config_file(file_name_));
    if (file_.kind != ConfigNode::Kind::kMap && file_.kind != ConfigNode::Kind::kNull) {
      return input_error(fmt::format("{}:{}: expected a map of options, found {}", file_name_, file_.line,
                                     config_kind_name(file_.kind)));
    }
    for (const ConfigMember& member : file_.members) OUTRIDER_RETURN_IF_ERROR(check_key(member));
    return {};
  }

  Status check_key(const ConfigMember& member) const {
    std::vector<std::string> names = {std::string(kSpeculativeBlock)};
    for (const OptionRow& row : option_table()) {
      if (row.command_line_only) continue;
      if (same_key(member.key, row)) return {};
      names.push_back(row.config_key());
    }
    const std::vector<std::string_view> views(names.begin(), names.end());
    return input_error(fmt::format("{}:{}: unknown key {}; did you mean '{}'?", file_name_, member.line,
                                   quote(member.key), nearest_name(member.key, views)));
  }

  void warn_of_unknown_variables() {
    std::vector<std::string> names;
    for (const OptionRow& row : option_table()) {
      if (!row.command_line_only) names.push_back(row.environment_name());
    }
    const std::vector<std::string_view> views(names.begin(), names.end());
    for (const auto& [name, value] : given_.environment) {
      if (std::find(names.begin(), names.end(), name) != names.end()) continue;
      settings_.warnings.push_back(fmt::format("environment variable {} is not read; did you mean '{}'?",
                                               name, nearest_name(name, views)));
    }
  }

  void warn_of_loss() {
    const AcceptanceRule rule = acceptance_rule(settings_.engine);
    if (is_lossless(rule) || given_.command == Command::kVerifyLossless) return;
    settings_.warnings.push_back(
        fmt::format("{} acceptance is lossy: with speculation the output is not the model's own",
                    rule == AcceptanceRule::kTypical ? "typical" : "relaxed"));
  }

  Status resolve(const OptionRow& row) {
    OUTRIDER_TRY(const std::optional<FoundValue> found, find(row));
    if (!found) return {};
    auto value = convert(row, *found, file_name_);
    if (!value.ok()) return with_place(row, *found, value.error());
    const Status applied = row.apply(settings_, *value);
    if (!applied.ok()) return with_place(row, *found, applied.error());
    settings_.origins.insert_or_assign(std::string(row.name), found->origin);
    return {};
  }

  // Errors about a speculative configuration carry their own place already.
  static Error with_place(const OptionRow& row, const FoundValue& found, const Error& error) {
    return row.type == OptionType::kSpeculation ? error : at_origin(found.origin, error);
  }

  Result<std::optional<FoundValue>> find(const OptionRow& row) const {
    std::optional<FoundValue> found;
    const auto argument = given_.command_line.find(row.name);
    if (argument != given_.command_line.end()) {
      const std::string place = row.positional ? std::string(row.metavar) : fmt::format("--{}", row.name);
      found = found_at(OriginKind::kCommandLine, place, argument->second);
      return found;
    }
    if (!row.command_line_only) {
      const auto variable = given_.environment.find(row.environment_name());
      if (variable != given_.environment.end()) {
        found = found_at(OriginKind::kEnvironment, variable->first, {variable->second});
        return found;
      }
      OUTRIDER_TRY(found, find_in_file(row));
      if (found) return found;
    }
    if (!row.default_text.empty()) {
      const std::string place = fmt::format("default of --{}", row.name);
      found = found_at(OriginKind::kDefault, place, {std::string(row.default_text)});
    }
    return found;
  }

  Result<std::optional<FoundValue>> find_in_file(const OptionRow& row) const {
    const auto is_row = [&](const ConfigMember& member) { return same_key(member.key, row); };
    const auto member = std::find_if(file_.members.begin(), file_.members.end(), is_row);
    if (member == file_.members.end()) return std::optional<FoundValue>();
    const Origin origin = {OriginKind::kFile,
                           fmt::format("{}:{}: {}", file_name_, member->line, member->key)};
    const auto again = std::find_if(member + 1, file_.members.end(), is_row);
    if (again != file_.members.end()) {
      return at_origin(origin, usage_error(fmt::format("is given again in line {}; keep one", again->line)));
    }
    if (member->value.kind == ConfigNode::Kind::kNull) return std::optional<FoundValue>();  // the default
    auto texts = node_texts(row, member->value);
    if (!texts.ok()) return at_origin(origin, texts.error());
    std::optional<FoundValue> found;
    found = found_at(origin.kind, origin.place, std::move(texts).value());
    found->node = &member->value;
    return found;
  }

  const GivenOptions& given_;
  std::string file_name_;
  ConfigNode file_;
  Settings settings_;
};

}  // namespace

Result<Settings> resolve_settings(const GivenOptions& given) { return Resolver(given).run(); }

}  // namespace outrider
