// SPDX-License-Identifier: Apache-2.0
// The value of --speculative and of a speculative_config: block, in TensorRT-LLM's words or vLLM's.
#pragma once

#include <string>
#include <string_view>

#include "config/config_tree.h"
#include "config/speculative_key_table.h"
#include "outrider/result.h"

namespace outrider {

// `text` is one of: a method name; "method,key=value,..." or "key=value,..."; a JSON object; the path of a
// YAML or JSON file. Errors name the nearest valid method or key, and for files the line.
Result<SpeculativeConfig> parse_speculative(const std::string& text);

// A block of keys, or a map whose speculative_config is one. `name` stands for its text in messages.
Result<SpeculativeConfig> speculative_from_config(const ConfigNode& node, std::string_view name);

}  // namespace outrider
