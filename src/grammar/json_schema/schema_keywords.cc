// SPDX-License-Identifier: Apache-2.0
#include "grammar/json_schema/schema_keywords.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace outrider {
namespace {

struct Keyword {
  std::string_view name;
  KeywordRole role = KeywordRole::kHeld;
  std::string_view type = "";
};

constexpr std::array<Keyword, 50> kKeywords = {{
    {"type"},
    {"enum"},
    {"const"},
    {"anyOf"},
    {"oneOf"},
    {"allOf"},
    {"$ref"},
    {"nullable"},
    {"properties", KeywordRole::kHeld, "object"},
    {"required", KeywordRole::kHeld, "object"},
    {"additionalProperties", KeywordRole::kHeld, "object"},
    {"propertyNames", KeywordRole::kHeld, "object"},
    {"minProperties", KeywordRole::kHeld, "object"},
    {"maxProperties", KeywordRole::kHeld, "object"},
    {"items", KeywordRole::kHeld, "array"},
    {"prefixItems", KeywordRole::kHeld, "array"},
    {"additionalItems", KeywordRole::kHeld, "array"},
    {"minItems", KeywordRole::kHeld, "array"},
    {"maxItems", KeywordRole::kHeld, "array"},
    {"uniqueItems", KeywordRole::kHeld, "array"},
    {"minLength", KeywordRole::kHeld, "string"},
    {"maxLength", KeywordRole::kHeld, "string"},
    {"pattern", KeywordRole::kHeld, "string"},
    {"format", KeywordRole::kHeld, "string"},
    {"minimum", KeywordRole::kHeld, "number"},
    {"maximum", KeywordRole::kHeld, "number"},
    {"exclusiveMinimum", KeywordRole::kHeld, "number"},
    {"exclusiveMaximum", KeywordRole::kHeld, "number"},
    {"multipleOf", KeywordRole::kHeld, "number"},
    {"not", KeywordRole::kRefused},
    {"if", KeywordRole::kRefused},
    {"then", KeywordRole::kRefused},
    {"else", KeywordRole::kRefused},
    {"patternProperties", KeywordRole::kRefused, "object"},
    {"dependencies", KeywordRole::kRefused, "object"},
    {"dependentRequired", KeywordRole::kRefused, "object"},
    {"dependentSchemas", KeywordRole::kRefused, "object"},
    {"unevaluatedProperties", KeywordRole::kRefused, "object"},
    {"contains", KeywordRole::kRefused, "array"},
    {"minContains", KeywordRole::kRefused, "array"},
    {"maxContains", KeywordRole::kRefused, "array"},
    {"unevaluatedItems", KeywordRole::kRefused, "array"},
    {"$dynamicRef", KeywordRole::kRefused},
    {"$recursiveRef", KeywordRole::kRefused},
    // Annotations that resemble a keyword.
    {"title", KeywordRole::kAnnotation},
    {"$defs", KeywordRole::kAnnotation},
    {"definitions", KeywordRole::kAnnotation},
    {"$anchor", KeywordRole::kAnnotation},
    {"$id", KeywordRole::kAnnotation},
    {"id", KeywordRole::kAnnotation},
}};

const Keyword* find_keyword(std::string_view name) {
  const auto found = std::ranges::find(kKeywords, name, &Keyword::name);
  return found == kKeywords.end() ? nullptr : &*found;
}

// Lower-case letters and digits only: "min_length" is "minlength".
std::string letters_of(std::string_view word) {
  std::string letters;
  for (const char c : word) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return letters;
}

// Whether one letter that is added, left out, replaced or changed with its neighbour makes the words equal.
bool differ_by_one(std::string_view a, std::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  if (b.size() - a.size() > 1) return false;
  const auto begin = static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
  const std::string_view rest_a = a.substr(begin), rest_b = b.substr(begin);
  if (a.size() != b.size()) return rest_a == rest_b.substr(1);
  if (rest_a.size() < 2) return true;
  const bool changed_places =
      rest_a[0] == rest_b[1] && rest_a[1] == rest_b[0] && rest_a.substr(2) == rest_b.substr(2);
  return rest_a.substr(1) == rest_b.substr(1) || changed_places;
}

}  // namespace

KeywordRole keyword_role(std::string_view keyword) {
  const Keyword* known = find_keyword(keyword);
  return known == nullptr ? KeywordRole::kAnnotation : known->role;
}

std::optional<std::string_view> meant_keyword(std::string_view word) {
  constexpr size_t kShortest = 5;  // letters; shorter words are near too many others
  if (find_keyword(word) != nullptr || word.starts_with("x-") || word.starts_with('$')) return std::nullopt;
  const std::string letters = letters_of(word);
  for (const Keyword& keyword : kKeywords) {
    if (keyword.role == KeywordRole::kAnnotation || keyword.name.starts_with('$')) continue;
    const std::string known = letters_of(keyword.name);
    if (letters == known || (letters.size() >= kShortest && differ_by_one(letters, known)))
      return keyword.name;
  }
  return std::nullopt;
}

std::string_view restricted_type(std::string_view keyword) {
  const Keyword* known = find_keyword(keyword);
  return known == nullptr ? std::string_view() : known->type;
}

}  // namespace outrider
