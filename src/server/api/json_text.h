// SPDX-License-Identifier: Apache-2.0
// Functions that append JSON to a text, without building a document.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "outrider/token.h"

namespace outrider {

// Appends `text` in quotes and escaped. Each byte that is not valid UTF-8 becomes U+FFFD.
void append_json_string(std::string& out, std::string_view text);
// Appends the shortest digits that read back as the same number; NaN and infinities become null.
void append_json_number(std::string& out, double value);
void append_json_number(std::string& out, float value);
// Appends a time or a ratio, rounded to four decimals.
void append_json_rounded(std::string& out, double value);

// Whether `text` is a JSON object.
bool is_json_object(std::string_view text);

template <typename Numbers>
void append_json_integers(std::string& out, const Numbers& numbers) {
  out += '[';
  for (const auto number : numbers) {
    if (out.back() != '[') out += ',';
    out += std::to_string(number);
  }
  out += ']';
}

}  // namespace outrider
