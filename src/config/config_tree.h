// SPDX-License-Identifier: Apache-2.0
// Configuration text, YAML or JSON (which is YAML), as a tree of untyped scalars that know their line.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "outrider/result.h"

namespace outrider {

struct ConfigMember;

struct ConfigNode {
  enum class Kind { kNull, kScalar, kList, kMap };

  Kind kind = Kind::kNull;
  int line = 1;                       // from 1; 0: of no text
  std::string text;                   // kScalar, as written
  std::vector<ConfigNode> items;      // kList
  std::vector<ConfigMember> members;  // kMap, in order, keys distinct
};

struct ConfigMember {
  std::string key;
  int line = 1;
  ConfigNode value;
};

// Reads one document. Refused: text over 1 MiB, NUL bytes, nesting over 64, anchors and aliases, tags,
// repeated keys, keys that are not plain text, a second document. `name` stands for the text in messages
// ("run.yaml").
Result<ConfigNode> parse_config(std::string_view text, std::string_view name);

Result<ConfigNode> read_config_file(const std::filesystem::path& path);

// "run.yaml:3", or "options" for what is of no text.
std::string place_in(std::string_view name, int line);

// "a scalar", "a list", ... for messages.
std::string_view config_kind_name(ConfigNode::Kind kind);

}  // namespace outrider
