// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

namespace outrider {

// The part that a keyword of JSON schemas has here.
enum class KeywordRole {
  kAnnotation,  // it does not restrict the valid values; JSON Schema says so of unknown keywords, too
  kHeld,        // outputs hold it
  kRefused,     // it restricts the valid values, and no automaton here can hold it
};
KeywordRole keyword_role(std::string_view keyword);

// The keyword that a word without a meaning was probably meant to be; nullopt: the word is an annotation.
std::optional<std::string_view> meant_keyword(std::string_view word);

// The type that a keyword restricts, such as "string" for maxLength; empty where it is no single one.
std::string_view restricted_type(std::string_view keyword);

}  // namespace outrider
