// SPDX-License-Identifier: Apache-2.0
// Typed reading of the GGUF keys `<architecture>.<key>`, internal to formats.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "formats/gguf/gguf_metadata.h"

namespace outrider {

class ArchitectureKeys {
 public:
  // `metadata` must outlive the object.
  ArchitectureKeys(const GgufMetadata& metadata, std::string_view architecture)
      : metadata_(metadata), prefix_(std::string(architecture) + ".") {}

  Result<std::optional<int64_t>> integer(std::string_view key) const { return metadata_.integer(full(key)); }
  Result<std::optional<double>> number(std::string_view key) const { return metadata_.number(full(key)); }
  Result<std::optional<bool>> boolean(std::string_view key) const { return metadata_.boolean(full(key)); }
  Result<std::optional<std::string_view>> string(std::string_view key) const {
    return metadata_.string(full(key));
  }

  // A number, or a list of one number for all layers.
  Result<std::optional<int64_t>> uniform_integer(std::string_view key) const {
    if (!metadata_.is_list(full(key))) return integer(key);
    OUTRIDER_TRY(const auto list, metadata_.integers(full(key)));
    for (const int64_t number : *list) {
      if (number != list->front())
        return fail(full(key) + ": numbers that differ by layer are not supported");
    }
    return list->empty() ? std::optional<int64_t>() : list->front();
  }

  Result<int64_t> require_integer(std::string_view key) const {
    OUTRIDER_TRY(const auto value, integer(key));
    if (!value) return metadata_.fail(full(key) + " is missing");
    return *value;
  }

  std::string full(std::string_view key) const { return prefix_ + std::string(key); }
  Error fail(const std::string& what) const { return metadata_.fail(what); }

 private:
  const GgufMetadata& metadata_;
  std::string prefix_;
};

}  // namespace outrider
