// SPDX-License-Identifier: Apache-2.0
// The value of --speculative and of a speculative_config: block, in TensorRT-LLM's words or vLLM's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/config_tree.h"
#include "outrider/engine.h"
#include "outrider/result.h"

namespace outrider {

struct SpeculativeConfig {
  SpeculativeOptions options;         // decoding_type in canonical spelling
  std::vector<std::string> warnings;  // what was read but has no effect here
};

// `text` is one of: a method name; "method,key=value,..." or "key=value,..."; a JSON object; the path of a
// YAML or JSON file. Errors name the nearest valid method or key, and for files the line.
Result<SpeculativeConfig> parse_speculative(const std::string& text);

// A block of keys, or a map whose speculative_config is one. `name` stands for its text in messages.
Result<SpeculativeConfig> speculative_from_config(const ConfigNode& node, std::string_view name);

// One row per key, for documentation.
struct SpeculativeKey {
  std::string_view name;
  std::string_view aliases;  // vLLM's and older names, separated by '|'
  std::string_view methods;  // decoding types that take it, separated by '|'; empty: all
  std::string_view default_text;
  std::string_view help;
};
std::vector<SpeculativeKey> speculative_keys();

}  // namespace outrider
