// SPDX-License-Identifier: Apache-2.0
// Typed reading of GGUF keys, internal to formats.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/gguf/gguf.h"
#include "outrider/result.h"
#include "outrider/token.h"

namespace outrider {

// Every getter gives nullopt when the key is absent, and an error when its value has another type.
class GgufMetadata {
 public:
  // Both must outlive the object; `name` begins every message.
  GgufMetadata(const GgufFile& file, std::string_view name) : file_(file), name_(name) {}

  Result<std::optional<int64_t>> integer(std::string_view key) const;
  Result<std::optional<double>> number(std::string_view key) const;
  Result<std::optional<bool>> boolean(std::string_view key) const;
  Result<std::optional<std::string_view>> string(std::string_view key) const;
  Result<std::optional<std::vector<std::string_view>>> strings(std::string_view key) const;
  Result<std::optional<std::vector<int64_t>>> integers(std::string_view key) const;
  Result<std::optional<std::vector<bool>>> booleans(std::string_view key) const;
  Result<std::optional<std::vector<float>>> floats(std::string_view key) const;

  // A token below `vocabulary`. An id outside means "none" to the programs that wrote it, with a warning
  // here.
  Result<std::optional<TokenId>> token_id(std::string_view key, size_t vocabulary) const;

  bool has(std::string_view key) const { return file_.find(key) != nullptr; }
  bool is_list(std::string_view key) const {
    const GgufValue* value = file_.find(key);
    return value != nullptr && value->is_array();
  }

  // "<name>: <what>"
  Error fail(const std::string& what) const { return input_error(std::string(name_) + ": " + what); }

 private:
  template <typename T>
  Result<std::optional<T>> get(std::string_view key, std::string_view expected,
                               std::optional<T> (GgufValue::*read)() const) const;

  const GgufFile& file_;
  std::string_view name_;
};

}  // namespace outrider
