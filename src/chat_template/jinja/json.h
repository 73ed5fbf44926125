// SPDX-License-Identifier: Apache-2.0
// Values as JSON text in the form of Python's json.dumps(), and JSON text as values.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "chat_template/jinja/runtime.h"

namespace outrider::jinja {

struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  std::optional<std::string> indent;  // text of one level
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};

// Error: the value has a part that JSON cannot express (undefined, functions, namespaces).
Result<std::string> to_json(Runtime& runtime, const Value& value, const JsonStyle& style);

// Error: the text is not valid JSON, has an integer outside int64, or is nested deeper than kMaxValueDepth.
Result<Value> parse_json(std::string_view json);

}  // namespace outrider::jinja
