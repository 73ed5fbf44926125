// SPDX-License-Identifier: Apache-2.0
// Values as JSON, as Python's json.dumps() writes it, and back.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "chat_template/jinja/runtime.h"

namespace outrider::jinja {

struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  std::optional<std::string> indent;  // per level
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};

// Error: a value that JSON has no form for (undefined, functions, namespaces).
Result<std::string> to_json(Runtime& runtime, const Value& value, const JsonStyle& style);

// Error: not valid JSON, an integer outside int64, or nested deeper than kMaxValueDepth.
Result<Value> parse_json(std::string_view json);

}  // namespace outrider::jinja
