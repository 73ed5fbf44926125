// SPDX-License-Identifier: Apache-2.0
// JSON written piece by piece, without a document in between.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "outrider/token.h"

namespace outrider {

// In quotes, escaped; what is not UTF-8 becomes U+FFFD.
void append_json_string(std::string& out, std::string_view text);
// The shortest digits that read back as the same number; NaN and infinities become null.
void append_json_number(std::string& out, double value);
void append_json_number(std::string& out, float value);
// At most four decimals, for times and shares.
void append_json_rounded(std::string& out, double value);

// Whether it is the text of one.
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
