// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <cmath>
#include <concepts>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include "server/api/json_text.h"

namespace outrider {

// A time or a ratio with four decimals.
inline double rounded(double value) { return std::round(value * 10000.0) / 10000.0; }
// nullopt, which is written as null, for an empty text.
inline std::optional<std::string_view> text_or_null(std::string_view text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

// Appends JSON to a text, without building a document. The writer sets the commas; that objects and arrays
// end as they began, and that members have keys, is the caller's matter.
class JsonWriter {
 public:
  // `continues`: `out` ends in a member or an item, and the next one follows after a comma.
  explicit JsonWriter(std::string& out, bool continues = false) : out_(out), needs_comma_(continues) {}

  JsonWriter& begin_object() { return begin('{'); }
  JsonWriter& end_object() { return end('}'); }
  JsonWriter& begin_array() { return begin('['); }
  JsonWriter& end_array() { return end(']'); }
  JsonWriter& key(std::string_view name);
  // Appends JSON as it is: a value, or one or more members or items.
  JsonWriter& json(std::string_view text);
  JsonWriter& null() { return json("null"); }
  // A text, truth value, number, optional or range of values. Invalid UTF-8 becomes U+FFFD; numbers have the
  // fewest digits that read back as the same number, and NaN and infinities are null.
  template <typename T>
  JsonWriter& value(const T& value);
  template <typename T>
  JsonWriter& member(std::string_view name, const T& value) {
    return key(name).value(value);
  }

 private:
  void separate() {
    if (needs_comma_) out_ += ',';
    needs_comma_ = true;
  }
  JsonWriter& begin(char bracket);
  JsonWriter& end(char bracket);
  template <typename Number>
  JsonWriter& number(Number value);

  std::string& out_;
  bool needs_comma_;
};

template <typename Number>
JsonWriter& JsonWriter::number(Number value) {
  char digits[32];
  const auto end = std::to_chars(std::begin(digits), std::end(digits), value);
  return json({digits, end.ptr});
}

template <typename T>
JsonWriter& JsonWriter::value(const T& value) {
  if constexpr (std::convertible_to<const T&, std::string_view>) {
    separate();
    append_json_string(out_, value);
    return *this;
  } else if constexpr (std::same_as<T, bool>) {
    return json(value ? "true" : "false");
  } else if constexpr (std::integral<T>) {
    return number(value);
  } else if constexpr (std::floating_point<T>) {
    return std::isfinite(value) ? number(value) : null();
  } else if constexpr (requires { value.has_value(); }) {
    return value ? this->value(*value) : null();
  } else {
    begin_array();
    for (const auto& item : value) this->value(item);
    return end_array();
  }
}

}  // namespace outrider
