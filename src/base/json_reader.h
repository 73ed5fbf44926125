// SPDX-License-Identifier: Apache-2.0
// The one reader of untrusted JSON: a parsed document, and fields that know their path and their type.
// Adapters over it give errors another form: formats/json_file.h for configurations,
// server/api/request_field.h for the bodies of requests.
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/quote.h"
#include "outrider/result.h"

namespace outrider {

// A value and its path, such as "messages[2].content"; the root's path is empty. It points into its document.
class JsonField {
 public:
  JsonField(simdjson::dom::element value, std::string path) : value_(value), path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  std::string_view key() const { return key_; }  // of a member that members() listed, else empty
  simdjson::dom::element value() const { return value_; }
  bool is_null() const { return value_.is_null(); }
  bool is_string() const { return value_.is_string(); }
  bool is_array() const { return value_.is_array(); }
  bool is_object() const { return value_.is_object(); }
  bool is_bool() const { return value_.is_bool(); }
  bool is_number() const { return value_.is_number(); }
  size_t size() const;       // entries of an array or object, else 0
  std::string json() const;  // the value as JSON without white space

  // Typed reads. Errors: the value has another type, is out of range, or has more than `max` entries.
  Result<std::string_view> string() const;
  Result<bool> boolean() const;
  Result<int64_t> integer() const;
  Result<int64_t> integer(int64_t min, int64_t max) const;
  Result<double> number(double min, double max) const;
  Result<simdjson::dom::array> array() const;
  Result<simdjson::dom::object> object() const;
  Result<std::vector<JsonField>> items(size_t max) const;    // of an array
  Result<std::vector<JsonField>> members(size_t max) const;  // of an object
  // Calls `visit` with one item of this array after the other, without memory for all. Errors: this is no
  // array; the first error of `visit`.
  Status each(const std::function<Status(const JsonField&)>& visit) const;
  // The index in `names` of this string. Error: it is none of them.
  Result<int> one_of(std::span<const std::string_view> names) const;

  // A member of an object; null counts as a value. Errors: this is no object, or has no such member.
  Result<JsonField> at(std::string_view key) const;
  // A member that is not null; nullopt where there is none, or this is no object.
  std::optional<JsonField> find(std::string_view key) const;
  // The value of a member, or `fallback` where it is absent or null. Error: the member has another type.
  Result<bool> boolean_at(std::string_view key, bool fallback) const;
  Result<std::string_view> string_at(std::string_view key, std::string_view fallback) const;

  // Fields for values that a caller took out of this array or object itself, and the path of a member.
  JsonField element(size_t index, simdjson::dom::element value) const;
  JsonField member(std::string_view key, simdjson::dom::element value) const;
  std::string member_path(std::string_view key) const;

  // "<path>: <what>"; only "<what>" for the root.
  Error fail(const std::string& what) const;
  // "<path>: expected <what>, found <found()>".
  Error expected(std::string_view what) const;
  // The type of the value, and the value where it is short.
  std::string found() const;
  // "<path>: <what> '<found>' is not supported; supported: a, b".
  Error unsupported(std::string_view what, std::string_view found,
                    std::initializer_list<std::string_view> supported) const;

 private:
  Error too_many(size_t max) const;

  simdjson::dom::element value_;
  std::string path_;
  std::string_view key_;
};

// A parsed text. Its fields are valid as long as it lives; moving it keeps them valid. JSON has no greatest
// number: an integer beyond 64 bits reads as the nearest double, a number beyond all doubles as 10^308.
class JsonDocument {
 public:
  // Errors: the text is not valid JSON in UTF-8 or is nested deeper than `max_depth` levels (kInput); memory
  // is short (kResource).
  static Result<JsonDocument> parse(std::string_view text, int max_depth);

  JsonField root() const { return {root_, ""}; }
  // The second of two members with one key in one object, with its path; nullopt where keys are unique.
  std::optional<JsonField> find_duplicate_key() const;

 private:
  JsonDocument() = default;

  std::unique_ptr<simdjson::dom::parser> parser_;
  simdjson::dom::element root_;
};

}  // namespace outrider
