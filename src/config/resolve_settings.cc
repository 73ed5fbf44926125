// SPDX-License-Identifier: Apache-2.0
#include "config/resolve_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "config/config_tree.h"
#include "config/foreign/foreign_names.h"
#include "config/message_text.h"
#include "config/option_table.h"
#include "config/option_value.h"
#include "config/speculative_config.h"

namespace outrider {
namespace {

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

Result<GivenSpeculation> read_found(const FoundValue& found, std::string_view file) {
  if (found.node != nullptr && found.node->kind != ConfigNode::Kind::kScalar) {
    return read_speculation(*found.node, file);
  }
  return read_speculation(found.texts.front());
}

Error at_origin(const Origin& origin, const Error& error) {
  return {error.kind, fmt::format("{}: {}", origin.place, error.message)};
}

std::string folded_key(std::string_view key) {
  std::string folded(key);
  std::replace(folded.begin(), folded.end(), '-', '_');
  return folded;
}

// Whether environment and file may give the option.
bool is_key(const OptionRow& row) { return row.commands != 0 && !row.command_line_only; }

// The option that a key of the file names; nullptr: this program has no such option.
const OptionRow* option_of_key(std::string_view key) {
  for (const OptionRow& row : option_table()) {
    if (is_key(row) && folded_key(key) == row.config_key()) return &row;
  }
  return nullptr;
}

// The command that has the option of a key, where `command` has no such option; empty: it has one.
std::string_view other_command_of(std::string_view config_key, Command command) {
  std::string_view other;
  for (const OptionRow& row : option_table()) {
    if (!is_key(row) || row.config_key() != config_key) continue;
    if (row.belongs_to(command)) return "";
    for (const CommandRow& candidate : command_table()) {
      if (other.empty() && row.belongs_to(candidate.command)) other = candidate.name;
    }
  }
  return other;
}

Error unknown_option_key(std::string_view place, std::string_view key) {
  std::vector<std::string> names = {"speculative_config"};
  for (const OptionRow& row : option_table()) {
    if (is_key(row)) names.push_back(row.config_key());
  }
  const std::vector<std::string_view> views(names.begin(), names.end());
  return input_error(fmt::format("{}: unknown key {}{}", place, quote(key), suggestion(key, views)));
}

// The scalars of a node; lists only where the option takes several values.
Result<std::vector<std::string>> node_texts(const OptionRow& row, const ConfigNode& node) {
  if (node.kind == ConfigNode::Kind::kScalar) return std::vector<std::string>{node.text};
  if (row.type() == OptionType::kSpeculation && node.kind == ConfigNode::Kind::kMap)
    return std::vector<std::string>{};
  if (row.type() != OptionType::kTextList || node.kind != ConfigNode::Kind::kList) {
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
    settings_ = default_settings(given_.command);
    OUTRIDER_RETURN_IF_ERROR(load_file());
    warn_of_unknown_variables();
    for (const ForeignArgument& argument : given_.foreign) take_argument(argument);
    for (const OptionRow& row : option_table()) {
      if (row.belongs_to(given_.command)) OUTRIDER_RETURN_IF_ERROR(take_option(row));
    }
    OUTRIDER_RETURN_IF_ERROR(take_speculation());
    use_all_adapters();
    warn_of_loss();
    return std::move(settings_);
  }

 private:
  // A value of the file, by the option that it is for.
  struct FileValue {
    std::string option;  // its key
    std::string place;
    const ConfigNode* node = nullptr;
    std::optional<std::string> translated;  // from another system's words
  };

  Status load_file() {
    const auto path = given_.command_line.find("config");
    if (given_.program_options) {
      file_name_ = "options";
      file_ = *given_.program_options;
    } else if (path != given_.command_line.end()) {
      file_name_ = path->second.back();
      OUTRIDER_TRY(file_, read_config_file(file_name_));
    }
    if (file_.kind != ConfigNode::Kind::kMap && file_.kind != ConfigNode::Kind::kNull) {
      return input_error(fmt::format("{}: expected a map of options, found {}",
                                     place_in(file_name_, file_.line), config_kind_name(file_.kind)));
    }
    for (const ConfigMember& member : file_.members)
      OUTRIDER_RETURN_IF_ERROR(take_member(member, member.key));
    return {};
  }

  // `key` is the member's key after the keys of the maps around it, joined by dots.
  Status take_member(const ConfigMember& member, const std::string& key) {
    const std::string line = place_in(file_name_, member.line);
    const std::string place = fmt::format("{}: {}", line, key);
    if (const OptionRow* row = option_of_key(key)) {
      file_values_.push_back({row->config_key(), place, &member.value, {}});
      const std::string_view other = other_command_of(row->config_key(), given_.command);
      if (!other.empty())
        settings_.warnings.push_back(
            fmt::format("{} has no effect here: it is for `outrider {}`", place, other));
      return {};
    }
    const ForeignName* foreign = find_foreign(foreign_options(), key);
    if (foreign != nullptr) return take_foreign_member(*foreign, place, member.value);
    if (member.value.kind != ConfigNode::Kind::kMap || member.value.members.empty())
      return unknown_option_key(line, key);
    for (const ConfigMember& inner : member.value.members)
      OUTRIDER_RETURN_IF_ERROR(take_member(inner, fmt::format("{}.{}", key, inner.key)));
    return {};
  }

  Status take_foreign_member(const ForeignName& foreign, const std::string& place, const ConfigNode& node) {
    std::optional<std::string> value;
    if (node.kind == ConfigNode::Kind::kScalar) {
      auto here = value_here(foreign, node.text);
      if (!here.ok()) return at_origin({OriginKind::kFile, place}, here.error());
      value = *std::move(here);
    }
    if (foreign.is_refused) OUTRIDER_RETURN_IF_ERROR(refuse(foreign, place));
    const bool is_option = !foreign.here.empty() && speculative_key_of(foreign).empty();
    if (!is_option || (value && leaves_default(foreign, *value))) {
      take_foreign(foreign, place, value, file_kind());
      return {};
    }
    file_values_.push_back(
        {folded_key(foreign.here), place, &node, foreign.values.empty() ? std::nullopt : value});
    return {};
  }

  Status refuse(const ForeignName& foreign, const std::string& place) const {
    return at_origin({OriginKind::kFile, place}, value_here(foreign, "").error());
  }

  void take_argument(const ForeignArgument& argument) {
    if (argument.name != nullptr)
      return take_foreign(*argument.name, argument.place, argument.value, OriginKind::kCommandLine);
    keys_.settings.push_back({.place = argument.place,
                              .key = argument.key,
                              .value = argument.value,
                              .rank = static_cast<int>(OriginKind::kCommandLine)});
  }

  // A name that is no option here: a key of --speculative, or one without effect.
  void take_foreign(const ForeignName& name, const std::string& place,
                    const std::optional<std::string>& value, OriginKind origin) {
    if (speculative_key_of(name).empty()) {
      settings_.warnings.push_back(fmt::format("{} {}", place, no_effect(name)));
    } else {
      keys_.settings.push_back({.place = place,
                                .key = std::string(speculative_key_of(name)),
                                .value = value,
                                .rank = static_cast<int>(origin)});
    }
  }

  void warn_of_unknown_variables() {
    std::vector<std::string> names;
    for (const OptionRow& row : option_table()) {
      if (is_key(row)) names.push_back(row.environment_name());
    }
    const std::vector<std::string_view> views(names.begin(), names.end());
    for (const auto& [name, value] : given_.environment) {
      if (std::find(names.begin(), names.end(), name) != names.end()) continue;
      settings_.warnings.push_back(
          fmt::format("environment variable {} is not read{}", name, suggestion(name, views)));
    }
  }

  // Only a server and a program have requests that choose an adapter by its name.
  void use_all_adapters() {
    if (given_.command == Command::kServe || given_.command == Command::kBatch || given_.program_options)
      return;
    for (AdapterSource& adapter : settings_.engine.adapters) adapter.is_default = true;
  }

  void warn_of_loss() {
    const AcceptanceRule rule = acceptance_rule(settings_.engine);
    if (is_lossless(rule) || given_.command == Command::kVerifyLossless) return;
    settings_.warnings.push_back(
        fmt::format("{} acceptance is lossy: with speculation the output is not the model's own",
                    acceptance_rule_name(rule)));
  }

  Status take_option(const OptionRow& row) {
    OUTRIDER_TRY(const std::optional<FoundValue> found, find(row));
    if (!found) return {};
    Origin origin = found->origin;
    origin.texts = found->texts;
    settings_.origins.insert_or_assign(std::string(row.name), std::move(origin));
    if (row.type() == OptionType::kSpeculation) return add_speculation(*found);
    if (row.type() == OptionType::kSpeculationKey) return add_key(row, *found);
    const Status stored = row.store(settings_, found->texts);
    return stored.ok() ? Status() : at_origin(found->origin, stored.error());
  }

  Status add_key(const OptionRow& row, const FoundValue& found) {
    const auto value = convert_texts(row.rule(), found.texts);
    if (!value.ok()) return at_origin(found.origin, value.error());
    keys_.settings.push_back({.place = found.origin.place,
                              .key = row.config_key(),
                              .value = value->text(),
                              .rank = static_cast<int>(found.origin.kind)});
    return {};
  }

  // Errors about a speculative configuration carry their own place already.
  Status add_speculation(const FoundValue& found) {
    OUTRIDER_TRY(GivenSpeculation given, read_found(found, file_name_));
    for (SpeculationSetting& setting : given.settings) {
      setting.rank = static_cast<int>(found.origin.kind);
      keys_.settings.push_back(std::move(setting));
    }
    keys_.warnings.insert(keys_.warnings.end(), given.warnings.begin(), given.warnings.end());
    return {};
  }

  Status take_speculation() {
    if (keys_.settings.empty() && !given_.has_user_drafter) return {};
    keys_.has_user_drafter = given_.has_user_drafter;
    OUTRIDER_TRY(const SpeculativeConfig config, assemble_speculation(keys_));
    settings_.engine.speculation = config.options;
    settings_.speculation_given = true;
    settings_.warnings.insert(settings_.warnings.end(), config.warnings.begin(), config.warnings.end());
    return {};
  }

  Result<std::optional<FoundValue>> find(const OptionRow& row) const {
    std::optional<FoundValue> found;
    const auto argument = given_.command_line.find(row.name);
    if (argument != given_.command_line.end()) {
      const auto spelled = given_.spelling.find(row.name);
      const std::string place = spelled != given_.spelling.end() ? spelled->second
                                : row.positional                 ? std::string(row.metavar)
                                                                 : fmt::format("--{}", row.name);
      found = found_at(OriginKind::kCommandLine, place, argument->second);
      return found;
    }
    if (!is_key(row)) return found;
    OUTRIDER_TRY(found, find_in_file(row));
    const auto variable = given_.environment.find(row.environment_name());
    if (variable != given_.environment.end() && !(found && given_.program_options))
      found = found_at(OriginKind::kEnvironment, variable->first, {variable->second});
    return found;
  }

  // The options of a program are its command line.
  OriginKind file_kind() const {
    return given_.program_options ? OriginKind::kCommandLine : OriginKind::kFile;
  }

  Result<std::optional<FoundValue>> find_in_file(const OptionRow& row) const {
    const auto is_row = [&](const FileValue& value) { return value.option == row.config_key(); };
    const auto value = std::find_if(file_values_.begin(), file_values_.end(), is_row);
    if (value == file_values_.end()) return std::optional<FoundValue>();
    const Origin origin = {file_kind(), value->place};
    const auto again = std::find_if(value + 1, file_values_.end(), is_row);
    if (again != file_values_.end())
      return at_origin(origin, usage_error(fmt::format("is given again as {}; keep one", again->place)));
    if (value->node->kind == ConfigNode::Kind::kNull) return std::optional<FoundValue>();  // the default
    auto texts = node_texts(row, *value->node);
    if (!texts.ok()) return at_origin(origin, texts.error());
    std::optional<FoundValue> found;
    found = found_at(origin.kind, origin.place,
                     value->translated ? std::vector{*value->translated} : std::move(texts).value());
    found->node = value->node;
    return found;
  }

  const GivenOptions& given_;
  std::string file_name_;
  ConfigNode file_;
  std::vector<FileValue> file_values_;
  GivenSpeculation keys_;  // of --speculative and beside it
  Settings settings_;
};

}  // namespace

Result<Settings> resolve_settings(const GivenOptions& given) { return Resolver(given).run(); }

}  // namespace outrider
