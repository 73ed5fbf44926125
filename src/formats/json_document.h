// SPDX-License-Identifier: Apache-2.0
// Typed, strict reading of small JSON files.
#pragma once

#include <simdjson.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "outrider/result.h"

namespace outrider {

// One object of a JsonDocument, which must outlive it. A key that is absent and one that is null read the
// same.
class JsonObject {
 public:
  JsonObject(simdjson::dom::object object, std::string_view name) : object_(object), name_(name) {}

  bool contains(std::string_view key) const { return object_.at_key(key).error() == simdjson::SUCCESS; }

  // nullopt when absent or null; an error when the value is of another type.
  Result<std::optional<int64_t>> integer(std::string_view key) const;
  Result<std::optional<double>> number(std::string_view key) const;
  Result<std::optional<bool>> boolean(std::string_view key) const;
  Result<std::optional<std::string_view>> string(std::string_view key) const;
  Result<std::optional<JsonObject>> object(std::string_view key) const;
  Result<std::optional<simdjson::dom::array>> array(std::string_view key) const;

  std::optional<simdjson::dom::element> find(std::string_view key) const;
  const simdjson::dom::object& fields() const { return object_; }

  // "config.json: <what>"
  Error fail(const std::string& what) const { return input_error(std::string(name_) + ": " + what); }
  Error wrong_type(std::string_view key, std::string_view expected) const;

 private:
  template <typename T>
  Result<std::optional<T>> get(std::string_view key, std::string_view expected) const;

  simdjson::dom::object object_;
  std::string_view name_;
};

// A JSON file whose root is an object. Limits: 4 MiB, 64 levels, no duplicate keys, valid UTF-8, numbers
// that fit 64 bits.
class JsonDocument {
 public:
  // `name` begins every message.
  static Result<JsonDocument> parse(std::string_view text, std::string name);
  static Result<JsonDocument> read(const std::filesystem::path& path);

  const JsonObject& root() const { return *root_; }

 private:
  JsonDocument() = default;

  std::unique_ptr<simdjson::dom::parser> parser_;
  std::unique_ptr<std::string> name_;
  std::optional<JsonObject> root_;
};

}  // namespace outrider
