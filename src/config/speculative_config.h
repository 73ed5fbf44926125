// SPDX-License-Identifier: Apache-2.0
// The value of --speculative and of a speculative_config: block, in TensorRT-LLM's words or vLLM's.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/config_tree.h"
#include "config/speculative_key_table.h"
#include "outrider/result.h"

namespace outrider {

// A key as given, wherever it was given.
struct SpeculationSetting {
  std::string place;  // "--speculative" or "draft.yaml:3"
  std::string key;
  std::optional<std::string> value;  // none: the default
  int rank = 0;                      // of two settings of one key the higher rank wins
};

struct GivenSpeculation {
  std::vector<SpeculationSetting> settings = {};
  std::vector<std::string> warnings = {};
  bool has_user_drafter = false;  // the program's own drafter gives the method
};

// `text` is one of: a method name; "method,key=value,..." or "key=value,..."; a JSON object; the path of a
// YAML or JSON file.
Result<GivenSpeculation> read_speculation(const std::string& text);
// A block of keys, or a map with a speculative_config. `name` stands for its text in messages.
Result<GivenSpeculation> read_speculation(const ConfigNode& node, std::string_view name);

// The options that the keys stand for. Keys of other systems that have no effect here are warnings. Errors
// name the nearest valid method or key, and for files the line.
Result<SpeculativeConfig> assemble_speculation(const GivenSpeculation& given);

// All of the above.
Result<SpeculativeConfig> parse_speculative(const std::string& text);

// The value of --speculative that asks for these options, as parse_speculative() reads it: the method and
// the keys that differ from their defaults. Keys of the tree's shape are left out where nobody asked for them
// (UnsetShape).
std::string speculative_text(const SpeculativeOptions& options);

}  // namespace outrider
