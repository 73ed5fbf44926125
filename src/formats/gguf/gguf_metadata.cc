// SPDX-License-Identifier: Apache-2.0
#include "formats/gguf/gguf_metadata.h"

#include "base/log.h"

namespace outrider {

template <typename T>
Result<std::optional<T>> GgufMetadata::get(std::string_view key, std::string_view expected,
                                           std::optional<T> (GgufValue::*read)() const) const {
  const GgufValue* value = file_.find(key);
  if (value == nullptr) return std::optional<T>();
  std::optional<T> result = (value->*read)();
  if (!result) {
    return fail(std::string(key) + " must be " + std::string(expected) + ", found " + value->printable());
  }
  return result;
}

Result<std::optional<int64_t>> GgufMetadata::integer(std::string_view key) const {
  return get(key, "an integer", &GgufValue::integer);
}

Result<std::optional<TokenId>> GgufMetadata::token_id(std::string_view key, size_t vocabulary) const {
  OUTRIDER_TRY(const auto id, integer(key));
  if (!id) return std::optional<TokenId>();
  if (*id >= 0 && *id < static_cast<int64_t>(vocabulary)) return std::optional(static_cast<TokenId>(*id));
  log_warning(fail(std::string(key) + " is " + std::to_string(*id) + ", outside the vocabulary of " +
                   std::to_string(vocabulary) + " tokens; it counts as none")
                  .message);
  return std::optional<TokenId>();
}

Result<std::optional<double>> GgufMetadata::number(std::string_view key) const {
  return get(key, "a number", &GgufValue::number);
}

Result<std::optional<bool>> GgufMetadata::boolean(std::string_view key) const {
  return get(key, "a bool", &GgufValue::boolean);
}

Result<std::optional<std::string_view>> GgufMetadata::string(std::string_view key) const {
  return get(key, "a string", &GgufValue::string);
}

Result<std::optional<std::vector<std::string_view>>> GgufMetadata::strings(std::string_view key) const {
  return get(key, "an array of strings", &GgufValue::strings);
}

Result<std::optional<std::vector<int64_t>>> GgufMetadata::integers(std::string_view key) const {
  return get(key, "an array of integers", &GgufValue::integers);
}

Result<std::optional<std::vector<bool>>> GgufMetadata::booleans(std::string_view key) const {
  return get(key, "an array of bools", &GgufValue::booleans);
}

Result<std::optional<std::vector<float>>> GgufMetadata::floats(std::string_view key) const {
  return get(key, "an array of f32", &GgufValue::floats);
}

}  // namespace outrider
