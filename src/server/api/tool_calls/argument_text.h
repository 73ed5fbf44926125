// SPDX-License-Identifier: Apache-2.0
// Arguments that models write as text, as the JSON that the tool's schema wants.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/tools/tool_use.h"

namespace outrider {

// JSON types, as bits.
inline constexpr uint8_t kStringKind = 1;
inline constexpr uint8_t kNumberKind = 2;
inline constexpr uint8_t kBooleanKind = 4;
inline constexpr uint8_t kNullKind = 8;
inline constexpr uint8_t kObjectKind = 16;
inline constexpr uint8_t kArrayKind = 32;
inline constexpr uint8_t kOtherKinds = kNumberKind | kBooleanKind | kNullKind | kObjectKind | kArrayKind;

// The types that the tool's schema allows for the argument `key`; strings if it does not say.
uint8_t argument_kinds(const std::vector<Tool>& tools, std::string_view tool, const std::string& key);

// The text as JSON of one of the types, or else as a JSON string.
std::string argument_json(std::string_view text, uint8_t kinds);

// Appends a byte of a text to a JSON string.
void append_string_byte(std::string& out, char byte);

// JSON's spelling of a constant of Python; any other text as it is.
std::string_view json_constant(std::string_view text);

}  // namespace outrider
