// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "config/config_tree.h"
#include "config/environment.h"
#include "config/resolve_settings.h"
#include "open/model_names.h"
#include "open/parts.h"
#include "outrider/open.h"

namespace outrider {
namespace {

ConfigNode scalar_of(std::string text) {
  ConfigNode node;
  node.kind = ConfigNode::Kind::kScalar;
  node.line = 0;
  node.text = std::move(text);
  return node;
}

// The member of that name, made if there is none.
ConfigNode& member_of(ConfigNode& map, std::string_view key) {
  map.kind = ConfigNode::Kind::kMap;
  const auto found = std::ranges::find(map.members, key, &ConfigMember::key);
  if (found != map.members.end()) return found->value;
  map.members.push_back({.key = std::string(key), .line = 0, .value = {}});
  map.members.back().value.line = 0;
  return map.members.back().value;
}

void add_value(ConfigNode& node, std::string value) {
  if (node.kind == ConfigNode::Kind::kScalar) {
    ConfigNode first = scalar_of(std::move(node.text));
    node = ConfigNode{.kind = ConfigNode::Kind::kList, .line = 0, .text = {}, .items = {}, .members = {}};
    node.items.push_back(std::move(first));
  }
  if (node.kind == ConfigNode::Kind::kList) {
    node.items.push_back(scalar_of(std::move(value)));
  } else {
    node = scalar_of(std::move(value));
  }
}

ConfigNode tree_of(std::span<const NamedOption> options) {
  ConfigNode root;
  root.kind = ConfigNode::Kind::kMap;
  root.line = 0;
  for (const NamedOption& option : options) {
    ConfigNode* node = &root;
    std::string_view rest = option.name;
    for (size_t dot = rest.find('.'); dot != std::string_view::npos; dot = rest.find('.')) {
      node = &member_of(*node, rest.substr(0, dot));
      rest.remove_prefix(dot + 1);
    }
    add_value(member_of(*node, rest), option.value);
  }
  return root;
}

}  // namespace

Status check_options(std::span<const NamedOption> options, bool drafts_itself) {
  GivenOptions given;
  given.program_options = tree_of(options);
  given.has_user_drafter = drafts_itself;
  const auto settings = resolve_settings(given);
  return settings.ok() ? Status() : settings.error();
}

Result<OpenedEngine> open_with_options(std::span<const NamedOption> options,
                                       std::shared_ptr<Drafter> user_drafter) {
  GivenOptions given;
  given.environment = read_environment();
  given.program_options = tree_of(options);
  given.has_user_drafter = user_drafter != nullptr;
  OUTRIDER_TRY(Settings settings, resolve_settings(given));
  settings.engine.user_drafter = std::move(user_drafter);
  OUTRIDER_RETURN_IF_ERROR(find_models(settings, {}));
  OpenedEngine opened;
  OUTRIDER_TRY(Names names, names_of(settings, Unasked::kAuto));
  OUTRIDER_TRY(opened.engine, open_engine(std::move(names)));
  opened.request = std::move(settings.request);
  opened.warnings = std::move(settings.warnings);
  return opened;
}

}  // namespace outrider
