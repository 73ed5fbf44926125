// SPDX-License-Identifier: Apache-2.0
// Objects of configurations: base/json_reader.h with optional members and errors that name the file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/json_reader.h"
#include "outrider/result.h"

namespace outrider {

// One object of a JsonFile (json_file.h), which must outlive it. A key that is absent and one that is null
// read alike.
class JsonObject {
 public:
  // Precondition: `object` is one.
  JsonObject(simdjson::dom::element object, std::string_view name) : field_(object, ""), name_(name) {}

  bool contains(std::string_view key) const {
    return field_.value().at_key(key).error() == simdjson::SUCCESS;
  }

  // nullopt when absent or null. Error: the value has another type.
  Result<std::optional<int64_t>> integer(std::string_view key) const;
  Result<int64_t> require_integer(std::string_view key) const;  // error also: it is absent
  Result<std::optional<double>> number(std::string_view key) const;
  Result<std::optional<bool>> boolean(std::string_view key) const;
  Result<std::optional<std::string_view>> string(std::string_view key) const;
  Result<std::optional<JsonObject>> object(std::string_view key) const;
  Result<std::optional<simdjson::dom::array>> array(std::string_view key) const;

  std::optional<simdjson::dom::element> find(std::string_view key) const;
  simdjson::dom::object fields() const { return field_.value().get_object().value_unsafe(); }

  // "config.json: <what>"
  Error fail(const std::string& what) const { return input_error(std::string(name_) + ": " + what); }
  // "config.json: '<key>' must be <expected>"
  Error wrong_type(std::string_view key, std::string_view expected) const;

 private:
  template <typename T>
  Result<std::optional<T>> get(std::string_view key, std::string_view expected) const;

  JsonField field_;
  std::string_view name_;
};

}  // namespace outrider
