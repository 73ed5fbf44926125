// SPDX-License-Identifier: Apache-2.0
// Typed access to the JSON of tokenizer files, with errors that name the field.
#pragma once

#include <simdjson.h>

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "base/quote.h"
#include "outrider/result.h"

namespace outrider {

// A value and where it stands: "pre_tokenizer.pretokenizers[1]". Points into the parser's document.
class JsonField {
 public:
  JsonField(simdjson::dom::element value, std::string path) : value_(value), path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  bool is_null() const { return value_.is_null(); }
  bool is_string() const { return value_.is_string(); }
  bool is_object() const { return value_.is_object(); }

  // Errors: another type than the name says.
  Result<std::string_view> string() const;
  Result<bool> boolean() const;
  Result<int64_t> integer() const;
  Result<simdjson::dom::array> array() const;
  Result<simdjson::dom::object> object() const;

  // A member of an object. Errors: this is no object, or has no such member.
  Result<JsonField> at(std::string_view key) const;
  // nullopt: no such member, null, or this is no object.
  std::optional<JsonField> find(std::string_view key) const;
  // The member's value; `fallback` when it is absent or null. Error: another type.
  Result<bool> boolean_at(std::string_view key, bool fallback) const;
  Result<std::string_view> string_at(std::string_view key, std::string_view fallback) const;

  JsonField element(size_t index, simdjson::dom::element value) const {
    return {value, path_ + "[" + std::to_string(index) + "]"};
  }
  JsonField member(std::string_view key, simdjson::dom::element value) const {
    return {value, path_.empty() ? printable(key) : path_ + "." + printable(key)};
  }

  Error expected(std::string_view what) const;
  // "<path>: <what> "<found>" is not supported; supported: a, b".
  Error unsupported(std::string_view what, std::string_view found,
                    std::initializer_list<std::string_view> supported) const;

 private:
  simdjson::dom::element value_;
  std::string path_;
};

}  // namespace outrider
